package memstore

import (
	"context"
	"slices"
	"time"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// parked reports whether the thread's running turn was parked and sleeps.
func (b *Store) parked(threadID int64) bool {
	t := b.runningTurn(threadID)
	return t != nil && t.Parking == turns.Parked
}

// ParkTurn is [store.Store.ParkTurn].
func (b *Store) ParkTurn(ctx context.Context, l threads.Lease, turnID int64, waitsFor []string) (ok bool, err error) {
	err = b.under(ctx, l, func(th *threads.Thread) error {
		for _, id := range waitsFor {
			if a := b.find(id); a == nil || a.TurnID != turnID || a.Status != approvals.Pending {
				return nil
			}
		}
		if len(waitsFor) == 0 || turnID < 1 || turnID > int64(len(b.turns)) {
			return nil
		}
		if t := b.turns[turnID-1]; t.ThreadID == th.ID && !t.Ended {
			t.Parking, t.RestSince, ok = turns.Parked, time.Now(), true
		}
		return nil
	})
	return ok, err
}

// wakeTurn has the turn of an approval that has ended taken up, if it was parked.
func (b *Store) wakeTurn(a *approvals.Approval) {
	if t := b.turns[a.TurnID-1]; t.Parking == turns.Parked {
		t.Parking = turns.Unparked
		b.notify(pg.Notice{Kind: pg.NoticePrompt, ThreadID: a.ThreadID})
	}
}

// Unanswered is [store.Store.Unanswered].
func (b *Store) Unanswered(ctx context.Context, turnID int64) ([]approvals.Approval, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if turnID < 1 || turnID > int64(len(b.turns)) {
		return nil, nil
	}
	var out []approvals.Approval
	for _, a := range b.approvals {
		if a.TurnID != turnID || a.Delivered {
			continue
		}
		if bindable(a) || b.turns[turnID-1].Parking != "" && a.Status == approvals.Expired && !a.DecidedAt.Before(b.turns[turnID-1].RestSince) {
			out = append(out, b.approval(a))
		}
	}
	slices.SortStableFunc(out, func(x, y approvals.Approval) int { return x.CreatedAt.Compare(y.CreatedAt) })
	return out, nil
}
