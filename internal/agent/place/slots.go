package place

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Slots bounds how many CLI processes live at once. They are given first come, first
// served. Where none is free the session that has been idle longest is asked for its own,
// and after those the one that has waited longest for people.
type Slots struct {
	Most int // how many there are

	mu          sync.Mutex
	live        map[Holder]bool
	dispensable map[Holder]dispensable // those of them that could do without theirs
	asked       map[Holder]bool        // those of them that were asked to; they end, or go on
	queue       []*queued
}

// Holder is who can have a slot.
type Holder interface {
	// MakeRoom asks for the slot, once until its holder is marked anew by [Slots.Idle],
	// [Slots.Waits] or [Slots.Works]. It must return at once.
	MakeRoom()
}

// dispensable says why a live session could do without its slot.
type dispensable struct {
	since time.Time
	waits bool // for people; else it is idle
}

// queued is who waits for a slot.
type queued struct {
	h     Holder
	given chan struct{} // closed when it has its slot, or is handed on
	on    bool          // it is handed on
	moved func(before int)
	told  int // what it was called with last; -1 when it was not
}

// NewSlots returns so many slots, all of them free.
func NewSlots(most int) *Slots {
	return &Slots{Most: most, live: map[Holder]bool{}, dispensable: map[Holder]dispensable{}, asked: map[Holder]bool{}}
}

// Used is how many have a holder.
func (s *Slots) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// Has reports whether somebody has a slot.
func (s *Slots) Has(h Holder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[h]
}

// Working is how many sessions need their slot now.
func (s *Slots) Working() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) - len(s.dispensable)
}

// Acquire waits for a slot, unless h has one. moved is called with how many are before h if
// it has to wait for a session that works, and whenever that changes; it must return at
// once. The error is [ErrHandedOn] or the cause of ctx's end.
func (s *Slots) Acquire(ctx context.Context, h Holder, moved func(before int)) error {
	s.mu.Lock()
	if s.live[h] {
		s.mu.Unlock()
		return nil
	}
	p := &queued{h: h, given: make(chan struct{}), moved: moved, told: -1}
	s.queue = append(s.queue, p)
	s.serve()
	s.mu.Unlock()
	select {
	case <-p.given:
		if p.on {
			return ErrHandedOn
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
		s.drop(h)
	}
	return context.Cause(ctx)
}

// ErrHandedOn is why a session has no slot: another replica has one for its thread.
var ErrHandedOn = errors.New("another replica has room for this thread")

// HandOn has whoever has waited longest, and has no slot on its way, wait no longer. It
// reports false when there is none.
func (s *Slots) HandOn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := len(s.asked)
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
func (s *Slots) serve() {
	for len(s.queue) > 0 && len(s.live) < s.Most {
		s.live[s.queue[0].h] = true
		close(s.queue[0].given)
		s.queue = s.queue[1:]
	}
	for len(s.asked) < len(s.queue) {
		h := s.cheapest()
		if h == nil {
			break
		}
		s.asked[h] = true
		h.MakeRoom()
	}
	for i, p := range s.queue {
		if i >= len(s.asked) && p.told != i || p.told > i {
			p.told = i
			p.moved(i)
		}
	}
}

// cheapest is whoever can do without a slot best, and was not asked; or nil.
func (s *Slots) cheapest() (best Holder) {
	for h, a := range s.dispensable {
		b := s.dispensable[best]
		switch {
		case s.asked[h]:
		case best == nil, b.waits && !a.waits, b.waits == a.waits && a.since.Before(b.since):
			best = h
		}
	}
	return best
}

// Idle marks a session that has a slot as idle from now on.
func (s *Slots) Idle(h Holder) { s.mark(h, &dispensable{since: time.Now()}) }

// Waits marks it as one that only waits for people.
func (s *Slots) Waits(h Holder) { s.mark(h, &dispensable{since: time.Now(), waits: true}) }

// Works marks it as one that needs its slot.
func (s *Slots) Works(h Holder) { s.mark(h, nil) }

func (s *Slots) mark(h Holder, as *dispensable) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live[h] {
		return
	}
	delete(s.asked, h)
	delete(s.dispensable, h)
	if as != nil {
		s.dispensable[h] = *as
	}
	s.serve()
}

// Release frees the slot of a session that is gone, if it had one.
func (s *Slots) Release(h Holder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(h)
}

func (s *Slots) drop(h Holder) {
	delete(s.live, h)
	delete(s.dispensable, h)
	delete(s.asked, h)
	s.serve()
}
