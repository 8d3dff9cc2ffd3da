package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/anthropicadmin"
	"deckhand/internal/report"
)

func reportReconcileCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reconcile [period]...",
		Short: "Set the ledger against Anthropic's bill",
		Long: `Sets the ledger against the cost report of Anthropic's Admin API, by day in UTC and by
model; without a period it is last month. ANTHROPIC_ADMIN_KEY is an Admin API key;
ANTHROPIC_WORKSPACE_ID, if there is one, the workspace that the bot works in.`,
		Example:           "  bot report reconcile\n  bot report reconcile 2026-10 --against contract --format json",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.FixedCompletions([]cobra.Completion{"today", "yesterday", "this", "last", "week", "month"}, cobra.ShellCompDirectiveNoFileComp),
	}
	o := newReportFlags(c, "table", "json")
	var against string
	choiceFlag(c, &against, "against", "the ledger's prices to compare with (default: contract if all have one, else list)", "list", "contract")
	c.RunE = func(c *cobra.Command, words []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if against != "" && against != "list" && against != "contract" {
			return fmt.Errorf("--against: %q is no prices; write list or contract: %w", against, errUsage)
		}
		return reportReconcile(c.Context(), c.OutOrStdout(), o, against, strings.Join(words, " "))
	}
	return c
}

// reportReconcile sets the ledger against Anthropic's bill.
func reportReconcile(ctx context.Context, out io.Writer, o *reportFlags, against, words string) error {
	period, err := report.ReconciledPeriod(words, time.Now())
	if wrong, ok := errors.AsType[*report.ParseError](err); ok {
		return fmt.Errorf("%w: %w", wrong, errUsage)
	}
	if err != nil {
		return err
	}
	key := os.Getenv("ANTHROPIC_ADMIN_KEY")
	if key == "" {
		return errors.New("ANTHROPIC_ADMIN_KEY: set it to an Admin API key, sk-ant-admin…; an admin of the organization makes one in Anthropic's Console")
	}
	s, team, err := o.openLedger(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	bill := &anthropicadmin.Client{Key: key}
	r, err := report.Reconcile(ctx, s, bill, team, period, os.Getenv("ANTHROPIC_WORKSPACE_ID"), report.Against(against))
	if err != nil {
		return err
	}
	return o.write(out, func(w io.Writer) error {
		if o.format == "json" {
			return report.WriteJSON(w, r)
		}
		return r.Table(w)
	})
}
