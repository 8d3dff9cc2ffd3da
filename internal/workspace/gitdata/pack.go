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

// Packing packs the difference between sets of commits, for a copy of the repository on another machine.
type Packing struct {
	Source Repository
	// Want are the commits, and Have those that the copy has completely. Have may contain commits that the
	// repository lacks.
	Want, Have []string
	Scratch    string
	// MaxBytes bounds the pack; 0 means 1 GiB.
	MaxBytes int64
}

// ErrTooLarge is a pack above its limit.
var ErrTooLarge = errors.New("it is larger than it may be")

// packHeader is the length of every pack's header: PACK, a version, and the number of objects.
const packHeader = 12

// Pack writes the pack to to, and returns its size in bytes; 0 if the copy lacks nothing. Its deltas may refer to
// objects that the copy has. Its error is a sentence, or [ErrTooLarge].
func (p Packing) Pack(ctx context.Context, to *os.File) (size int64, err error) {
	view, err := OpenView(p.Scratch, p.Source)
	if err != nil {
		return 0, err
	}
	defer view.Close() //nolint:errcheck // only read
	var revs strings.Builder
	for _, commit := range p.Want {
		if !hashFormat.MatchString(commit) {
			return 0, fmt.Errorf("%q is no commit", commit)
		}
		revs.WriteString(commit + "\n")
	}
	have, err := view.has(ctx, p.Have)
	if err != nil {
		return 0, err
	}
	for _, commit := range have {
		revs.WriteString("^" + commit + "\n")
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

// limited writes up to a limit, and keeps the beginning.
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

// Unpacking adds commits packed by [Packing] to a copy of the repository.
type Unpacking struct {
	Source Repository
	// Refs name the commits afterwards. A branch that is ahead of its commit stays; the old commits of others are
	// kept.
	Refs    map[string]string
	Scratch string
	// Packs write them, in order. They are not read if the commits exist already.
	Packs []func(context.Context, io.Writer) error
}

// Unpack adds the commits and sets the refs. Its error is a sentence; then some of the refs may be set.
func (u Unpacking) Unpack(ctx context.Context) error {
	view, err := OpenView(u.Scratch, u.Source)
	if err != nil {
		return err
	}
	defer view.Close() //nolint:errcheck // only read
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

// whole fails unless the commits are complete, except what refs reach.
func (v *View) whole(ctx context.Context, tips []string) error {
	_, err := v.git(ctx, nil, nil, slices.Concat([]string{"rev-list", "--objects", "--quiet"}, tips, []string{"--not", "--all"})...)
	return err
}

// read makes git read a pack as from a network.
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
			cancel(err) // so that git does not complain of a cut pack
		}
		_ = in.Close() // its reader sees the end
		wrote <- err
	}()
	_, err = view.git(ctx, out, []string{"GIT_OBJECT_DIRECTORY=" + view.objects[0]},
		"index-pack", "--stdin", "--fix-thin", "--strict", "--max-input-size="+strconv.Itoa(maxPublished))
	_ = out.Close() // a further write fails
	if e := <-wrote; e != nil && err == nil {
		return e
	}
	if err != nil && ctx.Err() == nil && (strings.Contains(err.Error(), "unresolved delta") || strings.Contains(err.Error(), "did not receive expected object")) {
		return errNoBase
	}
	return err
}

// name sets a ref to a commit.
func (u Unpacking) name(ctx context.Context, view *View, ref, commit string) error {
	before, err := u.Source.Ref(ref)
	switch {
	case err != nil:
		return err
	case before == commit:
		return nil
	case before != "" && strings.HasPrefix(ref, "refs/heads/"):
		if _, err := view.git(ctx, nil, nil, "merge-base", "--is-ancestor", commit, before); err == nil {
			return nil // it is ahead
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
	if err := u.Source.SetRef(ref, commit); err != nil || !strings.HasPrefix(ref, "refs/heads/") {
		return err
	}
	return u.Source.log(ref, before, commit, "brought from another machine")
}

// Content identifies what [Saving] has saved of a clone: empty if saved adds nothing to its branch, and independent
// of the time.
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
	view, err := OpenView(scratch, r)
	if err != nil {
		return "", err
	}
	defer view.Close() //nolint:errcheck // only read
	out, err := view.git(ctx, nil, nil, append([]string{"rev-parse"}, of...)...)
	return strings.Join(strings.Fields(out), " "), err
}

// Holds reports whether commits reachable from tips have everything in a branch and in what [Saving] has saved
// beside it; either may be empty. It fails if the repository does not know these.
func (r Repository) Holds(ctx context.Context, scratch, branch, saved string, tips []string) (bool, error) {
	view, err := OpenView(scratch, r)
	if err != nil {
		return false, err
	}
	defer view.Close() //nolint:errcheck // only read
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
	if have, err := view.has(ctx, want); err != nil || len(have) < len(want) {
		return false, err // nobody has brought it here
	}
	var in strings.Builder
	for _, hash := range want {
		in.WriteString(hash + "\n")
	}
	for _, hash := range tips {
		in.WriteString("^" + hash + "\n")
	}
	missing, err := view.git(ctx, strings.NewReader(in.String()), nil, "rev-list", "--max-count=1", "--stdin")
	return err == nil && missing == "", err
}

// Behind is how many commits the current branch lacks of origin's branch of the same name; 0 if there is none, or
// it is unknown.
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
	view, err := OpenView(scratch, r)
	if err != nil {
		return "", 0
	}
	defer view.Close() //nolint:errcheck // only read
	out, err := view.git(ctx, nil, nil, "rev-list", "--count", commit+".."+theirs)
	if err != nil {
		return "", 0
	}
	n, _ = strconv.Atoi(strings.TrimSpace(out))
	return branch, n
}

// Follow is the target of a symbolic ref, such as origin's HEAD; empty if it is none.
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
