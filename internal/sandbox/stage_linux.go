package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// plan is what the outer stage has to do. It is an argument, which other users of the
// machine can read: nothing in it is secret.
type plan struct {
	Bwrap string   `json:"bwrap"`
	Args  []string `json:"args"`
	// Files are made inside, read-only.
	Files   []file   `json:"files"`
	Program []string `json:"program"`
	// OpenFiles is RLIMIT_NOFILE; 0 leaves it.
	OpenFiles int `json:"open_files,omitempty"`
	// Group is the file of the session's cgroup that it joins by; empty for none.
	Group string `json:"group,omitempty"`
}

// thisProgram is this very binary, also when its file was replaced since.
func thisProgram() (string, error) { return "/proc/self/exe", nil }

// forwarderAttributes put the forwarder into a session of its own, and end it with whoever
// starts it.
func forwarderAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// stageOf is how the kind's outer stage begins, or nil.
func stageOf(kind Kind) stage {
	switch kind {
	case Bwrap:
		return stageFor(becomeBwrap)
	case GVisor:
		return stageFor(becomeGVisor)
	case Command:
		return stageFor(becomeLauncher)
	}
	return nil
}

// becomeBwrap returns only if it fails.
func becomeBwrap(p plan, arguments []string) error {
	if err := limitThis(p.Group, p.OpenFiles); err != nil {
		return err
	}
	args := make([]string, 0, len(p.Args)+3*len(p.Files))
	for _, f := range p.Files {
		fd, err := inMemory(f.Content)
		if err != nil {
			return err
		}
		args = append(args, "--ro-bind-data", fd, f.Path)
	}
	filter, err := syscallFilter()
	if err != nil {
		return err
	}
	fd, err := inMemory(string(filter))
	if err != nil {
		return err
	}
	args = append(append(args, p.Args...), "--seccomp", fd)
	// Not as arguments: those of bwrap's init can be read inside.
	if fd, err = inMemory(strings.Join(args, "\x00")); err != nil {
		return err
	}
	argv := append([]string{"bwrap", "--args", fd, "--"}, p.Program...)
	return fmt.Errorf("start %s: %w", p.Bwrap, syscall.Exec(p.Bwrap, append(argv, arguments...), os.Environ()))
}

// limitThis lowers what a process may use, for this one and all that it becomes and starts.
// RLIMIT_DATA is not among it: programs with a sanitizer of addresses ask for 15 TB that
// they never use. RLIMIT_NPROC would count all processes of the bot's user here; see
// [capProcesses].
func limitThis(group string, openFiles int) error {
	if group != "" {
		if err := os.WriteFile(group, []byte("0"), 0); err != nil {
			return fmt.Errorf("join the session's cgroup: %w", err)
		}
	}
	// If the machine itself runs out of memory, the kernel takes it from sessions first.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("stand first when memory runs out: %w", err)
	}
	// A core file would lie in the workspace, with the memory of the process.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("switch core files off: %w", err)
	}
	if openFiles > 0 {
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
			return fmt.Errorf("look how many files may be open: %w", err)
		}
		n := min(uint64(openFiles), now.Max) // nobody but root can raise it
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return fmt.Errorf("limit open files to %d: %w", n, err)
		}
	}
	return nil
}

// inMemory gives bwrap something to read: the number of a file that outlives exec.
func inMemory(content string) (string, error) {
	fd, err := unix.MemfdCreate("sandbox", 0)
	if err != nil {
		return "", fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "sandbox")
	if _, err := f.WriteString(content); err != nil {
		return "", fmt.Errorf("write a file in memory: %w", err)
	}
	if _, err := f.Seek(0, 0); err != nil {
		return "", fmt.Errorf("write a file in memory: %w", err)
	}
	keep = append(keep, f)
	return strconv.Itoa(fd), nil
}

// keep has the files that the stage hands on: a file that is forgotten is closed.
var keep []*os.File
