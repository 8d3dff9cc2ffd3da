//go:build !linux

package sandbox

import (
	"os"
	"syscall"
)

func thisProgram() (string, error) { return os.Executable() }

// forwarderAttributes put the forwarder into a session of its own: claude.RunReaper ends it.
func forwarderAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// stageOf is how the kind's outer stage begins, or nil.
func stageOf(kind Kind) stage {
	if kind == Command {
		return stageFor(becomeLauncher)
	}
	return nil
}
