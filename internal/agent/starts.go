package agent

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/sandbox"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
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
)

// StartWait is a process that waits to be started.
type StartWait struct {
	// Before is how many starts come first, where AtOnce are made at once on this machine.
	Before, AtOnce int
	// Attempts were not answered; the next is made at NextTry, if that is to come.
	Attempts int
	NextTry  time.Time
}

// showWait tells people that the thread's process waits to be started.
func (h *leased) showWait(before int) {
	if h.holds(leaseOf(h.thread)) {
		h.front.ShowQueue(h.threadID, &StartWait{Before: before, AtOnce: h.place.Starts.AtOnce})
	}
}

// showPlace tells people where the thread stands in the queue for a slot.
func (h *leased) showPlace(before int) {
	if h.holds(leaseOf(h.thread)) {
		h.front.ShowPlace(h.thread, before)
	}
}

// mayPass reports whether a start has failed for what has nothing to do with it: the
// machine had no time for it, or something of it was killed.
func mayPass(err error) bool {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok { // git's
		status, ok := exit.Sys().(syscall.WaitStatus)
		return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
	}
	return errors.Is(err, claude.ErrNoAnswer) || errors.Is(err, claude.ErrKilled) || errors.Is(err, sandbox.ErrKilled)
}

// patience is how many times the usual limit a start may take to answer, after so many
// that did not.
func patience(attempts int) int { return min(attempts+1, startPatience) }

// tryLater has the prompt wait after a start that was not answered in time or was killed;
// the thread sleeps meanwhile. It reports false when that was tried for long enough.
func (w *worker) tryLater(ctx context.Context, p inbox.Prompt, start *startError) (ok bool, err error) {
	if !mayPass(start.err) || !p.WaitsSince.IsZero() && time.Since(p.WaitsSince) > startLimit {
		return false, nil
	}
	pause := min(startPause<<min(p.Attempts, 10), startPauseMost)
	pause += pause * time.Duration(p.InboxID%8) / 32 // those who failed together do not come together
	w.log.Warn("the CLI did not start; trying again", zap.Int("attempt", p.Attempts+1), zap.Duration("in", pause), zap.Error(start.err))
	err = w.store.PutOffPrompt(ctx, w.heldLease(), p.InboxID, pause, start.sentence)
	if errors.Is(err, pg.ErrNotFound) {
		return true, w.nextTurn(ctx) // its author has taken it back, or changed it
	}
	if err != nil {
		return false, err
	}
	p.Marked = true
	w.front.MarkPrompt(p, PromptWaits)
	w.front.ShowQueue(w.threadID, &StartWait{AtOnce: w.place.Starts.AtOnce, Attempts: p.Attempts + 1, NextTry: time.Now().Add(pause)})
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
func (w *worker) tooEarly(p inbox.Prompt) bool {
	w.tries = p.Attempts
	if p.NotYet {
		w.sleep(max(time.Until(p.NextTry), time.Second))
	}
	return p.NotYet
}

// givenUp is what people are told of starts that were tried for long.
func givenUp(p inbox.Prompt, sentence string) string {
	if p.Attempts == 0 {
		return sentence
	}
	return fmt.Sprintf("Claude Code did not start in %d tries: the machine seems to be too busy, or to end it. Send this again later; if it happens again, ask an admin to look at the bot's log.", p.Attempts+1)
}
