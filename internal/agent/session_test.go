package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/claude"
)

// TestWhatCouldNotBeSavedIsTriedAgain: people are told once, and no turn need end for it.
func TestWhatCouldNotBeSavedIsTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		saves := func(why error) int {
			s.machine.mu.Lock()
			defer s.machine.mu.Unlock()
			s.machine.noSave = why
			return s.machine.saves
		}
		saves(errors.New("a file changed"))
		s.prompt(here)
		s.process(here).result(claude.Result{})
		synctest.Wait()
		said := told(s.heard())
		time.Sleep(publishPause + time.Second)
		if said += told(s.heard()); strings.Count(said, "a file changed") != 1 || saves(nil) != 2 {
			t.Errorf("%d saves; people are told:\n%s", saves(nil), said)
		}
		time.Sleep(2 * publishPause)
		if got := saves(nil); got != 3 {
			t.Errorf("%d saves", got)
		}
		time.Sleep(4 * publishPause)
		if got := saves(nil); got != 3 {
			t.Errorf("%d saves after one that succeeded", got)
		}
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}

// TestASaveThatTakesLongComesToItsEnd: on a machine that is busy, or of much, each try has
// longer than the one before.
func TestASaveThatTakesLongComesToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		saves := func(slow time.Duration) int {
			s.machine.mu.Lock()
			defer s.machine.mu.Unlock()
			s.machine.slow = slow
			return s.machine.saves
		}
		saves(5 * time.Minute)
		s.prompt(here)
		s.process(here).result(claude.Result{})
		time.Sleep(20 * time.Minute)
		if got := saves(0); got != 4 { // one, two, four and eight minutes
			t.Errorf("%d saves, of which the fourth has time enough", got)
		}
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}
