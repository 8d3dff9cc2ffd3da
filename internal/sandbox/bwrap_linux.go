package sandbox

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"deckhand/internal/sandbox/stage"
)

// bwrap sandboxes sessions with bubblewrap.
type bwrap struct {
	spec Spec
}

func newBwrap(spec Spec) (Sandbox, error) { return &bwrap{spec}, nil }

func (b *bwrap) String() string { return b.spec.String() }

func (b *bwrap) Prepare(_ context.Context, s Session) (*Box, error) {
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, missing()
	}
	v := newView()
	if err := v.system(b.spec.Network); err != nil {
		return nil, err
	}
	command, err := v.session(b.spec, s)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try",
		"--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", hostname,
	}
	if b.spec.Network != Open {
		args = append(args, "--unshare-net")
	}
	args = append(args, devArgs(b.spec.Limits.Memory)...)
	args = append(args, procArgs()...)
	files := append(identity(os.Getuid(), os.Getgid(), s.Home, b.spec.Network), v.copies()...)
	args = append(args, bwrapArgs(v, b.spec.Limits.Memory)...)
	args = append(args, "--chdir", s.dir())
	filter, err := syscallFilter()
	if err != nil {
		return nil, err
	}
	box := &Box{Env: environ(s.Env), limits: b.spec.Limits, folders: s.folders(b.spec)}
	if box.group, err = ownGroups().make(s.Name, b.spec.Limits); err != nil {
		return nil, err
	}
	p := stage.Bwrap{
		Bwrap: program, Args: args, Files: files, Filter: filter, Program: command,
		OpenFiles: b.spec.Limits.Files, Group: box.group.procs(),
	}
	if box.Command, err = staged(Bwrap, p); err != nil {
		return nil, errors.Join(err, box.Close())
	}
	return box, nil
}

// devArgs make a private /dev in which only /dev/shm is writable.
func devArgs(memory int64) []string {
	out := []string{"--dev", "/dev"}
	out = append(out, inMemoryArgs("/dev/shm", memory)...)
	return append(out, "--remount-ro", "/dev")
}

// inMemoryArgs make a tmpfs with a size limit: a [Watcher] does not count its unmapped files.
func inMemoryArgs(path string, memory int64) []string {
	out := []string{"--perms", "1777"}
	if memory > 0 {
		out = append(out, "--size", strconv.FormatInt(shareOf(memory, path), 10))
	}
	return append(out, "--tmpfs", path)
}

// maskedProc are files of /proc about the machine, after Docker's list.
var maskedProc = []string{
	"acpi", "asound", "interrupts", "kallsyms", "kcore", "key-users", "keys", "kmsg", "latency_stats", "pagetypeinfo",
	"sched_debug", "scsi", "slabinfo", "sysrq-trigger", "timer_list", "timer_stats", "vmallocinfo", "vmstat",
}

// procArgs make a /proc of the session's own processes, read-only as a whole: the kernel checks only who owns a
// file of /proc/sys, so a bot that runs as root could set the machine's core_pattern from inside, to a program that
// the kernel runs outside. (bwrap covers writable folders of /proc, but in /proc/sys only the files are writable.)
func procArgs() []string {
	out := []string{"--proc", "/proc"}
	for _, name := range maskedProc {
		info, err := os.Stat(filepath.Join("/proc", name))
		switch path := filepath.Join("/proc", name); {
		case err != nil:
		case info.IsDir():
			out = append(out, "--tmpfs", path, "--remount-ro", path)
		default:
			out = append(out, "--ro-bind", os.DevNull, path)
		}
	}
	return append(out, "--remount-ro", "/proc")
}

// copies are the small files of the view. They lie in the session's root, which becomes read-only when it is
// complete; later mounts of bwrapArgs cover them.
func (v *view) copies() []stage.File {
	var out []stage.File
	for _, p := range v.paths() {
		if m := v.at[p]; m.small {
			out = append(out, stage.File{Path: p, Source: m.source})
		}
	}
	return out
}

// bwrapArgs are the options for the view, except its copies.
func bwrapArgs(v *view, memory int64) []string {
	var out, closed []string
	for _, p := range v.paths() {
		switch m := v.at[p]; m.kind {
		case readOnly:
			if !m.small {
				out = append(out, "--ro-bind", m.source, p)
			}
		case writable:
			out = append(out, "--bind", m.source, p)
		case link:
			out = append(out, "--symlink", m.source, p)
		case temporary:
			out = append(out, inMemoryArgs(p, memory)...)
		case emptyFolder:
			out = append(out, "--tmpfs", p)
			closed = append(closed, "--remount-ro", p)
		case emptyFile:
			out = append(out, "--ro-bind", os.DevNull, p)
		}
	}
	return append(append(out, closed...), "--remount-ro", "/")
}

func missing() error {
	return errors.New("bwrap is not installed: sudo apt-get install bubblewrap (dnf and pacman have it by the same name)")
}

func (b *bwrap) Check(ctx context.Context, run Run) error {
	if err := b.spec.Limits.enforceable(); err != nil {
		return err
	}
	// Loopback works, and nothing forbidden is visible.
	out, err := trial(ctx, run, b, b.spec.Network.Proxied(), true, "test ! -e /etc/shadow && grep -q '^Seccomp:.*2' /proc/self/status && cat /proc/net/route && read -r word && echo \"$word\"")
	if errors.Is(err, errTrial) {
		return explain(err.Error(), here())
	}
	if err != nil {
		return err
	}
	return b.spec.Network.seen(out)
}
