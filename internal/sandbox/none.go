package sandbox

import (
	"context"
	"errors"
)

// none shuts nothing in: what it runs is the bot's own user, on the bot's machine.
type none struct{ spec Spec }

func (n none) Check(context.Context) error {
	if n.spec.Limits.CPU > 0 {
		return errors.New("limits.cpu is kept by a sandbox, and there is none; leave it out")
	}
	return nil
}

func (n none) Prepare(_ context.Context, s Session) (*Box, error) {
	command := s.Program
	if s.Web != "" {
		self, err := thisProgram()
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
