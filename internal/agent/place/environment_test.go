package place

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/agent/claude"
	"deckhand/internal/sandbox"
)

// The shell is bash by its absolute path, whatever the bot's own shell is.
func TestTheShellIsBash(t *testing.T) {
	t.Setenv("SHELL", "/usr/bin/zsh")
	t.Setenv("CLAUDE_CODE_SHELL", "./zsh")
	bash, err := bashOf(sandbox.None)
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{DataDir: t.TempDir()}
	env := h.environ(Project{Env: []string{"SHELL", "CLAUDE_CODE_SHELL"}}, 7, bash)
	for _, want := range []string{"SHELL=" + bash, "CLAUDE_CODE_SHELL=" + bash} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in %v", want, env)
		}
	}
	if executable("/bin/bash") {
		if bash != "/bin/bash" {
			t.Errorf("bash is %s", bash)
		}
		return
	}
	t.Setenv("PATH", "")
	if _, err := bashOf(sandbox.None); !errors.Is(err, errNoBash) {
		t.Errorf("without bash: %v", err)
	}
}

func TestExecutable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"yes": 0o755, "no": 0o644} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if executable(path) != (name == "yes") {
			t.Errorf("%s: wrong", name)
		}
	}
	if executable(dir) || executable(filepath.Join(dir, "nothing")) {
		t.Error("no file is executable")
	}
}

// The filters that a repository's settings name are switched off by their names; settings
// that cannot be read keep the process from starting.
func TestDeaf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, out)
		}
	}
	git("init", "--quiet")
	must(t, os.WriteFile(filepath.Join(dir, "more"), []byte("[filter \"included\"]\n\tsmudge = evil\n"), 0o600))
	for key, value := range map[string]string{"filter.evil.clean": "evil", "filter.evil.required": "true", "include.path": filepath.Join(dir, "more")} {
		git("config", key, value)
	}
	said, err := deaf(t.Context(), dir)
	slices.SortFunc(said, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	want := [][2]string{{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}, {"filter.evil.clean", ""}, {"filter.evil.required", "false"}, {"filter.included.smudge", ""}}
	if err != nil || !slices.Equal(said, want) {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := deaf(t.Context(), t.TempDir()); err != nil || len(said) != 2 {
		t.Errorf("without a repository: %q, %v", said, err)
	}
	var many strings.Builder
	for i := range maxFilters + 1 {
		many.WriteString("[filter \"" + strings.Repeat("f", i+1) + "\"]\n\tclean = evil\n")
	}
	must(t, os.WriteFile(filepath.Join(dir, "more"), []byte(many.String()), 0o600))
	if _, err := deaf(t.Context(), dir); err == nil {
		t.Error("nothing is said about too many filters")
	}
	if err := os.Remove(filepath.Join(dir, "more")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "more"), 0o600); err != nil {
		t.Fatal(err)
	}
	if env, err := deaf(t.Context(), dir); !errors.Is(err, claude.ErrNoAnswer) { // so that the start is tried again
		t.Errorf("settings that have no end: %v, %v", env, err)
	}
}
