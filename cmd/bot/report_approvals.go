package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/report"
	"deckhand/internal/store"
)

func reportApprovalsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "approvals",
		Short:   "Say who decides, how fast and how often yes",
		Example: "  bot report approvals\n  bot report approvals --since 90d --format csv",
		Args:    knownCommand,
	}
	reportsSince(c, func(ctx context.Context, s *store.Store, team string, since, until time.Time) (lines, error) {
		found, err := s.ApprovalsReport(ctx, team, since, until)
		if err != nil {
			return nil, err
		}
		var people []string
		for _, p := range found.ByPerson {
			people = append(people, p.Name)
		}
		return report.NewApprovals(team, since, until, found, lookUpNames(ctx, people, nil)), nil
	})
	return c
}
