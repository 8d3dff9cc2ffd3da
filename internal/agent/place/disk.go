package place

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// leastFree is what has to be free in the data folder before a turn begins: a
	// conversation that cannot be written is lost when its process ends.
	leastFree = 8 << 20
	// probeTime is how long a disk may take to take a few bytes.
	probeTime = 10 * time.Second
)

// diskError is why nothing can be kept in the data folder.
type diskError struct {
	dir string
	err error
}

func (e *diskError) Error() string {
	return fmt.Sprintf("the data folder %s takes nothing more: %v", e.dir, e.err)
}
func (e *diskError) Unwrap() error { return e.err }

// sentence is what people are told, who know nothing of folders.
func (e *diskError) sentence() string {
	switch {
	case errors.Is(e.err, unix.ENOSPC), errors.Is(e.err, unix.EDQUOT):
		return "Nothing can run here: the disk of the bot's data folder is full. Ask an admin to free space, then send this again."
	case errors.Is(e.err, unix.EROFS):
		return "Nothing can run here: the bot's data folder cannot be written to any more, since its disk is read-only. Ask an admin to mend that, then send this again."
	case errors.Is(e.err, context.DeadlineExceeded):
		return "Nothing can run here: the disk of the bot's data folder does not answer. Ask an admin to mend that, then send this again."
	}
	return "Nothing can run here: the bot cannot write into its data folder. Ask an admin to mend that (the bot's log says more), then send this again."
}

// probes tries a folder, once for all who want to know at the same time. The zero value is
// ready for use.
type probes struct {
	mu  sync.Mutex
	now *probing // nil while nobody is at it
}

type probing struct {
	done chan struct{}
	err  error // once done is closed
}

// of is the probe of the folder that is being made, or a new one.
func (p *probes) of(dir string) *probing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		now := &probing{done: make(chan struct{})}
		p.now = now
		go func() {
			now.err = probe(dir)
			p.mu.Lock()
			p.now = nil
			p.mu.Unlock()
			close(now.done)
		}()
	}
	return p.now
}

// Takes reports whether the data folder takes what a turn will write, as a [*diskError]
// if not. A disk that hangs is given up in time; one goroutine waits for it then.
func (h *Host) Takes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p := h.probes.of(h.DataDir)
	select {
	case <-p.done:
		if p.err != nil {
			return &diskError{h.DataDir, p.err}
		}
		return nil
	case <-ctx.Done():
		return &diskError{h.DataDir, ctx.Err()}
	}
}

func probe(dir string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return err
	}
	if fs.Blocks > 0 && fs.Bavail*uint64(fs.Bsize) < leastFree {
		return unix.ENOSPC
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4<<10)) // a quota, or no inode, is told by this alone
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
