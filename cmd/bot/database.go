package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"deckhand/internal/store"
)

// databaseURL is the database for a command, bypassing a pooler.
func databaseURL() string {
	return cmp.Or(os.Getenv("DATABASE_DIRECT_URL"), os.Getenv("DATABASE_URL"))
}

// openStore opens the database for a command that needs nothing else. Without a zone it counts days in UTC.
func openStore(ctx context.Context, zone *time.Location) (*store.Store, error) {
	s, err := store.Open(ctx, databaseURL(), store.Options{TimeZone: zone})
	if err != nil {
		return nil, databaseError(err)
	}
	if err := s.CheckSchema(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// databaseError adds the variable's name to database errors.
func databaseError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("DATABASE_URL: %w", err)
}
