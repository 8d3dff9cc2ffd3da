package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"

	"deckhand/internal/sandbox/stage"
)

// none is no sandbox: programs run as the bot's user on the bot's machine.
type none struct{ spec Spec }

func (n none) Check(context.Context, Run) error {
	if n.spec.Limits.CPU > 0 {
		return errors.New("limits.cpu is kept by a sandbox, and there is none; leave it out")
	}
	if firstTells("SLACK_BOT_TOKEN") {
		return errors.New("this container's first process (PID 1) shows the bot's tokens in /proc/1/environ to all that runs without a sandbox; take init: true out of docker-compose.yml, or --init from docker run: the bot reaps by itself")
	}
	return nil
}

// firstTells reports whether PID 1, if it is another process, exposes a variable of this process to all of the
// user's processes. Docker's init does: it has the bot's environment. The bot hides its own.
func firstTells(name string) bool {
	value := os.Getenv(name)
	environ, err := os.ReadFile("/proc/1/environ")
	return err == nil && value != "" && os.Getpid() != 1 && bytes.Contains(environ, []byte(name+"="+value))
}

func (n none) Prepare(_ context.Context, s Session) (*Box, error) {
	command := s.Program
	if s.Web != "" {
		self, err := stage.Self()
		if err == nil {
			command, err = forwardStage(self, n.spec, s, command)
		}
		if err != nil {
			return nil, err
		}
	}
	return &Box{Command: command, Env: s.Env, limits: n.spec.Limits, folders: s.folders(Spec{})}, nil
}

func (n none) String() string { return n.spec.String() }
