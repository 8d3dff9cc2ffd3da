package gitdata

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Packing packs what commits have and others have not, for a copy of the repository on
// another machine.
type Packing struct {
	Source Repository
	// Want are the commits, and Have those that the copy has with all that belongs to them.
	// What the repository does not have of Have is left out.
	Want, Have []string
	Scratch    string
	// MaxBytes bounds the pack; 0 means 1 GiB.
	MaxBytes int64
}

// ErrTooLarge is a pack that is larger than it may be.
var ErrTooLarge = errors.New("it is larger than it may be")

// packHeader is what every pack begins with: PACK, a version, and the number of objects.
const packHeader = 12

// Pack writes the pack into to, and returns its size in bytes; 0 if the copy lacks nothing.
// Its objects may be told as differences to some that the copy has. Its error is a
// sentence, or [ErrTooLarge].
func (p Packing) Pack(ctx context.Context, to *os.File) (size int64, err error) {
	view, err := Look(p.Scratch, p.Source)
	if err != nil {
		return 0, err
	}
	defer view.Close() //nolint:errcheck // it was only read
	var revs strings.Builder
	for _, commit := range p.Want {
		if !hashFormat.MatchString(commit) {
			return 0, fmt.Errorf("%q is no commit", commit)
		}
		revs.WriteString(commit + "\n")
	}
	for _, commit := range p.Have {
		if _, err := view.Commit(ctx, commit); err == nil && hashFormat.MatchString(commit) {
			revs.WriteString("^" + commit + "\n")
		}
	}
	out := limited{to: to, left: cmp.Or(p.MaxBytes, maxPublished)}
	cmd := view.command(ctx, nil, "pack-objects", "--quiet", "--revs", "--thin", "--stdout", "--delta-base-offset", "--no-use-bitmap-index")
	cmd.Stdin, cmd.Stdout = strings.NewReader(revs.String()), &out
	err = run(ctx, cmd, nil)
	switch {
	case out.left < 0:
		return 0, ErrTooLarge
	case err != nil:
		return 0, err
	case len(out.start) < packHeader:
		return 0, errors.New("git: it has packed nothing")
	case binary.BigEndian.Uint32(out.start[8:]) == 0:
		return 0, nil
	}
	return out.size, nil
}

// limited writes so much and no more, and knows how it began.
type limited struct {
	to         io.Writer
	start      []byte
	left, size int64
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= int64(len(b)); l.left < 0 {
		return 0, ErrTooLarge
	}
	if missing := packHeader - len(l.start); missing > 0 {
		l.start = append(l.start, b[:min(missing, len(b))]...)
	}
	n, err := l.to.Write(b)
	l.size += int64(n)
	return n, err
}

// Unpacking brings commits that [Packing] has packed into a copy of the repository.
type Unpacking struct {
	Source Repository
	// Refs are what names the commits afterwards. A branch that has gone on from its commit
	// stays where it is; what another one named is kept.
	Refs    map[string]string
	Scratch string
	// Packs write them, in order. They are not read if the commits are there.
	Packs []func(context.Context, io.Writer) error
	// MaxBytes bounds a pack; 0 means 1 GiB.
	MaxBytes int64
}

// Unpack has the repository have the commits, and the refs name them. Its error is a
// sentence; then the refs are what they were, or some are what they are to be.
func (u Unpacking) Unpack(ctx context.Context) error {
	view, err := Look(u.Scratch, u.Source)
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // it was only read
	tips := make([]string, 0, len(u.Refs))
	for ref, commit := range u.Refs {
		if !isRef(ref) || !hashFormat.MatchString(commit) {
			return fmt.Errorf("%q or %q is none that could be written", ref, commit)
		}
		tips = append(tips, commit)
	}
	slices.Sort(tips)
	if view.whole(ctx, tips) != nil {
		for _, pack := range u.Packs {
			if err := u.read(ctx, view, pack); err != nil {
				return err
			}
		}
		if err := view.whole(ctx, tips); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return errNoBase
		}
	}
	for ref, commit := range u.Refs {
		if err := u.name(ctx, view, ref, commit); err != nil {
			return err
		}
	}
	return nil
}

var errNoBase = errors.New("the project's repository does not have all the commits that it was made on")

// whole reports an error unless the commits are there with all that belongs to them, as
// far as no ref names it.
func (v *View) whole(ctx context.Context, tips []string) error {
	_, err := v.git(ctx, nil, nil, slices.Concat([]string{"rev-list", "--objects", "--quiet"}, tips, []string{"--not", "--all"})...)
	return err
}

// read has git read a pack as it would one that came over a network.
func (u Unpacking) read(ctx context.Context, view *View, pack func(context.Context, io.Writer) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // it is only read
	wrote := make(chan error, 1)
	go func() {
		err := pack(ctx, in)
		if err != nil {
			cancel(err) // a pack that is cut is not to be what git complains of
		}
		_ = in.Close() // its reader sees the end
		wrote <- err
	}()
	_, err = view.git(ctx, out, []string{"GIT_OBJECT_DIRECTORY=" + view.objects[0]},
		"index-pack", "--stdin", "--fix-thin", "--strict", "--max-input-size="+fmt.Sprint(cmp.Or(u.MaxBytes, maxPublished)))
	_ = out.Close() // what is written in vain ends
	if e := <-wrote; e != nil && err == nil {
		return e
	}
	if err != nil && ctx.Err() == nil && (strings.Contains(err.Error(), "unresolved delta") || strings.Contains(err.Error(), "did not receive expected object")) {
		return errNoBase
	}
	return err
}

// name has a ref name a commit.
func (u Unpacking) name(ctx context.Context, view *View, ref, commit string) error {
	before, err := u.Source.Ref(ref)
	switch {
	case err != nil:
		return err
	case before == commit:
		return nil
	case before != "" && strings.HasPrefix(ref, "refs/heads/"):
		if _, err := view.git(ctx, nil, nil, "merge-base", "--is-ancestor", commit, before); err == nil {
			return nil // it has gone on
		}
		if u.Source.checkedOut(ref) {
			return fmt.Errorf("the branch %s is checked out in the project's own folder, so it is not changed; check out another one there", strings.TrimPrefix(ref, "refs/heads/"))
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if before != "" {
		if err := u.Source.keep(map[string]string{ref: before}); err != nil {
			return err
		}
	}
	if err := u.Source.writeRef(ref, commit); err != nil || !strings.HasPrefix(ref, "refs/heads/") {
		return err
	}
	return u.Source.log(ref, before, commit, "brought from another machine")
}

// Content tells what [Saving] has saved of a clone, which is nothing beside its branch where
// saved is empty, and is the same at any time.
func (r Repository) Content(ctx context.Context, scratch, branch, saved string) (string, error) {
	var of []string
	switch {
	case saved != "":
		of = []string{saved + "^{tree}", saved + "^@"}
	case branch != "":
		of = []string{branch + "^{tree}", branch}
	default:
		return "", nil
	}
	view, err := Look(scratch, r)
	if err != nil {
		return "", err
	}
	defer view.Close() //nolint:errcheck // it was only read
	out, err := view.git(ctx, nil, nil, append([]string{"rev-parse"}, of...)...)
	return strings.Join(strings.Fields(out), " "), err
}

// Holds reports whether commits that are among tips, or before them, have all that a branch
// and what [Saving] has saved beside it have; either may be empty. Its error says that the
// repository does not know these.
func (r Repository) Holds(ctx context.Context, scratch, branch, saved string, tips []string) (bool, error) {
	view, err := Look(scratch, r)
	if err != nil {
		return false, err
	}
	defer view.Close() //nolint:errcheck // it was only read
	var want []string
	if branch != "" {
		want = append(want, branch)
	}
	if saved != "" && !slices.Contains(tips, saved) {
		text, err := view.git(ctx, nil, nil, "cat-file", "commit", saved)
		if err != nil {
			return false, err
		}
		s, err := view.parse(ctx, saved, text)
		if err != nil || s == nil || s.Changed || s.head == "" {
			return false, err
		}
		want = append(want, s.tips()...)
	}
	if len(want) == 0 {
		return true, nil
	}
	var in strings.Builder
	for _, hash := range want {
		if _, err := view.git(ctx, nil, nil, "cat-file", "-e", hash); err != nil {
			return false, ctx.Err() // nobody has brought it here
		}
		in.WriteString(hash + "\n")
	}
	for _, hash := range tips {
		in.WriteString("^" + hash + "\n")
	}
	missing, err := view.git(ctx, strings.NewReader(in.String()), nil, "rev-list", "--max-count=1", "--stdin")
	return err == nil && missing == "", err
}

// Behind is how many commits the branch that is checked out lacks of origin's branch of the
// same name; 0 where it has none, or that cannot be told.
func (r Repository) Behind(ctx context.Context, scratch string) (branch string, n int) {
	ref, commit, err := r.Head()
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if err != nil || !ok || commit == "" {
		return "", 0
	}
	theirs, err := r.Ref(originPrefix + branch)
	if err != nil || theirs == "" {
		return "", 0
	}
	view, err := Look(scratch, r)
	if err != nil {
		return "", 0
	}
	defer view.Close() //nolint:errcheck // it was only read
	out, err := view.git(ctx, nil, nil, "rev-list", "--count", commit+".."+theirs)
	if err != nil {
		return "", 0
	}
	n, _ = strconv.Atoi(strings.TrimSpace(out))
	return branch, n
}

// SetRef has a ref name an object that the repository has.
func (r Repository) SetRef(name, hash string) error { return r.writeRef(name, hash) }

// Follow is the ref that a ref of the repository names, such as the one that origin's HEAD
// is; empty if it names none.
func (r Repository) Follow(name string) string {
	if !isRef(name) {
		return ""
	}
	text, err := readSmall(r.Common + "/" + name)
	to, ok := strings.CutPrefix(text, "ref: ")
	if err != nil || !ok || !isRef(to) {
		return ""
	}
	return to
}
