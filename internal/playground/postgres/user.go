package postgres

import (
	"errors"
	"fmt"
	"os"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// credential is the user that PostgreSQL runs as in place of root. Nil means
// the user that we are, and all methods work on nil.
type credential struct{ uid, gid uint32 }

// whoRuns chooses the user for the data folder: whoever owns the data, if it
// is there; otherwise, for root, postgres or nobody.
func whoRuns(data string) (*credential, error) {
	uid := os.Geteuid()
	owner, owned, err := ownerOf(data)
	if err != nil {
		return nil, err
	}
	if uid != 0 {
		if owned && owner.uid != uint32(uid) {
			return nil, fmt.Errorf("the database in %s belongs to user id %d, not to you: run as that user or as root, or choose another data folder", data, owner.uid)
		}
		return nil, nil // the user that we are
	}
	if owned && owner.uid != 0 {
		return &owner, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if c, err := lookup(name); err == nil {
			return c, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody to run it as: start as an ordinary user")
}

func lookup(name string) (*credential, error) {
	u, err := osuser.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("look up user %s: %w", name, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("look up user %s: %w", name, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("look up user %s: %w", name, err)
	}
	return &credential{uid: uint32(uid), gid: uint32(gid)}, nil
}

// ownerOf is who owns a folder; owned is false if there is none.
func ownerOf(dir string) (c credential, owned bool, err error) {
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return credential{}, false, nil
	}
	if err != nil {
		return credential{}, false, fmt.Errorf("look at data folder: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return credential{}, false, fmt.Errorf("look at data folder: %s is not a folder", dir)
	}
	return credential{uid: st.Uid, gid: st.Gid}, true, nil
}

func (c *credential) syscall() *syscall.Credential {
	if c == nil {
		return nil
	}
	return &syscall.Credential{Uid: c.uid, Gid: c.gid}
}

// own hands a folder that we have just made to the user.
func (c *credential) own(dir string) error {
	if c == nil {
		return nil
	}
	return os.Chown(dir, int(c.uid), int(c.gid))
}

// claim hands over a folder at a path that others can guess, if it is ours:
// somebody else may have made it, or a link, before us.
func (c *credential) claim(dir string) error {
	owner, owned, err := ownerOf(dir)
	if err != nil {
		return err
	}
	mine := owner.uid == uint32(os.Geteuid()) || c != nil && owner.uid == c.uid
	if !owned || !mine {
		return fmt.Errorf("it belongs to user id %d", owner.uid)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	return c.own(dir)
}

// reaches reports whether the user may pass through every folder above path.
func (c *credential) reaches(path string) bool {
	if c == nil {
		return true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if !c.may(dir, 1) {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// may reports whether the user has the permission bits (1 = execute, 4 = read)
// on path, by its mode; access lists are not looked at.
func (c *credential) may(path string, bits os.FileMode) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := info.Mode().Perm()
	switch {
	case st.Uid == c.uid:
		mode >>= 6
	case st.Gid == c.gid:
		mode >>= 3
	}
	return mode&bits == bits
}
