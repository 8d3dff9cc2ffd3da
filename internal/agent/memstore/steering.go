package memstore

import (
	"context"

	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// Steering is [store.Store.Steering]: nobody steers here.
func (b *Store) Steering(context.Context, int64) (inbox.Steering, error) {
	return inbox.Steering{}, nil
}

// NoteServers is [store.Store.NoteServers], of sessions without any.
func (b *Store) NoteServers(context.Context, threads.Lease, []inbox.MCPServer, []string, ...string) ([]outbox.Row, error) {
	return nil, nil
}
