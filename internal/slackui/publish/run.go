package publish

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Run sends what is shown until ctx ends, then last states and priorities of Answer or more, for at most
// five seconds. It returns an error when some of that could not be sent. It must be called once.
func (s *Scheduler) Run(ctx context.Context) error {
	// Calls outlive ctx: the drain completes them.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	err := s.loop(ctx, base)
	cancel()
	s.calls.Wait()
	return err
}

func (s *Scheduler) loop(ctx, base context.Context) error {
	timer := time.NewTimer(0)
	timer.Stop()
	defer timer.Stop()
	stop := ctx.Done()
	var deadline time.Time
	for {
		next, left := s.dispatch(base)
		if !deadline.IsZero() {
			if left == 0 {
				s.stop()
				return nil
			}
			if next.IsZero() || next.After(deadline) {
				next = deadline
			}
			if !time.Now().Before(deadline) {
				return fmt.Errorf("publish: %d messages or calls were not sent within %s of the stop", s.stop(), drainTimeout)
			}
		}
		var alarm <-chan time.Time
		if !next.IsZero() {
			timer.Reset(time.Until(next))
			alarm = timer.C
		}
		select {
		case <-stop:
			stop = nil
			deadline = time.Now().Add(drainTimeout)
			s.drain()
		case <-s.wake:
		case <-alarm:
		}
	}
}

// drain drops what need not be sent any more.
func (s *queue) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for j := range s.open {
		// No message may look as if it were still being written.
		if j.stream.stop = true; j.index < 0 && !j.flying {
			s.enqueue(j)
		}
	}
	for _, j := range slices.Clone(s.pending) {
		if !j.stays() {
			s.dequeue(j)
			s.leave(j)
		}
	}
}

// stop ends the scheduler and returns how much was left.
func (s *Scheduler) stop() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return len(s.pending) + s.inFlight
}

// Pending returns how many messages and calls wait or are in flight.
func (s *Scheduler) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) + s.inFlight
}
