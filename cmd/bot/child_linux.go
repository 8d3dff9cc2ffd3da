package main

import "syscall"

// childAttributes keep the terminal's Ctrl-C from the child, which is stopped in
// its turn, and end it with us however we end.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
