//go:build linux

// Command attacker is what the attack of cmd/bot's tests runs inside a sandbox, for what
// a shell cannot do. It is built static, and tells what it got hold of on its standard
// output: a line that begins with BREACH is a wall that fell, one with DOOR a call of the
// kernel that should not have been let through; secrets speak for themselves.
//
// Outside it is the prey: a process with a secret in its memory, its environment and a
// file that it holds open.
package main

import (
	"fmt"
	"os"
)

var commands = map[string]func(args []string) error{
	"prey":    prey,
	"dial":    dial,
	"reach":   reach,
	"raw":     raw,
	"door":    door,
	"vmread":  vmRead,
	"ptrace":  ptrace,
	"pidfd":   pidfd,
	"fds":     descriptors,
	"scan":    scan,
	"sockets": sockets,
	"write":   writeEverywhere,
	"links":   interfaces,
	"route":   route,
	"linger":  linger,
	"hog":     hog,
	"inject":  inject,
	"handle":  handle,
	"ransack": ransack,
}

func main() {
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "attacker: no such attack")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "attacker:", err)
		os.Exit(1)
	}
}
