package store

import (
	"context"
	"time"
)

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
