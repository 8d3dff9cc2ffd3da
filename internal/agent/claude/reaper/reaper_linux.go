package reaper

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Program names this very binary, also when its file was replaced since.
func Program() (string, error) { return "/proc/self/exe", nil }

// adoptOrphans makes this process the parent of every descendant whose own
// parent exits, in whatever session or process group it lives.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// childAttributes has the kernel kill the CLI if the reaper itself is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

func redirect(f *os.File, fd int) error { return unix.Dup3(int(f.Fd()), fd, 0) }

// Descendants lists all processes below pid, parents before their children.
func Descendants(pid int) []int { return below(pid, running()) }

// process is one that runs: its parent, and its start time in clock ticks since boot.
type process struct {
	parent int
	start  string
}

// running is what runs now, by pid.
func running() map[int]process {
	all := map[int]process{}
	for _, p := range processes() {
		if parent, start, ok := processStat(p); ok {
			all[p] = process{parent, start}
		}
	}
	return all
}

// below lists all processes below pid, parents before their children.
func below(pid int, all map[int]process) (out []int) {
	children := make(map[int][]int)
	for p, stat := range all {
		children[stat.parent] = append(children[stat.parent], p)
	}
	for todo := children[pid]; len(todo) > 0; todo = todo[1:] {
		out = append(out, todo[0])
		todo = append(todo, children[todo[0]]...)
	}
	return out
}

// insideOf is the process that a launcher has started: bwrap does not pass signals on, and
// what is in it dies with it, without saving what it wants to save. It forks an init,
// whose first child is the CLI. Any other program is taken for the CLI itself.
func insideOf(pid int) int { return inside(pid, running()) }

func inside(pid int, all map[int]process) int {
	for range 3 {
		name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		if err != nil || strings.TrimSpace(string(name)) != "bwrap" {
			return pid
		}
		child, first := 0, ""
		for p, stat := range all {
			if stat.parent == pid && (child == 0 || older(stat.start, first)) {
				child, first = p, stat.start
			}
		}
		if child == 0 {
			return pid
		}
		pid = child
	}
	return pid
}

// Left lists the command lines of the programs that commands of the CLI have left running:
// what began below the reaper after the CLI, and is not below it any more, since what has
// started it has ended. What these programs have started is not listed. In gVisor and in
// containers none can be seen from here. pid is the CLI's, or its launcher's.
func Left(reaper, pid int) (commands [][]string) {
	if alone(reaper) {
		return nil
	}
	all := running()
	cli := inside(pid, all)
	began, ok := all[cli]
	if !ok {
		return nil
	}
	own := map[int]bool{}
	for _, p := range below(cli, all) {
		own[p] = true
	}
	left := map[int]bool{}
	for _, p := range below(reaper, all) {
		if own[p] || !older(began.start, all[p].start) {
			continue
		}
		left[p] = true
		line, err := os.ReadFile("/proc/" + strconv.Itoa(p) + "/cmdline")
		if arguments := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"); err == nil && !left[all[p].parent] && arguments[0] != "" {
			commands = append(commands, arguments)
		}
	}
	return commands
}

// alone reports whether the CLI is the only program below the reaper, beside its launcher and
// what is below it. It is nearly always, and a few files tell: reading all of /proc takes
// milliseconds, for which people would wait.
func alone(reaper int) bool {
	for at := strconv.Itoa(reaper); ; {
		threads, _ := os.ReadDir("/proc/" + at + "/task") // a process that has ended has none
		var children []string
		for _, t := range threads {
			b, _ := os.ReadFile("/proc/" + at + "/task/" + t.Name() + "/children") // likewise
			children = append(children, strings.Fields(string(b))...)
		}
		if len(children) != 1 {
			return false // or none is told here
		}
		at = children[0]
		if name, err := os.ReadFile("/proc/" + at + "/comm"); err != nil || strings.TrimSpace(string(name)) != "bwrap" {
			return err == nil
		}
	}
}

// older compares two start times of processes.
func older(a, b string) bool { return len(a) < len(b) || (len(a) == len(b) && a < b) }

func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1) // what could be read is what can be killed
	var out []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// processStat returns a process's parent and its start time in clock ticks
// since boot.
func processStat(pid int) (parent int, start string, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, "", false
	}
	// The name stands in parentheses and may hold anything.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, "", false
	}
	fields := strings.Fields(string(b[i+1:]))
	if len(fields) < 20 {
		return 0, "", false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, fields[19], err == nil
}

// treeMark names this reaper beyond doubt: a pid alone is used again, and means
// another process in another container.
func treeMark() string {
	_, start, _ := processStat(os.Getpid())
	return fmt.Sprintf("%d-%s-%s", os.Getpid(), start, pidNamespace())
}

// pidNamespace names the namespace that this process's pids belong to.
func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "" // a kernel without: there is only one
	}
	return name
}

// Orphans kills what a reaper that was itself killed has left running, such
// as shell commands in sessions of their own, and returns how many processes
// that were. A host calls it once when it starts. Trees whose reaper lives are
// not touched.
func Orphans() int {
	killed := 0
	for range 20 {
		n := 0
		for _, pid := range processes() {
			if mark := environMark(pid); mark != "" && !markLives(mark) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				n++
			}
		}
		// Again, for what was started meanwhile; the killed ones have no
		// environment any more.
		if n == 0 {
			break
		}
		killed += n
	}
	return killed
}

// environMark returns the tree that a process says it belongs to.
func environMark(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return "" // not ours to read: not ours to kill
	}
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		if mark, ok := bytes.CutPrefix(entry, []byte(treeVariable+"=")); ok {
			return string(mark)
		}
	}
	return ""
}

func markLives(mark string) bool {
	fields := strings.SplitN(mark, "-", 3)
	if len(fields) != 3 || fields[2] != pidNamespace() {
		return true // not a mark of ours, or of a container whose pids mean nothing here
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil || fields[1] == "" {
		return true
	}
	_, start, ok := processStat(pid)
	return ok && start == fields[1]
}

// HideProcess keeps other processes of this user, such as what the CLI runs, from
// reading this one's memory and environment in /proc. It does nothing against root.
func HideProcess() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
