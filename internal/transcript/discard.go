package transcript

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
)

// Discard removes a folder in which a session may have put anything.
func Discard(dir string) error {
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	return discard(root, filepath.Base(dir))
}

// discard removes folders of root with their content, whatever its modes and depth: nested folders are moved up and
// emptied in turn, so that no path grows and only one folder is open. Links are removed, not followed.
func discard(root *os.Root, names ...string) error {
	var errs []error
	for _, name := range names {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case !info.IsDir():
			errs = append(errs, root.Remove(name))
		default:
			errs = append(errs, discardFolder(root, name))
		}
	}
	return errors.Join(errs...)
}

func discardFolder(root *os.Root, name string) error {
	if err := root.Chmod(name, 0o700); err != nil {
		return err
	}
	top, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer top.Close() //nolint:errcheck // it only names a folder
	// What lies there may have any name.
	fresh := names{prefix: ".discarded-" + rand.Text() + "-"}
	// A stack of folders that lie in top; what lies in top itself comes last.
	for pending := []string{"."}; len(pending) > 0; {
		at := pending[len(pending)-1]
		within, err := empty(top, at, &fresh)
		if err != nil {
			return err
		}
		switch {
		case len(within) > 0:
			pending = append(pending, within...)
		case at != ".":
			if err := top.Remove(at); err != nil {
				return err
			}
			fallthrough
		default:
			pending = pending[:len(pending)-1]
		}
	}
	return root.Remove(name)
}

// empty removes a bounded number of a folder's entries, and returns its subfolders, which it moves to top. It
// returns none when nothing is left.
func empty(top *os.Root, name string, fresh *names) (within []string, err error) {
	for {
		entries, err := someOf(top, name)
		if err != nil || len(entries) == 0 {
			return within, err
		}
		for _, e := range entries {
			at := path.Join(name, e.Name())
			if !e.IsDir() {
				if err := top.Remove(at); err != nil {
					return nil, err
				}
				continue
			}
			if err := top.Chmod(at, 0o700); err != nil { // else it cannot be moved
				return nil, err
			}
			to := fresh.next()
			if err := top.Rename(at, to); err != nil {
				return nil, err
			}
			within = append(within, to)
		}
		if len(within) > 0 {
			return within, nil
		}
	}
}

func someOf(root *os.Root, name string) ([]fs.DirEntry, error) {
	dir, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close() //nolint:errcheck // it is only read
	entries, err := dir.ReadDir(1000)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// names generates unused names.
type names struct {
	prefix string
	n      int
}

func (n *names) next() string {
	n.n++
	return n.prefix + strconv.Itoa(n.n)
}
