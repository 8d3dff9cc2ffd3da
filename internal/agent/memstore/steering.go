package memstore

import (
	"context"

	"deckhand/internal/store"
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

// History is [store.Store.History] of a thread that nobody takes back.
func (b *Store) History(context.Context, int64) (store.History, error) { return store.History{}, nil }

// PromptsAfter is [store.Store.PromptsAfter], as nothing is copied.
func (b *Store) PromptsAfter(context.Context, string, int64) (map[string]bool, bool, error) {
	return nil, false, nil
}

// MoveRewind is [store.Store.MoveRewind], of none.
func (b *Store) MoveRewind(context.Context, threads.Lease, int64, bool) error { return nil }

// FinishRewind is [store.Store.FinishRewind], of none.
func (b *Store) FinishRewind(context.Context, threads.Lease, store.Rewound) (string, []outbox.Row, error) {
	return "", nil, nil
}
