// Package reaper is what stands between the bot and a CLI: a process of this same binary
// that runs the CLI, adopts its orphans, and exits only when nothing of them is left.
//
// It begins in the package's init, so that no program has to call it: with [Variable] in
// its environment a process is a reaper and nothing else. And it begins early. Go
// initializes packages in the order of their names as soon as what they import is ready;
// this one imports little, so that the tables of some hundred others, which the bot needs
// and a reaper does not, are not made first. That is two thirds of what the start of this
// binary costs; what it imports is bounded by TestWhatStartsWithASessionIsLight.
package reaper

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Variable in its environment makes this binary a reaper. It is [Bounded] or [Unbounded].
const Variable = "DECKHAND_REAPER"

// Unbounded is a reaper that lives on until it is ordered to end.
const Unbounded = "unbounded"

// Bounded is a reaper that removes everything after this time, as if [Within] were its
// first order.
func Bounded(left time.Duration) string { return strconv.FormatInt(max(left.Milliseconds(), 0), 10) }

// treeVariable marks all that runs below a reaper with "pid-starttime-namespace" of it, so
// that [Orphans] finds what a reaper that was killed left behind.
const treeVariable = "DECKHAND_TREE_OF"

// The reaper's files beside its standard ones. The order pipe carries a byte
// per order, with what belongs to it, and ends when whoever started the reaper is gone; the
// report pipe carries lines.
const (
	orderFD  = 3
	reportFD = 4
)

// Term is the order to end the CLI by SIGTERM.
const Term = 'T'

// within is the order to remove everything after a time, unless it is given again by then:
// whoever orders may be stopped. Four bytes follow, milliseconds, the highest first.
const within = 'W'

// Within is the order to remove everything after this time, in the place of the one before.
func Within(left time.Duration) []byte {
	ms := uint32(min(max(left.Milliseconds(), 0), 1<<31))
	return []byte{within, byte(ms >> 24), byte(ms >> 16), byte(ms >> 8), byte(ms)}
}

// order is one that was read.
type order struct {
	kind byte
	left time.Duration // with within
}

func readOrder(in *bufio.Reader) (o order, err error) {
	if o.kind, err = in.ReadByte(); err != nil || o.kind != within {
		return o, err
	}
	ms := uint32(0)
	for range 4 {
		b, err := in.ReadByte()
		if err != nil {
			return o, err
		}
		ms = ms<<8 | uint32(b)
	}
	o.left = time.Duration(ms) * time.Millisecond
	return o, nil
}

func init() {
	bound := os.Getenv(Variable)
	if bound == "" {
		return
	}
	var late <-chan time.Time
	if bound != Unbounded {
		ms, err := strconv.ParseInt(bound, 10, 64)
		if err != nil {
			os.Exit(126)
		}
		late = time.After(time.Duration(ms) * time.Millisecond)
	}
	if err := os.Unsetenv(Variable); err != nil {
		os.Exit(126)
	}
	os.Exit(reap(os.Args[1:], late))
}

// reap runs command, until late at the most, and returns the status to exit with.
func reap(command []string, late <-chan time.Time) int {
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
	path := find(command[0])
	if path == "" {
		_, _ = fmt.Fprintf(report, "error there is no program %q to run\n", command[0])
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
	ordered := make(chan order)
	go func() {
		defer close(ordered)
		in := bufio.NewReader(orders)
		for {
			o, err := readOrder(in)
			if err != nil {
				return
			}
			ordered <- o
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
		case <-late:
			status, running = tree.end(), false
		case o, ok := <-ordered:
			switch {
			case !ok:
				status, running = tree.end(), false
			case o.kind == within:
				late = time.After(o.left)
			case o.kind == Term:
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

// end removes the CLI and everything else, and returns the CLI's status.
func (t *tree) end() syscall.WaitStatus {
	t.kill()
	return <-t.exited
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
		for _, pid := range Descendants(os.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
		}
		select {
		case <-t.gone:
			return
		case <-time.After(pause):
		}
	}
}

// find is the file of a program that PATH leads to, or empty. (os/exec, which does that, is
// no light package.)
func find(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		if !strings.HasPrefix(dir, "/") {
			continue
		}
		path := dir + "/" + name
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
