//go:build !linux

package main

import "syscall"

// childAttributes shield the child, which is stopped in its turn, from the terminal's Ctrl-C.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
