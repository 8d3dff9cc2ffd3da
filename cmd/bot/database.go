package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"deckhand/internal/store"
)

// openStore opens the database for a command that needs nothing else. Without a zone
// days are those of UTC.
func openStore(ctx context.Context, zone *time.Location) (*store.Store, error) {
	s, err := store.Open(ctx, os.Getenv("DATABASE_URL"), store.Options{TimeZone: zone})
	if err != nil {
		return nil, databaseError(err)
	}
	if err := s.CheckSchema(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// databaseError names the variable that the database's errors are about.
func databaseError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("DATABASE_URL: %w", err)
}
