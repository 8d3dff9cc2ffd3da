package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	pidFileName     = "postmaster.pid"
	versionFileName = "PG_VERSION"
	lockFileName    = "lock"
	temporaryPrefix = "deckhand-pg-"
)

// ErrInUse is returned by Start for a folder that another process uses.
var ErrInUse = errors.New("the data folder is in use")

// unlock gives a folder back. A child that is being started has the lock's file open, too,
// until it runs its program: closing ours would not be enough.
func unlock(lock *os.File) error {
	return errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_UN), lock.Close())
}

// lockDir takes the folder for this process. The kernel gives it back when the
// process ends, however it ends; the number in the file is for people.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFileName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		held, _ := os.ReadFile(f.Name())
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s belongs to process %s: stop that one, or choose another folder", ErrInUse, dir, strings.TrimSpace(string(held)))
		}
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	return f, nil
}

// pidFile is what we need of a postmaster.pid.
type pidFile struct {
	pid    int
	status string // empty until the server has got that far
}

func readPIDFile(path string) (pidFile, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return pidFile{}, err
	}
	lines := strings.Split(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 {
		return pidFile{}, fmt.Errorf("%s: no process id in its first line", path)
	}
	f := pidFile{pid: pid}
	if len(lines) > 7 {
		f.status = strings.TrimSpace(lines[7])
	}
	return f, nil
}

// endStale deals with the pid file of a server that we do not run: we hold the
// folder's lock, so whoever started it is gone. The server may still be
// shutting down, or its number may have gone to an innocent process, which
// PostgreSQL itself could not tell from a server.
func (c *cluster) endStale(ctx context.Context) error {
	path := filepath.Join(c.data, pidFileName)
	f, err := readPIDFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && servesFolder(f.pid, c.data) {
		c.log.Info("ending the server of a bot that is gone", zap.Int("pid", f.pid))
		if err := endProcess(ctx, f.pid, c.data); err != nil {
			return fmt.Errorf("end the former server of %s: %w", c.data, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove stale pid file: %w", err)
	}
	return nil
}

// endProcess asks a server that is not our child to end, and waits for it.
func endProcess(ctx context.Context, pid int, data string) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{
		{syscall.SIGINT, fastTimeout},
		{syscall.SIGQUIT, quitTimeout},
		{syscall.SIGKILL, killTimeout},
	} {
		if err := syscall.Kill(pid, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d: %w", pid, err)
		}
		gone, err := awaitGone(ctx, pid, data, step.wait)
		if gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d survives SIGKILL", pid)
}

func awaitGone(ctx context.Context, pid int, data string, limit time.Duration) (bool, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for servesFolder(pid, data) {
		select {
		case <-tick.C:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	return true, nil
}

// sweepTemporary removes the temporary folders of processes that were killed.
// A folder that is being made this moment has no lock yet, so young ones stay.
func sweepTemporary(log *zap.Logger) {
	const young = time.Minute
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*"))
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < young {
			continue
		}
		owner, _, err := ownerOf(dir)
		if err != nil || owner.uid != uint32(os.Geteuid()) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, lockFileName)); err != nil {
			continue
		}
		lock, err := lockDir(dir)
		if err != nil {
			continue
		}
		f, err := readPIDFile(filepath.Join(dir, "data", pidFileName))
		if err != nil || !servesFolder(f.pid, filepath.Join(dir, "data")) {
			log.Debug("removing a folder that was left", zap.String("dir", dir))
			_ = os.RemoveAll(dir) // the next start tries again
		}
		_ = unlock(lock)
	}
}

// trimLog starts the server's log anew when it has grown large.
func trimLog(path string) {
	const limit = 8 << 20
	if info, err := os.Stat(path); err == nil && info.Size() > limit {
		_ = os.Truncate(path, 0) // a long log is not a reason not to start
	}
}
