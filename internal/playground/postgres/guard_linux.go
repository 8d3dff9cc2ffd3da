package postgres

import (
	"os/exec"
	"syscall"
)

// guard ends the server when this process dies. On Linux the kernel does.
type guard struct{}

// startWithParent starts cmd so that it is shut down (SIGINT: clean, no
// recovery at the next start) when the calling OS thread ends, as it does when
// this process is killed. The caller must be locked to its thread and stay
// until cmd has exited.
func startWithParent(cmd *exec.Cmd) (guard, error) {
	cmd.SysProcAttr.Pdeathsig = syscall.SIGINT
	return guard{}, cmd.Start()
}

func (guard) release() {}
