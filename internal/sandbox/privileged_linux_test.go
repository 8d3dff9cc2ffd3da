package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// privilegedModes are asked for with each call; the kernel takes 16 bits of a mode.
var privilegedModes = []uintptr{0o4755, 0o2755, 0o6755, 0o4700, 0o4000, 1<<16 | 0o6755, 1<<40 | 0o6755}

// makePrivileged asks for privileged files in the working directory, by every call that
// could make one, and prints what was answered.
func makePrivileged() error {
	machine, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	pointer := func(path string) uintptr {
		p, _ := unix.BytePtrFromString(path)
		return uintptr(unsafe.Pointer(p))
	}
	here := unix.AT_FDCWD
	dir := uintptr(here)
	answers := map[string]string{}
	for i, mode := range privilegedModes {
		call := func(name, path string, args func(path uintptr) []uintptr) int {
			number, ok := machine.SyscallNames[name]
			if !ok {
				return -1
			}
			a := append(args(pointer(fmt.Sprint(path, "-", i))), 0, 0, 0)
			fd, _, errno := unix.Syscall6(uintptr(number), a[0], a[1], a[2], a[3], a[4], 0)
			answers[fmt.Sprintf("%s %o", path, mode)] = errno.Error()
			if errno != 0 {
				return -1
			}
			return int(fd)
		}
		plain := func(name string) (path string, fd uintptr) {
			path = fmt.Sprint(name, "-", i)
			f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
			if err != nil {
				answers[path] = err.Error()
				return path, ^uintptr(0)
			}
			return path, f.Fd() // it ends with this process
		}
		plain("chmod")
		call("chmod", "chmod", func(p uintptr) []uintptr { return []uintptr{p, mode, 0} })
		_, fd := plain("fchmod")
		call("fchmod", "fchmod", func(uintptr) []uintptr { return []uintptr{fd, mode, 0} })
		plain("fchmodat")
		call("fchmodat", "fchmodat", func(p uintptr) []uintptr { return []uintptr{dir, p, mode, 0} })
		plain("fchmodat2")
		call("fchmodat2", "fchmodat2", func(p uintptr) []uintptr { return []uintptr{dir, p, mode, 0} })
		_, fd = plain("fchmodat2-fd")
		call("fchmodat2", "fchmodat2-fd", func(uintptr) []uintptr { return []uintptr{fd, pointer(""), mode, unix.AT_EMPTY_PATH} })
		call("creat", "creat", func(p uintptr) []uintptr { return []uintptr{p, mode, 0} })
		call("open", "open", func(p uintptr) []uintptr { return []uintptr{p, unix.O_CREAT | unix.O_WRONLY, mode} })
		call("openat", "openat", func(p uintptr) []uintptr { return []uintptr{dir, p, unix.O_CREAT | unix.O_RDWR, mode} })
		call("openat", "openat-excl", func(p uintptr) []uintptr { return []uintptr{dir, p, unix.O_CREAT | unix.O_EXCL | unix.O_RDONLY, mode} })
		if made := call("openat", "openat-tmpfile", func(uintptr) []uintptr { return []uintptr{dir, pointer("."), unix.O_TMPFILE | unix.O_RDWR, mode} }); made >= 0 {
			_ = unix.Linkat(unix.AT_FDCWD, fmt.Sprint("/proc/self/fd/", made), unix.AT_FDCWD, fmt.Sprint("tmpfile-", i), unix.AT_SYMLINK_FOLLOW)
		}
		how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_RDWR, Mode: uint64(mode)}
		call("openat2", "openat2", func(p uintptr) []uintptr { return []uintptr{dir, p, uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how)} })
		call("mknod", "mknod", func(p uintptr) []uintptr { return []uintptr{p, unix.S_IFREG | mode, 0} })
		call("mknodat", "mknodat", func(p uintptr) []uintptr { return []uintptr{dir, p, unix.S_IFREG | mode, 0} })
		// As libraries do it: rights of a file by an attribute, and by a copy of another's.
		path, _ := plain("capability")
		answers[path] = fmt.Sprint(unix.Setxattr(path, "security.capability", []byte("\x01\x00\x00\x02\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 0))
		for _, other := range []string{"/usr/bin/su", "/bin/su", "/usr/bin/passwd"} {
			_ = os.Link(other, fmt.Sprint("link-", filepath.Base(other), i))
			_ = os.Rename(other, fmt.Sprint("rename-", filepath.Base(other), i))
		}
	}
	for _, mode := range []fs.FileMode{0o600, 0o755, 0o777, 0o444} {
		f, err := os.OpenFile(fmt.Sprintf("plain-%o", mode), os.O_CREATE, mode)
		if err == nil {
			err = f.Chmod(mode)
		}
		if err != nil {
			return fmt.Errorf("an ordinary mode: %w", err)
		}
	}
	// What lies in a folder with the bit gets its group, and a folder there the bit.
	if err := os.MkdirAll("shared/below/it", 0o755); err != nil {
		return err
	}
	if err := os.WriteFile("shared/below/file", nil, 0o755); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

// TestNoPrivilegedFileLeaves: whatever a session calls, it leaves no file that others would
// run as the bot's user or group.
func TestNoPrivilegedFileLeaves(t *testing.T) {
	inEachKind(t, func(t *testing.T, spec Spec) {
		s := newSession(t)
		shared := filepath.Join(s.Workspace, "shared")
		must(t, os.Mkdir(shared, 0o755))
		must(t, os.Chmod(shared, 0o755|fs.ModeSetgid))
		cmd := s.prepare(t, spec, "privileged")
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, errOut.Bytes())
		}
		files := 0
		must(t, filepath.WalkDir(s.Workspace, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			files++
			info, err := entry.Info()
			if err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
				t.Errorf("%s is %v", path, info.Mode())
			}
			if n, err := unix.Lgetxattr(path, "security.capability", nil); err == nil && n > 0 {
				t.Errorf("%s has capabilities", path)
			}
			return err
		}))
		if files < 4*len(privilegedModes) {
			t.Errorf("only %d files were tried:\n%s", files, out)
		}
	})
}

// TestPrivilegedFilesOfPeople: a session that could write into one does not start, where
// others can come to it.
func TestPrivilegedFilesOfPeople(t *testing.T) {
	inEachKind(t, func(t *testing.T, spec Spec) {
		for name, c := range map[string]struct {
			mode   fs.FileMode
			closed fs.FileMode // of the workspace
			refuse bool
		}{
			"setuid":           {0o755 | fs.ModeSetuid, 0o755, true},
			"setuid, to read":  {0o555 | fs.ModeSetuid, 0o755, true}, // its owner can change that
			"setgid":           {0o755 | fs.ModeSetgid, 0o755, true},
			"setgid, not run":  {0o644 | fs.ModeSetgid, 0o755, false},
			"ordinary":         {0o755, 0o755, false},
			"nobody else's":    {0o755 | fs.ModeSetuid, 0o700, false},
			"the group's, too": {0o755 | fs.ModeSetuid, 0o710, true},
		} {
			t.Run(name, func(t *testing.T) {
				s := newSession(t)
				top, err := os.MkdirTemp("", "deckhand-test-")
				must(t, err)
				t.Cleanup(func() { must(t, os.RemoveAll(top)) })
				s.Workspace = filepath.Join(top, "project")
				below := filepath.Join(s.Workspace, "a/b")
				must(t, os.MkdirAll(below, 0o755))
				must(t, os.Chmod(top, 0o755))
				must(t, os.Chmod(s.Workspace, c.closed))
				path := filepath.Join(below, "program")
				must(t, os.WriteFile(path, nil, 0o755))
				must(t, os.Chmod(path, c.mode))
				if c.refuse && closed(top) {
					t.Skip("nobody else comes to the folders for tests of this machine")
				}
				sandbox, err := New(spec)
				must(t, err)
				box, err := sandbox.Prepare(t.Context(), s.Session)
				if err == nil {
					must(t, box.Close())
				}
				if refused := err != nil && strings.Contains(err.Error(), "chmod u-s,g-s '"+path+"'"); refused != c.refuse || !refused && err != nil {
					t.Errorf("refused %v: %v", refused, err)
				}
			})
		}
	})
}

// TestEverydayModes: programs that set modes work, but for those bits.
func TestEverydayModes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, script := range []string{
		"git init -q a && cd a && echo a >a && git add a && git -c user.name=a -c user.email=a@b commit -qm a",
		"mkdir -p t/u && echo x >t/u/f && chmod 640 t/u/f && chmod 1777 t && cp -a t t2 && install -m 755 t/u/f f && tar cf t.tar t && mkdir o && tar xpf t.tar -C o && test \"$(stat -c %a o/t/u/f)\" = 640",
	} {
		h.does(script)
	}
	shared := filepath.Join(h.work, "shared")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "--shared", shared).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h.does("umask 002 && cd shared && echo a >a && git add a && git -c user.name=a -c user.email=a@b commit -qm a")
	h.cannot("chmod g+s t")
}
