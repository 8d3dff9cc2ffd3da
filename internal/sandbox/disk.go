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

// folders are what counts as a session's disk use.
type folders struct {
	// own are its workspace and its home.
	own []string
	// shared are its project's caches: only their growth during the session counts.
	shared []string
}

func (s Session) folders(spec Spec) folders {
	f := folders{own: []string{s.Workspace, s.Home}}
	for _, c := range spec.Caches {
		f.shared = append(f.shared, filepath.Join(s.CacheDir, c))
	}
	return f
}

// How often the folders are measured if nothing indicates growth, and the pause after a measurement as a multiple
// of its duration: all together take a hundredth of a core.
const (
	diskPace = time.Minute
	diskRest = 100
)

// diskUse is a session's disk use.
type diskUse struct {
	folders folders

	mu sync.Mutex
	// used is the last measurement, of it grown in the project's caches; most is the allowed maximum, 0 before the
	// first measurement.
	used, most  int64
	sharedFirst int64
	measured    time.Time
	free        uint64 // on its file system, at the last measurement
}

// over reports a use above the limit. A session that began above it, for example in a large folder, may continue to
// clean up, and grow by a tenth of the limit.
func (d *diskUse) over(limit int64) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if limit > 0 && d.most > 0 && d.used > d.most {
		return overDisk(d.most, d.used)
	}
	return ""
}

// due reports whether to measure: after a long time, or when the file system has lost a tenth of the limit.
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

// measure adds up the folders.
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

// walk measures those that are due, one after the other and beside the watcher's checks.
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

// sizeOf is a folder's size on disk, without following links or entering other file systems. What is unreadable
// does not count, hard links count twice: hiding files from its own bot gains a session nothing.
func sizeOf(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error { // the function gets its errors
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

// free is the free space on a folder's file system, in bytes.
func free(dir string) uint64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize) //nolint:gosec // a block has a size
}
