package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
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
		return "Nothing runs here: the disk of the bot's data folder is full. An admin has to free space on it; then send it again."
	case errors.Is(e.err, unix.EROFS):
		return "Nothing runs here: the bot's data folder cannot be written to any more, since its disk is read-only. An admin has to see to it; then send it again."
	case errors.Is(e.err, context.DeadlineExceeded):
		return "Nothing runs here: the disk of the bot's data folder does not answer. An admin has to see to it; then send it again."
	}
	return "Nothing runs here: the bot cannot write into its data folder. An admin has to see to it (the bot's log says more); then send it again."
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

// takes reports whether the data folder takes what a turn will write, as a [*diskError]
// if not. A disk that hangs is given up in time; one goroutine waits for it then.
func (h *host) takes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p := h.probes.of(h.dataDir)
	select {
	case <-p.done:
		if p.err != nil {
			return &diskError{h.dataDir, p.err}
		}
		return nil
	case <-ctx.Done():
		return &diskError{h.dataDir, ctx.Err()}
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

// checkDisk says why no turn may begin, as a [*startError].
func (w *worker) checkDisk(ctx context.Context) error {
	err := w.machine.takes(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if full, ok := errors.AsType[*diskError](err); ok {
		return &startError{sentence: full.sentence(), err: err}
	}
	return nil
}

// tellOfDisk says once, at the end of a turn, that what it has done may be forgotten.
func (w *worker) tellOfDisk(ctx context.Context) {
	err := w.machine.takes(ctx)
	full, ok := errors.AsType[*diskError](err)
	if !ok || ctx.Err() != nil {
		w.diskTold = w.diskTold && ctx.Err() != nil
		return
	}
	w.log.Error("what is written into the data folder is lost; free space on its disk", zap.Error(full))
	if !w.diskTold {
		w.diskTold = true
		w.say(ctx, "The disk of the bot's data folder is full or broken. What was said and done in this turn may be unknown when the session is started the next time. An admin has to see to it.")
	}
}
