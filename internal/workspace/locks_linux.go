package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ours reports whether this user owns a file.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// inUse reports whether a living process may hold a lock of this user's in a folder: it has the lock open, or is a
// git that works there. Invisible processes are other users', whose locks would be, too.
func inUse(dir string, lock fs.FileInfo) (bool, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(processes) == 0 {
		return false, fs.ErrNotExist
	}
	folder, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	for _, p := range processes {
		if name, err := os.ReadFile(filepath.Join(p, "comm")); err == nil && isGit(strings.TrimSpace(string(name))) && worksIn(p, folder) {
			return true, nil
		}
		files, _ := os.ReadDir(filepath.Join(p, "fd"))
		for _, f := range files {
			if open, err := os.Stat(filepath.Join(p, "fd", f.Name())); err == nil && os.SameFile(open, lock) {
				return true, nil
			}
		}
	}
	return false, nil
}

// worksIn reports whether a process's folder is this one or below it. It compares files, since a sandbox may use
// other paths.
func worksIn(process string, folder fs.FileInfo) bool {
	var below fs.FileInfo
	for at := process + "/cwd"; ; at += "/.." {
		info, err := os.Stat(at)
		if err != nil || below != nil && os.SameFile(info, below) {
			return false // it has ended, or this is its root
		}
		if os.SameFile(info, folder) {
			return true
		}
		below = info
	}
}
