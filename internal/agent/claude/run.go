package claude

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"sync"
	"syscall"

	"deckhand/internal/agent/claude/reaper"
)

// Program is another program that runs as the CLI does: below a reaper, with no terminal.
type Program struct {
	// Command is the program with its arguments, Env its whole environment.
	Command []string
	Dir     string
	Env     []string
	// Out gets what it prints, on both of its outputs.
	Out io.Writer
	// Started is told the reaper's process id, and how to end all of it.
	Started func(reaperPID int, kill func())
	// Lifeline ends it if its host is stopped; nil for none.
	Lifeline *Lifeline
}

// Run runs it until it and all that it has started are gone, which an end of ctx brings
// about. It has no input. status is its exit status, and signal the one that ended it, or
// 0. An error is why it could not be started.
func (p Program) Run(ctx context.Context) (status, signal int, err error) {
	program, err := reaper.Program()
	if err != nil {
		return 0, 0, fmt.Errorf("find this program: %w", err)
	}
	var files pipes
	defer files.closeOwnEnds()
	defer files.closeChildEnds()
	stdin, stdout, _, orders, report, err := files.open()
	if err != nil {
		return 0, 0, err
	}
	cmd := &exec.Cmd{
		Path: program, Args: append([]string{"deckhand-reaper"}, p.Command...),
		Env: append(slices.Clip(p.Env), reaper.Variable+"=1"), Dir: p.Dir,
		Stdin: files.child[0], Stdout: files.child[1], Stderr: files.child[1], ExtraFiles: files.child[3:],
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	files.closeChildEnds()
	_ = stdin.Close()
	release := p.Lifeline.hold(orders)
	defer release()
	var once sync.Once
	kill := func() { once.Do(func() { _ = orders.Close() }) }
	stop := context.AfterFunc(ctx, kill)
	defer stop()
	said := bufio.NewReader(report)
	if _, err = readStart(said); err == nil {
		p.Started(cmd.Process.Pid, kill)
		_, _ = io.Copy(p.Out, stdout) // it ends with the program
		exit := readExit(said)
		status, signal = exit.code, exit.signal
	}
	kill()
	_ = cmd.Wait() // the report says more
	return status, signal, err
}
