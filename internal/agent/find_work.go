package agent

import (
	"context"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store/threads"
)

// politeFor is how long a replica leaves a thread that nobody has to one that suits it
// better.
const politeFor = time.Second

// findWorkSoon has work be looked for that no notice told of, after some time at the latest.
func (s *Supervisor) findWorkSoon(after time.Duration) {
	for {
		select {
		case s.look <- after:
			return
		case sooner := <-s.look:
			after = min(after, sooner)
		}
	}
}

// pollDeaf is how often work is looked for while notices do not arrive.
const pollDeaf = 2 * time.Second

func (s *Supervisor) poll() time.Duration {
	if !s.store.Listening().Up {
		return min(pollDeaf, s.limits.Poll)
	}
	return s.limits.Poll
}

// pollForWork looks for work now and then, and when it is told to, until ctx ends.
func (s *Supervisor) pollForWork(ctx context.Context) {
	next := time.NewTimer(s.limits.Poll)
	defer next.Stop()
	at := time.Now().Add(s.limits.Poll)
	for {
		select {
		case <-ctx.Done():
			return
		case after := <-s.look:
			if sooner := time.Now().Add(after); sooner.Before(at) {
				at = sooner
				next.Reset(after)
			}
		case <-next.C:
			s.findWork(ctx)
			after := s.poll()
			at = time.Now().Add(after)
			next.Reset(after)
		}
	}
}

// findWork wakes the threads that have work and no live replica. Those that are seen
// for the first time are left to whom they suit.
func (s *Supervisor) findWork(ctx context.Context) {
	s.markDead(ctx)
	if !s.woken.Load() {
		// What waits for a budget was looked at under another configuration, perhaps.
		if err := s.store.WakeWaits(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("look for what waits for budgets", zap.Error(err))
		} else {
			s.woken.Store(true)
		}
	}
	s.returnUnused(ctx)
	held := s.wakeAll()
	s.bookLost(ctx)
	if s.stopping.Load() {
		return
	}
	ids, err := s.store.Unattended(ctx, s.replica, held)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Error("look for unattended threads", zap.Error(err))
		}
		return
	}
	now, sighted := s.place.Uptime(), map[int64]time.Duration{}
	for _, id := range ids {
		since, again := s.sighted[id]
		if !again {
			since = now
		}
		sighted[id] = since
		s.post(id, message{kind: messageWake, eager: now-since >= politeFor})
	}
	s.sighted = sighted
}

// wakeAll has every worker look at what a lost notice may have been about, and returns the
// threads that have one.
func (s *Supervisor) wakeAll() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make([]int64, 0, len(s.workers))
	for id, w := range s.workers {
		held = append(held, id)
		w.box.put(message{kind: messageWake})
	}
	for id := range s.stops { // not carried out yet
		if s.workers[id] == nil {
			s.wanted[id] = append(s.wanted[id], message{kind: messageStop, id: s.stops[id]})
			s.startSoon()
		}
	}
	return held
}

// bookLost books the calls of the model that nobody makes any more, here or on a replica
// that has died.
func (s *Supervisor) bookLost(ctx context.Context) {
	n, err := s.store.EndLostCalls(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		s.log.Error("book the calls that a dead process has left", zap.Error(err))
	case n > 0:
		s.log.Warn("calls of the model that a dead process has left are booked by what was seen of them", zap.Int("calls", n))
	}
}

// returnUnused hands back leases that no worker here has: their release failed.
func (s *Supervisor) returnUnused(ctx context.Context) {
	s.mu.Lock()
	var unused []threads.Lease
	for _, l := range s.unused {
		if s.workers[l.ThreadID] == nil {
			unused = append(unused, l)
		}
	}
	s.unused = nil
	s.mu.Unlock()
	for _, l := range unused {
		if err := s.store.ReleaseLease(ctx, l, true); err != nil && ctx.Err() == nil {
			s.log.Error("release a lease that nobody here uses", zap.Error(err))
		}
	}
}
