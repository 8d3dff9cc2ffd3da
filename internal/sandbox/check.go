package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/beginning"
	"deckhand/internal/scratch"
)

// trialTime is how long a sandbox may take to run a shell, even on a busy machine. After that an engine or host
// counts as unreachable.
const trialTime = 2 * time.Minute

// Program is a program to try a sandbox with: it reads In, and writes to Out and Err.
type Program struct {
	Command, Env []string
	Dir, In      string
	Out, Err     io.Writer
}

// Run runs a program until it and all that it has started are gone, also when ctx ends or the bot is killed. status
// and signal are its outcome; an error says why it could not be started.
type Run func(ctx context.Context, p Program) (status, signal int, err error)

// ErrKilled means that somebody killed the trial: it says nothing about the sandbox.
var ErrKilled = errors.New("the program that tries the sandbox was killed")

// errTrial marks errors of a program that failed in the sandbox.
var errTrial = errors.New("tried with a shell")

// trial runs a shell script in the sandbox, in an empty workspace, with the line trialWord as input. It returns the
// output before that line, which must come last: this proves that bytes go in and out.
//
// With forwards the script runs beside a forwarder, like sessions with one. With filtered the sandbox has our
// filter, and being able to make a setuid file in it is an error.
func trial(ctx context.Context, run Run, sandbox Sandbox, forwards, filtered bool, script string) (string, error) {
	folder, err := scratch.Make(scratch.Check)
	if err != nil {
		return "", err
	}
	defer folder.Remove() //nolint:errcheck // sweep removes the rest
	dir := folder.Path
	s := Session{
		Name: filepath.Base(dir), Workspace: filepath.Join(dir, "workspace"), Home: filepath.Join(dir, "home"),
		Program: []string{"/bin/sh"}, CacheDir: filepath.Join(dir, "caches"), Env: []string{"PATH=" + os.Getenv("PATH")},
	}
	for _, d := range []string{s.Workspace, s.Home, s.CacheDir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return "", fmt.Errorf("make a folder to try the sandbox in: %w", err)
		}
	}
	if forwards {
		s.Web = filepath.Join(s.CacheDir, "web")
	}
	out, err := tryIn(ctx, run, sandbox, s, "touch made || exit 1; chmod 6700 made 2>/dev/null; "+script)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(filepath.Join(s.Workspace, "made")); err != nil {
		return "", fmt.Errorf("what is written in the sandbox's workspace is not on this machine: %w", err)
	} else if filtered && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		return "", errors.New("setuid files can be made in the sandbox, which other accounts of this machine would run as the bot's user")
	}
	return out, nil
}

// trialWord is the trial's standard input.
const trialWord = "shut-in"

func tryIn(ctx context.Context, run Run, sandbox Sandbox, s Session, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	box, err := sandbox.Prepare(ctx, s)
	if err != nil {
		return "", err
	}
	defer box.Close() //nolint:errcheck // leftovers do not matter to the caller
	out, errOut := beginning.Buffer{Most: mostSaid}, beginning.Buffer{Most: mostSaid}
	status, signal, err := run(ctx, Program{
		Command: append(box.Command, "-c", script), Env: box.Env, Dir: s.Workspace, In: trialWord + "\n", Out: &out, Err: &errOut,
	})
	switch {
	case err != nil || ctx.Err() != nil:
	case signal == int(syscall.SIGKILL), status == 128+int(syscall.SIGKILL):
		return "", ErrKilled
	case signal != 0:
		err = fmt.Errorf("signal %d", signal)
	case status != 0:
		err = fmt.Errorf("exit status %d", status)
	}
	printed, whole := strings.CutSuffix(out.String(), trialWord+"\n")
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("%w, which did not end within %v", errTrial, trialTime)
	case ctx.Err() != nil:
		return "", fmt.Errorf("%w, which was ended: %w", errTrial, ctx.Err())
	case err != nil:
		return "", fmt.Errorf("%w, which said: %s (%w)", errTrial, lastLine(errOut.String()), err)
	case !whole:
		return "", fmt.Errorf("%w, which did not get what was written to it: it printed %.200q", errTrial, out.String())
	}
	return printed, nil
}

// mostSaid bounds what is kept of a program's output, in bytes. A launcher or an image may print without end.
const mostSaid = 1 << 20

// lastLine is the last line: programs print the cause last.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "nothing"
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// seen checks the network against the routing table that a program in the sandbox printed.
func (n Network) seen(table string) error {
	if !strings.HasPrefix(table, "Iface") {
		return errors.New("the sandbox shows no routing table, so that nobody knows what it reaches")
	}
	if routes := strings.Count(strings.TrimSpace(table), "\n"); n != Open && routes > 0 {
		return errors.New("the sandbox has a way out to the network, which is to be off")
	}
	return nil
}
