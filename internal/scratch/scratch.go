// Package scratch makes folders that are needed for a while, in the system's folder for
// such, and removes those that a process which was killed has left. Each is locked for as
// long as the process that made it lives, so that whoever sweeps knows.
package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Kind is what a folder is for, and part of its name.
type Kind string

// The kinds of folders.
const (
	Check   Kind = "check"   // a sandbox is tried in it
	Doctor  Kind = "doctor"  // the home of a CLI that calls its model once
	GVisor  Kind = "gvisor"  // a session's bundle
	Look    Kind = "look"    // git reads a repository of people's from it
	Seccomp Kind = "seccomp" // a filter that the engine of containers reads
)

var kinds = []Kind{Check, Doctor, GVisor, Look, Seccomp}

// Folder is one that only the bot's user can enter.
type Folder struct {
	Path string
	lock *os.File
}

func (k Kind) prefix() string { return "deckhand-" + string(k) + "-" }

// Make makes a folder, which lasts until [Folder.Remove] or until the next [Sweep] after
// this process has ended.
func Make(k Kind) (*Folder, error) {
	for {
		path, err := os.MkdirTemp("", k.prefix())
		if err != nil {
			return nil, fmt.Errorf("make a folder for a while: %w", err)
		}
		lock, err := locked(path)
		switch {
		case err == nil && is(lock, path):
			return &Folder{path, lock}, nil
		case err == nil:
			_ = lock.Close() // it was swept before it was locked
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(fmt.Errorf("lock a folder that is made for a while: %w", err), os.RemoveAll(path))
		}
	}
}

// Remove removes the folder with all that is in it.
func (f *Folder) Remove() error { return errors.Join(os.RemoveAll(f.Path), f.lock.Close()) }

// Sweep removes the folders of this user's processes that have ended.
func Sweep() error {
	var errs []error
	for _, k := range kinds {
		left, err := filepath.Glob(filepath.Join(os.TempDir(), k.prefix()+"*"))
		errs = append(errs, err)
		for _, path := range left {
			lock, err := locked(path)
			if err != nil {
				continue // its process lives, or it is another user's
			}
			errs = append(errs, os.RemoveAll(path), lock.Close())
		}
	}
	return errors.Join(errs...)
}

// locked opens and locks a folder of this user's.
func locked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	var info unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &info); err == nil && int(info.Uid) != os.Geteuid() {
		err = fs.ErrPermission
	}
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// is reports whether an open folder is the one that stands at path.
func is(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, there)
}
