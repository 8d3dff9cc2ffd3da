package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

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
	h := &host{dataDir: t.TempDir()}
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
