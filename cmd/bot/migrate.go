package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"deckhand/internal/store"
)

func migrateCommand(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("migrate", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: bot migrate up|down|status\n\nup applies what is missing, down reverts the newest step (its tables' rows are lost).\nDATABASE_URL names the database.")
	}
	if err := parseFlags(f, args, out, 1); err != nil {
		return err
	}
	url := os.Getenv("DATABASE_URL")
	if url == "" && f.NArg() > 0 {
		return fmt.Errorf("DATABASE_URL: set it to the database, postgres://user:password@host:5432/database")
	}
	switch f.Arg(0) {
	case "up":
		return migrated(out, "applied", "nothing to apply")(store.MigrateUp(ctx, url))
	case "down":
		return migrated(out, "reverted", "nothing to revert")(store.MigrateDown(ctx, url))
	case "status":
		all, err := store.MigrationStatus(ctx, url)
		if err != nil {
			return err
		}
		for _, m := range all {
			at := "pending"
			if !m.AppliedAt.IsZero() {
				at = m.AppliedAt.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(out, "%05d  %-24s  %s\n", m.Version, m.Name, at)
		}
		return nil
	}
	return fmt.Errorf("write bot migrate up, down or status: %w", errUsage)
}

func migrated(out io.Writer, verb, none string) func([]store.Migration, error) error {
	return func(done []store.Migration, err error) error {
		for _, m := range done {
			fmt.Fprintf(out, "%s %05d  %s\n", verb, m.Version, m.Name)
		}
		if err == nil && len(done) == 0 {
			fmt.Fprintln(out, none)
		}
		return err
	}
}
