package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/money"
	"deckhand/internal/price"
	"deckhand/internal/settings"
	"deckhand/internal/store/ledger"
)

func reportRepriceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reprice",
		Short: "Price the calls that had no price when they were booked",
		Long: `Prices calls anew that were booked while the list had no price for their model: by the
list of this binary, and by the contract prices of deckhand.yaml as it stands. What they
cost more or less becomes entries of today, kind "correction", that refer to the calls;
nothing that is booked changes. Run again, it does nothing.`,
		Example: "  bot report reprice --dry-run\n  bot report reprice --since 2026-11-01",
		Args:    knownCommand,
	}
	o := &reportFlags{}
	o.teamFlag(c)
	config := configFlag(c)
	since := c.Flags().String("since", "", "calls that were booked from this time on (default: all)")
	dry := c.Flags().Bool("dry-run", false, "say what would be corrected, and correct nothing")
	c.RunE = func(c *cobra.Command, _ []string) error {
		from, err := parseTime("--since", *since)
		if err != nil {
			return err
		}
		if from.After(time.Now()) {
			return fmt.Errorf("--since: %s lies in the future: %w", from.Format(time.RFC3339), errUsage)
		}
		file, err := configIfThere(*config)
		if err != nil {
			return err
		}
		return reportReprice(c.Context(), c.OutOrStdout(), o, file, from, *dry)
	}
	return c
}

// reportReprice corrects a team's calls that had no price.
func reportReprice(ctx context.Context, out io.Writer, o *reportFlags, file settings.File, since time.Time, dry bool) error {
	s, team, err := o.openLedger(ctx, file.Zone())
	if err != nil {
		return err
	}
	defer s.Close()
	calls, err := s.UnpricedCalls(ctx, team, since)
	if err != nil {
		return err
	}
	if len(calls) == 0 {
		_, err := fmt.Fprintln(out, "Every call has a price. Nothing to correct.")
		return err
	}
	var corrections []ledger.Repricing
	sums, unknown := map[string]*repriced{}, map[string]int{}
	var failed []error
	for _, c := range calls {
		correction, known, err := repricing(c, file)
		switch {
		case err != nil:
			failed = append(failed, err)
		case !known:
			unknown[c.Model]++
		default:
			corrections = append(corrections, correction)
			sum := sums[c.Model]
			if sum == nil {
				sum = &repriced{}
				sums[c.Model] = sum
			}
			sum.add(c, correction)
		}
	}
	done := "are corrected"
	if dry {
		done = "would be corrected"
	} else if n, err := s.Reprice(ctx, corrections); err != nil {
		return err
	} else if n < int64(len(corrections)) {
		done += fmt.Sprintf(" (%d of them by somebody else meanwhile)", int64(len(corrections))-n)
	}
	return errors.Join(tellRepriced(out, done, sums, unknown), errors.Join(failed...))
}

// repriced is the sum for one model's calls.
type repriced struct {
	calls       int
	booked, now int64
}

func (r *repriced) add(c ledger.UnpricedCall, correction ledger.Repricing) {
	r.calls++
	r.booked += c.MicroUSD
	r.now += c.MicroUSD + correction.MicroUSD
}

// repricing is the difference to a call's booked cost; known is false while the list has no price for its model.
func repricing(c ledger.UnpricedCall, file settings.File) (r ledger.Repricing, known bool, err error) {
	u, cost, known, err := price.Usage{
		Input: c.Input, Output: c.Output, CacheRead: c.CacheRead, CacheWrite5m: c.CacheWrite5m, CacheWrite1h: c.CacheWrite1h, WebSearches: c.WebSearches,
	}.CostAt(c.Model, c.Rate)
	if err != nil {
		return r, false, fmt.Errorf("call %s of %s is not corrected: %w", c.ID, c.At.Format(time.RFC3339), err)
	}
	r = ledger.Repricing{ID: c.ID, MicroUSD: cost - c.MicroUSD}
	terms, ok := file.Projects[c.Project].Prices.Of(c.Model)
	if !ok {
		terms, ok = file.Prices.Of(c.Model)
	}
	if ok {
		more := terms.Cost(c.Model, u)
		if c.ContractMicroUSD != nil {
			more -= *c.ContractMicroUSD
		}
		r.ContractMicroUSD = &more
	}
	return r, known, nil
}

func tellRepriced(out io.Writer, done string, sums map[string]*repriced, unknown map[string]int) error {
	asOf, _ := price.Origin()
	var errs []error
	for _, model := range slices.Sorted(maps.Keys(sums)) {
		r := sums[model]
		_, err := fmt.Fprintf(out, "%s: %s %s, from %s to %s by the list of %s.\n", model, callCount(r.calls), done, money.USD(r.booked), money.USD(r.now), asOf)
		errs = append(errs, err)
	}
	for _, model := range slices.Sorted(maps.Keys(unknown)) {
		_, err := fmt.Fprintf(out, "%s: %s still without a price, in the list of %s. A newer Deckhand may know it; run this again with it.\n", model, callCount(unknown[model]), asOf)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func callCount(n int) string {
	if n == 1 {
		return "1 call"
	}
	return fmt.Sprintf("%d calls", n)
}
