package agent

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"deckhand/internal/agent/claude"
)

// A full disk is told: at the end of the turn that it took the words of, once, and
// whenever a turn would begin; when there is space again the thread goes on.
func TestAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		full := func(err error) {
			s.machine.mu.Lock()
			defer s.machine.mu.Unlock()
			s.machine.full = err
		}
		s.prompt(here)
		full(fmt.Errorf("the data folder takes nothing more: %w", unix.ENOSPC))
		s.process(here).result(claude.Result{})
		synctest.Wait()
		if said := told(s.heard()); strings.Count(said, "may be unknown") != 1 {
			t.Errorf("at the turn's end:\n%s", said)
		}
		s.prompt(here)
		if said := told(s.heard()); !strings.Contains(said, "disk of the bot's data folder is full") {
			t.Errorf("at the next prompt:\n%s", said)
		}
		full(nil)
		s.prompt(here)
		if got := s.state(here); got != "running" {
			t.Errorf("there is space again, and the thread is %s", got)
		}
		s.process(here).result(claude.Result{})
		synctest.Wait()
		for _, b := range s.close() {
			t.Error(b)
		}
	})
}
