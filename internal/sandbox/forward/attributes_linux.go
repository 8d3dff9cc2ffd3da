package forward

import "syscall"

// attributes put the forwarder into a session of its own, and kill it with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
