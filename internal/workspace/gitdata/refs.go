package gitdata

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// How long to wait for another writer of a ref, and the age at which a lock is stale.
const (
	lockTimeout = time.Second
	lockPace    = 10 * time.Millisecond
	lockAge     = 10 * time.Minute
)

// SetRef sets a ref of the repository as git does. Its folders must not be links.
func (r Repository) SetRef(name, hash string) error {
	if !isRef(name) || !hashFormat.MatchString(hash) {
		return fmt.Errorf("%q or %q is none that could be written", name, hash)
	}
	return r.replace(name, as(hash+"\n"))
}

func as(text string) func() (string, error) { return func() (string, error) { return text, nil } }

// replace writes a file of the repository as git writes refs: a lock beside it, then a rename. text is called under
// the lock.
func (r Repository) replace(name string, text func() (string, error)) error {
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	dir := filepath.ToSlash(filepath.Dir(name))
	if err := root.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make the folder of %s: %w", name, err)
	}
	lock, err := r.lock(root, name+".lock")
	if err != nil {
		return err
	}
	out, err := text()
	if err == nil {
		_, err = lock.WriteString(out)
	}
	if err = errors.Join(err, lock.Sync()); err == nil {
		err = root.Rename(name+".lock", name)
	}
	if err != nil {
		_ = root.Remove(name + ".lock")
	} else if info, e := lock.Stat(); e == nil {
		_ = lock.Chmod(info.Mode() &^ os.ModeSticky) // mode bits do not matter to git
	}
	return errors.Join(err, lock.Close())
}

// lock creates a lock file. Ours has the sticky bit, which git's do not have, and is flocked from before it has its
// name until it is closed: so a lock left behind by a killed bot is recognised and removed.
func (r Repository) lock(root *os.Root, name string) (*os.File, error) {
	draft := Unfinished + rand.Text()
	lock, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	defer root.Remove(draft) //nolint:errcheck // a leftover is harmless
	info, err := lock.Stat()
	if err == nil {
		_ = lock.Chmod(info.Mode() | os.ModeSticky) // otherwise its age decides
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	for end := time.Now().Add(lockTimeout); err == nil; time.Sleep(lockPace) {
		if err = root.Link(draft, name); err == nil {
			return lock, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
		if err = nil; !leftBehind(root, name) && time.Now().After(end) {
			err = fmt.Errorf("%s is held by somebody else, or was left behind: remove it then", filepath.Join(r.Common, name))
		}
	}
	return nil, errors.Join(err, lock.Close())
}

// leftBehind removes a stale lock, and reports whether it did.
func leftBehind(root *os.Root, name string) bool {
	seen, err := root.Lstat(name)
	if err != nil || !seen.Mode().IsRegular() {
		return false
	}
	if time.Since(seen.ModTime()) > lockAge {
		return root.Remove(name) == nil
	}
	if seen.Mode()&os.ModeSticky == 0 {
		return false
	}
	lock, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer lock.Close() //nolint:errcheck // it is only read
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false
	}
	// We hold the flock, so it is still the same file.
	is, err := lock.Stat()
	now, nowErr := root.Lstat(name)
	return err == nil && nowErr == nil && os.SameFile(is, now) && root.Remove(name) == nil
}

// packedLine is a line of packed-refs: a ref, and the peeled tag if given.
type packedLine struct{ hash, peeled string }

// setRefs sets many refs at once, as git pack-refs would, and removes others below a prefix, if one is given.
// Symbolic refs stay.
func (r Repository) setRefs(refs map[string]string, only string) error {
	for name, hash := range refs {
		if !isRef(name) || !hashFormat.MatchString(hash) {
			return fmt.Errorf("%q or %q is none that could be written", name, hash)
		}
	}
	err := r.replace("packed-refs", func() (string, error) {
		lines := map[string]packedLine{}
		err := r.readPacked(func(name string, line packedLine) bool {
			if only == "" || !strings.HasPrefix(name, only) {
				lines[name] = line
			}
			return true
		})
		for name, hash := range refs {
			if lines[name].hash != hash {
				lines[name] = packedLine{hash: hash}
			}
		}
		var text strings.Builder
		text.WriteString("# pack-refs with: sorted \n")
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			fmt.Fprintf(&text, "%s %s\n", lines[name].hash, name)
			if lines[name].peeled != "" {
				text.WriteString(lines[name].peeled + "\n")
			}
		}
		return text.String(), err
	})
	if err != nil {
		return err
	}
	return r.dropLoose(refs, only)
}

// readPacked calls f for every line of packed-refs until it returns false.
func (r Repository) readPacked(f func(name string, line packedLine) bool) error {
	file, err := openPlain(filepath.Join(r.Common, "packed-refs"), maxPackedRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it is only read
	lines := bufio.NewScanner(io.LimitReader(file, maxPackedRefs))
	name, line := "", packedLine{}
	for lines.Scan() {
		text := lines.Text()
		switch {
		case strings.HasPrefix(text, "#"):
		case strings.HasPrefix(text, "^"):
			line.peeled = text
		default:
			if name != "" && !f(name, line) {
				return nil
			}
			line = packedLine{}
			line.hash, name, _ = strings.Cut(text, " ")
		}
	}
	if name != "" {
		f(name, line)
	}
	return lines.Err()
}

// dropLoose removes the files of refs that packed-refs has, and of those below the prefix that are to be deleted.
func (r Repository) dropLoose(refs map[string]string, only string) error {
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	drop := func(name string) error {
		text, err := readSmall(filepath.Join(r.Common, filepath.FromSlash(name)))
		if err != nil || !hashFormat.MatchString(text) {
			return nil //nolint:nilerr // it has no file, or is symbolic
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	for name := range refs {
		if err := drop(name); err != nil {
			return err
		}
	}
	if only == "" {
		return nil
	}
	return filepath.WalkDir(filepath.Join(r.Common, filepath.FromSlash(only)), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(r.Common, path)
		if err != nil {
			return err
		}
		return drop(filepath.ToSlash(rel))
	})
}
