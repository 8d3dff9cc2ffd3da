// Package threads is Slack's threads with a session, the replicas that work on them, and the leases by which one does at
// a time.
package threads

import (
	"context"
	"errors"

	"deckhand/internal/store/pg"
)

// ErrFenced means that another replica has taken the lease of the write.
var ErrFenced = errors.New("another replica holds this thread now")

// Store has the methods about threads, by its handle on the database.
type Store struct{ db *pg.DB }

// New returns the methods about the threads of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// Fenced runs fn in a transaction that holds the lease, and fails with [ErrFenced] if that is lost.
func Fenced(ctx context.Context, db *pg.DB, l Lease, fn func(pg.Tx) error) error {
	return db.InTx(ctx, func(tx pg.Tx) error {
		if _, err := Hold(ctx, tx, l); err != nil {
			return err
		}
		return fn(tx)
	})
}
