package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// botLogs are the files that the bots of this test binary write to, which run now.
var botLogs sync.Map

// startWithTest starts a program that ends with this test binary, however that ends: on
// Linux the kernel ends it with the thread that started it. What Wait returns is sent.
func startWithTest(cmd *exec.Cmd) (ended <-chan error, err error) {
	cmd.SysProcAttr = childAttributes()
	started, over := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			over <- cmd.Wait()
		}
	}()
	return over, <-started
}

// beforeTimeout prints what the demos and bots do a minute before the time of this test
// binary is over, when Go prints what its own goroutines do and ends it.
func beforeTimeout() {
	flag.Parse()
	if limit := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration); limit > 0 { //nolint:forcetypeassert // it is one
		time.AfterFunc(limit-min(time.Minute, limit/2), func() {
			var logs []string
			botLogs.Range(func(log, _ any) bool {
				logs = append(logs, log.(string)) //nolint:forcetypeassert // it is one
				return true
			})
			fmt.Fprintf(os.Stderr, "\nthe tests are about to be ended after %v; the bots do this:\n%s\n", limit, stacks(descendants(os.Getpid())[1:], logs...))
		})
	}
}

// stacks has those of these processes that are demos and bots write what their goroutines
// do, which ends them, and returns what the logs warned of before, and all that came since.
func stacks(pids []int, logs ...string) string {
	before := make([]int64, len(logs))
	for i, log := range logs {
		if info, err := os.Stat(log); err == nil {
			before[i] = info.Size()
		}
	}
	for _, pid := range slices.Backward(pids) { // a child first: it is killed when its parent ends
		args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if words := strings.Split(string(args), "\x00"); len(words) > 1 && (words[1] == "demo" || words[1] == "run") {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
			_ = syscall.Kill(pid, syscall.SIGCONT)
			for wait := beginWait(); lives(pid) && time.Since(wait.since) < 20*time.Second; {
				wait.pause()
			}
		}
	}
	var out strings.Builder
	for i, log := range logs {
		b, _ := os.ReadFile(log)
		since := min(before[i], int64(len(b)))
		fmt.Fprintf(&out, "%s:\n", log)
		for line := range strings.Lines(string(b[:since])) {
			if strings.Contains(line, "\tWARN\t") || strings.Contains(line, "\tERROR\t") || strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`) {
				out.WriteString(line)
			}
		}
		fmt.Fprintf(&out, "%s\n", b[since:])
	}
	return out.String()
}

// stacks is what the world's bot does, for a wait in vain. Its demo starts another one.
func (w *world) stacks() string {
	if w.cmd == nil {
		return ""
	}
	return "\nthe bot does this:\n" + stacks(descendants(w.cmd.Process.Pid)[1:], filepath.Join(w.dir, "bot.log"))
}

// dies names the variable that has the test below be killed.
const dies = "TEST_DIES"

// TestChildrenEndWithTheirTest: a test binary that is killed leaves no demo and no bot, and
// before it can say what they do.
func TestChildrenEndWithTheirTest(t *testing.T) {
	t.Parallel()
	if os.Getenv(dies) != "" {
		w := newWorld(t)
		fmt.Println("PIDS", os.Getpid(), w.cmd.Process.Pid, w.PIDs["bot"], w.dir)
		fmt.Println(stacks(descendants(os.Getpid())[1:], filepath.Join(w.dir, "bot.log")))
		w = newWorld(t)
		fmt.Println("PIDS", os.Getpid(), w.cmd.Process.Pid, w.PIDs["bot"], w.dir)
		_ = syscall.Kill(w.PIDs["bot"], syscall.SIGSTOP)
		panic(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), dies+"=1")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:forcetypeassert // it is one on every system that we run on
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{".runDemo(", ".runBot("} {
		if !strings.Contains(string(out), want) {
			t.Errorf("what it said has no %s: %s", want, out)
		}
	}
	var pids []int
	for _, m := range regexp.MustCompile(`(?m)^PIDS (\d+) (\d+) (\d+) (.*)$`).FindAllStringSubmatch(string(out), -1) {
		for _, field := range m[1:4] {
			pid, _ := strconv.Atoi(field)
			pids = append(pids, pid)
		}
		t.Cleanup(func() { _ = os.RemoveAll(m[4]) })
	}
	if len(pids) != 6 {
		t.Errorf("%d processes: %s", len(pids), out)
	}
	(&world{t: t}).assertGone(pids)
}
