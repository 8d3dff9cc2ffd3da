package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/needtest"
	"deckhand/internal/waittest"
)

// house is a bot's machine in a folder: a data folder with two threads, a
// configuration, and a box for the first thread.
type house struct {
	t                               *testing.T
	root, data, config, work, other string
	spec                            Spec
	session                         Session
}

// outside is a folder that no sandbox shows by itself: not the folder for temporary
// files, which a session has its own of.
func outside(t *testing.T) string {
	t.Helper()
	for _, base := range []string{os.Getenv("HOME"), "/var/lib", "/srv"} {
		if base == "" || base == "/" {
			continue
		}
		if dir, err := os.MkdirTemp(base, ".deckhand-sandbox-test-"); err == nil {
			t.Cleanup(func() {
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
			})
			return dir
		}
	}
	t.Fatal("there is no folder to build a house in")
	return ""
}

func newHouse(t *testing.T) *house {
	t.Helper()
	needtest.Program(t, "bwrap")
	h := &house{t: t, root: outside(t)}
	h.data = filepath.Join(h.root, "data")
	h.config = filepath.Join(h.root, "deckhand.yaml")
	h.work = h.folder("data/workspaces/web/1")
	h.other = h.folder("data/workspaces/web/2")
	h.write("data/workspaces/web/2/theirs", "another thread's")
	h.write("data/home/2/.claude/projects/w/t.jsonl", "another thread's transcript")
	h.write("data/replica.lock", "the bot's")
	h.write("deckhand.yaml", "the bot's")
	h.session = Session{
		Name: "test", Workspace: h.work, Home: h.folder("data/home/1"), Hidden: []string{h.data, h.config},
		Program: []string{"/bin/sh", "-c"}, CacheDir: filepath.Join(h.data, "caches/web"),
		Env: []string{"HOME=" + filepath.Join(h.data, "home/1"), "PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"},
	}
	return h
}

func (h *house) folder(path string) string {
	h.t.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(path, 0o755); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *house) write(path, content string) string {
	h.t.Helper()
	h.folder(filepath.Dir(path))
	path = filepath.Join(h.root, path)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
	return path
}

func (h *house) read(path string) string {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.root, path))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(b)
}

// box prepares the house's session.
func (h *house) box() (*Box, error) {
	s, err := New(h.spec)
	if err != nil {
		return nil, err
	}
	box, err := s.Prepare(h.t.Context(), h.session)
	if err == nil {
		h.t.Cleanup(func() {
			if err := box.Close(); err != nil {
				h.t.Error(err)
			}
		})
	}
	return box, err
}

// command is a script to be run inside.
func (h *house) command(ctx context.Context, script string) *exec.Cmd {
	h.t.Helper()
	box, err := h.box()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, box.Command[0], append(box.Command[1:], script)...)
	cmd.Env, cmd.Dir = box.Env, h.session.Workspace
	return cmd
}

// runs runs a script inside and returns what it said, and whether it went well.
func (h *house) runs(script string) (string, bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), waittest.Limit)
	defer cancel()
	cmd := h.command(ctx, script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if exit := (&exec.ExitError{}); err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(out.String()), err == nil
}

// does is a script that has to go well.
func (h *house) does(script string) string {
	h.t.Helper()
	out, ok := h.runs(script)
	if !ok {
		h.t.Errorf("inside, this failed:\n%s\n%s", script, out)
	}
	return out
}

// cannot is a script that must not go well.
func (h *house) cannot(script string) {
	h.t.Helper()
	if out, ok := h.runs(script); ok {
		h.t.Errorf("inside, this worked:\n%s\n%s", script, out)
	}
}
