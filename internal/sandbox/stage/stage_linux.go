package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// outside are the stages that begin where the bot runs, by kind.
var outside = map[string]Stage{
	"bwrap":   For(becomeBwrap),
	"gvisor":  For(becomeGVisor),
	"command": For(becomeLauncher),
}

// Self is this binary, even if its file was replaced since.
func Self() (string, error) { return "/proc/self/exe", nil }

// Bwrap is the plan for starting bubblewrap.
type Bwrap struct {
	Bwrap string   `json:"bwrap"`
	Args  []string `json:"args"`
	// Files are made inside, read-only.
	Files []File `json:"files"`
	// Filter is the filter of system calls for bwrap's --seccomp.
	Filter  []byte   `json:"filter"`
	Program []string `json:"program"`
	// OpenFiles is RLIMIT_NOFILE; 0 leaves it.
	OpenFiles int `json:"open_files,omitempty"`
	// Group is the cgroup file through which the session joins; empty for none.
	Group string `json:"group,omitempty"`
}

// GVisor is the plan for starting runsc.
type GVisor struct {
	Runsc  string   `json:"runsc"`
	Flags  []string `json:"flags"`
	Bundle string   `json:"bundle"`
	Name   string   `json:"name"`
	// Config is the bundle's configuration by the runtime specification, except the arguments and environment,
	// which only the starting process knows.
	Config map[string]json.RawMessage `json:"config"`
	// Filter is for runsc's own system calls, which create the session's files.
	Filter  []unix.SockFilter `json:"filter"`
	Program []string          `json:"program"`
	Group   string            `json:"group,omitempty"`
}

// becomeBwrap returns only on failure.
func becomeBwrap(p Bwrap, arguments []string) error {
	if err := limitThis(p.Group, p.OpenFiles); err != nil {
		return err
	}
	if len(p.Filter) == 0 {
		return errors.New("the plan has no filter of system calls")
	}
	args := make([]string, 0, len(p.Args)+5*len(p.Files)+2)
	for _, f := range p.Files {
		fd, err := readable(f)
		if err != nil {
			return err
		}
		args = append(args, "--perms", "0444", "--file", fd, f.Path)
	}
	fd, err := inMemory(string(p.Filter))
	if err != nil {
		return err
	}
	args = append(append(args, p.Args...), "--seccomp", fd)
	// Not as arguments, since those of bwrap's init are readable inside.
	if fd, err = inMemory(strings.Join(args, "\x00")); err != nil {
		return err
	}
	argv := append([]string{"bwrap", "--args", fd, "--"}, p.Program...)
	return fmt.Errorf("start %s: %w", p.Bwrap, syscall.Exec(p.Bwrap, append(argv, arguments...), os.Environ()))
}

// becomeGVisor completes the bundle's configuration and becomes runsc. It returns only on failure.
func becomeGVisor(p GVisor, arguments []string) error {
	if err := p.configure(arguments); err != nil {
		return fmt.Errorf("write the bundle's configuration: %w", err)
	}
	// The session's own kernel limits its open files.
	if err := limitThis(p.Group, 0); err != nil {
		return err
	}
	runtime.LockOSThread() // this thread becomes runsc
	if os.Geteuid() == 0 {
		// runsc mounts into its state folder, and leaves that behind when it is killed: a private mount namespace
		// ends with it.
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("make a mount namespace, which gvisor as root needs the capability SYS_ADMIN for: %w", err)
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
			return fmt.Errorf("make a mount namespace: %w", err)
		}
	}
	if err := filterThis(p.Filter); err != nil {
		return fmt.Errorf("filter gvisor's system calls: %w", err)
	}
	argv := append([]string{"runsc"}, p.Flags...)
	argv = append(argv, "run", "--bundle="+p.Bundle, p.Name)
	return fmt.Errorf("start %s: %w", p.Runsc, syscall.Exec(p.Runsc, argv, os.Environ()))
}

// configure writes the configuration with this process's arguments and environment.
func (p GVisor) configure(arguments []string) error {
	process := map[string]json.RawMessage{}
	err := json.Unmarshal(p.Config["process"], &process)
	set := func(in map[string]json.RawMessage, name string, value any) {
		if err == nil {
			in[name], err = json.Marshal(value)
		}
	}
	set(process, "args", append(p.Program, arguments...))
	set(process, "env", os.Environ())
	set(p.Config, "process", process)
	if err != nil {
		return err
	}
	text, err := json.Marshal(p.Config)
	if err != nil {
		return err
	}
	return os.WriteFile(p.Bundle+"/config.json", text, 0o600)
}

// limitThis lowers the limits of this process and all that it becomes and starts. RLIMIT_DATA is not limited:
// programs with an address sanitizer reserve 15 TB. RLIMIT_NPROC would count all processes of the bot's user.
func limitThis(group string, openFiles int) error {
	if group != "" {
		if err := os.WriteFile(group, []byte("0"), 0); err != nil {
			return fmt.Errorf("join the session's cgroup: %w", err)
		}
	}
	// If the machine runs out of memory, the kernel kills sessions first.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("stand first when memory runs out: %w", err)
	}
	// A core file would put the process's memory into the workspace.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("switch core files off: %w", err)
	}
	if openFiles > 0 {
		var now unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
			return fmt.Errorf("look how many files may be open: %w", err)
		}
		n := min(uint64(openFiles), now.Max) // only root can raise it
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			return fmt.Errorf("limit open files to %d: %w", n, err)
		}
	}
	return nil
}

// filterThis restricts the calling thread, and all that it becomes and starts, to the filter's system calls.
func filterThis(program []unix.SockFilter) error {
	if len(program) == 0 {
		return errors.New("the plan has none")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}                                         //nolint:gosec // the kernel allows 4096
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p))) //nolint:gosec // the call's signature
	runtime.KeepAlive(program)
	if errno != 0 {
		return errno
	}
	return nil
}

// readable passes a file's content to bwrap.
func readable(f File) (fd string, err error) {
	if f.Source == "" {
		return inMemory(f.Content)
	}
	n, err := unix.Open(f.Source, unix.O_RDONLY|unix.O_NONBLOCK, 0) // inherited across exec
	if err != nil {
		return "", fmt.Errorf("open %s: %w", f.Source, err)
	}
	return strconv.Itoa(n), nil
}

// inMemory passes content to bwrap: it returns the number of a file that survives exec.
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

// keep references the passed files: a garbage-collected file is closed.
var keep []*os.File
