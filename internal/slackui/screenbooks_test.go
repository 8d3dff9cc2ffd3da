package slackui

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"deckhand/internal/agent/booktest"
	"deckhand/internal/store"
)

// screenBooks are the agent's books and what was posted.
type screenBooks struct {
	*booktest.Books
	rest

	saveTakes, readTakes time.Duration

	mu     sync.Mutex
	turns  map[int64]map[int]store.PostedMessage
	cards  map[string]string
	copies map[string]store.CardCopy
	rated  store.FeedbackReport // what people think of answers
}

// rest is what no desk needs; what the agent's books have goes before it.
type rest struct{ Books }

func newScreenBooks() *screenBooks {
	return &screenBooks{Books: &booktest.Books{}, turns: map[int64]map[int]store.PostedMessage{}, cards: map[string]string{}, copies: map[string]store.CardCopy{}}
}

func (b *screenBooks) withCard(a store.Approval) store.Approval {
	b.mu.Lock()
	defer b.mu.Unlock()
	a.MessageTS = b.cards[a.CardID]
	return a
}

func (b *screenBooks) ApprovalByID(ctx context.Context, id string) (store.Approval, error) {
	a, err := b.Books.ApprovalByID(ctx, id)
	return b.withCard(a), err
}

func (b *screenBooks) CardApprovals(ctx context.Context, cardID string) ([]store.Approval, error) {
	var out []store.Approval
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

func (b *screenBooks) save(ctx context.Context, write func()) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(b.saveTakes):
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	write()
	return nil
}

func (b *screenBooks) SaveTurnMessage(ctx context.Context, turnID int64, m store.PostedMessage) error {
	return b.save(ctx, func() {
		if b.turns[turnID] == nil {
			b.turns[turnID] = map[int]store.PostedMessage{}
		}
		b.turns[turnID][m.Page] = m
	})
}

func (b *screenBooks) SaveApprovalMessage(ctx context.Context, cardID string, m store.PostedMessage) error {
	return b.save(ctx, func() { b.cards[cardID] = m.TS })
}

func (b *screenBooks) PendingApprovals(ctx context.Context, k store.ThreadKey) (out []store.Approval, _ error) {
	for _, row := range b.Approvals() {
		a, err := b.ApprovalByID(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		if a.Thread == k && a.Status == store.ApprovalPending {
			out = append(out, a)
		}
	}
	return out, nil
}

func (b *screenBooks) Concerns(ctx context.Context, k store.ThreadKey, _ string) (served, begins bool, err error) {
	_, err = b.ThreadByKey(ctx, k)
	if errors.Is(err, store.ErrNotFound) {
		return false, false, nil
	}
	return err == nil, false, err
}

func (b *screenBooks) StalePlaces(context.Context, string) ([]store.ThreadKey, error) {
	return nil, nil // nobody waits for a slot here
}

func (b *screenBooks) AddCardCopies(ctx context.Context, copies []store.CardCopy) error {
	return b.save(ctx, func() {
		for _, c := range copies {
			if _, known := b.copies[c.CardID+c.UserID]; !known {
				c.CreatedAt = time.Now()
				b.copies[c.CardID+c.UserID] = c
			}
		}
	})
}

func (b *screenBooks) CardCopies(_ context.Context, cardID string) (out []store.CardCopy, _ error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(b.copies)) {
		if b.copies[key].CardID == cardID {
			out = append(out, b.copies[key])
		}
	}
	return out, nil
}

func (b *screenBooks) SaveCardCopy(ctx context.Context, c store.CardCopy) error {
	return b.save(ctx, func() {
		known := b.copies[c.CardID+c.UserID]
		known.TS = c.TS
		b.copies[c.CardID+c.UserID] = known
	})
}

func (b *screenBooks) TurnMessages(_ context.Context, turnID int64) ([]store.PostedMessage, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []store.PostedMessage
	for _, page := range slices.Sorted(maps.Keys(b.turns[turnID])) {
		out = append(out, b.turns[turnID][page])
	}
	return out, nil
}
