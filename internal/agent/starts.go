package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store"
)

const (
	// startPause is how long the first start that was not answered waits for the next try;
	// each further one waits twice as long, up to startPauseMost.
	startPause     = 2 * time.Second
	startPauseMost = 30 * time.Second
	// startLimit is how long a prompt's start is tried again and again.
	startLimit = 15 * time.Minute
	// startPatience is by how much an answer's limit grows, at most, as starts are tried
	// again: a machine that is too busy for one start in time is so for the next.
	startPatience = 4
	// startTold is how often people are told how many starts are before theirs.
	startTold = 5 * time.Second
)

// StartWait is a process that waits to be started.
type StartWait struct {
	// Before is how many starts come first, where AtOnce are made at once on this machine.
	Before, AtOnce int
	// Attempts were not answered; the next is made at NextTry, if that is to come.
	Attempts int
	NextTry  time.Time
}

// starts lets so many processes start at once as the machine bears, first come, first
// served: a start that shares its core with many takes longer than anybody waits.
type starts struct {
	most int

	mu   sync.Mutex
	busy int
	line []chan struct{} // of those who wait, closed when it is their turn
	lent func()          // ends the start of a warm spare; nil while there is none
}

// acquire waits for the right to start a process, which release gives back. told is
// called now and then while others are before it, with how many.
func (s *starts) acquire(ctx context.Context, told func(before int)) error {
	s.mu.Lock()
	if s.busy < s.most {
		s.busy++
		s.mu.Unlock()
		return nil
	}
	if s.lent != nil {
		s.lent()
		s.lent = nil
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

// lend gives a warm spare the right to start while nothing else does; takeBack gives it
// back. giveUp is called when somebody needs it, and must return at once.
func (s *starts) lend(giveUp func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy > 0 {
		return false
	}
	s.busy, s.lent = 1, giveUp
	return true
}

// takeBack is release of a warm spare's.
func (s *starts) takeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent = nil
	s.pass()
}

// before is how many starts come before one that waits, those included that are being
// made.
func (s *starts) before(turn chan struct{}) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.line, turn)
	if i < 0 {
		return 0
	}
	return i + s.busy
}

// leave takes one who waits out of the line, or gives back what it has got meanwhile.
func (s *starts) leave(turn chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.line, turn); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
		return
	}
	s.pass()
}

func (s *starts) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass gives a right to the next in line. s.mu is held.
func (s *starts) pass() {
	if len(s.line) == 0 {
		s.busy--
		return
	}
	close(s.line[0])
	s.line = slices.Delete(s.line, 0, 1)
}

// showWait tells people that the thread's process waits to be started.
func (w *worker) showWait(before int) {
	if w.holds(leaseOf(w.thread)) {
		w.front.ShowQueue(w.threadID, &StartWait{Before: before, AtOnce: w.starts.most})
	}
}

// showPlace tells people where the thread stands in the queue for a slot.
func (w *worker) showPlace(before int) {
	if w.holds(leaseOf(w.thread)) {
		w.front.ShowPlace(w.thread.Key(), before)
	}
}

// busyMachine reports whether a start has failed since the machine had no time for it.
func busyMachine(err error) bool { return errors.Is(err, claude.ErrNoAnswer) }

// patience is how many times the usual limit a start may take to answer, after so many
// that did not.
func patience(attempts int) int { return min(attempts+1, startPatience) }

// tryLater has the prompt wait after a start that was not answered in time; the thread
// sleeps meanwhile. It reports false when that was tried for long enough.
func (w *worker) tryLater(ctx context.Context, p store.Prompt, start *startError) (ok bool, err error) {
	if !busyMachine(start.err) || !p.WaitsSince.IsZero() && time.Since(p.WaitsSince) > startLimit {
		return false, nil
	}
	pause := min(startPause<<min(p.Attempts, 10), startPauseMost)
	pause += pause * time.Duration(p.InboxID%8) / 32 // those who failed together do not come together
	w.log.Warn("the CLI did not start in time; trying again", zap.Int("attempt", p.Attempts+1), zap.Duration("in", pause), zap.Error(start.err))
	err = w.books.PutOffPrompt(ctx, w.heldLease(), p.InboxID, pause, start.sentence)
	if errors.Is(err, store.ErrNotFound) {
		return true, w.nextTurn(ctx) // its author has taken it back, or changed it
	}
	if err != nil {
		return false, err
	}
	p.Marked = true
	w.front.MarkPrompt(p, PromptWaits)
	w.front.ShowQueue(w.threadID, &StartWait{AtOnce: w.starts.most, Attempts: p.Attempts + 1, NextTry: time.Now().Add(pause)})
	w.sleep(pause)
	return true, nil
}

// sleep has the worker end and come back after a while.
func (w *worker) sleep(pause time.Duration) {
	w.asleep = true
	w.wakeAfter(w.threadID, pause)
}

// tooEarly reports whether a prompt's start is not to be tried again yet; the thread
// sleeps on.
func (w *worker) tooEarly(p store.Prompt) bool {
	w.tries = p.Attempts
	if p.NotYet {
		w.sleep(max(time.Until(p.NextTry), time.Second))
	}
	return p.NotYet
}

// givenUp is what people are told of starts that were tried for long.
func givenUp(p store.Prompt, sentence string) string {
	if p.Attempts == 0 {
		return sentence
	}
	return fmt.Sprintf("Claude Code did not start, though it was tried %d times: this machine seems to be too busy. Send it again later; if it stays like this, ask an admin to look at the bot's log.", p.Attempts+1)
}
