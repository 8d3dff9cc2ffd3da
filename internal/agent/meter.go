package agent

import (
	"context"
	"fmt"
	"time"

	"deckhand/internal/agent/spend"
	"deckhand/internal/store/threads"
)

// newMeter runs the meter of a process that is about to start, until it is closed.
func (w *worker) newMeter() *spend.Meter {
	m := w.accounts.NewMeter(spend.Session{
		Project: spend.Project{Name: w.project.Name, Prices: w.project.Prices, Models: w.project.Models, Named: w.project.Provider.Model},
		Lease:   w.heldLease(), Thread: w.thread, Log: w.log,
		OnHeld: func() { w.box.put(message{kind: messageHeld}) }, OnStray: w.tellOfStray,
	})
	w.ended.Run(m)
	return m
}

// strayLimit bounds how long it is tried to tell of a call that nothing runs for.
const strayLimit = 30 * time.Second

// tellOfStray says in the thread that something which a turn has left running has called the
// model in vain. It returns at once.
func (w *worker) tellOfStray(thread threads.ThreadKey) {
	w.log.Warn("a call of the model was refused, since no turn runs")
	w.running.Go(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), strayLimit, fmt.Errorf("no answer in %s", strayLimit))
		defer cancel()
		w.sayIn(ctx, thread, "A program that was left running called the model after the turn had ended. Deckhand refused the call. Ask Claude to stop the program if you don't want it.")
	})
}
