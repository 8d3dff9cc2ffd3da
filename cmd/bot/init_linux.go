package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// runAsInit is a container's first process (PID 1): it starts a program with its own arguments, environment and
// files, forwards signals, reaps orphans, and returns the program's exit code. Docker's --init would do the same,
// but show the bot's environment in /proc/1/environ to everything that runs as its user.
func runAsInit(program string, args []string) (code int, err error) {
	handed := []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, append(handed, unix.SIGCHLD)...)
	// A separate group, so that the terminal's Ctrl-C reaches only it.
	_, err = unix.IoctlGetTermios(0, unix.TCGETS)
	attributes := &unix.SysProcAttr{Setpgid: true, Foreground: err == nil}
	child, err := os.StartProcess(program, args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: attributes})
	if err != nil {
		return 1, err
	}
	for s := range signals {
		if s != unix.SIGCHLD {
			_ = child.Signal(s) // it may have ended just now
			continue
		}
		if status, ended := reap(child.Pid); ended {
			return exitCode(status), nil
		}
	}
	return 1, nil
}

// reap reaps all ended children, and returns the status of pid if it is among them.
func reap(pid int) (status unix.WaitStatus, ended bool) {
	for {
		var s unix.WaitStatus
		switch gone, err := unix.Wait4(-1, &s, unix.WNOHANG, nil); {
		case err == unix.EINTR:
		case err != nil || gone <= 0:
			return status, ended
		case gone == pid:
			status, ended = s, true
		}
	}
}

// exitCode is a process's exit code by the shell's convention.
func exitCode(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
