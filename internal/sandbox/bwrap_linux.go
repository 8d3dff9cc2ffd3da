package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// hostname is the machine's name inside.
const hostname = "deckhand"

// bwrap shuts sessions in with bubblewrap.
type bwrap struct {
	spec Spec
}

func newBwrap(spec Spec) (Sandbox, error) { return &bwrap{spec}, nil }

func (b *bwrap) String() string { return words(Bwrap, b.spec) }

func (b *bwrap) Prepare(_ context.Context, s Session) (*Box, error) {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, missing()
	}
	v, command, err := b.view(s)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", hostname,
	}
	if b.spec.Network != Open {
		args = append(args, "--unshare-net")
	}
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	args = append(args, v.args()...)
	args = append(args, "--chdir", s.Workspace)
	p := plan{Bwrap: program, Args: args, Files: identity(s.Home, b.spec.Network), Program: command, OpenFiles: b.spec.Limits.Files}
	words, err := p.command()
	if err != nil {
		return nil, err
	}
	return &Box{Command: words, Env: environ(s.Env)}, nil
}

// view is what the session sees, and its program as it is called inside.
func (b *bwrap) view(s Session) (*view, []string, error) {
	v := newView()
	if err := v.system(b.spec.Network); err != nil {
		return nil, nil, err
	}
	for _, p := range b.spec.See {
		if !exists(p) {
			return nil, nil, fmt.Errorf("there is no %s, which see: names", p)
		}
		v.show(readOnly, p)
	}
	if err := v.hide(s.Hidden); err != nil {
		return nil, nil, err
	}
	v.show(writable, s.Workspace)
	v.show(writable, s.Home)
	for _, p := range s.ReadOnly {
		v.show(readOnly, p)
	}
	for _, c := range b.spec.Caches {
		kept := filepath.Join(s.CacheDir, c)
		if err := os.MkdirAll(kept, 0o700); err != nil {
			return nil, nil, fmt.Errorf("make a cache: %w", err)
		}
		v.put(filepath.Join(s.Home, c), writable, kept)
	}
	if s.Socket != "" {
		v.show(readOnly, filepath.Dir(s.Socket))
	}
	command, err := v.program(s.Program)
	return v, command, err
}

// environ is the session's environment, with what would name places that are not there.
func environ(env []string) []string {
	out := make([]string, 0, len(env)+1)
	for _, entry := range env {
		if !strings.HasPrefix(entry, "TMPDIR=") {
			out = append(out, entry)
		}
	}
	return append(out, "TMPDIR=/tmp")
}

func missing() error {
	return errors.New("bwrap is not installed; install it: apt-get install bubblewrap (dnf and pacman have it by the same name)")
}

func (b *bwrap) Check(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "deckhand-sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // an empty folder in the folder for such
	workspace, home := filepath.Join(dir, "workspace"), filepath.Join(dir, "home")
	for _, d := range []string{workspace, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	box, err := b.Prepare(ctx, Session{Name: "check", Workspace: workspace, Home: home, Program: []string{"/bin/sh"}})
	if err != nil {
		return err
	}
	defer box.Close() //nolint:errcheck // bwrap has nothing to close
	cmd := exec.CommandContext(ctx, box.Command[0], append(box.Command[1:], "-c", "echo shut in")...)
	cmd.Env, cmd.Dir = box.Env, workspace
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("bwrap does not work here: %s", strings.TrimSpace(errOut.String()))
	}
	if out.String() != "shut in\n" {
		return fmt.Errorf("bwrap does not work here: a program in it said %q", out.String())
	}
	return nil
}
