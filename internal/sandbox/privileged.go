package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// refusePrivileged fails if the workspace has a setuid or setgid file that a session could write to and other
// accounts of this machine could run: writing through a memory mapping keeps the bits. A session cannot make such
// files itself (syscalls.txt).
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
				return fs.SkipDir // a session cannot enter it either
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

// closed reports whether other accounts of this machine cannot reach a folder, like those that the bot makes.
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
