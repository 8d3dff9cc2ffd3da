package place

import (
	"context"
	"slices"
	"sync"
	"time"
)

// startTold is how often people are told how many starts are before theirs.
const startTold = 5 * time.Second

// Starts lets so many processes start at once as the machine bears, first come, first
// served: a start that shares its core with many takes longer than anybody waits.
type Starts struct {
	AtOnce int // how many may

	mu   sync.Mutex
	busy int
	line []chan struct{} // of those who wait, closed when it is their turn
}

// Acquire waits for the right to start a process, which Release gives back. told is
// called now and then while others are before it, with how many. The error is the cause of
// ctx's end.
func (s *Starts) Acquire(ctx context.Context, told func(before int)) error {
	s.mu.Lock()
	if s.busy < s.AtOnce {
		s.busy++
		s.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	s.line = append(s.line, turn)
	s.mu.Unlock()
	again := time.NewTicker(startTold)
	defer again.Stop()
	for {
		if before := s.before(turn); before > 0 {
			told(before)
		}
		select {
		case <-turn:
			return nil
		case <-again.C:
		case <-ctx.Done():
			s.leave(turn)
			return context.Cause(ctx)
		}
	}
}

// before is how many starts come before one that waits, those included that are being
// made.
func (s *Starts) before(turn chan struct{}) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.line, turn)
	if i < 0 {
		return 0
	}
	return i + s.busy
}

// leave takes one who waits out of the line, or gives back what it has got meanwhile.
func (s *Starts) leave(turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.line, turn); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
		return
	}
	s.pass()
}

// Release gives the right to start back: the process has started, or will not.
func (s *Starts) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass gives a right to the next in line. s.mu is held.
func (s *Starts) pass() {
	if len(s.line) == 0 {
		s.busy--
		return
	}
	close(s.line[0])
	s.line = slices.Delete(s.line, 0, 1)
}
