package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// slots bounds how many CLI processes live at once. They are given first come, first
// served. Where none is free a warm spare has to go, then the session that has been idle
// longest is asked for its own, and after those the turn that has waited longest for people.
type slots struct {
	mu    sync.Mutex
	max   int
	live  map[*worker]bool
	lent  map[*warmSpare]bool // to warm spares; true for those that were told to go
	spare map[*worker]spare
	asked map[*worker]bool // those of them that were asked to; they end, or go on
	queue []*place
}

// spare is what a live session is that could do without its slot.
type spare struct {
	since time.Time
	waits bool // a turn of it waits for people; else it is idle
}

// place is a worker's place in the queue.
type place struct {
	w     *worker
	given chan struct{} // closed when it has its slot, or is handed on
	on    bool          // it is handed on
	moved func(before int)
	told  int // what it was called with last; -1 when it was not
}

func newSlots(n int) *slots {
	return &slots{max: n, live: map[*worker]bool{}, lent: map[*warmSpare]bool{}, spare: map[*worker]spare{}, asked: map[*worker]bool{}}
}

func (s *slots) used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) + len(s.lent)
}

// lend gives a warm spare a slot that nobody needs. It reports false if there is none.
func (s *slots) lend(sp *warmSpare) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 || len(s.live)+len(s.lent) >= s.max {
		return false
	}
	s.lent[sp] = false
	return true
}

// takeBack frees the slot of a warm spare that is gone.
func (s *slots) takeBack(sp *warmSpare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.lent, sp)
	s.serve()
}

// pass gives the slot of a warm spare to the worker that is to have it. It reports false
// if somebody who came before waits for the slot.
func (s *slots) pass(sp *warmSpare, w *worker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent[sp] {
		return false
	}
	delete(s.lent, sp)
	s.live[w] = true
	return true
}

// leaving is how many slots of warm spares are about to be free. s.mu is held.
func (s *slots) leaving() (n int) {
	for _, told := range s.lent {
		if told {
			n++
		}
	}
	return n
}

// working is how many sessions need their slot now.
func (s *slots) working() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) - len(s.spare)
}

// acquire waits for a slot. moved is called with how many are before the worker if it has
// to wait for a session that works, and whenever that changes; it must return at once.
func (s *slots) acquire(ctx context.Context, w *worker, moved func(before int)) error {
	s.mu.Lock()
	if s.live[w] {
		s.mu.Unlock()
		return nil
	}
	p := &place{w: w, given: make(chan struct{}), moved: moved, told: -1}
	s.queue = append(s.queue, p)
	s.serve()
	s.mu.Unlock()
	select {
	case <-p.given:
		if p.on {
			return errHandedOn
		}
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, p); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.serve()
	} else {
		s.drop(w)
	}
	return context.Cause(ctx)
}

// errHandedOn is why a worker has no slot: another replica has one for its thread.
var errHandedOn = errors.New("another replica has room for this thread")

// handOn has whoever has waited longest, and has no slot on its way, wait no longer. It
// reports false when there is none.
func (s *slots) handOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.asked) + s.leaving()
	if i >= len(s.queue) {
		return false
	}
	p := s.queue[i]
	s.queue = slices.Delete(s.queue, i, i+1)
	p.on = true
	close(p.given)
	s.serve()
	return true
}

// serve gives the slots that are free to those who have waited longest, asks for as many
// as the others need, and tells those for whom none is on its way how many are before
// them.
func (s *slots) serve() {
	for len(s.queue) > 0 && len(s.live)+len(s.lent) < s.max {
		s.live[s.queue[0].w] = true
		close(s.queue[0].given)
		s.queue = s.queue[1:]
	}
	coming := s.leaving()
	for sp, told := range s.lent {
		if !told && len(s.asked)+coming < len(s.queue) {
			s.lent[sp] = true
			coming++
			sp.leave()
		}
	}
	for len(s.asked)+coming < len(s.queue) {
		w := s.cheapest()
		if w == nil {
			break
		}
		s.asked[w] = true
		w.box.put(letter{kind: letterHibernate})
	}
	for i, p := range s.queue {
		if i >= len(s.asked)+coming && p.told != i || p.told > i {
			p.told = i
			p.moved(i)
		}
	}
}

// cheapest is whoever can do without a slot best, and was not asked; or nil.
func (s *slots) cheapest() (best *worker) {
	for w, a := range s.spare {
		b := s.spare[best]
		switch {
		case s.asked[w]:
		case best == nil, b.waits && !a.waits, b.waits == a.waits && a.since.Before(b.since):
			best = w
		}
	}
	return best
}

// idle marks a live session as idle from now on; waits, as one whose turn only waits for
// people; works, as one that needs its slot.
func (s *slots) idle(w *worker)  { s.mark(w, &spare{since: time.Now()}) }
func (s *slots) waits(w *worker) { s.mark(w, &spare{since: time.Now(), waits: true}) }
func (s *slots) works(w *worker) { s.mark(w, nil) }

func (s *slots) mark(w *worker, as *spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live[w] {
		return
	}
	delete(s.asked, w)
	delete(s.spare, w)
	if as != nil {
		s.spare[w] = *as
	}
	s.serve()
}

func (s *slots) release(w *worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(w)
}

func (s *slots) drop(w *worker) {
	delete(s.live, w)
	delete(s.spare, w)
	delete(s.asked, w)
	s.serve()
}
