package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"deckhand/internal/beginning"
)

// trialTime is how long a sandbox may take to run a shell, on a machine that is busy with
// other things, too. An engine that is away, or a host that does not answer, is told
// after it.
const trialTime = 2 * time.Minute

// errTrial is in the error of a program that did not run as it should in the sandbox.
var errTrial = errors.New("tried with a shell")

// trial runs a script of the shell in the sandbox, in an empty workspace, with the line
// trialWord to read. It returns what it printed before that line, which it must print
// last: bytes go in and come out.
//
// With forwards the script runs beside a forwarder, as sessions with one do.
func trial(ctx context.Context, sandbox Sandbox, forwards bool, script string) (string, error) {
	dir, err := os.MkdirTemp("", "deckhand-check-")
	if err != nil {
		return "", fmt.Errorf("make a folder to try the sandbox in: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // in the folder for such
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
	return tryIn(ctx, sandbox, s, script)
}

// trialWord is what goes in by standard input.
const trialWord = "shut-in"

func tryIn(ctx context.Context, sandbox Sandbox, s Session, script string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	box, err := sandbox.Prepare(ctx, s)
	if err != nil {
		return "", err
	}
	defer box.Close() //nolint:errcheck // what is left over is nothing to whoever asks whether it works
	cmd := exec.CommandContext(ctx, box.Command[0], append(box.Command[1:], "-c", script)...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = box.Env, s.Workspace, time.Second
	out, errOut := beginning.Buffer{Most: mostSaid}, beginning.Buffer{Most: mostSaid}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(trialWord+"\n"), &out, &errOut
	err = cmd.Run()
	printed, whole := strings.CutSuffix(out.String(), trialWord+"\n")
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%w, which did not end within %v", errTrial, trialTime)
	case err != nil:
		return "", fmt.Errorf("%w, which said: %s (%w)", errTrial, lastLine(errOut.String()), err)
	case !whole:
		return "", fmt.Errorf("%w, which did not get what was written to it: it printed %.200q", errTrial, out.String())
	}
	return printed, nil
}

// mostSaid is what is kept of what a program says, in bytes. A launcher or an image is not
// ours, and may say more than there is memory for before its time is over.
const mostSaid = 1 << 20

// lastLine is the last thing that was said: programs complain of what follows from what.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return "nothing"
	}
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// seen compares the network with the routing table that a program in the sandbox printed.
func (n Network) seen(table string) error {
	if !strings.HasPrefix(table, "Iface") {
		return errors.New("the sandbox shows no routing table, so that nobody knows what it reaches")
	}
	if routes := strings.Count(strings.TrimSpace(table), "\n"); n != Open && routes > 0 {
		return errors.New("the sandbox has a way out to the network, which is to be off")
	}
	return nil
}
