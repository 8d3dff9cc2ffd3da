package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/report"
	"deckhand/internal/store"
)

func reportFeedbackCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "feedback",
		Short:   "Say what people think of the answers, and why",
		Example: "  bot report feedback\n  bot report feedback --since 90d --last 100 --format csv",
		Args:    knownCommand,
	}
	last := c.Flags().Int("last", 20, "how many reasons, the latest first")
	c.PreRunE = func(*cobra.Command, []string) error {
		if *last < 0 {
			return fmt.Errorf("--last: %d is no number of reasons: %w", *last, errUsage)
		}
		return nil
	}
	reportsSince(c, func(ctx context.Context, s *store.Store, team string, since, until time.Time) (lines, error) {
		found, err := s.FeedbackReport(ctx, team, since, until, *last)
		if err != nil {
			return nil, err
		}
		var people []string
		for _, r := range found.Reasons {
			people = append(people, r.UserID)
		}
		return report.NewFeedback(team, since, until, found, lookUpNames(ctx, people, nil), lookUpAddress(ctx)), nil
	})
	return c
}
