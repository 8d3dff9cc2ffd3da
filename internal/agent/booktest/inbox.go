package booktest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"deckhand/internal/store"
)

// Due is [store.Store.Due].
func (b *Books) Due(ctx context.Context, holder string, limit int) ([]store.Envelope, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	var due []*envelope
	for _, e := range b.inbox {
		if e.State == "received" && !e.until.After(time.Now()) {
			due = append(due, e)
		}
	}
	slices.SortFunc(due, func(x, y *envelope) int { return cmp.Or(cmp.Compare(x.TS, y.TS), cmp.Compare(x.InboxID, y.InboxID)) })
	var out []store.Envelope
	for _, e := range due[:min(len(due), limit)] {
		e.until, e.sent.Holder, e.sent.ID = time.Now().Add(store.HoldFor), holder, e.InboxID
		out = append(out, e.sent)
	}
	return out, nil
}

// LetGo is [store.Store.LetGo].
func (b *Books) LetGo(ctx context.Context, prefix, but string) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, e := range b.inbox {
		if e.State == "received" && strings.HasPrefix(e.sent.Holder, prefix) && e.sent.Holder != but && e.sent.WaitsSince.IsZero() {
			e.until = time.Now()
		}
	}
	return nil
}

// PutOff is [store.Store.PutOff].
func (b *Books) PutOff(ctx context.Context, id int64, after time.Duration, _ string, counted, mark bool) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	e := b.inbox[id-1]
	if e.State != "received" {
		return nil
	}
	if e.until = time.Now().Add(after); e.sent.WaitsSince.IsZero() {
		e.sent.WaitsSince = time.Now()
	}
	if e.sent.Marked = e.sent.Marked || mark; counted {
		e.sent.Attempts++
	}
	return nil
}

// FinishTelling is [store.Store.FinishTelling], and keeps nothing of what is told.
func (b *Books) FinishTelling(ctx context.Context, id int64, outcome string, _ ...store.Whisper) ([]store.Word, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if e := b.inbox[id-1]; e.State == "received" {
		e.State, e.Outcome = "done", outcome
	}
	return nil, nil
}
