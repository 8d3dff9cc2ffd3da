package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Frozen begins a transaction as every other, in which stmt is the last that the server
// hears until end is called, which reports what became of it.
func (s *Store) Frozen(ctx context.Context, stmt string, args ...any) (end func() error, err error) {
	tx, err := s.pool.BeginTx(ctx, pgx.TxOptions{BeginQuery: begin})
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
	other := *s
	other.zone = zone
	return &other
}

// RawCosts answers from the ledger's own rows, one by one: what [Store.Costs] is
// checked against.
func (s *Store) RawCosts(ctx context.Context, q CostQuery) (CostReport, error) {
	return s.costs(ctx, q, true)
}
