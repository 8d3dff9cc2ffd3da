package claude

import (
	"bufio"
	"context"
	"errors"
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
	// In is its input. Out gets what it prints, on both of its outputs unless Err gets the
	// second.
	In       string
	Out, Err io.Writer
	// Started, if there is one, is told the reaper's process id, and how to end all of it.
	Started func(reaperPID int, kill func())
	// Lifeline ends it if its host is stopped; nil for none.
	Lifeline *Lifeline
}

// Run runs it until it and all that it has started are gone, which an end of ctx brings
// about. status is its exit status, and signal the one that ended it, or
// 0. An error is why it could not be started.
func (p Program) Run(ctx context.Context) (status, signal int, err error) {
	program, err := reaper.Program()
	if err != nil {
		return 0, 0, fmt.Errorf("find this program: %w", err)
	}
	var files pipes
	defer files.closeOwnEnds()
	defer files.closeChildEnds()
	stdin, stdout, stderr, orders, report, err := files.open()
	if err != nil {
		return 0, 0, err
	}
	errTo := files.child[2]
	if p.Err == nil {
		errTo = files.child[1]
	}
	cmd := &exec.Cmd{
		Path: program, Args: append([]string{"deckhand-reaper"}, p.Command...),
		Env: append(slices.Clip(p.Env), reaper.Variable+"="+p.Lifeline.atStart()), Dir: p.Dir,
		Stdin: files.child[0], Stdout: files.child[1], Stderr: errTo, ExtraFiles: files.child[3:],
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	files.closeChildEnds()
	go func() {
		_, _ = io.WriteString(stdin, p.In) // what it does not read it does not want
		_ = stdin.Close()
	}()
	release := p.Lifeline.hold(orders)
	defer release()
	var once sync.Once
	kill := func() { once.Do(func() { _ = orders.Close() }) }
	stop := context.AfterFunc(ctx, kill)
	defer stop()
	reports := bufio.NewReader(report)
	if _, err = readStart(reports); err == nil {
		if p.Started != nil {
			p.Started(cmd.Process.Pid, kill)
		}
		var said sync.WaitGroup
		if p.Err != nil {
			said.Go(func() { _, _ = io.Copy(p.Err, stderr) })
		}
		_, _ = io.Copy(p.Out, stdout) // it ends with the program
		said.Wait()
		exit := readExit(reports)
		if status, signal = exit.code, exit.signal; !exit.exited {
			signal = int(syscall.SIGKILL) // of the reaper, and so of what it ran
		}
	}
	kill()
	_ = cmd.Wait() // the report says more
	if errors.Is(err, ErrKilled) || signal == int(syscall.SIGKILL) {
		reaper.Orphans()
	}
	return status, signal, err
}
