package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"

	"deckhand/internal/sandbox/stage"
)

// none shuts nothing in: what it runs is the bot's own user, on the bot's machine.
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

// firstTells reports whether the first process, which is not this one, shows a variable of
// this one's to everybody of its user. Docker's init does: it gets the bot's environment
// and hides nothing. The bot hides itself.
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
