package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Verify the audit's chain, and export it",
		Long: `Verifies and exports the audit: who asked, decided and did what. DATABASE_URL names
the database.`,
		Example: `  bot audit verify --anchors anchors.jsonl
  bot audit export --since 30d --format csv`,
	}
	return group(c, auditVerifyCommand(), auditAnchorsCommand(), auditExportCommand())
}

// parseTime reads a day, a moment, or how long ago. Empty is the zero time.
func parseTime(flagName, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n < 100_000 {
			return time.Now().AddDate(0, 0, -n), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%s: %q is no time; write 2026-10-31, 2026-10-31T15:04:05Z or 30d: %w", flagName, text, errUsage)
}
