package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/money"
	"deckhand/internal/store"
	"deckhand/internal/store/ledger"
)

func reportVerifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "Recompute every sum from the ledger's own rows and compare",
		Long: `Recomputes every sum from the ledger's own rows and compares, and sets what the calls
have cost against what Claude Code itself says, turn by turn. Its exit code is 1 if a sum
is wrong, or if Claude Code says that it spent more than its calls have cost and nothing
explains it. Differences that are explained are shown, and are no error of the ledger.`,
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
		b, err := verifyLedger(c.Context(), s, o.team)
		if err != nil {
			return err
		}
		if *asJSON {
			err = writeJSON(c, b)
		} else {
			explainLedger(c, b)
		}
		switch {
		case len(b.Differences) > 0:
			return fmt.Errorf("the ledger is not right: %d difference(s) between the ledger's rows and what follows from them", len(b.Differences))
		case !b.OK:
			return fmt.Errorf("the ledger misses something: %d turn(s) for which Claude Code says more than its calls have cost", b.ClaudeCode.unexplained())
		}
		return err
	}
	return c
}

// ledgerCheck is the result of the verification, in JSON.
type ledgerCheck struct {
	OK          bool         `json:"ok"`
	Checks      int          `json:"checks"`
	Differences []difference `json:"differences"`
	ByHand      byHand       `json:"corrections_by_hand"`
	ClaudeCode  cliCheck     `json:"claude_code"`
}

type difference struct {
	Check    string `json:"check"`
	Key      string `json:"key"`
	ShouldBe string `json:"should_be"`
	Is       string `json:"is"`
}

// byHand are corrections that refer to no call.
type byHand struct {
	Entries  int64 `json:"entries"`
	MicroUSD int64 `json:"micro_usd"`
}

// cliCheck compares Claude Code's totals with the calls.
type cliCheck struct {
	Turns       int64     `json:"turns"` // that were compared
	Differences []stretch `json:"differences"`
}

type stretch struct {
	At        time.Time `json:"at"`
	Thread    int64     `json:"thread"`
	Turn      int64     `json:"turn"`
	Calls     int64     `json:"calls_micro_usd"`
	Says      int64     `json:"claude_code_micro_usd"`
	Reason    string    `json:"reason"`
	Explained bool      `json:"explained"`
	Question  []inDoubt `json:"calls"`
}

type inDoubt struct {
	Call      string    `json:"call"`
	Request   string    `json:"request"`
	Model     string    `json:"model"`
	StartedAt time.Time `json:"started_at"`
	Status    int       `json:"status"`
	Complete  bool      `json:"complete"`
	MicroUSD  int64     `json:"micro_usd"`
	Bound     int64     `json:"bound_micro_usd"`
}

func (w cliCheck) unexplained() (n int) {
	for _, d := range w.Differences {
		if !d.Explained {
			n++
		}
	}
	return n
}

func verifyLedger(ctx context.Context, s *store.Store, team string) (ledgerCheck, error) {
	b := ledgerCheck{Checks: ledger.Checks(), Differences: []difference{}, ClaudeCode: cliCheck{Differences: []stretch{}}}
	found, err := s.VerifyRollups(ctx, team)
	if err != nil {
		return b, err
	}
	for _, d := range found {
		b.Differences = append(b.Differences, difference{d.Check, d.Key, d.Want, d.Got})
	}
	if b.ByHand.Entries, b.ByHand.MicroUSD, err = s.CorrectionsByHand(ctx, team); err != nil {
		return b, err
	}
	differ, checked, err := s.CLITotals(ctx, team, time.Time{})
	if err != nil {
		return b, err
	}
	b.ClaudeCode.Turns = checked
	for _, d := range differ {
		b.ClaudeCode.Differences = append(b.ClaudeCode.Differences, newStretch(d))
	}
	b.OK = len(found) == 0 && b.ClaudeCode.unexplained() == 0
	return b, nil
}

func newStretch(d ledger.Stretch) stretch {
	out := stretch{
		At: d.At.UTC(), Thread: d.ThreadID, Turn: d.TurnID, Calls: d.CallsMicroUSD, Says: d.CLIMicroUSD,
		Reason: string(d.Why), Explained: d.Why.Explained(), Question: []inDoubt{},
	}
	for _, c := range d.Calls {
		out.Question = append(out.Question, inDoubt{
			c.ID.String(), c.RequestID, c.Model, c.StartedAt.UTC(), c.Status, c.Complete, c.MicroUSD, c.BoundMicroUSD,
		})
	}
	return out
}

// reasons explain differences between calls and Claude Code.
var reasons = map[ledger.Difference]string{
	ledger.DifferenceCut:      "an answer was cut, and Claude Code guesses what had come of it",
	ledger.DifferenceProbes:   "calls for one token, which Claude Code does not count",
	ledger.DifferenceUnpriced: "the list has no price for the model; bot report reprice mends it when it has one",
	ledger.DifferenceBeside:   "more was called than Claude Code counts: a command called the model by itself, or went on when a process had gone",
	ledger.DifferenceMissing:  "Claude Code says that it spent more than its calls have cost: something reached the model past the gateway, or entries are missing",
}

func explainLedger(c *cobra.Command, b ledgerCheck) {
	out, m := c.OutOrStdout(), marksFor(c.OutOrStdout())
	for _, d := range b.Differences {
		fmt.Fprintf(out, "%s %s %s\n    should be %s\n    but is    %s\n", m.failed, d.Check, d.Key, d.ShouldBe, d.Is)
	}
	if len(b.Differences) == 0 {
		fmt.Fprintf(out, "%s all %d checks agree: the roll-ups, running totals, turns and the audit are what the ledger's rows add up to\n", m.ok, b.Checks)
	}
	if b.ByHand.Entries > 0 {
		fmt.Fprintf(out, "%s %d correction(s) were written by hand, %s in all; nothing else tells of them\n", m.warning, b.ByHand.Entries, money.USD(b.ByHand.MicroUSD))
	}
	for _, d := range b.ClaudeCode.Differences {
		mark := m.warning
		if !d.Explained {
			mark = m.failed
		}
		fmt.Fprintf(out, "%s turn %d, %s: the calls cost %s, Claude Code says %s\n    %s\n", mark, d.Turn, d.At.Format(time.RFC3339),
			money.Exact(d.Calls), money.Exact(d.Says), reasons[ledger.Difference(d.Reason)])
		for _, q := range d.Question {
			fmt.Fprintf(out, "    %s %s %s %s%s\n", q.StartedAt.Format(time.RFC3339), q.Model, graphic(q.Request), money.Exact(q.MicroUSD), q.bound())
		}
	}
	if n := b.ClaudeCode.Turns; n > 0 {
		fmt.Fprintf(out, "%s the calls are what Claude Code says in %d of %d turns\n", m.ok, n-int64(len(b.ClaudeCode.Differences)), n)
	}
}

// bound is what may have been billed beyond a call's last usage.
func (q inDoubt) bound() string {
	switch {
	case q.Complete:
		return ""
	case q.Bound == 0:
		return ", cut"
	}
	return ", cut, and up to " + money.Exact(q.Bound) + " more may have been billed"
}
