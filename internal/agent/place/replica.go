package place

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"deckhand/internal/transcript"
	"deckhand/internal/workspace"
)

// Replica is this process's right to a data folder and the id that goes with
// it. The id outlives the process, and the lock makes sure that one process has
// it at a time: a replica that starts again knows that whoever held its leases
// is dead, and takes them at once.
type Replica struct {
	ID   string
	lock *os.File
}

// OpenReplica locks the data folder, making it if need be, and reads or makes
// its replica id.
func OpenReplica(dataDir string) (*Replica, error) {
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dataDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the data folder's lock: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("another bot uses the data folder %s: stop it, or set DECKHAND_DATA_DIR to another folder", dataDir)
		}
		return nil, fmt.Errorf("lock the data folder %s: %w", dataDir, err)
	}
	file := filepath.Join(dataDir, "replica-id")
	b, err := os.ReadFile(file)
	id := strings.TrimSpace(string(b))
	if errors.Is(err, os.ErrNotExist) || (err == nil && id == "") {
		id = uuid.NewString()
		err = os.WriteFile(file, []byte(id+"\n"), 0o600)
	}
	if err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("read the replica id: %w", err)
	}
	// Homes of previews are in it: what ran there has taken rights away, or nested without end.
	_ = transcript.Discard(filepath.Join(dataDir, "scratch"))
	workspace.Sweep(dataDir)
	return &Replica{ID: id, lock: lock}, nil
}

// CheckDataDir says why a bot could not use the data folder, and whether one does. It
// leaves nothing behind; a folder that is not there would be made.
func CheckDataDir(dir string) (inUse bool, err error) {
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		parent := filepath.Dir(dir)
		for _, err := os.Stat(parent); errors.Is(err, os.ErrNotExist) && parent != filepath.Dir(parent); _, err = os.Stat(parent) {
			parent = filepath.Dir(parent)
		}
		probe, err := os.MkdirTemp(parent, ".probe-*")
		if err != nil {
			return false, fmt.Errorf("%s is not there, and this user (uid %d) cannot make it in %s (%w); make it, and chown it to this user", dir, os.Getuid(), parent, cause(err))
		}
		return false, os.Remove(probe)
	}
	if err != nil || !info.IsDir() {
		return false, fmt.Errorf("%s is no folder that this user (uid %d) may enter; name another, or chown it", dir, os.Getuid())
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return false, fmt.Errorf("this user (uid %d) cannot write into %s (%w); chown it, or name another folder", os.Getuid(), dir, cause(err))
	}
	_ = probe.Close()
	_ = os.Remove(probe.Name())
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("this user (uid %d) cannot open the lock of %s (%w); run as the bot's user, or chown the folder with all that is in it", os.Getuid(), dir, cause(err))
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	return errors.Is(unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK), nil
}

// cause leaves the path out, which is told already.
func cause(err error) error {
	if at, ok := errors.AsType[*os.PathError](err); ok {
		return at.Err
	}
	return err
}

// Close gives the data folder back. A child that is being started has the lock's file open,
// too, until it runs its program: closing ours would not be enough.
func (r *Replica) Close() error {
	return errors.Join(unix.Flock(int(r.lock.Fd()), unix.LOCK_UN), r.lock.Close())
}
