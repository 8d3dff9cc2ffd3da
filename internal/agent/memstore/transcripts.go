package memstore

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"deckhand/internal/store"
)

// transcript is a copy with its text.
type transcript struct {
	store.Transcript
	session string
	thread  int64
	text    []byte
}

// Transcripts is [store.Store.Transcripts].
func (b *Store) Transcripts(ctx context.Context, sessionID string) (out []store.Transcript, err error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	for _, t := range b.transcripts {
		if t.session == sessionID {
			out = append(out, t.Transcript)
		}
	}
	slices.SortFunc(out, func(x, y store.Transcript) int { return cmp.Compare(x.Agent, y.Agent) })
	return out, nil
}

// ReadTranscript is [store.Store.ReadTranscript].
func (b *Store) ReadTranscript(ctx context.Context, t store.Transcript, out io.Writer) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, c := range b.transcripts {
		if c.ID == t.ID && bytes.Equal(c.SHA256, t.SHA256) {
			_, err := out.Write(c.text)
			return err
		}
	}
	return store.ErrDamaged
}

// SaveTranscripts is [store.Store.SaveTranscripts].
func (b *Store) SaveTranscripts(ctx context.Context, l store.Lease, parts []store.TranscriptPart) (saved bool, err error) {
	err = b.under(ctx, l, func(*store.Thread) error {
		if saved = !slices.ContainsFunc(parts, func(p store.TranscriptPart) bool { return !b.fits(l, p) }); saved {
			b.copyParts(l, parts)
		}
		return nil
	})
	return saved, err
}

func (b *Store) copyOf(p store.TranscriptPart) *transcript {
	i := slices.IndexFunc(b.transcripts, func(t *transcript) bool { return t.session == p.SessionID && t.Agent == p.Agent })
	if i < 0 {
		return nil
	}
	return b.transcripts[i]
}

// fits reports whether the copy is what a part takes it for.
func (b *Store) fits(l store.Lease, p store.TranscriptPart) bool {
	s, t := b.sessions[p.SessionID], b.copyOf(p)
	if s == nil || s.thread != l.ThreadID {
		return false
	}
	if t == nil {
		return p.WasSHA256 == nil
	}
	return p.WasSHA256 != nil && p.WasBytes == t.Bytes && bytes.Equal(p.WasSHA256, t.SHA256)
}

// copyParts writes the parts that fit.
func (b *Store) copyParts(l store.Lease, parts []store.TranscriptPart) {
	for _, p := range parts {
		if !b.fits(l, p) {
			continue
		}
		t := b.copyOf(p)
		if t == nil {
			t = &transcript{session: p.SessionID, thread: l.ThreadID, Transcript: store.Transcript{ID: int64(len(b.transcripts) + 1), Agent: p.Agent}}
			b.transcripts = append(b.transcripts, t)
		}
		t.text = append(t.text[:p.From:p.From], bytes.Join(p.Pieces, nil)...)
		t.Bytes, t.SHA256, t.Full, t.SavedAt = p.Bytes, p.SHA256[:], p.Full, time.Now()
	}
}

// SessionHistory is [store.Store.SessionHistory].
func (b *Store) SessionHistory(ctx context.Context, sessionID string, limit int) (out []store.Exchange, err error) {
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
				out = append(out, store.Exchange{
					UserID: e.UserID, Prompt: string(prompt[:min(len(prompt), 4000)]), Answer: t.Answer, State: t.State, StartedAt: t.StartedAt,
				})
			}
		}
	}
	return out[max(0, len(out)-limit):], nil
}

// ForgetTranscripts is [store.Store.ForgetTranscripts] of nothing: threads are never old
// enough here.
func (b *Store) ForgetTranscripts(ctx context.Context, _ time.Time) (int, error) {
	if err := b.lock(ctx); err != nil {
		return 0, err
	}
	defer b.mu.Unlock()
	return 0, nil
}

// Schedule is [store.Store.Schedule]; nothing becomes of the jobs.
func (b *Store) Schedule(ctx context.Context, _ ...store.Job) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	return nil
}
