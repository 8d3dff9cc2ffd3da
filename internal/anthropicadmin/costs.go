package anthropicadmin

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"time"
)

// DefaultWorkspace stands for the workspace that has no id.
const DefaultWorkspace = "default"

// Cost is what a day cost on a model.
type Cost struct {
	// Day is the day in UTC, as in 2026-10-31.
	Day string
	// Model is the model's id. It is empty for what the API attributes to none, such
	// as web searches; Kind says then what it is.
	Model string
	// Kind is tokens, web_search, code_execution, session_usage or what else the API
	// calls it.
	Kind string
	// MicroUSD is the amount in millionths of a US dollar: the sum of the API's exact
	// amounts, rounded once, half away from zero.
	MicroUSD int64
}

// Costs is what the organization, or one of its workspaces, was charged on the days
// in [from, to), which begin and end at midnight UTC. workspace is a workspace's id,
// [DefaultWorkspace], or empty for all. Costs are by day, model and kind, in that
// order; there is none for a day without costs. An answer that the API refuses to
// give is an [*Error].
func (c *Client) Costs(ctx context.Context, from, to time.Time, workspace string) ([]Cost, error) {
	type key struct{ day, model, kind string }
	sums := map[key]*big.Rat{}
	err := c.pages(ctx, from, to, func(p page) error {
		for _, bucket := range p.Data {
			day := bucket.StartingAt.UTC().Format(time.DateOnly)
			if bucket.StartingAt.Before(from) || !bucket.StartingAt.Before(to) {
				continue // a day that was not asked for
			}
			for _, r := range bucket.Results {
				if !within(r.WorkspaceID, workspace) {
					continue
				}
				amount, err := microUSD(r)
				if err != nil {
					return fmt.Errorf("the Admin API's costs of %s: %w", day, err)
				}
				k := key{day, r.Model, cmp.Or(r.CostType, r.Description, "other")}
				if sums[k] == nil {
					sums[k] = new(big.Rat)
				}
				sums[k].Add(sums[k], amount)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]Cost, 0, len(sums))
	for k, sum := range sums {
		micro, err := round(sum)
		if err != nil {
			return nil, fmt.Errorf("the Admin API's costs of %s: %w", k.day, err)
		}
		out = append(out, Cost{Day: k.day, Model: k.model, Kind: k.kind, MicroUSD: micro})
	}
	slices.SortFunc(out, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Kind, b.Kind))
	})
	return out, nil
}

func within(id, workspace string) bool {
	return workspace == "" || id == workspace || (id == "" && workspace == DefaultWorkspace)
}

var decimal = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,40})?$`)

// microUSD is an item's exact amount. Amounts are cents, of which one is 10,000
// micro-dollars.
func microUSD(r result) (*big.Rat, error) {
	if r.Currency != "USD" {
		return nil, fmt.Errorf("an amount is in %.10q; the ledger knows US dollars only", r.Currency)
	}
	if !decimal.MatchString(r.Amount) {
		return nil, fmt.Errorf("%.60q is not an amount", r.Amount)
	}
	cents, ok := new(big.Rat).SetString(r.Amount)
	if !ok {
		return nil, fmt.Errorf("%.60q is not an amount", r.Amount)
	}
	return cents.Mul(cents, big.NewRat(10_000, 1)), nil
}

func round(r *big.Rat) (int64, error) {
	n, ok := new(big.Int).SetString(r.FloatString(0), 10) // half away from zero
	if !ok || !n.IsInt64() {
		return 0, fmt.Errorf("the sum %s is too large", r.FloatString(0))
	}
	return n.Int64(), nil
}
