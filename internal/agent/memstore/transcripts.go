package memstore

import (
	"context"
	"io"
	"time"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/store/turns"
)

// Transcripts is [store.Store.Transcripts]: nothing is copied here.
func (b *Store) Transcripts(context.Context, string) ([]transcripts.Transcript, error) {
	return nil, nil
}

// ReadTranscript is [store.Store.ReadTranscript] where there is no copy.
func (b *Store) ReadTranscript(context.Context, transcripts.Transcript, io.Writer) error {
	return transcripts.ErrDamaged
}

// SaveTranscripts is [store.Store.SaveTranscripts], and keeps nothing.
func (b *Store) SaveTranscripts(context.Context, threads.Lease, []transcripts.Part) (bool, error) {
	return true, nil
}

// SessionHistory is [store.Store.SessionHistory].
func (b *Store) SessionHistory(ctx context.Context, sessionID string, limit int) (out []turns.Exchange, err error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	lost := map[string]bool{}
	for s := b.sessions[sessionID]; s != nil && s.recalls; s = b.sessions[s.parent] {
		lost[s.parent] = true
	}
	for _, t := range b.turns {
		for _, e := range b.inbox {
			if lost[t.SessionID] && t.Ended && e.TurnID == t.ID {
				prompt := []rune(e.Text)
				out = append(out, turns.Exchange{
					UserID: e.UserID, Prompt: string(prompt[:min(len(prompt), 4000)]), Answer: t.Answer, State: t.State, StartedAt: t.StartedAt,
				})
			}
		}
	}
	return out[max(0, len(out)-limit):], nil
}

// ForgetTranscripts is [store.Store.ForgetTranscripts] of nothing: threads are never old
// enough here.
func (b *Store) ForgetTranscripts(context.Context, time.Time) (int, error) { return 0, nil }

// Schedule is [store.Store.Schedule]; nothing becomes of the jobs.
func (b *Store) Schedule(context.Context, ...pg.Job) error { return nil }
