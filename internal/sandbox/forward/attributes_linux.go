package forward

import "syscall"

// attributes put the forwarder into a session of its own, and end it with whoever starts
// it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
