package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Setup is a project's command that runs in a folder before a session works there. It needs no approval: it runs
// only while the folder is as the project's people left it.
type Setup struct {
	Run string // for bash; empty for none
	// Files are files below the folder that decide, together with Run, whether it must run again.
	Files   []string
	Timeout time.Duration // 0 means [DefaultSetupTimeout]
}

// DefaultSetupTimeout bounds a setup by default.
const DefaultSetupTimeout = 10 * time.Minute

// fresh marks a folder in which no session has worked yet.
const fresh = "fresh"

// maxInput bounds such a file, in bytes.
const maxInput = 64 << 20

// SetUp runs the setup in the thread's folder if it is due, one at a time per folder. It is due in a folder that no
// session has worked in, and in a folder restored with a thread's work if its inputs are those of some folder of
// the first kind: a thread's own changes are not run without approval. told says to people, once, why it was not
// run. run's error is SetUp's, and then it is retried; otherwise it has run, with whatever outcome.
func (k *Keeper) SetUp(ctx context.Context, t Thread, p Project, run func(context.Context) error) (told string, err error) {
	if p.Setup.Run == "" {
		return "", nil
	}
	stamp := k.setupStamp(t, p)
	lock, _ := k.turnstiles.LoadOrStore(stamp, make(chan struct{}, 1))
	busy := lock.(chan struct{}) //nolint:forcetypeassert // the map holds channels
	select {
	case busy <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-busy }()
	key, err := p.Setup.key(t.Dir)
	if err != nil {
		return "", err
	}
	known := filepath.Join(filepath.Dir(stamp), "known", key)
	switch was := readStamp(stamp); {
	case was == key:
		return "", nil
	case was == fresh:
		// People wrote its inputs.
		if err := writeWhole(known, fresh); err != nil {
			return "", err
		}
	case was != "" || readStamp(known) == "":
		told := fmt.Sprintf("The setup of project %s (%s) was not run here: what it works on is the thread's own by now. Ask for it, if it is needed.", p.Name, p.Setup.Run)
		return told, writeWhole(stamp, key)
	}
	if err := run(ctx); err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx) // it was interrupted, and nobody has worked here yet
	}
	return "", writeWhole(stamp, key)
}

// made records that the thread's folder was made, and whether it is without a thread's work.
func (k *Keeper) made(t Thread, p Project, isFresh bool) error {
	if p.Setup.Run == "" {
		return nil
	}
	stamp := k.setupStamp(t, p)
	if isFresh {
		return writeWhole(stamp, fresh)
	}
	if err := os.Remove(stamp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// setupStamp is the file that records a folder's last setup.
func (k *Keeper) setupStamp(t Thread, p Project) string {
	name := strconv.FormatInt(t.ID, 10)
	if p.Kind == Shared {
		name = "shared"
	}
	return filepath.Join(k.DataDir, "setup", p.Name, name)
}

func readStamp(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return "" // unknown
	}
	return string(b)
}

// key identifies the command with its files' content. A missing file differs from an empty one.
func (s Setup) key(dir string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // it is only read
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", s.Run)
	for _, name := range s.Files {
		fmt.Fprintf(h, "%q ", name)
		f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
		if err != nil {
			fmt.Fprintln(h, "-")
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			n, _ := io.Copy(h, io.LimitReader(f, maxInput)) // an unreadable file counts as missing
			fmt.Fprintln(h, "", n)
		} else {
			fmt.Fprintln(h, "-")
		}
		_ = f.Close()
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Check validates a setup.
func (s Setup) Check() error {
	for _, name := range s.Files {
		if !filepath.IsLocal(name) || strings.ContainsAny(name, "*?[") {
			return fmt.Errorf("%q is no file below the project's folder; name each by its path, such as package-lock.json", name)
		}
	}
	switch {
	case strings.TrimSpace(s.Run) == "":
		return errors.New("a setup says what to run, such as run: npm ci")
	case s.Timeout > time.Hour:
		return fmt.Errorf("a thread would wait %s for its setup; write an hour or less", s.Timeout)
	}
	return nil
}
