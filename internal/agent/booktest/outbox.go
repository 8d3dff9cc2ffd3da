package booktest

import (
	"context"
	"slices"
	"time"

	"deckhand/internal/store"
)

// word is a row of the outbox.
type word struct {
	store.Word
	heldUntil time.Time
	gone      bool
}

// addWord writes a word of a thread.
func (b *Books) addWord(threadID int64, w store.Word) store.Word {
	w.ID, w.ThreadID, w.Thread, w.CreatedAt = int64(len(b.words)+1), threadID, b.threads[threadID-1].Key(), time.Now()
	if w.InboxID != 0 {
		w.TS = b.inbox[w.InboxID-1].TS
	}
	b.words = append(b.words, &word{Word: w, heldUntil: time.Now().Add(store.WordHold)})
	return w
}

// waitWords notes of which posts it is to be seen that they wait, or do no longer.
func (b *Books) waitWords() {
	for _, e := range b.inbox {
		if waits := e.waits(); waits != e.seenToWait {
			e.seenToWait = waits
			b.words = append(b.words, &word{Word: store.Word{
				ID: int64(len(b.words) + 1), Kind: store.WordWaits, Thread: e.Thread, InboxID: e.InboxID, TS: e.TS, CreatedAt: time.Now(),
			}})
		}
	}
}

// waits reports whether it is to be seen that a post waits.
func (e *envelope) waits() bool {
	return e.State == "received" && e.sent.Marked || (e.State == "accepted" || e.State == "running") && e.Marked
}

// PostWaits is [store.Store.PostWaits].
func (b *Books) PostWaits(ctx context.Context, inboxID int64) (bool, error) {
	if err := b.lock(ctx); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	return b.inbox[inboxID-1].waits(), nil
}

// StandQueue is [store.Store.StandQueue].
func (b *Books) StandQueue(ctx context.Context, threadID int64) (store.Word, error) {
	if err := b.lock(ctx); err != nil {
		return store.Word{}, err
	}
	defer b.mu.Unlock()
	for _, w := range b.words {
		if w.Kind == store.WordQueue && w.ThreadID == threadID && !w.gone {
			w.heldUntil, w.Again = time.Now().Add(store.WordHold), true
			return w.Word, nil
		}
	}
	return b.addWord(threadID, store.Word{Kind: store.WordQueue}), nil
}

// cardWord notes that an approval's card has changed.
func (b *Books) cardWord(a *store.Approval) {
	b.addWord(a.ThreadID, store.Word{Kind: store.WordCard, CardID: a.CardID})
}

// closeCards notes that the cards of a turn are to be shown once more.
func (b *Books) closeCards(turnID int64) {
	var known []string
	for _, a := range b.approvals {
		if a.TurnID == turnID && a.DecidedVia != "rule" && a.DecidedVia != "grant" && !slices.Contains(known, a.CardID) {
			known = append(known, a.CardID)
			b.cardWord(a)
		}
	}
}

// lastWord is the last word of a kind that is about something, or 0.
func (b *Books) lastWord(about func(store.Word) bool) int64 {
	for _, w := range slices.Backward(b.words) {
		if !w.gone && about(w.Word) {
			return w.ID
		}
	}
	return 0
}

// Say is [store.Store.Say].
func (b *Books) Say(ctx context.Context, l store.Lease, sentence string) (w store.Word, err error) {
	err = b.under(ctx, l, func(t *store.Thread) error {
		w = b.addWord(t.ID, store.Word{Kind: store.WordSaid, Body: sentence})
		return nil
	})
	return w, err
}

// LeaveTurn is [store.Store.LeaveTurn].
func (b *Books) LeaveTurn(ctx context.Context, l store.Lease, turnID int64, sentence string) (w store.Word, err error) {
	err = b.under(ctx, l, func(t *store.Thread) error {
		w = b.addWord(t.ID, store.Word{Kind: store.WordLeft, TurnID: turnID, Body: sentence})
		return nil
	})
	return w, err
}

// ClaimWords is [store.Store.ClaimWords] of whoever is alive.
func (b *Books) ClaimWords(ctx context.Context, teamID string, limit int) ([]store.Word, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	b.waitWords()
	var out []store.Word
	held := map[store.ThreadKey]bool{}
	for _, w := range b.words {
		switch {
		case w.gone || w.Thread.TeamID != teamID:
		case w.heldUntil.After(time.Now()):
			held[w.Thread] = held[w.Thread] || w.Kind.InOrder()
		case len(out) < limit && !(w.Kind.InOrder() && held[w.Thread]):
			w.heldUntil, w.Again = time.Now().Add(store.WordHold), true
			out = append(out, w.Word)
		}
	}
	return out, nil
}

// HoldWords is [store.Store.HoldWords].
func (b *Books) HoldWords(ctx context.Context, ids []int64) error {
	return b.holdWords(ctx, ids, store.WordHold)
}

// PutBackWords is [store.Store.PutBackWords], always for two seconds.
func (b *Books) PutBackWords(ctx context.Context, ids []int64) error {
	return b.holdWords(ctx, ids, 2*time.Second)
}

func (b *Books) holdWords(ctx context.Context, ids []int64, long time.Duration) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, id := range ids {
		b.words[id-1].heldUntil = time.Now().Add(long)
	}
	return nil
}

// LetWordsGo is [store.Store.LetWordsGo].
func (b *Books) LetWordsGo(ctx context.Context) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, w := range b.words {
		w.heldUntil = time.Now()
	}
	return nil
}

// EndWords is [store.Store.EndWords].
func (b *Books) EndWords(ctx context.Context, ids []int64, shown []store.Shown) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, id := range ids {
		b.words[id-1].gone = true
	}
	for _, s := range shown {
		for _, w := range b.words {
			about := w.CardID == s.CardID
			if s.Kind == store.WordWait || s.Kind == store.WordWaits {
				about = w.InboxID == s.InboxID
			} else if s.Kind == store.WordBudget {
				about = w.NoticeID == s.NoticeID
			}
			w.gone = w.gone || w.Kind == s.Kind && about && w.ID <= s.UpTo
		}
	}
	return nil
}

// Words are what nobody was shown yet, in the order of its coming.
func (b *Books) Words() []store.Word {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []store.Word
	for _, w := range b.words {
		if !w.gone {
			out = append(out, w.Word)
		}
	}
	return out
}
