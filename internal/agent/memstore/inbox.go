package memstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Due is [store.Store.Due].
func (b *Store) Due(ctx context.Context, holder string, limit int) ([]inbox.Envelope, error) {
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
	var out []inbox.Envelope
	for _, e := range due[:min(len(due), limit)] {
		e.until, e.sent.Holder, e.sent.ID = time.Now().Add(inbox.HoldFor), holder, e.InboxID
		out = append(out, e.sent)
	}
	return out, nil
}

// LetGo is [store.Store.LetGo].
func (b *Store) LetGo(ctx context.Context, prefix, but string) error {
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
func (b *Store) PutOff(ctx context.Context, id int64, after time.Duration, _ string, counted, mark bool) error {
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
func (b *Store) FinishTelling(ctx context.Context, id int64, outcome string, _ ...inbox.Whisper) ([]outbox.Row, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if e := b.inbox[id-1]; e.State == "received" {
		e.State, e.Outcome = "done", outcome
	}
	return nil, nil
}

// LastPost is [store.Store.LastPost].
func (b *Store) LastPost(ctx context.Context, k threads.ThreadKey, before string) (ts string, err error) {
	if err := b.lock(ctx); err != nil {
		return "", err
	}
	defer b.mu.Unlock()
	for _, e := range b.inbox {
		if e.kind == inbox.Message && e.ThreadKey == k && e.State != "received" && e.Outcome == "" && e.TS < before {
			ts = max(ts, e.TS)
		}
	}
	return ts, nil
}

// post is a person's post that has no turn yet, or nil.
func (b *Store) post(p inbox.Post) *envelope { return b.postAs(p, "received", "accepted") }

// postAs is a person's post in one of these states, or nil.
func (b *Store) postAs(p inbox.Post, states ...string) *envelope {
	for _, e := range b.inbox {
		if e.kind == inbox.Message && e.ChannelID == p.ChannelID && e.TS == p.TS && e.UserID == p.UserID && slices.Contains(states, e.State) {
			return e
		}
	}
	return nil
}

// Edit is [store.Store.Edit].
func (b *Store) Edit(ctx context.Context, p inbox.Post, change func(json.RawMessage) (json.RawMessage, bool, error)) (bool, error) {
	if err := b.lock(ctx); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	e := b.post(p)
	if e == nil {
		return false, nil
	}
	changed, differs, err := change(e.sent.Payload)
	if err != nil || !differs {
		return false, err
	}
	if e.sent.Payload, e.sent.Edits = changed, e.sent.Edits+1; e.State == "accepted" {
		e.State, e.until, e.sent.Attempts, e.sent.WaitsSince = "received", time.Now(), 0, time.Time{}
	}
	return true, nil
}

// Delete is [store.Store.Delete], and tells nothing.
func (b *Store) Delete(ctx context.Context, p inbox.Post) (bool, []outbox.Row, error) {
	if err := b.lock(ctx); err != nil {
		return false, nil, err
	}
	defer b.mu.Unlock()
	e := b.post(p)
	if e == nil {
		return false, nil, nil
	}
	e.State, e.Outcome = "done", "deleted"
	if e.ThreadID != 0 {
		b.notify(pg.Notice{Kind: pg.NoticePrompt, ThreadID: e.ThreadID})
	}
	return true, nil, nil
}

// DropWaiting is [store.Store.DropWaiting].
func (b *Store) DropWaiting(ctx context.Context, inboxID int64, by, mark, said string) (bool, []outbox.Row, error) {
	if err := b.lock(ctx); err != nil {
		return false, nil, err
	}
	defer b.mu.Unlock()
	e := b.inbox[inboxID-1]
	if e.State != "accepted" {
		return false, nil, nil
	}
	_, rows, waits := b.drop(e.ThreadID, []*envelope{e}, inbox.Drop{Outcome: "dropped by " + by, Mark: mark, Sentence: func(int) string { return said }})
	rows = append(rows, waits...)
	b.notify(pg.Notice{Kind: pg.NoticePrompt, ThreadID: e.ThreadID})
	return true, rows, nil
}

// SendNow is [store.Store.SendNow].
func (b *Store) SendNow(ctx context.Context, inboxID int64, by string) (bool, error) {
	if err := b.lock(ctx); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	e := b.inbox[inboxID-1]
	if e.State != "accepted" {
		return false, nil
	}
	if e.UrgentAt.IsZero() {
		e.UrgentAt, e.UrgentBy = time.Now(), by
	}
	b.notify(pg.Notice{Kind: pg.NoticePrompt, ThreadID: e.ThreadID})
	return true, nil
}

// Queue is [store.Store.Queue].
func (b *Store) Queue(ctx context.Context, threadID int64) (inbox.Queue, error) {
	if err := b.lock(ctx); err != nil {
		return inbox.Queue{}, err
	}
	defer b.mu.Unlock()
	t, err := b.thread(threadID)
	if err != nil {
		return inbox.Queue{}, err
	}
	q := inbox.Queue{ThreadKey: t.Key(), Running: b.runningTurn(threadID) != nil}
	for _, e := range b.waiting(threadID) {
		q.Prompts = append(q.Prompts, inbox.QueuedPrompt{Prompt: e.now(), Kind: e.kind, Payload: e.sent.Payload})
	}
	return q, nil
}
