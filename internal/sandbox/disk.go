package sandbox

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// folders are what counts as a session's disk.
type folders struct {
	// own are its workspace and its home.
	own []string
	// shared are its project's caches: what they grow by while it runs counts.
	shared []string
}

func (s Session) folders(spec Spec) folders {
	f := folders{own: []string{s.Workspace, s.Home}}
	for _, c := range spec.Caches {
		f.shared = append(f.shared, filepath.Join(s.CacheDir, c))
	}
	return f
}

// How often the folders are measured where nothing says that they grow, and how long a
// measurement is followed by none, in terms of what it took: all of them together take a
// hundredth of a core.
const (
	diskPace = time.Minute
	diskRest = 100
)

// diskUse is what a session has on disk.
type diskUse struct {
	folders folders

	mu sync.Mutex
	// used is what was there the last time, of it grown in the project's caches; most is
	// what may be there, 0 before the first time.
	used, most  int64
	sharedFirst int64
	measured    time.Time
	free        uint64 // on its file system, the last time
}

// over says that there is more than may be. Who had more at the beginning, such as in a
// folder that was large before, may go on, and grow by a tenth of the limit: it is there to
// be cleaned up.
func (d *diskUse) over(limit int64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if limit > 0 && d.most > 0 && d.used > d.most {
		return overDisk(d.most, d.used)
	}
	return ""
}

// due reports whether it is time to measure: it was long ago, or the file system has lost
// a tenth of the limit since.
func (d *diskUse) due(limit int64, now time.Time) bool {
	if limit == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.most == 0 || now.Sub(d.measured) > diskPace {
		return true
	}
	return free(d.folders.own[0])+uint64(limit/10) < d.free //nolint:gosec // a limit is positive
}

// measure walks the folders.
func (d *diskUse) measure(limit int64) {
	var own, shared int64
	for _, dir := range d.folders.own {
		own += sizeOf(dir)
	}
	for _, dir := range d.folders.shared {
		shared += sizeOf(dir)
	}
	left := free(d.folders.own[0])
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.most == 0 {
		d.sharedFirst, d.most = shared, limit
		if own > limit {
			d.most = own + limit/10
		}
	}
	d.used, d.measured, d.free = own+shared-d.sharedFirst, time.Now(), left
}

// walk measures whose time has come, one after the other and beside the watcher's looks.
func (w *Watcher) walk(watched []*Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.walking {
		return
	}
	var due []*Watch
	for _, s := range watched {
		if s.disk.due(s.box.limits.Disk, time.Now()) {
			due = append(due, s)
		}
	}
	if len(due) == 0 {
		return
	}
	w.walking = true
	go func() {
		began := time.Now()
		for _, s := range due {
			s.disk.measure(s.box.limits.Disk)
		}
		time.AfterFunc(min(diskRest*time.Since(began), diskPace), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.walking = false
		})
	}()
}

// sizeOf is what a folder takes on disk, links not followed and other file systems left
// out. What cannot be read counts nothing, and what has two names twice: a session that
// hides from its own bot has made itself no room.
func sizeOf(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error { // its errors are below
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return fs.SkipDir
		}
		if info, err := entry.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += stat.Blocks * 512
			}
		}
		return nil
	})
	return sum
}

// free is the room on a folder's file system, in bytes.
func free(dir string) uint64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize) //nolint:gosec // a block has a size
}
