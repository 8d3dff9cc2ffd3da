package agent

import (
	"context"
	"sync"
	"time"
)

// slots bounds how many CLI processes live at once. A session that needs one
// takes it from the session that has been idle longest; where all are busy it
// waits.
type slots struct {
	mu   sync.Mutex
	max  int
	live map[*worker]bool
	idle map[*worker]time.Time // since when; a subset of live
	free chan struct{}         // closed and replaced when a slot is given back
	want int                   // how many wait for one
}

func newSlots(n int) *slots {
	return &slots{max: n, live: map[*worker]bool{}, idle: map[*worker]time.Time{}, free: make(chan struct{})}
}

func (s *slots) used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live)
}

// busy is how many sessions work, or wait for a slot.
func (s *slots) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.live) - len(s.idle) + s.want
}

// acquire waits for a slot; busy is called once if it has to wait for a session
// that works.
func (s *slots) acquire(ctx context.Context, w *worker, busy func()) error {
	for told := false; ; {
		s.mu.Lock()
		if len(s.live) < s.max || s.live[w] {
			s.live[w] = true
			s.mu.Unlock()
			return nil
		}
		var oldest *worker
		for other, since := range s.idle {
			if oldest == nil || since.Before(s.idle[oldest]) {
				oldest = other
			}
		}
		if oldest != nil {
			delete(s.idle, oldest) // it is asked once
		}
		free := s.free
		s.want++
		s.mu.Unlock()
		if oldest != nil {
			oldest.box.put(letter{kind: letterHibernate})
		} else if !told {
			told = true
			busy()
		}
		select {
		case <-free:
		case <-ctx.Done():
		}
		s.mu.Lock()
		s.want--
		s.mu.Unlock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// rest marks a live session as idle from now on, or as working.
func (s *slots) rest(w *worker, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.live[w]:
	case idle:
		s.idle[w] = time.Now()
		s.wakeWaiters()
	default:
		delete(s.idle, w)
	}
}

func (s *slots) release(w *worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, w)
	delete(s.idle, w)
	s.wakeWaiters()
}

func (s *slots) wakeWaiters() {
	close(s.free)
	s.free = make(chan struct{})
}
