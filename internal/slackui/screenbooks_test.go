package slackui

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"deckhand/internal/agent/memstore"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// screenBooks are the agent's store and what was posted.
type screenStore struct {
	*memstore.Store
	rest

	saveTakes, readTakes time.Duration

	mu    sync.Mutex
	rated turns.FeedbackReport // what people think of answers
}

// rest is what no desk needs; what the agent's store have goes before it.
type rest struct{ Store }

func newScreenStore() *screenStore {
	return &screenStore{Store: &memstore.Store{}}
}

func (b *screenStore) CardApprovals(ctx context.Context, cardID string) ([]approvals.Approval, error) {
	var out []approvals.Approval
	for _, row := range b.Approvals() {
		if row.CardID != cardID {
			continue
		}
		a, err := b.ApprovalByID(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	if b.readTakes > 0 { // what changes meanwhile is not in it
		time.Sleep(b.readTakes)
	}
	return out, nil
}

func (b *screenStore) SavePosts(ctx context.Context, posts ...outbox.PostedMessage) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.saveTakes):
	}
	return b.Store.SavePosts(ctx, posts...)
}

func (b *screenStore) PendingApprovals(ctx context.Context, k threads.ThreadKey) (out []approvals.Approval, _ error) {
	for _, row := range b.Approvals() {
		a, err := b.ApprovalByID(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		if a.ThreadKey == k && a.Status == approvals.Pending {
			out = append(out, a)
		}
	}
	return out, nil
}

func (b *screenStore) Concerns(ctx context.Context, k threads.ThreadKey, _ string) (served, begins bool, err error) {
	_, err = b.ThreadByKey(ctx, k)
	if errors.Is(err, pg.ErrNotFound) {
		return false, false, nil
	}
	return err == nil, false, err
}

func (b *screenStore) StalePlaces(context.Context, string) ([]threads.Thread, error) {
	return nil, nil // nobody waits for a slot here
}

// Bindings implements [Store]: no channel of a desk's is set up.
func (b *screenStore) Bindings(context.Context, string) ([]threads.Binding, error) { return nil, nil }

// WorkedOn implements [Store]: at a desk nobody changes what is worked on.
func (b *screenStore) WorkedOn(context.Context, inbox.Post) (json.RawMessage, error) {
	return nil, pg.ErrNotFound
}
