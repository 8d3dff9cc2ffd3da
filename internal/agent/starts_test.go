package agent

import (
	"fmt"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/sandbox"
)

// TestAKilledStartIsTriedAgain: nothing that waits in the thread is lost by it.
func TestAKilledStartIsTriedAgain(t *testing.T) {
	t.Parallel()
	killed := exec.CommandContext(t.Context(), "sh", "-c", "kill -9 $$").Run()
	for name, err := range map[string]error{
		"the CLI":     fmt.Errorf("initialize: %w", &claude.ExitError{Reason: claude.ExitKilled}),
		"its reaper":  fmt.Errorf("start claude: %w", claude.ErrKilled),
		"git":         fmt.Errorf("git: %w", killed),
		"its sandbox": fmt.Errorf("the sandbox of project web: docker does not answer: %w", sandbox.ErrKilled),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(staged)
				s.restart()
				s.machine.hold()
				s.prompt(here)
				s.acceptOf("U2", here)
				s.prompt(here)
				synctest.Wait()
				s.machine.failNext(err)
				s.machine.failNext(err)
				s.machine.release()
				time.Sleep(10 * startPause)
				synctest.Wait()
				for i, p := range s.store.Prompts() {
					if want := map[bool]string{true: "running", false: "accepted"}[i == 0]; p.State != want {
						t.Errorf("prompt %d is %s %s, want %s", i+1, p.State, p.Outcome, want)
					}
				}
				for _, broken := range s.close() {
					t.Error(broken)
				}
			})
		})
	}
}
