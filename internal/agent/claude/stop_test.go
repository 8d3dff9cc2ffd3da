package claude_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/claude/reaper"
	"deckhand/internal/waittest"
)

func TestStopTakesEveryStep(t *testing.T) {
	t.Parallel()
	// Only the step that a process lets pass is short: a busy machine takes its time for the others.
	const short = 100 * time.Millisecond
	for script, want := range map[string]struct {
		close, term time.Duration
		reason      claude.ExitReason
	}{
		"sleepers\nwait":       {waittest.Limit, waittest.Limit, claude.ExitClean},
		"sleepers\nhang":       {short, waittest.Limit, claude.ExitClean}, // SIGTERM ends it
		"deaf\nsleepers\nhang": {short, short, claude.ExitKilled},
	} {
		t.Run(strings.ReplaceAll(script, "\n", " "), func(t *testing.T) {
			t.Parallel()
			p := fake(t, script, func(o *claude.Options) {
				o.StopGrace = claude.StopGrace{Close: want.close, Term: want.term, Kill: waittest.Limit}
			})
			if _, err := p.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			tree := below(p.ReaperPID())
			if len(tree) < 3 {
				t.Errorf("the tree is only %v", tree)
			}
			errs := make(chan error)
			for range 3 {
				go func() { errs <- p.Stop(t.Context()) }()
			}
			for range 3 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			if exit := p.Exit(); exit == nil || exit.Reason != want.reason {
				t.Errorf("%v, want %s", exit, want.reason)
			}
			allGone(t, tree)
		})
	}
}

func TestStopIsBoundedByItsContext(t *testing.T) {
	t.Parallel()
	p := fake(t, "deaf\nsleepers\nhang")
	if _, err := p.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	tree := below(p.ReaperPID())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	if err := p.Stop(ctx); err == nil || !strings.Contains(err.Error(), "no time") {
		t.Errorf("stop: %v", err)
	}
	allGone(t, tree)
}

// TestLifeline: what hangs on a line ends with everything below it when its time is over,
// whatever its host does; so does what is hung on it later.
func TestLifeline(t *testing.T) {
	t.Parallel()
	var line claude.Lifeline
	hang := func(o *claude.Options) { o.Lifeline = &line }
	before := fake(t, "sleepers\nhang", hang)
	line.Renew(time.Hour)
	during := fake(t, "sleepers\nhang", hang)
	var trees []int
	for _, p := range []*claude.Process{before, during} {
		if _, err := p.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		trees = append(trees, below(p.ReaperPID())...)
	}
	line.Renew(0)
	after := fake(t, "sleepers\nhang", hang)
	for _, p := range []*claude.Process{before, during, after} {
		waitDone(t, p)
		if exit := p.Exit(); exit.Reason != claude.ExitKilled {
			t.Errorf("it ended as %v", exit)
		}
	}
	allGone(t, trees)
}

// TestNoOrderIsLost: on a machine that is busy, every reaper hears of the lifeline when it
// is hung on it, and at every renewal.
func TestNoOrderIsLost(t *testing.T) {
	t.Parallel()
	var busy sync.WaitGroup
	defer busy.Wait()
	var done atomic.Bool
	defer done.Store(true)
	for range 4 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for n := 0; !done.Load(); { // it only takes time
				n++
			}
		})
	}
	var line claude.Lifeline
	line.Renew(time.Hour)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // the test's end
	defer w.Close() //nolint:errcheck // the test's end
	if err := r.SetReadDeadline(time.Now().Add(waittest.Limit)); err != nil {
		t.Fatal(err)
	}
	size := len(reaper.Within(0))
	for i := range 20_000 {
		release := line.Hold(w)
		line.Renew(time.Hour)
		if n, err := r.Read(make([]byte, 3*size)); n != 2*size {
			t.Fatalf("of hold and renewal %d came %d bytes of %d: %v", i, n, 2*size, err)
		}
		release()
	}
}

// TestALifelineWaitsForNobody: one that is stopped reads no orders, and the others have
// theirs all the same.
func TestALifelineWaitsForNobody(t *testing.T) {
	t.Parallel()
	var line claude.Lifeline
	_, stopped, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	line.Hold(stopped)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	line.Hold(w)
	b := make([]byte, len(reaper.Within(0)))
	for range 100_000 { // more than a pipe takes
		line.Renew(time.Hour)
		if _, err := io.ReadFull(r, b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAReaperThatHearsNothing ends by the time that it was started with, with everything
// below it, though its host lives and holds its pipe.
func TestAReaperThatHearsNothing(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	orders, host, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close() //nolint:errcheck // the test's end
	said, report, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe)
	cmd.Args = []string{"deckhand-reaper", "sleep", "3600"}
	cmd.Env = append(os.Environ(), reaper.Variable+"="+reaper.Bounded(time.Second))
	cmd.ExtraFiles = []*os.File{orders, report}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = report.Close() // the reaper has it
	text, err := io.ReadAll(said)
	if err != nil || !strings.HasSuffix(string(text), "\nexit 0 9\n") {
		t.Errorf("it said %q, %v", text, err)
	}
	_ = cmd.Wait() // as it said
	if ctx.Err() != nil {
		t.Error("it did not end by itself")
	}
}

func TestOrphansGoWithTheirReaper(t *testing.T) {
	t.Parallel()
	p := fake(t, "sleepers\nhang")
	if _, err := p.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	tree := below(p.ReaperPID())
	if err := syscall.Kill(p.ReaperPID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitDone(t, p)
	if exit := p.Exit(); exit.Reason != claude.ExitKilled {
		t.Errorf("%v", exit)
	}
	waitGone(t, tree)
}

// TestOnlyWhatIsOursIsReaped: a mark is another container's, whose pids mean nothing
// here, or of a reaper that is gone.
func TestOnlyWhatIsOursIsReaped(t *testing.T) {
	t.Parallel()
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Skip("marks are Linux's: ", err)
	}
	for mark, lives := range map[string]bool{"999999999-1-pid:[1]": true, "nonsense": true, "999999999-1-" + namespace: false} {
		cmd := exec.CommandContext(t.Context(), "sleep", "3600")
		cmd.Env = []string{"DECKHAND_TREE_OF=" + mark}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		reaper.Orphans()
		if lives {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait() // ended by a signal, in either case
		if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); (got == syscall.SIGTERM) != lives {
			t.Errorf("%s: ended by %v", mark, got)
		}
	}
}

// TestNothingSurvivesTheBot kills a bot the hard way.
func TestNothingSurvivesTheBot(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range map[string][]string{"plain": {exe}, "under a launcher": {"env", "A=b", exe}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bot := exec.CommandContext(t.Context(), exe)
			bot.Env = append(os.Environ(), "DECKHAND_TEST_ROLE=bot", "DECKHAND_TEST_COMMAND="+strings.Join(command, "\n"),
				"DECKHAND_TEST_DIR="+t.TempDir(), "DECKHAND_TEST_SCRIPT=deaf\nsleepers\nhang")
			out, err := bot.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := bot.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil || !strings.HasPrefix(line, "ready") {
				t.Fatalf("the bot said %q, %v", line, err)
			}
			tree := below(bot.Process.Pid)
			if len(tree) < 4 {
				t.Errorf("the tree is only %v", tree)
			}
			if err := bot.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = bot.Wait() // killed, as we know
			waitGone(t, tree)
		})
	}
}

// waitGone waits until none of the processes lives.
func waitGone(t *testing.T, pids []int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	eventually(ctx, t, func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool { return commandLine(pid) != "" })
	})
}

func TestStartFailsPlainly(t *testing.T) {
	t.Parallel()
	id := uuid.NewString()
	for name, c := range map[string]struct {
		o    claude.Options
		want string
	}{
		"no command":      {claude.Options{Dir: "/", SessionID: id}, "no command"},
		"no program":      {claude.Options{Command: []string{"/no/such/claude"}, Dir: "/", SessionID: id}, "/no/such/claude"},
		"not in the path": {claude.Options{Command: []string{"no-such-claude"}, Dir: "/", SessionID: id}, "no-such-claude"},
		"no directory":    {claude.Options{Command: []string{"true"}, Dir: "/no/such/dir", SessionID: id}, "working directory"},
		"no session":      {claude.Options{Command: []string{"true"}, Dir: "/"}, "UUID"},
	} {
		if p, err := claude.Start(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

// TestKilledWhileItStarts: whoever starts a process is told that it was killed, and so may
// try again, at whatever moment that was and whichever of its two processes.
func TestKilledWhileItStarts(t *testing.T) {
	t.Parallel()
	script := `read` + "\nhang" // it never answers
	for name, victim := range map[string]func(p *claude.Process) int{"reaper": (*claude.Process).ReaperPID, "CLI": (*claude.Process).PID} {
		for i, wait := range []func(p *claude.Process){
			func(*claude.Process) {},
			func(p *claude.Process) { _, _ = p.Next(t.Context()) }, // it has read the request
			func(p *claude.Process) { <-p.Done() },
		} {
			p := fake(t, script, func(o *claude.Options) { o.InitializeTimeout = waittest.Limit })
			asked := make(chan error, 1)
			ask := func() {
				_, err := p.Initialize(t.Context(), claude.InitializeRequest{})
				asked <- err
			}
			if i < 2 {
				go ask()
				wait(p)
			}
			if err := syscall.Kill(victim(p), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if i == 2 {
				wait(p)
				go ask()
			}
			select {
			case err := <-asked:
				if !errors.Is(err, claude.ErrKilled) {
					t.Errorf("%s, %d: %v", name, i, err)
				}
			case <-time.After(waittest.Limit):
				t.Fatalf("%s, %d: no error", name, i)
			}
		}
	}
}
