package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"deckhand/internal/store"
)

func reportVerifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "Recompute every sum from the ledger's own rows and compare",
		Long: `Recomputes every sum from the ledger's own rows and compares. Its exit code is 1 if
anything differs.`,
		Example: "  bot report verify\n  bot report verify --json",
		Args:    knownCommand,
	}
	o := &reportFlags{}
	o.teamFlag(c)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := openStore(c.Context(), nil) // of all teams, unless one was chosen
		if err == nil && o.team != "" {
			s.Close()
			s, _, err = o.openLedger(c.Context(), nil)
		}
		if err != nil {
			return err
		}
		defer s.Close()
		found, err := s.VerifyRollups(c.Context(), o.team)
		if err != nil {
			return err
		}
		if *asJSON {
			err = writeJSON(c, newBooks(found))
		} else {
			explainBooks(c, newBooks(found))
		}
		if n := len(found); n > 0 {
			return fmt.Errorf("the books are not right: %d difference(s) between the ledger's rows and what follows from them", n)
		}
		return err
	}
	return c
}

// books are what the verification found, in JSON.
type books struct {
	OK          bool         `json:"ok"`
	Checks      int          `json:"checks"`
	Differences []difference `json:"differences"`
}

type difference struct {
	Check    string `json:"check"`
	Key      string `json:"key"`
	ShouldBe string `json:"should_be"`
	Is       string `json:"is"`
}

func newBooks(found []store.RollupDifference) books {
	b := books{OK: len(found) == 0, Checks: store.LedgerChecks(), Differences: []difference{}}
	for _, d := range found {
		b.Differences = append(b.Differences, difference{d.Check, d.Key, d.Want, d.Got})
	}
	return b
}

func explainBooks(c *cobra.Command, b books) {
	out, m := c.OutOrStdout(), marksFor(c.OutOrStdout())
	for _, d := range b.Differences {
		fmt.Fprintf(out, "%s %s %s\n    should be %s\n    but is    %s\n", m.failed, d.Check, d.Key, d.ShouldBe, d.Is)
	}
	if b.OK {
		fmt.Fprintf(out, "%s all %d checks agree: the roll-ups, running totals, turns and the audit are what the ledger's rows add up to\n", m.ok, b.Checks)
	}
}
