package agent

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"deckhand/internal/sandbox"
	"deckhand/internal/store"
	"deckhand/internal/transcript"
)

// newMirror returns what copies the worker's session, or nil where nothing does.
func (w *worker) newMirror(sessionID string, resumed bool) *transcript.Mirror {
	dir := w.machine.home(w.threadID)
	if dir == "" {
		return nil
	}
	key, limit := w.thread.Key(), w.limits.Transcript
	return transcript.NewMirror(transcript.Options{
		Books: w.books, Home: dir, Lease: w.heldLease(), SessionID: sessionID, New: !resumed, Limit: limit, One: w.copying, Log: w.log,
		Full: func(ctx context.Context) {
			w.sayIn(ctx, key, fmt.Sprintf("This conversation has grown beyond %s: what is said from here on is not copied any more, and is lost if the bot's machine is. `/clear`, or a new thread, begins a new one.", sandbox.Size(limit)))
		},
	})
}

// restore has the thread's home hold its session as it stands in the books, unless it
// holds a newer one. Its error is a [*startError], or one of the books'.
func (w *worker) restore(ctx context.Context) error {
	copies, err := w.books.Transcripts(ctx, w.thread.SessionID)
	if err != nil || len(copies) == 0 {
		return err
	}
	restored, err := w.machine.restore(ctx, w.thread, copies, w.books.ReadTranscript)
	switch {
	case errors.Is(err, store.ErrDamaged):
		w.log.Error("restore the session from its copy", zap.String("session", w.thread.SessionID), zap.Error(err))
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
	w.log.Info("the session was restored from its copy", zap.String("session", w.thread.SessionID), zap.Int64("bytes", copies[0].Bytes))
	if copies[0].Full {
		w.say(ctx, fmt.Sprintf("This conversation goes on as it was on %s, when it had grown beyond %s and was not copied any more: what was said after that is not known to it.",
			copies[0].SavedAt.UTC().Format("2 January at 15:04 MST"), sandbox.Size(w.limits.Transcript)))
	}
	return nil
}

func (h *host) restore(ctx context.Context, t store.Thread, copies []store.Transcript, read transcript.ReadCopy) (bool, error) {
	return h.homes().Restore(ctx, t.ID, t.SessionID, copies, read)
}

// recalls is what a new session's first prompt begins with, or empty.
func (w *worker) recalls(ctx context.Context) (string, error) {
	said, err := w.books.SessionHistory(ctx, w.thread.SessionID, transcript.RecalledTurns)
	if err != nil {
		return "", err
	}
	return transcript.Recall(said), nil
}
