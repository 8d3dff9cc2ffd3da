package main

import "syscall"

// childAttributes keep the terminal's Ctrl-C from the child, which is stopped in
// its turn, and end it with us however we end, though it may be frozen: its reapers end what
// it has started.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
