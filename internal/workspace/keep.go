package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/workspace/gitdata"
)

// Shelf stores one thread's work off this machine, for the holder of the thread.
type Shelf interface {
	// Kept is what is stored; the zero value if nothing is.
	Kept(ctx context.Context) (Kept, error)
	// Read writes a pack of it.
	Read(ctx context.Context, pack uuid.UUID, to io.Writer) error
	// Keep replaces what is stored, completely or not at all. It reads the last pack from pack, unless that is nil. It
	// fails once somebody else holds the thread.
	Keep(ctx context.Context, k Kept, pack io.Reader) error
}

// Kept is a thread's stored work.
type Kept struct {
	// Branch and Saved are the commits of its branch and its saved state (see [gitdata.Saved]); empty if there is
	// none.
	Branch, Saved string
	// Packs hold what the project's forge lacks; each may need earlier ones. Bytes is their total size.
	Packs []uuid.UUID
	Bytes int64
	// LeftOut names, for people, what is not included.
	LeftOut string
	// At is when the thread's folder was read: later changes may be missing.
	At time.Time
	// States are what the folder was, oldest first, and Held is the commit by which the packs have them; empty if they
	// have not.
	States []State
	Held   string
}

const (
	// DefaultKeepBytes bounds a thread's stored work by default.
	DefaultKeepBytes = 64 << 20
	// maxPacks is the number of packs after which they are merged.
	maxPacks    = 24
	keepTimeout = 5 * time.Minute
)

// keep updates the shelf from the source's state of the thread, saved from the folder at the time at. short names,
// for people, what was too large.
func (k *Keeper) keep(ctx context.Context, t Thread, p Project, source gitdata.Repository, left []gitdata.Left, at time.Time) (short string, err error) {
	if t.Shelf == nil {
		return "", nil
	}
	within := max(keepTimeout, t.Within)
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("the database took more than %s", within))
	defer cancel()
	refs, err := source.Refs()
	if err != nil {
		return "", err
	}
	was, err := t.Shelf.Kept(ctx)
	if err != nil {
		return "", err
	}
	now := Kept{Branch: refs["refs/heads/"+t.Branch], Saved: refs[savedRef(t.ID)], Packs: was.Packs, Bytes: was.Bytes, LeftOut: listed(left), At: at, States: was.States, Held: was.Held}
	if err := k.hold(ctx, t, p, source, &now); err != nil {
		return "", err
	}
	if now.Branch == was.Branch && now.Saved == was.Saved && now.Held == was.Held {
		if now.Branch == "" && now.Saved == "" && now.LeftOut == was.LeftOut {
			return "", k.note(ctx, t, p, source, now)
		}
		return "", errors.Join(t.Shelf.Keep(ctx, now, nil), k.note(ctx, t, p, source, now)) // it is still true at the later time
	}
	b := bundle{keeper: k, source: source, bases: basesOf(source, refs, p), most: cmp.Or(k.KeepBytes, DefaultKeepBytes)}
	defer b.close()
	err = b.make(ctx, &now, was)
	if errors.Is(err, gitdata.ErrTooLarge) && now.Held != "" {
		now.Held = "" // on this machine alone
		err = b.make(ctx, &now, was)
	}
	if err != nil {
		if !errors.Is(err, gitdata.ErrTooLarge) {
			return "", err
		}
		// Only the commits, if they fit.
		short = fmt.Sprintf("what is not committed: with it there is more than the %s that are kept off this machine", mebibytes(b.most))
		if now.Branch == was.Branch {
			return short, nil
		}
		if published, ok := k.published.Load(k.savedIndex(t, p)); ok { // later changes are left out
			now.At = published.(time.Time) //nolint:forcetypeassert // the map holds times
		}
		now.LeftOut = strings.TrimPrefix(now.LeftOut+", what was not committed (too large)", ", ")
		if now.Saved = ""; b.make(ctx, &now, Kept{}) != nil {
			return fmt.Sprintf("its commits: they are more than the %s that are kept off this machine", mebibytes(b.most)), context.Cause(ctx)
		}
	}
	if err := t.Shelf.Keep(ctx, now, b.reader()); err != nil {
		return short, err
	}
	return short, k.note(ctx, t, p, source, now)
}

// bundle is a pack for the shelf.
type bundle struct {
	keeper *Keeper
	source gitdata.Repository
	bases  [][]string // commits that the project's forge has, safest first
	most   int64
	file   *os.File
	size   int64
}

// make packs the difference between now and was, or everything if there are many packs or bytes already; it
// completes now.
func (b *bundle) make(ctx context.Context, now *Kept, was Kept) error {
	want := slices.DeleteFunc([]string{now.Branch, now.Saved, now.Held}, func(s string) bool { return s == "" })
	kept := slices.DeleteFunc([]string{was.Branch, was.Saved, was.Held}, func(s string) bool { return s == "" })
	err := gitdata.ErrTooLarge
	if len(kept) > 0 && len(was.Packs) < maxPacks {
		if err = b.pack(ctx, want, slices.Concat(b.bases[0], kept), b.most-was.Bytes); err == nil {
			now.add(was, b.size)
			return nil
		}
	}
	for i := 0; i < len(b.bases) && errors.Is(err, gitdata.ErrTooLarge); i++ {
		if err = b.pack(ctx, want, b.bases[i], b.most); err == nil {
			now.add(Kept{}, b.size)
		}
	}
	return err
}

// add sets the packs to the old ones and one more of a size.
func (k *Kept) add(was Kept, size int64) {
	k.Packs, k.Bytes = slices.Clone(was.Packs), was.Bytes+size
	if size > 0 {
		k.Packs = append(k.Packs, uuid.New())
	}
}

func (b *bundle) pack(ctx context.Context, want, have []string, most int64) (err error) {
	if most <= 0 {
		return gitdata.ErrTooLarge
	}
	if b.file == nil {
		if err := os.MkdirAll(b.keeper.scratch(), 0o700); err != nil {
			return err
		}
		if b.file, err = os.CreateTemp(b.keeper.scratch(), "pack-"); err != nil {
			return err
		}
	}
	if _, err := b.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := b.file.Truncate(0); err != nil {
		return err
	}
	b.size, err = gitdata.Packing{Source: b.source, Want: want, Have: have, Scratch: b.keeper.scratch(), MaxBytes: most}.Pack(ctx, b.file)
	return err
}

// reader reads the pack; nil if there is none.
func (b *bundle) reader() io.Reader {
	if b.size == 0 {
		return nil
	}
	return io.NewSectionReader(b.file, 0, b.size)
}

func (b *bundle) close() {
	if b.file != nil {
		_ = b.file.Close()
		_ = os.Remove(b.file.Name())
	}
}

// basesOf are commits that another machine's copy of the project has: the base alone, which survives deletions at
// the forge, and all branches.
func basesOf(source gitdata.Repository, refs map[string]string, p Project) [][]string {
	prefix := "refs/remotes/origin/"
	var all []string
	of := func() {
		for name, hash := range refs {
			if rest, ok := strings.CutPrefix(name, prefix); ok && !strings.HasPrefix(rest, "deckhand/") && !slices.Contains(all, hash) {
				all = append(all, hash)
			}
		}
		slices.Sort(all)
	}
	if of(); len(all) == 0 {
		prefix = "refs/heads/"
		of()
	}
	base := refs[prefix+p.Base]
	if p.Base == "" {
		if base = refs[source.Follow(prefix+"HEAD")]; base == "" {
			if ref, commit, err := source.Head(); err == nil && !strings.HasPrefix(ref, "refs/heads/deckhand/") {
				base = commit
			}
		}
	}
	if base == "" {
		return [][]string{all}
	}
	return [][]string{{base}, all}
}

// note records what was stored, so that a folder left behind by another machine is recognised.
func (k *Keeper) note(ctx context.Context, t Thread, p Project, source gitdata.Repository, now Kept) error {
	state, err := k.state(ctx, source, now.Branch, now.Saved)
	if err != nil {
		return err
	}
	return writeWhole(k.savedIndex(t, p)+keptSuffix, state)
}

// noted reports whether a folder's state was stored: its branch and saved state are contained in the recorded ones.
func (k *Keeper) noted(ctx context.Context, t Thread, p Project, source gitdata.Repository, tip, saved string) (bool, error) {
	b, err := os.ReadFile(k.savedIndex(t, p) + keptSuffix)
	if err != nil {
		return false, nil //nolint:nilerr // nothing was recorded
	}
	state, err := k.state(ctx, source, tip, saved)
	return string(b) == state, err
}

// state identifies a branch with its saved state. The same content at another time is the same.
func (k *Keeper) state(ctx context.Context, source gitdata.Repository, tip, saved string) (string, error) {
	content, err := source.Content(ctx, k.scratch(), tip, saved)
	return tip + "\n" + content + "\n", err
}

const keptSuffix = ".kept"

// writeWhole writes a file atomically, unless it already has the text.
func writeWhole(name, text string) error {
	if b, err := os.ReadFile(name); err == nil && string(b) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
