package agent

import (
	"context"
	"errors"
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

	elsewhere bool // another replica holds the thread
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
		if err := w.books.ReleaseLease(end, w.heldLease()); err != nil {
			w.log.Error("release the lease", zap.Error(err))
		}
	}
	w.setLease(store.Lease{})
}

// work is the worker's loop. It returns nil when the thread may hibernate, and
// an error when it must stop: the bot's end, a lost lease, an unreachable
// database.
func (w *worker) work(ctx context.Context) error {
	project, ok := w.projects[w.thread.Project]
	if !ok {
		return w.refuse(ctx, "This thread belongs to the project "+w.thread.Project+", which is no longer in deckhand.yaml. Ask an admin to put it back, or start a new thread.")
	}
	w.project = project
	if err := w.recover(ctx); err != nil {
		return err
	}
	if err := w.nextTurn(ctx); err != nil {
		return err
	}
	for w.session != nil {
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
			case letterOverBudget:
				w.onOverBudget(ctx, l.turn, l.budget)
			case letterStop:
				err = w.onStop(ctx, l.id)
			case letterHibernate:
				hibernate = hibernate || w.turn == nil
			case letterLeaseLost:
				err = store.ErrFenced
			}
			if err != nil {
				return false, err
			}
			if w.session == nil {
				return false, nil
			}
		}
		return hibernate && w.turn == nil, nil
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

// refuse finishes every prompt of the thread with a sentence.
func (w *worker) refuse(ctx context.Context, sentence string) error {
	dropped, err := w.books.DropPrompts(ctx, w.heldLease(), "failed")
	if err != nil {
		return err
	}
	for _, p := range dropped {
		w.front.MarkPrompt(p, PromptFailed)
	}
	if len(dropped) > 0 {
		w.front.Say(w.thread.Key(), sentence)
	}
	return nil
}
