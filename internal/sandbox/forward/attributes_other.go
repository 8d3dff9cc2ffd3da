//go:build !linux

package forward

import "syscall"

// attributes put the forwarder into a session of its own: the session's reaper ends it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
