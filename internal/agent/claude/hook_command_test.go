package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/agent/claude"
)

// TestCLIHookCommands: hook commands of settings run, and are told of, only where a
// project is trusted. Those of the home folder are what an allowed command may have
// written there.
func TestCLIHookCommands(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		trusted bool
		want    string
	}{
		{"settings are not loaded", false, ""},
		{"a trusted project's are", true, "hook_started SessionStart  , hook_response SessionStart error from the hook"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, theCLI(t))
			folder := s.home
			if tt.trusted {
				folder = s.dir
			}
			s.must(os.MkdirAll(filepath.Join(folder, ".claude"), 0o700))
			s.must(os.WriteFile(filepath.Join(folder, ".claude", "settings.json"), []byte(mustJSON(t, map[string]any{
				"hooks": map[string]any{"SessionStart": []any{map[string]any{"hooks": []any{
					map[string]string{"type": "command", "command": "echo from the hook; exit 1"},
				}}}},
			})), 0o600))
			s.start(func(_ *session, o *claude.Options, _ *claude.InitializeRequest) { o.TrustProject = tt.trusted })
			s.run("say: hi")
			var seen []string
			for _, m := range s.log {
				if sys, ok := m.(*claude.System); ok && sys.Hook != nil {
					seen = append(seen, sys.Subtype+" "+sys.Hook.Event+" "+sys.Hook.Outcome+" "+strings.TrimSpace(sys.Hook.Stdout))
				}
			}
			if got := strings.Join(seen, ", "); got != tt.want {
				t.Errorf("seen %q, want %q", got, tt.want)
			}
		})
	}
}
