package memstore

import (
	"context"
	"slices"

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

// NoteServers is [store.Store.NoteServers].
func (b *Store) NoteServers(ctx context.Context, l store.Lease, seen []store.MCPServer, again []string, sentences ...string) (rows []store.OutboxRow, err error) {
	return rows, b.under(ctx, l, func(*store.Thread) error {
		now := b.steering[l.ThreadID]
		now.MCPSeen, now.MCPAgain = seen, slices.DeleteFunc(slices.Clone(now.MCPAgain), func(n string) bool { return slices.Contains(again, n) })
		b.steerTo(l.ThreadID, now)
		for _, sentence := range sentences {
			rows = append(rows, b.addOutboxRow(l.ThreadID, store.OutboxRow{Kind: store.OutboxSaid, Body: sentence}))
		}
		return nil
	})
}

func (b *Store) steerTo(threadID int64, now store.Steering) {
	if b.steering == nil {
		b.steering = map[int64]store.Steering{}
	}
	b.steering[threadID] = now
}

func (b *Store) steer(threadID int64, c store.Steer) {
	now := b.steering[threadID]
	switch c.What {
	case store.SteerModel:
		now.Model = c.Value
	case store.SteerEffort:
		now.Effort = c.Value
	case store.SteerMode:
		now.Mode = c.Value
	}
	b.steerTo(threadID, now)
	b.addOutboxRow(threadID, store.OutboxRow{Kind: store.OutboxSaid, Body: c.Sentence})
}
