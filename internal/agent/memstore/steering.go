package memstore

import (
	"context"

	"deckhand/internal/store"
)

// Steering is [store.Store.Steering]: nobody steers here.
func (b *Store) Steering(context.Context, int64) (store.Steering, error) {
	return store.Steering{}, nil
}

// NoteServers is [store.Store.NoteServers], of sessions without any.
func (b *Store) NoteServers(context.Context, store.Lease, []store.MCPServer, []string, ...string) ([]store.OutboxRow, error) {
	return nil, nil
}
