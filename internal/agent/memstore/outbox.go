package memstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// outboxRow is a row of the outbox.
type outboxRow struct {
	outbox.Row
	heldUntil time.Time
	gone      bool
}

// addOutboxRow writes an outbox row of a thread.
func (b *Store) addOutboxRow(threadID int64, w outbox.Row) outbox.Row {
	w.ID, w.ThreadID, w.ThreadKey, w.CreatedAt = int64(len(b.outbox)+1), threadID, b.threads[threadID-1].Key(), time.Now()
	if w.InboxID != 0 {
		w.TS = b.inbox[w.InboxID-1].TS
	}
	b.outbox = append(b.outbox, &outboxRow{Row: w, heldUntil: time.Now().Add(outbox.Hold)})
	return w
}

// waitRows notes of which posts it is to be seen that they wait, or do no longer.
func (b *Store) waitRows() {
	for _, e := range b.inbox {
		if waits := e.waits(); waits != e.seenToWait {
			e.seenToWait = waits
			b.outbox = append(b.outbox, &outboxRow{Row: outbox.Row{
				ID: int64(len(b.outbox) + 1), Kind: outbox.Waits, ThreadKey: e.ThreadKey, InboxID: e.InboxID, TS: e.TS, CreatedAt: time.Now(),
			}})
		}
	}
}

// waits reports whether it is to be seen that a post waits.
func (e *envelope) waits() bool {
	return e.State == "received" && e.sent.Marked || (e.State == "accepted" || e.State == "running") && e.Marked
}

// PostWaits is [store.Store.PostWaits].
func (b *Store) PostWaits(ctx context.Context, inboxID int64) (inbox.PostState, error) {
	if err := b.lock(ctx); err != nil {
		return inbox.PostState{}, err
	}
	defer b.mu.Unlock()
	e := b.inbox[inboxID-1]
	why, _ := strings.CutPrefix(e.Outcome, inbox.GivenUp)
	if why == e.Outcome {
		why = ""
	}
	return inbox.PostState{Waits: e.waits(), GivenUp: why, ThreadTS: e.ThreadTS}, nil
}

// StandQueue is [store.Store.StandQueue].
func (b *Store) StandQueue(ctx context.Context, threadID int64) (outbox.Row, error) {
	if err := b.lock(ctx); err != nil {
		return outbox.Row{}, err
	}
	defer b.mu.Unlock()
	for _, w := range b.outbox {
		if w.Kind == outbox.Queue && w.ThreadID == threadID && !w.gone {
			w.heldUntil, w.Again = time.Now().Add(outbox.Hold), true
			return w.Row, nil
		}
	}
	return b.addOutboxRow(threadID, outbox.Row{Kind: outbox.Queue}), nil
}

// cardRow notes that an approval's card has changed.
func (b *Store) cardRow(a *approvals.Approval) {
	b.addOutboxRow(a.ThreadID, outbox.Row{Kind: outbox.Card, CardID: a.CardID})
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
func (b *Store) lastOutboxRow(about func(outbox.Row) bool) int64 {
	for _, w := range slices.Backward(b.outbox) {
		if !w.gone && about(w.Row) {
			return w.ID
		}
	}
	return 0
}

// Say is [store.Store.Say].
func (b *Store) Say(ctx context.Context, l threads.Lease, sentence, adminsOf string) (w outbox.Row, err error) {
	err = b.under(ctx, l, func(t *threads.Thread) error {
		w = b.addOutboxRow(t.ID, outbox.Row{Kind: outbox.Said, Body: sentence, AdminsOf: adminsOf})
		return nil
	})
	return w, err
}

// LeaveTurn is [store.Store.LeaveTurn].
func (b *Store) LeaveTurn(ctx context.Context, l threads.Lease, turnID int64, sentence string) (w outbox.Row, err error) {
	err = b.under(ctx, l, func(t *threads.Thread) error {
		w = b.addOutboxRow(t.ID, outbox.Row{Kind: outbox.Left, TurnID: turnID, Body: sentence})
		return nil
	})
	return w, err
}

// ClaimOutbox is [store.Store.ClaimOutbox] of whoever is alive.
func (b *Store) ClaimOutbox(ctx context.Context, teamID string, limit int) ([]outbox.Row, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	b.waitRows()
	var out []outbox.Row
	held := map[threads.ThreadKey]bool{}
	for _, w := range b.outbox {
		switch {
		case w.gone || w.TeamID != teamID:
		case w.heldUntil.After(time.Now()):
			held[w.ThreadKey] = held[w.ThreadKey] || w.Kind.InOrder()
		case len(out) < limit && !(w.Kind.InOrder() && held[w.ThreadKey]):
			w.heldUntil, w.Again = time.Now().Add(outbox.Hold), true
			out = append(out, w.Row)
		}
	}
	return out, nil
}

// HoldOutbox is [store.Store.HoldOutbox].
func (b *Store) HoldOutbox(ctx context.Context, ids []int64) error {
	return b.holdOutbox(ctx, ids, outbox.Hold)
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
func (b *Store) EndOutbox(ctx context.Context, ids []int64, shown []outbox.Shown) error {
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
func (b *Store) OutboxRows() []outbox.Row {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []outbox.Row
	for _, w := range b.outbox {
		if !w.gone {
			out = append(out, w.Row)
		}
	}
	return out
}
