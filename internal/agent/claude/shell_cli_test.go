package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/agent/claude"
)

// TestCLIShell measures which shell the CLI takes: CLAUDE_CODE_SHELL, then SHELL, if
// their names sound like bash or zsh, then zsh before bash as PATH has them. A relative
// one is run where the agent works, to see what it is. So the bot sets both to bash.
func TestCLIShell(t *testing.T) {
	t.Parallel()
	cli := theCLI(t)
	for name, tt := range map[string]struct {
		set  func(s *session) []string
		runs bool // the program named zsh
	}{
		"SHELL is zsh":     {func(s *session) []string { return []string{"SHELL=" + s.home + "/bin/zsh"} }, true},
		"SHELL is not set": {func(*session) []string { return []string{"SHELL="} }, true},
		"a relative SHELL": {func(*session) []string { return []string{"SHELL=./zsh"} }, true},
		"pinned": {func(s *session) []string {
			return []string{"CLAUDE_CODE_SHELL=/bin/bash", "SHELL=/bin/bash"}
		}, false},
		"pinned, SHELL is zsh": {func(s *session) []string {
			return []string{"CLAUDE_CODE_SHELL=/bin/bash", "SHELL=" + s.home + "/bin/zsh"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, cli)
			traced := filepath.Join(s.home, "traced")
			for _, path := range []string{filepath.Join(s.home, "bin/zsh"), filepath.Join(s.dir, "zsh")} {
				s.must(os.MkdirAll(filepath.Dir(path), 0o755))
				s.must(os.WriteFile(path, []byte("#!/bin/bash\ntouch "+traced+"\nexec bash \"$@\"\n"), 0o755)) //nolint:gosec // it is to be run
			}
			s.start(func(s *session, o *claude.Options, _ *claude.InitializeRequest) {
				o.Env = withEnv(o.Env, append(tt.set(s), "PATH="+s.home+"/bin:"+os.Getenv("PATH"))...)
			})
			turn := s.run(bash(t, "echo it is $BASH_VERSION"), "say: Done.")
			if tool := s.tool(turn, "Bash"); !strings.HasPrefix(tool.Result, "it is 5") && !strings.HasPrefix(tool.Result, "it is 4") {
				t.Errorf("%+v", tool)
			}
			if _, err := os.Stat(traced); (err == nil) != tt.runs {
				t.Errorf("zsh was run: %v, want %v", err == nil, tt.runs)
			}
		})
	}
}
