package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/place"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store"
)

// windUp ends what work has left, and gives the lease back. It reports true when the lease
// was kept, since calls of the thread are read to their end, and there is a message, or
// they have ended.
func (w *worker) windUp(ctx context.Context, err error) (again bool) {
	// Clean-up outlives the bot's context, within bounds.
	end, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 30*time.Second, errors.New("stop a session: no end in 30s"))
	defer cancel()
	held := w.holds(w.heldLease())
	fenced := !held || errors.Is(err, store.ErrFenced) || errors.Is(context.Cause(ctx), store.ErrFenced)
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
		w.cutCalls() // the last of them
		for _, m := range w.past {
			m.Settle(end, cutTime) // before another may have the lease
		}
	}
	if fenced {
		w.setAdrift()
		if !held || ctx.Err() != nil {
			return false
		}
		// It may be ours all the same: then nobody would have it.
	}
	if !fenced && !shutdown && w.readsOn() {
		w.readingOn.Store(true)
		defer w.readingOn.Store(false)
		select {
		case <-w.booked:
		case <-w.box.signal: // its messages are for work
		case <-ctx.Done():
		}
		return true
	}
	// What could not be done is tried again by polling, not at once.
	if err := w.store.ReleaseLease(end, w.heldLease(), err == nil || shutdown); err != nil {
		w.log.Error("release the lease", zap.Error(err))
	}
	return false
}

// readsOn reports whether calls of processes that have gone are read to their end.
func (w *worker) readsOn() bool {
	w.past = slices.DeleteFunc(w.past, func(m *spend.Meter) bool {
		select {
		case <-m.Done():
			return true
		default:
			return false
		}
	})
	return len(w.past) > 0
}

// readsOn reports whether all that a thread does here is to read calls of a process that
// has gone to their end.
func (s *Supervisor) readsOn(threadID int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.workers[threadID]
	return ok && w.readingOn.Load()
}

// setAdrift has the calls that are read to their end go on without the lease, until the
// bot stops: whoever has it now books them as lost, and they are corrected.
func (w *worker) setAdrift() {
	for _, m := range w.past {
		stop := context.AfterFunc(w.bot, m.Cut)
		w.running.Go(func() {
			<-m.Done()
			stop()
		})
	}
	w.past = nil
}

// cutCalls has the thread's calls end with their callers: those of its process, and those
// that are read to their end for processes that have gone.
func (w *worker) cutCalls() {
	for _, m := range w.past {
		m.Cut()
	}
	if w.session != nil {
		w.session.meter.Cut()
	}
}

// refuse finishes everything that the thread still has to do with a sentence.
func (w *worker) refuse(ctx context.Context, sentence string) error {
	if err := w.giveUpRunning(ctx, TurnFailed, PromptFailed, sentence); err != nil {
		return err
	}
	err := w.drop(ctx, store.Drop{Outcome: "failed", Mark: string(PromptFailed), Sentence: func(int) string { return sentence }})
	if err == nil {
		w.stopBy = "" // there is nothing left to stop
	}
	return err
}

// drop finishes the prompts that have no turn, and tells of it.
func (w *worker) drop(ctx context.Context, d store.Drop) error {
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
			w.showBudgetWait(p)
		}
	}
	w.front.ShowQueue(w.threadID, nil)
	return nil
}

// say says a sentence in the thread, for good if the database takes it.
func (w *worker) say(ctx context.Context, sentence string) {
	w.sayIn(ctx, w.thread.Key(), sentence)
}

// sayIn is say for other goroutines than the worker's.
func (w *worker) sayIn(ctx context.Context, thread store.ThreadKey, sentence string) {
	row, err := w.store.Say(ctx, w.heldLease(), sentence)
	if errors.Is(err, store.ErrFenced) {
		return // another replica speaks now
	}
	if err != nil {
		w.log.Warn("write down what is to be said", zap.Error(err))
		w.front.Say(thread, sentence)
		return
	}
	w.front.Tell(row)
}

// dropStopped drops what waits, since somebody stopped the thread, and cuts its calls.
// Where no turn runs that is all of it.
func (w *worker) dropStopped(ctx context.Context) error {
	w.cutCalls()
	err := w.drop(ctx, store.Drop{Outcome: "stopped", Mark: string(PromptStopped), Sentence: func(n int) string {
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
	if errors.Is(err, store.ErrNotFound) {
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
