package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/place"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// windUp ends what work has left, and gives the lease back. It reports true when the lease
// was kept, since calls of the thread are read to their end, and there is a message, or
// they have ended.
func (w *worker) windUp(ctx context.Context, err error) (again bool) {
	// Clean-up outlives the bot's context, within bounds.
	end, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 30*time.Second, errors.New("stop a session: no end in 30s"))
	defer cancel()
	held := w.holds(w.heldLease())
	fenced := !held || errors.Is(err, threads.ErrFenced) || errors.Is(context.Cause(ctx), threads.ErrFenced)
	shutdown := ctx.Err() != nil && !fenced || errors.Is(err, errShutdown)
	if errors.Is(err, place.ErrHandedOn) {
		w.eager, err = false, nil
		w.log.Info("this thread waits for a slot here, and is handed to a replica that has one")
	}
	if err != nil && !shutdown {
		w.log.Error("worker", zap.Error(err))
	}
	if shutdown {
		w.cutCalls()
	}
	if w.turn != nil {
		w.abandonTurn(end, fenced, err)
	}
	w.stopSession(end, fenced)
	if shutdown {
		w.cutCalls()                 // the last of them
		w.ended.Settle(end, cutTime) // before another may have the lease
	}
	if fenced {
		w.ended.SetAdrift()
		if !held || ctx.Err() != nil {
			return false
		}
		// It may be ours all the same: then nobody would have it.
	}
	if !fenced && !shutdown && w.ended.Wait(ctx, w.box.signal) { // its messages are for work
		return true
	}
	// What could not be done is tried again by polling, not at once.
	if err := w.store.ReleaseLease(end, w.heldLease(), err == nil || shutdown); err != nil {
		w.log.Error("release the lease", zap.Error(err))
	}
	return false
}

// readsOn reports whether all that a thread does here is to read calls of a process that
// has gone to their end.
func (s *Supervisor) readsOn(threadID int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.workers[threadID]
	return ok && w.ended.Waits()
}

// cutCalls has the thread's calls end with their callers: those of its process, and those
// that are read to their end for processes that have gone.
func (w *worker) cutCalls() {
	w.ended.Cut()
	if w.session != nil {
		w.session.meter.Cut()
	}
}

// closeOffer takes back what was offered below the last turn.
func (w *worker) closeOffer() {
	if w.offer != 0 {
		w.front.CloseOffer(w.offer)
		w.offer = 0
	}
}

// refuse finishes everything that the thread still has to do with a sentence.
func (w *worker) refuse(ctx context.Context, sentence string) error {
	if err := w.giveUpRunning(ctx, TurnFailed, PromptFailed, sentence); err != nil {
		return err
	}
	err := w.drop(ctx, inbox.Drop{Outcome: "failed", Mark: string(PromptFailed), Sentence: func(int) string { return sentence }})
	if err == nil {
		w.stopBy = "" // there is nothing left to stop
	}
	return err
}

// drop finishes the prompts that have no turn, and tells of it.
func (w *worker) drop(ctx context.Context, d inbox.Drop) error {
	dropped, rows, err := w.store.DropPrompts(ctx, w.heldLease(), d)
	if err != nil {
		return err
	}
	if w.session == nil {
		w.front.ShowPlace(w.thread, Served)
	}
	for _, p := range dropped {
		if p.Marked {
			w.front.MarkPrompt(p, PromptQueued) // it waits no longer
		}
	}
	w.front.Tell(rows...)
	for _, p := range dropped {
		if p.Waited {
			w.accounts.ShowWait(p)
		}
	}
	w.front.ShowQueue(w.threadID, nil)
	return nil
}

// dropStopped drops what waits, since somebody stopped the thread, and cuts its calls.
// Where no turn runs that is all of it.
func (w *worker) dropStopped(ctx context.Context) error {
	w.cutCalls()
	err := w.drop(ctx, inbox.Drop{Outcome: "stopped", Mark: string(PromptStopped), Sentence: func(n int) string {
		if n == 1 {
			return "Stopped. One waiting message was dropped. Send it again if you still want it."
		}
		return fmt.Sprintf("Stopped. %d waiting messages were dropped. Send again what you still want.", n)
	}})
	if err == nil && w.turn == nil {
		w.stopBy = ""
	}
	return err
}

// stopCold ends what the thread has to do while no turn of it runs here.
func (w *worker) stopCold(ctx context.Context) error {
	if err := w.giveUpRunning(ctx, TurnInterrupted, PromptStopped, "Stopped before it could go on."); err != nil {
		return err
	}
	return w.dropStopped(ctx)
}

// giveUpRunning ends the turn, if there is one, that a dead process left running.
func (w *worker) giveUpRunning(ctx context.Context, state TurnState, mark PromptMark, problem string) error {
	if w.turn != nil {
		return nil // it lives
	}
	old, _, err := w.store.RunningTurn(ctx, w.threadID)
	if errors.Is(err, pg.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := w.store.EndLostCalls(ctx); err != nil {
		return err
	}
	return w.giveUp(ctx, old, state, mark, problem)
}
