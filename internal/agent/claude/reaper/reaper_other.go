//go:build unix && !linux

package reaper

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Program is this binary's path.
func Program() (string, error) { return os.Executable() }

// adoptOrphans does nothing: only Linux lets a process adopt its orphans.
func adoptOrphans() error { return nil }

func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func redirect(f *os.File, fd int) error { return unix.Dup2(int(f.Fd()), fd) }

// insideOf is the process itself: no launcher of this system keeps signals to itself.
func insideOf(pid int) int { return pid }

// Left lists nothing: which program has left which running is not known here.
func Left(int, int) [][]string { return nil }

// Descendants lists all processes below pid, and those of its process group.
// An orphan in a session of its own is out of reach here.
func Descendants(pid int) []int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ps", "-axo", "pid=,ppid=,pgid=")
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	children := make(map[int][]int)
	var found []int
	for line := range strings.Lines(string(out)) {
		var p, parent, group int
		if n, err := fmt.Sscan(line, &p, &parent, &group); n != 3 || err != nil || p == pid {
			continue
		}
		if group == pid && p != cmd.Process.Pid {
			found = append(found, p)
		}
		if p != cmd.Process.Pid {
			children[parent] = append(children[parent], p)
		}
	}
	for todo := children[pid]; len(todo) > 0; todo = todo[1:] {
		found = append(found, todo[0])
		todo = append(todo, children[todo[0]]...)
	}
	return found
}

func treeMark() string { return "" }

// Orphans finds nothing on this system: processes cannot be told apart
// once their parents are gone.
func Orphans() int { return 0 }

// HideProcess does nothing: this system has no such switch.
func HideProcess() error { return nil }
