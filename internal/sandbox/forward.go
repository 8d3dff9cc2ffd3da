package sandbox

import (
	"errors"
	"fmt"
	"os"

	"deckhand/internal/sandbox/forward"
	"deckhand/internal/sandbox/stage"
)

// forwarderPath is this program's path inside a sandbox.
const forwarderPath = "/run/deckhand/forwarder"

// WebVariable holds the forwarder's address inside: host:port.
const WebVariable = forward.Variable

// forwarded adds the forwarder to the view, and its starter before the session's program. It comes last: the bot's
// own program is shown for this only, at this place.
func (v *view) forwarded(spec Spec, s Session, command []string) ([]string, error) {
	if s.Web == "" {
		return command, nil
	}
	self, err := ownFile()
	if err != nil {
		return nil, err
	}
	v.put(forwarderPath, readOnly, self)
	return forwardStage(forwarderPath, spec, s, command)
}

func forwardStage(self string, spec Spec, s Session, command []string) ([]string, error) {
	words, err := forward.Words(forward.Plan{Self: self, Web: s.Web, Proxy: spec.Network.Proxied()})
	if err != nil {
		return nil, err
	}
	return append(words, command...), nil
}

// ownFile is this program's file, which must be the running one.
func ownFile() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	self, err := stage.Self()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	there, err := os.Stat(path)
	running, errRunning := os.Stat(self)
	if err != nil || errRunning != nil || !os.SameFile(there, running) {
		return "", errors.New("the bot's program was exchanged since the bot was started; start the bot again")
	}
	return path, nil
}
