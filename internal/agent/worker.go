package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store"
)

// worker runs one thread. Everything below the mailbox belongs to the goroutine
// in run; lease is shared with the supervisor's renewals.
type worker struct {
	*shared
	threadID int64
	box      *mailbox
	log      *zap.Logger

	mu        sync.Mutex
	lease     store.Lease // Epoch 0: none is held
	renewedAt time.Time

	elsewhere bool  // another replica holds the thread
	asleep    bool  // its next prompt waits for a budget
	offer     int64 // the last turn, while it offers to go on; else 0
	thread    store.Thread
	project   Project

	session *session // nil while cold
	turn    *turn    // nil between turns
}

func newWorker(s *shared, threadID int64) *worker {
	return &worker{shared: s, threadID: threadID, box: newMailbox(), log: s.log.With(zap.Int64("thread", threadID))}
}

func (w *worker) heldLease() store.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease
}

func (w *worker) setLease(l store.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lease, w.renewedAt = l, time.Now()
}

func (w *worker) leaseRenewed(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renewedAt = at
}

// leaseExpired reports whether the lease may be another's by now.
func (w *worker) leaseExpired(ttl time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease.Epoch > 0 && time.Since(w.renewedAt) > ttl*2/3
}

// run takes the lease, works until the thread has been idle for long enough or
// ctx ends, and gives the lease back.
func (w *worker) run(ctx context.Context) {
	t, ok, err := w.books.AcquireLease(ctx, w.threadID, w.replica, w.limits.LeaseTTL)
	if err != nil {
		w.log.Error("acquire the lease", zap.Error(err)) // polling comes back to it
		w.elsewhere = true
		return
	}
	w.elsewhere = !ok
	if !ok {
		return
	}
	w.thread = t
	w.setLease(store.Lease{ThreadID: t.ID, Owner: w.replica, Epoch: t.LeaseEpoch})

	err = w.work(ctx)

	// Clean-up outlives the bot's context, within bounds.
	end, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), 30*time.Second, errors.New("stop a session: no end in 30s"))
	defer cancel()
	fenced := errors.Is(err, store.ErrFenced)
	if err != nil && ctx.Err() == nil {
		w.log.Error("worker", zap.Error(err))
	}
	if w.turn != nil {
		w.abandonTurn(end, fenced, err)
	}
	w.stopSession(end, fenced)
	if !fenced {
		// What could not be done is tried again by polling, not at once.
		wake := err == nil || ctx.Err() != nil
		if err := w.books.ReleaseLease(end, w.heldLease(), wake); err != nil {
			w.log.Error("release the lease", zap.Error(err))
		}
	}
	w.setLease(store.Lease{})
}

// work is the worker's loop. It returns nil when the thread may hibernate, at once when
// its next prompt waits for a budget, and
// an error when it must stop: the bot's end, a lost lease, an unreachable
// database.
func (w *worker) work(ctx context.Context) error {
	project, ok := w.projects[w.thread.Project]
	if !ok {
		return w.refuse(ctx, "This thread belongs to the project "+w.thread.Project+", which is no longer in deckhand.yaml. Ask an admin to put it back, or start a new thread.")
	}
	w.project, w.asleep = project, false
	var err error
	if len(w.budgets.list) > 0 {
		if w.offer, err = w.books.StoppedTurn(ctx, w.threadID); err != nil {
			return err
		}
	}
	for _, l := range w.box.take() {
		if l.kind == letterStop {
			return w.stopCold(ctx)
		}
	}
	if err := w.recover(ctx); err != nil {
		return err
	}
	if w.turn == nil {
		if err := w.nextTurn(ctx); err != nil {
			return err
		}
	}
	for w.session != nil && !w.asleep {
		hibernate, err := w.round(ctx)
		if err != nil || hibernate {
			return err
		}
	}
	return nil
}

// round waits for one thing to happen and acts on it.
func (w *worker) round(ctx context.Context) (hibernate bool, err error) {
	var idle <-chan time.Time
	if w.turn == nil {
		idle = w.session.idle.C
	}
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-idle:
		return true, nil
	case m, ok := <-w.session.messages:
		if !ok {
			return false, w.onExit(ctx)
		}
		return false, w.onMessage(ctx, m)
	case <-w.box.signal:
		for _, l := range w.box.take() {
			switch l.kind {
			case letterWake:
				err = w.onWake(ctx)
			case letterDecided:
				err = w.onDecided(ctx, l.id, l.decided)
			case letterChecked:
				err = w.onChecked(ctx, l.checked, l.entitled)
			case letterStop:
				err = w.onStop(ctx, l.id)
			case letterHibernate:
				hibernate = hibernate || w.turn == nil
			case letterHeld:
				w.show()
			case letterLeaseLost:
				if l.epoch == w.heldLease().Epoch {
					err = store.ErrFenced
				}
			}
			if err != nil {
				return false, err
			}
		}
		return hibernate && w.turn == nil, nil
	}
}

// stopError says that somebody stopped what had not begun.
type stopError struct{ by string }

func (e *stopError) Error() string { return "stopped by " + e.by }

// hearing runs what takes its time and is not the CLI's beside the loop, and has it end
// when somebody stops the thread or its lease is lost. Until fn returns, the worker's
// state is fn's. Other letters are about turns, and none runs: whoever calls hearing
// looks into the books afterwards.
func (w *worker) hearing(ctx context.Context, fn func(context.Context) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	epoch := w.heldLease().Epoch
	go func() { done <- fn(inner) }()
	var end error
	var slotAsked bool
	for {
		select {
		case err := <-done:
			if slotAsked {
				w.box.put(letter{kind: letterHibernate})
			}
			return cmp.Or(end, err)
		case <-w.box.signal:
			for _, l := range w.box.take() {
				switch {
				case l.kind == letterLeaseLost && l.epoch == epoch:
					end = store.ErrFenced
				case l.kind == letterStop && end == nil:
					end = &stopError{by: l.id}
				case l.kind == letterHibernate:
					// The session has just become one that may be asked, and whoever needs
					// its slot asks once.
					slotAsked = true
				}
			}
			if end != nil {
				cancel(end)
			}
		}
	}
}

// onWake looks at what a lost notice may have been about.
func (w *worker) onWake(ctx context.Context) error {
	if w.turn == nil {
		return w.nextTurn(ctx)
	}
	for id := range w.turn.asked {
		a, err := w.books.ApprovalByID(ctx, id)
		if err != nil {
			return err
		}
		if a.Status != store.ApprovalPending {
			if err := w.onDecided(ctx, id, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuse finishes everything that the thread still has to do with a sentence.
func (w *worker) refuse(ctx context.Context, sentence string) error {
	if err := w.giveUpRunning(ctx, TurnFailed, sentence); err != nil {
		return err
	}
	dropped, err := w.drop(ctx, "failed", PromptFailed)
	if dropped > 0 {
		w.front.Say(w.thread.Key(), sentence)
	}
	return err
}

// drop finishes the prompts that have no turn, and marks them.
func (w *worker) drop(ctx context.Context, outcome string, mark PromptMark) (n int, err error) {
	dropped, err := w.books.DropPrompts(ctx, w.heldLease(), outcome)
	for _, p := range dropped {
		w.front.MarkPrompt(p, mark)
		if p.Waited {
			w.front.ShowWait(p.InboxID)
		}
	}
	return len(dropped), err
}

// dropStopped drops what waits, since somebody stopped the thread.
func (w *worker) dropStopped(ctx context.Context) error {
	n, err := w.drop(ctx, "stopped", PromptStopped)
	if n > 0 {
		w.front.Say(w.thread.Key(), fmt.Sprintf("Stopped; %d waiting message(s) were dropped with it. Send again what you still want.", n))
	}
	return err
}

// stopCold ends what the thread has to do while no turn of it runs here.
func (w *worker) stopCold(ctx context.Context) error {
	if err := w.giveUpRunning(ctx, TurnInterrupted, "Stopped before it could go on."); err != nil {
		return err
	}
	return w.dropStopped(ctx)
}

// giveUpRunning ends the turn, if there is one, that a dead process left running.
func (w *worker) giveUpRunning(ctx context.Context, state TurnState, problem string) error {
	if w.turn != nil {
		return nil // it lives
	}
	old, prompt, err := w.books.RunningTurn(ctx, w.threadID)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := w.books.EndLostCalls(ctx); err != nil {
		return err
	}
	return w.giveUp(ctx, old, prompt, state, problem)
}
