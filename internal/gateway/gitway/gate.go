package gitway

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"
)

// maxReceiving bounds the pushes received at once, of all sessions: each is on the disk for a moment.
const maxReceiving = 4

// Gate opens ways to repositories for sessions. Its methods are safe for concurrent use.
type Gate struct {
	dir       string
	log       *zap.Logger
	receiving *semaphore.Weighted

	mu      sync.Mutex
	mirrors map[string]*mirror // by their folders
	program string             // the copy of this binary that sessions get; empty until one does
}

// New returns a gate that keeps mirrors and temporary files below dir, a folder of its own. A nil log logs nothing.
func New(dir string, log *zap.Logger) (*Gate, error) {
	g := &Gate{dir: dir, log: cmp.Or(log, zap.NewNop()), receiving: semaphore.NewWeighted(maxReceiving), mirrors: map[string]*mirror{}}
	if err := os.RemoveAll(g.scratch()); err != nil {
		return nil, fmt.Errorf("clear what earlier pushes have left: %w", err)
	}
	if err := os.MkdirAll(g.scratch(), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for pushes: %w", err)
	}
	return g, nil
}

func (g *Gate) scratch() string { return filepath.Join(g.dir, "scratch") }

// mirror is the mirror of a project's repository. Projects share none: one may read what another may not.
func (g *Gate) mirror(project string, r Remote) *mirror {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := mirrorOf(filepath.Join(g.dir, "mirrors", project), r)
	if known, ok := g.mirrors[m.dir]; ok {
		known.remote = r // the credential may differ; the address is the same
		return known
	}
	g.mirrors[m.dir] = m
	return m
}

// provide puts the program that git starts into a session's folder: a link to a copy of this binary, since the
// binary itself is not visible inside.
func (g *Gate) provide(path string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.program == "" {
		program := filepath.Join(g.scratch(), helperName)
		if err := copySelf(program); err != nil {
			return fmt.Errorf("copy the bot's program for sessions: %w", err)
		}
		g.program = program
	}
	if err := os.Link(g.program, path); err != nil {
		return errors.Join(os.Remove(path), copySelf(path)) // the folders are on different disks
	}
	return nil
}

func copySelf(path string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it is only read
	// A process that is started meanwhile would hold the file open for writing until it runs its own program, and so
	// long nobody can run this one ("text file busy").
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // it is run in sandboxes
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
