//go:build !linux

package main

import "syscall"

// childAttributes keep the terminal's Ctrl-C from the child, which is stopped in
// its turn.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
