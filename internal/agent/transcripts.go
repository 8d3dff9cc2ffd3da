package agent

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"deckhand/internal/sandbox"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/transcript"
)

// newMirror returns what copies the worker's session, or nil where nothing does.
func (w *worker) newMirror(sessionID string, resumed bool) *transcript.Mirror {
	dir := w.place.Home(w.threadID)
	if dir == "" {
		return nil
	}
	key, limit := w.thread.Key(), w.limits.Transcript
	return transcript.NewMirror(transcript.Options{
		Store: w.store, Home: dir, Lease: w.heldLease(), SessionID: sessionID, New: !resumed, Limit: limit, One: w.copying, Log: w.log,
		Full: func(ctx context.Context) {
			w.sayIn(ctx, key, fmt.Sprintf("This conversation has grown beyond %s: what is said from here on is not copied any more, and is lost if the bot's machine is. `/clear`, or a new thread, begins a new one.", sandbox.Size(limit)))
		},
		Gap: func(ctx context.Context) {
			w.log.Error("the transcript has a gap: the data folder's disk did not take a line", zap.String("session", sessionID))
			w.sayIn(ctx, key, "The disk of the bot's data folder was full for a while. What was said in this thread until then may be unknown when the session is started the next time.")
		},
	})
}

// restore has the thread's home hold its session as it stands in the database, unless it
// holds a newer one. Its error is a [*startError], or one of the database's.
func (h *leased) restore(ctx context.Context) error {
	copies, err := h.store.Transcripts(ctx, h.thread.SessionID)
	if err != nil || len(copies) == 0 {
		return err
	}
	restored, err := h.place.Restore(ctx, h.thread, copies, h.store.ReadTranscript)
	switch {
	case errors.Is(err, transcripts.ErrDamaged):
		h.log.Error("restore the session from its copy", zap.String("session", h.thread.SessionID), zap.Error(err))
		if !restored {
			return nil // what there is decides
		}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if _, ok := errors.AsType[*transcript.HomeError](err); !ok {
			return err
		}
		return &startError{
			sentence: "The conversation of this thread could not be put back on the bot's machine: " + err.Error() + ". Nothing was started. Ask an admin to see to the bot's data folder, then write again.",
			err:      err,
		}
	case !restored:
		return nil
	}
	h.log.Info("the session was restored from its copy", zap.String("session", h.thread.SessionID), zap.Int64("bytes", copies[0].Bytes))
	if copies[0].Full {
		h.say(ctx, fmt.Sprintf("This conversation goes on as it was on %s, when it had grown beyond %s and was not copied any more: what was said after that is not known to it.",
			copies[0].SavedAt.UTC().Format("2 January at 15:04 MST"), sandbox.Size(h.limits.Transcript)))
	}
	return nil
}

// recalls is what a new session's first prompt begins with, or empty.
func (h *leased) recalls(ctx context.Context) (string, error) {
	said, err := h.store.SessionHistory(ctx, h.thread.SessionID, transcript.RecalledTurns)
	if err != nil {
		return "", err
	}
	return transcript.Recall(said), nil
}
