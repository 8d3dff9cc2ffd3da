package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deckhand/internal/store/pg"
)

func migrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up, down, or say where it stands",
		Long: `Brings the schema of the database that DATABASE_URL names up or down, or says where
it stands. bot run brings it up at its start, under a lock.`,
		Example: "  bot migrate status\n  bot migrate up",
	}
	return group(c, migrateUpCommand(), migrateDownCommand(), migrateStatusCommand())
}

func migrateUpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "up",
		Short:   "Apply what is missing",
		Example: "  DATABASE_URL=postgres://owner:…@db/deckhand bot migrate up",
		Args:    knownCommand,
		RunE: func(c *cobra.Command, _ []string) error {
			done, err := pg.MigrateUp(c.Context(), databaseURL())
			return migrated(c.OutOrStdout(), "applied", "nothing to apply", done, err)
		},
	}
}

func migrateDownCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "down",
		Short: "Revert the newest step, with its tables",
		Long: `Reverts the newest step. Its tables go with their rows, so it refuses while they
hold any, and says how many, until --lose names each of them. Stop every bot before
it, and keep a backup.`,
		Example: "  bot migrate down\n  bot migrate down --lose audit,audit_anchors",
		Args:    knownCommand,
	}
	lose := c.Flags().StringSlice("lose", nil, "tables whose rows are to be deleted for ever")
	c.RunE = func(c *cobra.Command, _ []string) error {
		done, err := pg.MigrateDown(c.Context(), databaseURL(), *lose)
		if loss, ok := errors.AsType[*pg.LossError](err); ok {
			return explainLoss(c.OutOrStdout(), loss)
		}
		return migrated(c.OutOrStdout(), "reverted", "nothing to revert", done, err)
	}
	return c
}

// explainLoss says what would be deleted, and how to agree to that.
func explainLoss(out io.Writer, loss *pg.LossError) error {
	if len(loss.Misnamed) > 0 {
		return fmt.Errorf("--lose: %w", loss)
	}
	names := []string{}
	fmt.Fprintf(out, "%s would delete:\n", loss.Migration.Name)
	for _, t := range loss.Tables {
		fmt.Fprintf(out, "  %10d  %s\n", t.Rows, t.Table)
		names = append(names, t.Table)
	}
	return fmt.Errorf("%w; to lose them for ever, keep a backup and write bot migrate down --lose %s", loss, strings.Join(names, ","))
}

func migrateStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "status",
		Short:   "List the steps, and when each was applied",
		Example: "  bot migrate status\n  bot migrate status --json",
		Args:    knownCommand,
	}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		all, err := pg.MigrationStatus(c.Context(), databaseURL())
		if err != nil {
			return databaseError(err)
		}
		if *asJSON {
			return writeJSON(c, migrationLines(all))
		}
		for _, m := range all {
			at := "pending"
			if !m.AppliedAt.IsZero() {
				at = m.AppliedAt.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(c.OutOrStdout(), "%05d  %-28s  %s\n", m.Version, m.Name, at)
		}
		return nil
	}
	return c
}

// migrationLine is a step in JSON. AppliedAt is null while it is pending.
type migrationLine struct {
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"`
}

func migrationLines(all []pg.Migration) []migrationLine {
	out := []migrationLine{}
	for _, m := range all {
		l := migrationLine{Version: m.Version, Name: m.Name}
		if !m.AppliedAt.IsZero() {
			at := m.AppliedAt.UTC()
			l.AppliedAt = &at
		}
		out = append(out, l)
	}
	return out
}

func migrated(out io.Writer, verb, none string, done []pg.Migration, err error) error {
	for _, m := range done {
		fmt.Fprintf(out, "%s %05d  %s\n", verb, m.Version, m.Name)
	}
	if err == nil && len(done) == 0 {
		fmt.Fprintln(out, none)
	}
	return databaseError(err)
}
