package claude

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The environment variables of the reaper. The first makes this binary one; the
// second marks all that runs below it with "pid-starttime-namespace" of the reaper,
// so that [ReapOrphans] finds what a reaper that was killed left behind.
const (
	reaperVariable = "DECKHAND_REAPER"
	treeVariable   = "DECKHAND_TREE_OF"
)

// The reaper's files beside its standard ones. The order pipe carries one byte
// per order and ends when whoever started the reaper is gone; the report pipe
// carries lines.
const (
	orderFD  = 3
	reportFD = 4
)

const (
	orderTerm = 'T'
)

// RunReaper must be the first call in main, and in TestMain of packages that
// call [Start]. In a process that was started as a reaper it never returns:
// such a process runs the CLI, adopts its orphans, and exits only when nothing
// of them is left. In any other process it does nothing.
func RunReaper() {
	if os.Getenv(reaperVariable) == "" {
		return
	}
	if err := os.Unsetenv(reaperVariable); err != nil {
		os.Exit(126)
	}
	os.Exit(reap(os.Args[1:]))
}

// reap runs command and returns the status to exit with.
func reap(command []string) int {
	// The CLI's parent-death signal fires when the thread that started it ends:
	// this one never does.
	runtime.LockOSThread()
	syscall.CloseOnExec(orderFD)
	syscall.CloseOnExec(reportFD)
	orders := os.NewFile(orderFD, "orders")
	report := os.NewFile(reportFD, "report")

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := adoptOrphans(); err != nil {
		_, _ = fmt.Fprintf(report, "error adopt orphans: %v\n", err) // the exit status says it too
		return 126
	}
	if len(command) == 0 {
		_, _ = fmt.Fprintln(report, "error no command")
		return 126
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		_, _ = fmt.Fprintf(report, "error %v\n", err)
		return 127
	}
	// A bot may itself run below a reaper: only the nearest one counts.
	_ = os.Unsetenv(treeVariable) // fails for malformed names only
	env := append(os.Environ(), treeVariable+"="+treeMark())
	child, err := os.StartProcess(path, command, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   childAttributes(),
	})
	if err != nil {
		_, _ = fmt.Fprintf(report, "error %v\n", err)
		return 126
	}
	// The ends of the pipes belong to the CLI alone: its peer must see them
	// close when it closes them.
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		_ = redirect(null, 0)
		_ = redirect(null, 1)
	}
	// If nobody listens any more, the order pipe has ended too.
	_, _ = fmt.Fprintf(report, "pid %d\n", child.Pid)

	tree := &tree{child: child.Pid, exited: make(chan syscall.WaitStatus, 1), gone: make(chan struct{})}
	go tree.wait()
	ordered := make(chan byte)
	go func() {
		defer close(ordered)
		in := bufio.NewReader(orders)
		for {
			b, err := in.ReadByte()
			if err != nil {
				return
			}
			ordered <- b
		}
	}()

	var status syscall.WaitStatus
	for running := true; running; {
		select {
		case status = <-tree.exited:
			running = false
		case s := <-signals:
			if s != syscall.SIGHUP {
				_ = syscall.Kill(insideOf(child.Pid), s.(syscall.Signal)) //nolint:forcetypeassert // signals are; gone already: its exit is on its way
			}
		case b, ok := <-ordered:
			switch {
			case !ok:
				_ = child.Signal(syscall.SIGKILL)
				tree.kill()
				status = <-tree.exited
				running = false
			case b == orderTerm:
				_ = syscall.Kill(insideOf(child.Pid), syscall.SIGTERM) // gone already is as good
			}
		}
	}
	tree.kill()
	if status.Signaled() {
		_, _ = fmt.Fprintf(report, "exit 0 %d\n", status.Signal())
		return 128 + int(status.Signal())
	}
	_, _ = fmt.Fprintf(report, "exit %d 0\n", status.ExitStatus())
	return status.ExitStatus()
}

// tree is what runs below the reaper.
type tree struct {
	child int
	// exited gets the CLI's own status; gone is closed when no child is left.
	exited chan syscall.WaitStatus
	gone   chan struct{}
}

// wait collects every child, adopted ones too, until there is none.
func (t *tree) wait() {
	defer close(t.gone)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return
		case pid == t.child && (status.Exited() || status.Signaled()):
			t.exited <- status
		}
	}
}

// kill removes everything below the reaper and returns when nothing is left.
// New children may appear while it works, so it goes on until there are none.
func (t *tree) kill() {
	// Most often the CLI was all there was, and its collection tells in no time.
	select {
	case <-t.gone:
		return
	case <-time.After(time.Millisecond):
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		for _, pid := range descendants(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
		}
		select {
		case <-t.gone:
			return
		case <-time.After(pause):
		}
	}
}

// reaperReport is what the reaper said on its report pipe.
type reaperReport struct {
	exited       bool
	code, signal int
}

// readStart reads the first line: the CLI's pid, or why there is none.
func readStart(r *bufio.Reader) (pid int, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		if errors.Is(err, io.EOF) {
			return 0, errors.New("the reaper said nothing: main must call claude.RunReaper first")
		}
		return 0, err
	}
	kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if kind == "error" {
		return 0, errors.New(rest)
	}
	if pid, err = strconv.Atoi(rest); kind != "pid" || err != nil {
		return 0, fmt.Errorf("the reaper said %q", line)
	}
	return pid, nil
}

// readExit reads how the CLI exited.
func readExit(r *bufio.Reader) reaperReport {
	line, err := r.ReadString('\n')
	if err != nil {
		return reaperReport{}
	}
	var rep reaperReport
	if n, err := fmt.Sscanf(line, "exit %d %d", &rep.code, &rep.signal); n == 2 && err == nil {
		rep.exited = true
	}
	return rep
}
