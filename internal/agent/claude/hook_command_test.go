package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/agent/claude"
)

// TestCLIHookCommands: hook commands of settings do not run, neither those of the folder nor those of the home,
// which are what an allowed command may have written there.
func TestCLIHookCommands(t *testing.T) {
	t.Parallel()
	s := prepare(t, theCLI(t))
	for _, folder := range []string{s.home, s.dir} {
		s.must(os.MkdirAll(filepath.Join(folder, ".claude"), 0o700))
		s.must(os.WriteFile(filepath.Join(folder, ".claude", "settings.json"), []byte(mustJSON(t, map[string]any{
			"hooks": map[string]any{"SessionStart": []any{map[string]any{"hooks": []any{
				map[string]string{"type": "command", "command": "echo from the hook; exit 1"},
			}}}},
		})), 0o600))
	}
	s.start()
	s.run("say: hi")
	for _, m := range s.log {
		if sys, ok := m.(*claude.System); ok && strings.Contains(sys.Subtype, "hook") {
			t.Errorf("seen %s", sys.Raw)
		}
	}
}
