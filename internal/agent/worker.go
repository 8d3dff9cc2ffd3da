package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/spend"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// worker runs one thread. leased and counters are shared; the fields below them belong to the goroutine in run, which
// startWanted starts and after which retire reads them.
type worker struct {
	*leased
	*counters
	life  threads.Registration // the replica's, under which it takes the lease
	eager bool                 // it takes it even if the thread suits another replica better
	ended *spend.Ended         // what the calls of processes that have gone still cost

	elsewhere bool // another replica has the lease
	asleep    bool // its next prompt waits for a budget, or to be started again, or its turn for people
	tries     int  // starts for its next prompt that were not answered
	// stopBy is who has stopped the thread, until that is carried out: the database may be
	// away.
	stopBy string
	offer  int64 // the last turn, while it offers to go on; else 0

	session *session // nil while cold
	turn    *turn    // nil between turns
}

func newWorker(s *Supervisor, threadID int64) *worker {
	return &worker{leased: &leased{dependencies: s.dependencies, bounds: s.bounds, threadID: threadID, box: newMailbox(), log: s.log.With(zap.Int64("thread", threadID))}, counters: s.counters}
}

// MakeRoom implements [place.Holder].
func (w *worker) MakeRoom() { w.box.put(message{kind: messageHibernate}) }

// run takes the lease ([threads.Store.AcquireLease]), works until the thread has been idle for long enough or
// ctx ends, and gives the lease back.
func (w *worker) run(ctx context.Context) {
	t, ok, err := w.store.AcquireLease(ctx, w.threadID, w.life, w.eager)
	if w.elsewhere = err != nil || !ok; w.elsewhere {
		w.noteStops(w.box.take())
		if err == nil && w.stopBy != "" {
			if err = w.store.Notify(ctx, pg.Notice{Kind: pg.NoticeStop, ThreadID: w.threadID, By: w.stopBy}); err == nil {
				w.stopBy = ""
			}
		}
		if err != nil {
			w.log.Error("acquire the lease", zap.Error(err)) // polling comes back to it
		}
		return
	}
	w.thread = t
	w.setLease(leaseOf(t))

	for again := true; again; {
		err = w.work(ctx)
		again = w.windUp(ctx, err)
	}
	w.setLease(threads.Lease{})
}

// work is the worker's loop. It returns nil when the thread may hibernate, at once when
// its next prompt waits for a budget or its turn for people, and
// an error when it must stop: the bot's end, a lost lease, an unreachable
// database.
func (w *worker) work(ctx context.Context) error {
	project, ok := w.projects[w.thread.Project]
	if !ok {
		return w.refuse(ctx, "This thread belongs to the project "+w.thread.Project+", which is no longer in deckhand.yaml. Ask an admin to put it back, or start a new thread.")
	}
	w.project, w.asleep = project, false
	var err error
	if w.offer, err = w.store.StoppedTurn(ctx, w.threadID); err != nil {
		return err
	}
	messages := w.box.take()
	asks := func(k messageKind) bool {
		return slices.ContainsFunc(messages, func(m message) bool { return m.kind == k })
	}
	putAway, forget := asks(messagePutAway), asks(messageForget)
	if w.noteStops(messages) {
		return threads.ErrFenced
	}
	if w.stopBy != "" {
		return w.stopCold(ctx)
	}
	if w.stopping.Load() {
		return nil
	}
	if err := w.recover(ctx); err != nil {
		return err
	}
	if w.turn == nil && !w.asleep {
		if err := w.nextTurn(ctx); err != nil {
			return err
		}
	}
	if w.session == nil && !w.asleep {
		if forget {
			if err := w.forgetWork(ctx); err != nil {
				return err
			}
		}
		if putAway {
			return w.putAway(ctx)
		}
	}
	for w.session != nil && !w.asleep {
		if w.stopping.Load() && !w.finishes() {
			return errShutdown
		}
		hibernate, err := w.round(ctx)
		if err != nil || hibernate {
			return err
		}
		if !w.asleep {
			w.watchWait()
		}
	}
	return nil
}

// finishes reports whether there is a turn that may come to its end while the bot stops:
// one that waits for people does not.
func (w *worker) finishes() bool { return w.turn != nil && len(w.turn.desk.Open()) == 0 }

// noteStops reads the messages to a worker that has no process: whoever stops the thread,
// and whether its lease is lost.
func (w *worker) noteStops(messages []message) (fenced bool) {
	for _, m := range messages {
		switch {
		case m.kind == messageLeaseLost && m.epoch == w.heldLease().Epoch:
			fenced = true
		case m.kind == messageStop:
			w.stopBy = m.id
		}
	}
	return fenced
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
	case <-w.turn.waitOver():
		return false, w.yield(ctx, false)
	case <-w.turn.faint():
		w.onFaint(ctx)
		return false, nil
	case m, ok := <-w.session.messages:
		if !ok {
			return false, w.onExit(ctx)
		}
		return false, w.onMessage(ctx, m)
	case <-w.box.signal:
		if ctx.Err() != nil {
			return false, context.Cause(ctx) // before whatever comes of that
		}
		messages := w.box.take()
		for i, m := range messages {
			if err := w.read(ctx, m); err != nil {
				return false, err
			}
			if m.kind == messageHibernate {
				hibernate = hibernate || w.turn == nil
			}
			if w.asleep {
				for _, m := range messages[i+1:] {
					w.box.put(m) // for whoever takes the thread up
				}
				return false, nil
			}
		}
		return hibernate && w.turn == nil, nil
	}
}

// read acts on a message.
func (w *worker) read(ctx context.Context, m message) error {
	switch m.kind {
	case messageWake:
		return w.onWake(ctx)
	case messageDecided:
		if w.turn != nil {
			return w.turn.desk.Decided(ctx, m.id, m.decided)
		}
	case messageLater:
		return m.then(ctx)
	case messageStop:
		return w.onStop(ctx, m.id)
	case messageHibernate:
		if w.turn != nil {
			return w.yield(ctx, true)
		}
	case messageHeld:
		w.show()
	case messageServers:
		w.session.lookAtServers(ctx)
	case messageLeaseLost:
		if m.epoch == w.heldLease().Epoch {
			return threads.ErrFenced
		}
	}
	return nil
}

// stopError says that somebody stopped what had not begun.
type stopError struct{ by string }

func (e *stopError) Error() string { return "stopped by " + e.by }

// interruptibly runs fn in a goroutine of its own, and cancels it when somebody stops the thread, the lease is lost
// or the bot stops. Until fn returns, the worker's state belongs to it. Other messages are about turns, and none
// runs: they are dropped, and the caller reads the database again afterwards.
func (w *worker) interruptibly(ctx context.Context, fn func(context.Context) error) error {
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
				w.box.put(message{kind: messageHibernate})
			}
			return cmp.Or(end, err)
		case <-w.box.signal:
			for _, m := range w.box.take() {
				switch {
				case m.kind == messageLeaseLost && m.epoch == epoch:
					end = threads.ErrFenced
				case m.kind == messageStop && end == nil:
					w.stopBy, end = m.id, &stopError{by: m.id}
				case m.kind == messageHibernate:
					// The session has just become one that may be asked, and whoever needs
					// its slot asks once.
					slotAsked = true
				}
			}
			if end == nil && w.stopping.Load() {
				end = errShutdown
			}
			if end != nil {
				cancel(end)
			}
		}
	}
}

// onWake begins the next prompt. During a turn it shows the queue, and delivers decisions whose notice was lost.
func (w *worker) onWake(ctx context.Context) error {
	if w.turn == nil {
		return w.nextTurn(ctx)
	}
	w.front.ShowQueue(w.threadID, nil) // there may be a prompt behind the turn
	w.makeWay(ctx)
	return w.turn.desk.Missed(ctx)
}
