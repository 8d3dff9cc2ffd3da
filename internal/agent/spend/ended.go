package spend

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Ended are the meters of a thread's processes that have gone, as long as calls of theirs are
// read to their end. Its methods are for one goroutine, but for Waits.
type Ended struct {
	bot     context.Context //nolint:containedctx // ends when the bot stops
	running *sync.WaitGroup
	meters  []*Meter
	done    chan struct{} // has a token when one may be done
	waits   atomic.Bool
}

// NewEnded has what is read to its end be cut when bot ends, and be waited for by running.
func NewEnded(bot context.Context, running *sync.WaitGroup) *Ended {
	return &Ended{bot: bot, running: running, done: make(chan struct{}, 1)}
}

// Run runs a meter until it is closed.
func (e *Ended) Run(m *Meter) {
	e.running.Go(func() {
		m.Run()
		select {
		case e.done <- struct{}{}:
		default: // it is about to be looked
		}
	})
}

// Add keeps the meter of a process that has gone.
func (e *Ended) Add(m *Meter) { e.meters = append(e.meters, m) }

// Wait waits for one that may be done, for something else or for the end of ctx, if calls are
// read to their end; it reports whether some were.
func (e *Ended) Wait(ctx context.Context, other <-chan struct{}) bool {
	e.meters = slices.DeleteFunc(e.meters, func(m *Meter) bool {
		select {
		case <-m.Done():
			return true
		default:
			return false
		}
	})
	if len(e.meters) == 0 {
		return false
	}
	e.waits.Store(true)
	defer e.waits.Store(false)
	select {
	case <-e.done:
	case <-other:
	case <-ctx.Done():
	}
	return true
}

// Waits reports whether Wait waits now: all that the thread does is to read calls to their end.
func (e *Ended) Waits() bool { return e.waits.Load() }

// SetAdrift has the calls that are read to their end go on without the lease, until the
// bot stops: whoever has it now books them as lost, and they are corrected.
func (e *Ended) SetAdrift() {
	for _, m := range e.meters {
		stop := context.AfterFunc(e.bot, m.Cut)
		e.running.Go(func() {
			<-m.Done()
			stop()
		})
	}
	e.meters = nil
}

// Cut has the calls end with their callers.
func (e *Ended) Cut() {
	for _, m := range e.meters {
		m.Cut()
	}
}

// Settle is [Meter.Settle] of all.
func (e *Ended) Settle(ctx context.Context, cutting time.Duration) {
	for _, m := range e.meters {
		m.Settle(ctx, cutting)
	}
}
