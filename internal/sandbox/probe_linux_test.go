package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"deckhand/internal/waittest"
)

func init() {
	roles["system calls"] = trySystemCalls
	roles["loopback"] = tryLoopback
	roles["dial"] = func() error { return tryDial(os.Getenv("NETWORK"), os.Getenv("ADDRESS")) }
	roles["starter"] = startAndWait
}

// refusedCalls are ways out, and what the filter answers to each.
var refusedCalls = []struct {
	name string
	nr   uintptr
	args [6]uintptr
	want syscall.Errno
}{
	{"mount", unix.SYS_MOUNT, [6]uintptr{}, unix.EPERM},
	{"umount2", unix.SYS_UMOUNT2, [6]uintptr{}, unix.EPERM},
	{"pivot_root", unix.SYS_PIVOT_ROOT, [6]uintptr{}, unix.EPERM},
	{"chroot", unix.SYS_CHROOT, [6]uintptr{}, unix.EPERM},
	{"fsopen", unix.SYS_FSOPEN, [6]uintptr{}, unix.EPERM},
	{"open_tree", unix.SYS_OPEN_TREE, [6]uintptr{}, unix.EPERM},
	{"move_mount", unix.SYS_MOVE_MOUNT, [6]uintptr{}, unix.EPERM},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, [6]uintptr{}, unix.EPERM},
	{"unshare, user", unix.SYS_UNSHARE, [6]uintptr{unix.CLONE_NEWUSER}, unix.EPERM},
	{"setns", unix.SYS_SETNS, [6]uintptr{}, unix.EPERM},
	{"clone, user", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWUSER | uintptr(unix.SIGCHLD)}, unix.EPERM},
	{"clone, network", unix.SYS_CLONE, [6]uintptr{unix.CLONE_NEWNET | uintptr(unix.SIGCHLD)}, unix.EPERM},
	{"clone3", unix.SYS_CLONE3, [6]uintptr{}, unix.ENOSYS},
	{"keyctl", unix.SYS_KEYCTL, [6]uintptr{}, unix.EPERM},
	{"add_key", unix.SYS_ADD_KEY, [6]uintptr{}, unix.EPERM},
	{"request_key", unix.SYS_REQUEST_KEY, [6]uintptr{}, unix.EPERM},
	{"bpf", unix.SYS_BPF, [6]uintptr{}, unix.EPERM},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [6]uintptr{}, unix.EPERM},
	{"userfaultfd", unix.SYS_USERFAULTFD, [6]uintptr{}, unix.EPERM},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, [6]uintptr{}, unix.EPERM},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [6]uintptr{}, unix.EPERM},
	{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, [6]uintptr{}, unix.EPERM},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT, [6]uintptr{}, unix.EPERM},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, [6]uintptr{}, unix.EPERM},
	{"kexec_load", unix.SYS_KEXEC_LOAD, [6]uintptr{}, unix.EPERM},
	{"init_module", unix.SYS_INIT_MODULE, [6]uintptr{}, unix.EPERM},
	{"swapon", unix.SYS_SWAPON, [6]uintptr{}, unix.EPERM},
	{"reboot", unix.SYS_REBOOT, [6]uintptr{}, unix.EPERM},
	{"settimeofday", unix.SYS_SETTIMEOFDAY, [6]uintptr{}, unix.EPERM},
	{"quotactl", unix.SYS_QUOTACTL, [6]uintptr{}, unix.EPERM},
	{"syslog", unix.SYS_SYSLOG, [6]uintptr{}, unix.EPERM},
	{"personality, no randomisation", unix.SYS_PERSONALITY, [6]uintptr{0x0040000}, unix.EPERM},
	{"socket, vsock", unix.SYS_SOCKET, [6]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EPERM},
	{"socket, alg", unix.SYS_SOCKET, [6]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}, unix.EPERM},
	{"socket, packet", unix.SYS_SOCKET, [6]uintptr{unix.AF_PACKET, unix.SOCK_RAW}, unix.EPERM},
	{"socket, inet, raw", unix.SYS_SOCKET, [6]uintptr{unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, unix.EPERM},
	{"a call that is not known yet", 1000, [6]uintptr{}, unix.ENOSYS},
}

// trySystemCalls makes each of the calls, on memory that is nobody's, and says how it
// ended.
func trySystemCalls() error {
	runtime.LockOSThread()
	for _, c := range refusedCalls {
		pid, _, errno := syscall.RawSyscall6(c.nr, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		if strings.HasPrefix(c.name, "clone, ") && errno == 0 && pid == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0) // the child that should not be
		}
		fmt.Printf("%s: %d\n", c.name, int(errno))
	}
	// What sets user ids is there, and gives nothing.
	if _, _, errno := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_NO_NEW_PRIVS, 0, 0); errno != 0 {
		return errno
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil || limit.Max != 0 {
		return fmt.Errorf("core files: %+v, %w", limit, err)
	}
	return nil
}

// inside makes the house's program a role of this binary.
func (h *house) inside(role string, env ...string) {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	h.session.Program = []string{self}
	h.session.Env = append(append(h.session.Env, roleVariable+"="+role), env...)
}

func TestNoSystemCallLeadsOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.inside("system calls")
	var want []string
	for _, c := range refusedCalls {
		want = append(want, fmt.Sprintf("%s: %d", c.name, int(c.want)))
	}
	if diff := cmp.Diff(want, strings.Split(h.does(""), "\n")); diff != "" {
		t.Errorf("system calls and errno (-want +got):\n%s", diff)
	}
}

// What programs cannot do without on this architecture is on the list by the name that
// the architecture has for it: a name that is not known would be left out in silence.
func TestTheListHasWhatEveryProgramNeeds(t *testing.T) {
	t.Parallel()
	if _, err := syscallFilter(); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{}
	for _, name := range allowedSyscalls() {
		if allowed[name] {
			t.Errorf("%s is on the list twice", name)
		}
		allowed[name] = true
	}
	for name := range conditions {
		if allowed[name] {
			t.Errorf("%s is allowed with conditions and without", name)
		}
	}
	for _, name := range []string{"read", "execve", "futex", "epoll_pwait", "wait4", "newfstatat", "fstatat", "rt_sigreturn"} {
		if !allowed[name] {
			t.Errorf("%s is not on the list", name)
		}
	}
}

// tryLoopback listens where a development server does, and calls itself.
func tryLoopback() error {
	for _, address := range []string{"127.0.0.1:0", "localhost:0"} {
		l, err := net.Listen("tcp", address) //nolint:noctx // a probe
		if err != nil {
			return err
		}
		go func() {
			if c, err := l.Accept(); err == nil {
				_, _ = io.WriteString(c, "hello")
				_ = c.Close()
			}
		}()
		c, err := net.Dial("tcp", l.Addr().String()) //nolint:noctx // a probe
		if err != nil {
			return err
		}
		if b, err := io.ReadAll(c); err != nil || string(b) != "hello" {
			return fmt.Errorf("%q, %w", b, err)
		}
	}
	return nil
}

func tryDial(network, address string) error {
	c, err := net.Dial(network, address) //nolint:noctx // a probe
	if err != nil {
		return err
	}
	return c.Close()
}

func TestServersWorkInsideAndReachNobody(t *testing.T) {
	t.Parallel()
	listeners := map[string]net.Listener{}
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": "@deckhand-test-" + strings.ToLower(t.Name())} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		listeners[network] = l
	}
	t.Run("loopback", func(t *testing.T) {
		t.Parallel()
		h := newHouse(t)
		h.inside("loopback")
		h.does("")
	})
	for network, l := range listeners {
		for _, spec := range []Spec{{}, {Network: Open}} {
			h := newHouse(t)
			h.spec = spec
			h.inside("dial", "NETWORK="+network, "ADDRESS="+l.Addr().String())
			if out, ok := h.runs(""); ok != (spec.Network == Open) {
				t.Errorf("%s, network %s: reached the machine's listener: %v\n%s", network, spec.Network, ok, out)
			}
		}
	}
}

// startAndWait starts what its arguments say, and waits for it: a bot that gets killed.
func startAndWait() error {
	runtime.LockOSThread()
	cmd := exec.Command(os.Args[1], os.Args[2:]...) //nolint:noctx // it is killed
	cmd.Env, cmd.Stdout, cmd.Stderr = without(os.Environ(), roleVariable), os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Wait()
}

func without(env []string, name string) []string {
	var out []string
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			out = append(out, e)
		}
	}
	return out
}

// Whoever of those who run a session is killed, everything in it is gone: also what has
// left for a session of its own. All of it holds the writing end of a pipe, which ends
// with the last of them.
func TestEverythingDiesWithTheSession(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, victim := range []struct {
		name string
		path []int // from the process that was started, the how-manieth child
	}{{"whoever started it", nil}, {"bwrap", []int{0}}, {"its init", []int{0, 0}}} {
		t.Run(victim.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			box, err := h.box()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
			defer cancel()
			script := `setsid sh -c 'setsid sleep 100000 & sleep 100000' & (sleep 100000 &) ; echo ready; sleep 100000`
			cmd := exec.CommandContext(ctx, self, append(box.Command, script)...)
			cmd.Env, cmd.Dir = append(box.Env, roleVariable+"=starter"), h.work
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			if line, err := lines.ReadString('\n'); err != nil || line != "ready\n" {
				t.Fatalf("%q, %v", line, err)
			}
			pid := cmd.Process.Pid
			for _, n := range victim.path {
				pid = children(t, pid)[n]
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
				t.Errorf("%q, %v", rest, err)
			}
			_ = cmd.Wait() // it was killed, or lost its child
		})
	}
}

func children(t *testing.T, pid int) []int {
	t.Helper()
	var out []int
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(string(b)) {
			var child int
			if _, err := fmt.Sscan(word, &child); err != nil {
				t.Fatal(err)
			}
			out = append(out, child)
		}
	}
	if len(out) == 0 {
		t.Fatalf("%d has no child", pid)
	}
	return out
}
