package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// refusePrivileged fails if there is a file in the workspace that other accounts of this
// machine can run as the bot's user or group and that a session could write to: what is
// written through a mapping of memory leaves its bits as they are. None can be made in a
// session (syscalls.txt), so that these are people's.
func refusePrivileged(workspace string) error {
	if closed(workspace) {
		return nil
	}
	return filepath.WalkDir(workspace, func(path string, entry fs.DirEntry, err error) error {
		if entry == nil {
			return err
		}
		info, gone := entry.Info()
		if gone != nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		owned := ok && int(stat.Uid) == os.Geteuid()
		if err != nil {
			if entry.IsDir() && !owned {
				return fs.SkipDir // a session comes no further, either
			}
			return fmt.Errorf("look for setuid files: %w", err)
		}
		const groupRuns, othersWrite = 0o010, 0o022
		mode := info.Mode()
		runAs := mode&fs.ModeSetuid != 0 || mode&fs.ModeSetgid != 0 && mode&groupRuns != 0
		if mode.IsRegular() && runAs && (owned || mode&othersWrite != 0) {
			return fmt.Errorf("%s is setuid or setgid (%v): a session could put a program into it, which other accounts of this machine would run as its owner; take that away: chmod u-s,g-s '%[1]s'", path, mode)
		}
		return nil
	})
}

// closed reports whether no other account of this machine comes to a folder, as with those
// that the bot makes.
func closed(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode()&0o011 == 0 {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}
