package memstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/store"
)

// outboxRow is a row of the outbox.
type outboxRow struct {
	store.OutboxRow
	heldUntil time.Time
	gone      bool
}

// addOutboxRow writes an outbox row of a thread.
func (b *Store) addOutboxRow(threadID int64, w store.OutboxRow) store.OutboxRow {
	w.ID, w.ThreadID, w.ThreadKey, w.CreatedAt = int64(len(b.outbox)+1), threadID, b.threads[threadID-1].Key(), time.Now()
	if w.InboxID != 0 {
		w.TS = b.inbox[w.InboxID-1].TS
	}
	b.outbox = append(b.outbox, &outboxRow{OutboxRow: w, heldUntil: time.Now().Add(store.OutboxHold)})
	return w
}

// waitRows notes of which posts it is to be seen that they wait, or do no longer.
func (b *Store) waitRows() {
	for _, e := range b.inbox {
		if waits := e.waits(); waits != e.seenToWait {
			e.seenToWait = waits
			b.outbox = append(b.outbox, &outboxRow{OutboxRow: store.OutboxRow{
				ID: int64(len(b.outbox) + 1), Kind: store.OutboxWaits, ThreadKey: e.ThreadKey, InboxID: e.InboxID, TS: e.TS, CreatedAt: time.Now(),
			}})
		}
	}
}

// waits reports whether it is to be seen that a post waits.
func (e *envelope) waits() bool {
	return e.State == "received" && e.sent.Marked || (e.State == "accepted" || e.State == "running") && e.Marked
}

// PostWaits is [store.Store.PostWaits].
func (b *Store) PostWaits(ctx context.Context, inboxID int64) (store.PostState, error) {
	if err := b.lock(ctx); err != nil {
		return store.PostState{}, err
	}
	defer b.mu.Unlock()
	e := b.inbox[inboxID-1]
	why, _ := strings.CutPrefix(e.Outcome, store.GivenUp)
	if why == e.Outcome {
		why = ""
	}
	return store.PostState{Waits: e.waits(), GivenUp: why, ThreadTS: e.ThreadTS}, nil
}

// StandQueue is [store.Store.StandQueue].
func (b *Store) StandQueue(ctx context.Context, threadID int64) (store.OutboxRow, error) {
	if err := b.lock(ctx); err != nil {
		return store.OutboxRow{}, err
	}
	defer b.mu.Unlock()
	for _, w := range b.outbox {
		if w.Kind == store.OutboxQueue && w.ThreadID == threadID && !w.gone {
			w.heldUntil, w.Again = time.Now().Add(store.OutboxHold), true
			return w.OutboxRow, nil
		}
	}
	return b.addOutboxRow(threadID, store.OutboxRow{Kind: store.OutboxQueue}), nil
}

// cardRow notes that an approval's card has changed.
func (b *Store) cardRow(a *store.Approval) {
	b.addOutboxRow(a.ThreadID, store.OutboxRow{Kind: store.OutboxCard, CardID: a.CardID})
}

// closeCards notes that the cards of a turn are to be shown once more.
func (b *Store) closeCards(turnID int64) {
	var known []string
	for _, a := range b.approvals {
		if a.TurnID == turnID && a.DecidedVia != "rule" && a.DecidedVia != "grant" && !slices.Contains(known, a.CardID) {
			known = append(known, a.CardID)
			b.cardRow(a)
		}
	}
}

// lastOutboxRow is the last row of a kind that is about something, or 0.
func (b *Store) lastOutboxRow(about func(store.OutboxRow) bool) int64 {
	for _, w := range slices.Backward(b.outbox) {
		if !w.gone && about(w.OutboxRow) {
			return w.ID
		}
	}
	return 0
}

// Say is [store.Store.Say].
func (b *Store) Say(ctx context.Context, l store.Lease, sentence string) (w store.OutboxRow, err error) {
	err = b.under(ctx, l, func(t *store.Thread) error {
		w = b.addOutboxRow(t.ID, store.OutboxRow{Kind: store.OutboxSaid, Body: sentence})
		return nil
	})
	return w, err
}

// LeaveTurn is [store.Store.LeaveTurn].
func (b *Store) LeaveTurn(ctx context.Context, l store.Lease, turnID int64, sentence string) (w store.OutboxRow, err error) {
	err = b.under(ctx, l, func(t *store.Thread) error {
		w = b.addOutboxRow(t.ID, store.OutboxRow{Kind: store.OutboxLeft, TurnID: turnID, Body: sentence})
		return nil
	})
	return w, err
}

// ClaimOutbox is [store.Store.ClaimOutbox] of whoever is alive.
func (b *Store) ClaimOutbox(ctx context.Context, teamID string, limit int) ([]store.OutboxRow, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	b.waitRows()
	var out []store.OutboxRow
	held := map[store.ThreadKey]bool{}
	for _, w := range b.outbox {
		switch {
		case w.gone || w.TeamID != teamID:
		case w.heldUntil.After(time.Now()):
			held[w.ThreadKey] = held[w.ThreadKey] || w.Kind.InOrder()
		case len(out) < limit && !(w.Kind.InOrder() && held[w.ThreadKey]):
			w.heldUntil, w.Again = time.Now().Add(store.OutboxHold), true
			out = append(out, w.OutboxRow)
		}
	}
	return out, nil
}

// HoldOutbox is [store.Store.HoldOutbox].
func (b *Store) HoldOutbox(ctx context.Context, ids []int64) error {
	return b.holdOutbox(ctx, ids, store.OutboxHold)
}

// PutBackOutbox is [store.Store.PutBackOutbox], always for two seconds.
func (b *Store) PutBackOutbox(ctx context.Context, ids []int64) error {
	return b.holdOutbox(ctx, ids, 2*time.Second)
}

func (b *Store) holdOutbox(ctx context.Context, ids []int64, long time.Duration) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, id := range ids {
		b.outbox[id-1].heldUntil = time.Now().Add(long)
	}
	return nil
}

// ReleaseOutbox is [store.Store.ReleaseOutbox].
func (b *Store) ReleaseOutbox(ctx context.Context) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, w := range b.outbox {
		w.heldUntil = time.Now()
	}
	return nil
}

// EndOutbox is [store.Store.EndOutbox].
func (b *Store) EndOutbox(ctx context.Context, ids []int64, shown []store.Shown) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, id := range ids {
		b.outbox[id-1].gone = true
	}
	for _, s := range shown {
		for _, w := range b.outbox {
			about := cmp.Or(w.CardID, w.NoticeID, strconv.FormatInt(w.InboxID, 10))
			w.gone = w.gone || w.Kind == s.Kind && about == s.Subject && w.ID <= s.UpTo
		}
	}
	return nil
}

// OutboxRows are what nobody was shown yet, in the order of its coming.
func (b *Store) OutboxRows() []store.OutboxRow {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []store.OutboxRow
	for _, w := range b.outbox {
		if !w.gone {
			out = append(out, w.OutboxRow)
		}
	}
	return out
}
