package memstore

import (
	"context"

	"deckhand/internal/store"
)

// Steering is [store.Store.Steering].
func (b *Store) Steering(ctx context.Context, threadID int64) (store.Steering, error) {
	if err := b.lock(ctx); err != nil {
		return store.Steering{}, err
	}
	defer b.mu.Unlock()
	return b.steering[threadID], nil
}

func (b *Store) steer(threadID int64, c store.Steer) {
	if b.steering == nil {
		b.steering = map[int64]store.Steering{}
	}
	now := b.steering[threadID]
	switch c.What {
	case store.SteerModel:
		now.Model = c.Value
	case store.SteerEffort:
		now.Effort = c.Value
	case store.SteerMode:
		now.Mode = c.Value
	}
	b.steering[threadID] = now
	b.addOutboxRow(threadID, store.OutboxRow{Kind: store.OutboxSaid, Body: c.Sentence})
}
