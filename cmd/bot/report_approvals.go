package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/report"
)

func reportApprovalsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "approvals",
		Short:   "Say who decides, how fast and how often yes",
		Example: "  bot report approvals\n  bot report approvals --since 90d --format csv",
		Args:    knownCommand,
	}
	o := newReportFlags(c, "table", "csv", "json")
	since := c.Flags().String("since", "30d", "from this time on: 2026-10-31, 2026-10-31T15:04:05Z, or 30d (that long ago)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return reportApprovals(c.Context(), c.OutOrStdout(), o, *since)
	}
	return c
}

// reportApprovals says who approves, how fast and how often.
func reportApprovals(ctx context.Context, out io.Writer, o *reportFlags, from string) error {
	since, err := parseTime("--since", from)
	if err != nil {
		return err
	}
	s, team, err := o.openLedger(ctx, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	until := time.Now()
	if !since.Before(until) {
		return fmt.Errorf("--since: %s has not begun yet: %w", since.Format(time.DateOnly), errUsage)
	}
	found, err := s.ApprovalsReport(ctx, team, since, until)
	if err != nil {
		return err
	}
	var people []string
	for _, p := range found.ByPerson {
		people = append(people, p.Name)
	}
	a := report.NewApprovals(team, since, until, found, lookUpNames(ctx, people, nil))
	return o.write(out, func(w io.Writer) error {
		switch o.format {
		case "json":
			return report.WriteJSON(w, a)
		case "csv":
			return a.CSV(w)
		}
		return a.Table(w)
	})
}
