package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/agent/claude"
)

// TestCLIHookCommands shows what the user's own hook commands print: unlike a
// repository's they run.
func TestCLIHookCommands(t *testing.T) {
	t.Parallel()
	s := prepare(t, theCLI(t))
	s.must(os.MkdirAll(filepath.Join(s.home, ".claude"), 0o700))
	s.must(os.WriteFile(filepath.Join(s.home, ".claude", "settings.json"), []byte(mustJSON(t, map[string]any{
		"hooks": map[string]any{"SessionStart": []any{map[string]any{"hooks": []any{
			map[string]string{"type": "command", "command": "echo from the hook; exit 1"},
		}}}},
	})), 0o600))
	s.start()
	s.run("say: hi")
	var seen []string
	for _, m := range s.log {
		if sys, ok := m.(*claude.System); ok && sys.Hook != nil {
			seen = append(seen, sys.Subtype+" "+sys.Hook.Event+" "+sys.Hook.Outcome+" "+strings.TrimSpace(sys.Hook.Stdout))
		}
	}
	if got, want := strings.Join(seen, ", "), "hook_started SessionStart  , hook_response SessionStart error from the hook"; got != want {
		t.Errorf("seen %q, want %q", got, want)
	}
}
