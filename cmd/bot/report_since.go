package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/report"
	"deckhand/internal/store"
)

// lines is a report with a table, CSV and JSON form.
type lines interface {
	CSV(io.Writer) error
	Table(io.Writer) error
}

// reportsSince makes a command a report on the time since its flag --since, with the reports' flags. read makes a
// team's report.
func reportsSince(c *cobra.Command, read func(ctx context.Context, s *store.Store, team string, since, until time.Time) (lines, error)) {
	o := newReportFlags(c, "table", "csv", "json")
	from := c.Flags().String("since", "30d", "from this time on: 2026-10-31, 2026-10-31T15:04:05Z, or 30d (that long ago)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		since, err := parseTime("--since", *from)
		if err != nil {
			return err
		}
		until := time.Now()
		if !since.Before(until) {
			return fmt.Errorf("--since: %s has not begun yet: %w", since.Format(time.DateOnly), errUsage)
		}
		s, team, err := o.openLedger(c.Context(), nil)
		if err != nil {
			return err
		}
		defer s.Close()
		found, err := read(c.Context(), s, team, since, until)
		if err != nil {
			return err
		}
		return o.write(c.OutOrStdout(), func(w io.Writer) error {
			switch o.format {
			case "json":
				return report.WriteJSON(w, found)
			case "csv":
				return found.CSV(w)
			}
			return found.Table(w)
		})
	}
}
