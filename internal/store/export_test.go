package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
)

// Frozen begins a transaction as every other, in which stmt is the last that the server
// hears until end is called, which reports what became of it.
func (s *Store) Frozen(ctx context.Context, stmt string, args ...any) (end func() error, err error) {
	tx, err := s.db.BeginTx(ctx, pgx.TxOptions{BeginQuery: pg.Begin})
	if err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, stmt, args...); err != nil {
		_ = tx.Rollback(ctx)
		return nil, err
	}
	return func() error { return tx.Commit(ctx) }, nil
}

// In is the store as it is when it was opened with another time zone, on the same
// connections.
func (s *Store) In(zone *time.Location) *Store {
	other := *s.db
	other.TimeZone = zone
	return compose(&other)
}

// RawCosts answers from the ledger's own rows, one by one: what [ledger.Store.Costs] is
// checked against.
func (s *Store) RawCosts(ctx context.Context, q ledger.CostQuery) (ledger.CostReport, error) {
	q.Raw = true
	return s.Costs(ctx, q)
}
