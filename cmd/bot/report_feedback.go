package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/report"
)

func reportFeedbackCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "feedback",
		Short:   "Say what people think of the answers, and why",
		Example: "  bot report feedback\n  bot report feedback --since 90d --last 100 --format csv",
		Args:    knownCommand,
	}
	o := newReportFlags(c, "table", "csv", "json")
	since := c.Flags().String("since", "30d", "from this time on: 2026-10-31, 2026-10-31T15:04:05Z, or 30d (that long ago)")
	last := c.Flags().Int("last", 20, "how many reasons, the latest first")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		if *last < 0 {
			return fmt.Errorf("--last: %d is no number of reasons: %w", *last, errUsage)
		}
		return reportFeedback(c.Context(), c.OutOrStdout(), o, *since, *last)
	}
	return c
}

// reportFeedback says what people think of the answers.
func reportFeedback(ctx context.Context, out io.Writer, o *reportFlags, from string, last int) error {
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
	found, err := s.FeedbackReport(ctx, team, since, until, last)
	if err != nil {
		return err
	}
	var people []string
	for _, r := range found.Reasons {
		people = append(people, r.UserID)
	}
	f := report.NewFeedback(team, since, until, found, lookUpNames(ctx, people, nil), lookUpAddress(ctx))
	return o.write(out, func(w io.Writer) error {
		switch o.format {
		case "json":
			return report.WriteJSON(w, f)
		case "csv":
			return f.CSV(w)
		}
		return f.Table(w)
	})
}
