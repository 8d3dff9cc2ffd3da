package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxLocks bounds the locks examined in a git folder.
const maxLocks = 100

// Works records that a session works in a folder until left is called.
func (k *Keeper) Works(dir string) (left func()) {
	k.sessionsMu.Lock()
	defer k.sessionsMu.Unlock()
	if k.sessions == nil {
		k.sessions = map[string]int{}
	}
	k.sessions[dir]++
	return func() {
		k.sessionsMu.Lock()
		defer k.sessionsMu.Unlock()
		k.sessions[dir]--
	}
}

// unlock removes the locks that a killed git has left in the git folder of a workspace in which the thread has no
// process. A thread's own folder has no other gits. Other folders may have people's or another thread's: there a
// lock is removed if this user owns it and no living process can hold it, as far as visible. told names the
// remaining locks, for people. Links are not followed, and no file of the folder is read.
func (k *Keeper) unlock(dir string, own bool) (told []string) {
	gitDir := filepath.Join(dir, ".git")
	for !own { // the folder may be inside a repository
		if _, err := os.Lstat(gitDir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
		gitDir = filepath.Join(dir, ".git")
	}
	if info, err := os.Lstat(gitDir); err != nil || !info.IsDir() {
		return nil // it may name any folder
	}
	root, err := os.OpenRoot(gitDir)
	if err != nil {
		return nil
	}
	defer root.Close() //nolint:errcheck // nothing was written
	locks := locksIn(root.FS())
	if len(locks) == 0 {
		return nil
	}
	if !own {
		k.sessionsMu.Lock() // so that no session begins meanwhile
		defer k.sessionsMu.Unlock()
	}
	for _, name := range locks {
		why := ""
		if !own {
			why = k.maybeOwned(root, dir, name)
		}
		if why == "" {
			if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				why = "it cannot be removed"
			}
		}
		if why != "" && len(told) < maxNamed {
			told = append(told, fmt.Sprintf("Git refuses to work here while there is %s, and %s. If no git runs there, remove it.", filepath.Join(gitDir, filepath.FromSlash(name)), why))
		}
	}
	return told
}

// locksIn are the locks in a git folder, at any depth, except in the many folders of loose objects, where git makes
// none.
func locksIn(git fs.FS) (locks []string) {
	_ = fs.WalkDir(git, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // unreadable: leave it
		case d.IsDir():
			if base := path.Base(name); len(base) == 2 && strings.Trim(base, "0123456789abcdef") == "" && path.Base(path.Dir(name)) == "objects" {
				return fs.SkipDir
			}
		case d.Type().IsRegular() && strings.HasSuffix(name, ".lock"):
			if locks = append(locks, name); len(locks) == maxLocks {
				return fs.SkipAll
			}
		}
		return nil
	})
	return locks
}

// maybeOwned says why a living process may hold a lock; empty if none can. k.sessionsMu is held.
func (k *Keeper) maybeOwned(root *os.Root, dir, lock string) string {
	for other, n := range k.sessions {
		if n > 0 && within(dir, other) {
			return "another thread works there"
		}
	}
	info, err := root.Lstat(lock)
	if err != nil {
		return "" // it is gone
	}
	if !ours(info) {
		return "it is another user's"
	}
	used, err := inUse(dir, info)
	switch {
	case err != nil:
		return "whether somebody's git runs cannot be seen here"
	case used:
		return "somebody's git may be running"
	}
	return ""
}

// within reports whether a path is a folder or below it.
func within(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// isGit reports whether a program's name is git's.
func isGit(name string) bool {
	return name == "git" || strings.HasPrefix(name, "git-") || slices.Contains([]string{"jgit", "hub", "gh"}, name)
}
