package main

import "syscall"

// childAttributes shield the child, which is stopped in its turn, from the terminal's Ctrl-C, and kill it when we
// end in any way: its reapers end what it has started.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
