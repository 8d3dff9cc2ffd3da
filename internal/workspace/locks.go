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

// maxLocks bounds the locks that are looked at in a git folder.
const maxLocks = 100

// Works notes that a session works in a folder until left is called.
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

// unlock removes the locks that git, ended in the middle of a command, has left in the git
// folder of a workspace in which the thread has no process. In a thread's own folder nobody
// else's git runs. In others people's may, or another thread's: there a lock goes if it is
// of this user and no living process can be its owner, as far as is seen from here. told
// names those that stay, for people. Links are not followed, and no file of the folder is
// read.
func (k *Keeper) unlock(dir string, own bool) (told []string) {
	gitDir := filepath.Join(dir, ".git")
	for !own { // the folder may be one of a repository's
		if _, err := os.Lstat(gitDir); err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
		gitDir = filepath.Join(dir, ".git")
	}
	if info, err := os.Lstat(gitDir); err != nil || !info.IsDir() {
		return nil // or it names a folder that may be anybody's
	}
	root, err := os.OpenRoot(gitDir)
	if err != nil {
		return nil
	}
	defer root.Close() //nolint:errcheck // it was not written to
	locks := locksIn(root.FS())
	if len(locks) == 0 {
		return nil
	}
	if !own {
		k.sessionsMu.Lock() // until the locks are gone, so that nobody begins meanwhile
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

// locksIn are the locks in a git folder, at any depth. Those of loose objects' folders are
// not looked for: git makes none there, and they are many.
func locksIn(git fs.FS) (locks []string) {
	_ = fs.WalkDir(git, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil //nolint:nilerr // what cannot be read is left alone
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

// maybeOwned says why a lock may be that of somebody who lives; empty if it cannot.
// k.sessionsMu is held.
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

// within reports whether a path is a folder, or below it.
func within(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// isGit tells of the name of a program.
func isGit(name string) bool {
	return name == "git" || strings.HasPrefix(name, "git-") || slices.Contains([]string{"jgit", "hub", "gh"}, name)
}
