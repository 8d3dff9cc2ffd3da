package gitdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Leaving describes what a push of a clone would bring to the forge. The clone's git folder is untrusted: git
// computes the names of the inspected objects from their content, so that the description holds for objects of
// these names elsewhere.
type Leaving struct {
	// Clone is the folder of the working tree.
	Clone string
	// Source is the repository whose objects the clone borrows; nil for none.
	Source *Repository
	// Mirror is our bare repository with the forge's content.
	Mirror Repository
	// Scratch is a folder for temporary files.
	Scratch string
	// First selects files that are listed and shown first.
	First func(path string) bool
}

// Bounds of the description. The rest is only counted.
const (
	maxLeavingBytes = 256 << 20 // copied from the clone
	maxTold         = 50        // commits
	maxToldFiles    = 200
	maxSubject      = 200      // bytes
	maxDiff         = 64 << 10 // bytes
)

// Commits are the newest of a number of commits.
type Commits struct {
	Count int
	Some  []Commit
}

// Commit is a commit's own description.
type Commit struct{ ID, Author, Subject string }

// File is a changed file. Kind is empty for a plain file, or "link", "submodule" or "program", also if it was
// deleted. Was is its earlier kind if that differs, with "file" for a plain one. From and To are a link's targets
// or a submodule's commits; empty if there is none.
type File struct {
	Path           string
	Orders         bool   // it is one of the first
	Status         string // A, M, D or T
	Kind, Was      string
	From, To       string
	Added, Removed int
	Binary         bool
}

// LeavingRef is a change of a branch of the forge.
type LeavingRef struct {
	Commits Commits // that the forge lacks
	Lost    Commits // that the branch would lose
	Files   []File
	More    int // files that are not listed
	Firsts  int // how many are first, listed or not
	Added   int // lines, of all files
	Removed int
	Diff    string
	Cut     bool // the diff is longer
}

// Name resolves a name in the clone (HEAD, a branch or a commit's id) to its commit, and its branch if it is one. Its
// error is a sentence.
func (l Leaving) Name(name string) (branch, commit string, err error) {
	root, err := openClone(l.Clone)
	if err != nil {
		return "", "", err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	r := Repository{Dir: filepath.Join(l.Clone, ".git"), Common: filepath.Join(l.Clone, ".git")}
	switch {
	case name == "HEAD" || name == "@":
		ref, commit, err := r.Head()
		if err == nil && commit == "" {
			err = errors.New("HEAD names no commit")
		}
		return strings.TrimPrefix(ref, "refs/heads/"), commit, err
	case hashFormat.MatchString(name):
		return "", name, nil
	}
	branch = strings.TrimPrefix(name, "refs/heads/")
	commit, err = r.Ref("refs/heads/" + branch)
	if err == nil && commit == "" {
		err = fmt.Errorf("there is no branch %s", branch)
	}
	return branch, commit, err
}

// Origin is the address of the clone's origin, as its own configuration has it.
func (l Leaving) Origin(ctx context.Context) (string, error) {
	root, err := openClone(l.Clone)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // only read
	f, err := root.OpenFile("config", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		err = isPlain(f, maxConfig)
	}
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	view, err := newView(l.Scratch, layout{head: "ref: refs/heads/.none", config: "\tbare = true\n"})
	if err != nil {
		return "", err
	}
	defer view.Close() //nolint:errcheck // only read
	out, err := view.git(ctx, f, nil, "config", "--file", "-", "--no-includes", "--null", "--get", "remote.origin.url")
	if origin, _, ok := strings.Cut(out, "\x00"); err == nil && ok && origin != "" {
		return origin, nil
	}
	return "", cmp.Or(context.Cause(ctx), errors.New("its repository has no origin"))
}

// Refs describes changes of branches of the forge: news are their new commits, olds the current ones, empty for a
// new branch. Its error is a sentence.
func (l Leaving) Refs(ctx context.Context, olds, news []string) (out []LeavingRef, err error) {
	known, err := l.Mirror.Refs()
	if err != nil {
		return nil, err
	}
	objects, err := l.Mirror.Objects()
	if err != nil {
		return nil, err
	}
	head, _, err := l.Mirror.Head()
	if err != nil {
		return nil, err
	}
	// It has only the forge's objects, and what git has checked.
	view, err := newView(l.Scratch, layout{head: "ref: refs/heads/.none", refs: known, objects: objects, config: "\tbare = true\n"})
	if err != nil {
		return nil, err
	}
	defer view.Close() //nolint:errcheck // only read
	if err := l.take(ctx, view, known, objects, news); err != nil {
		return nil, err
	}
	for i := range news {
		r, err := view.leaving(ctx, olds[i], news[i], known[head], l.First)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// take copies the commits into the view, checked as untrusted.
func (l Leaving) take(ctx context.Context, view *View, known map[string]string, objects, tips []string) error {
	root, err := openClone(l.Clone)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	whose := l.Mirror
	if l.Source != nil {
		more, err := l.Source.Objects()
		if err != nil {
			return err
		}
		whose, objects = *l.Source, append(more, objects...)
	}
	own, err := newView(l.Scratch, layout{head: "ref: refs/heads/.none", refs: known, objects: objects, config: "\tbare = true\n"})
	if err != nil {
		return err
	}
	defer own.Close() //nolint:errcheck // only read
	taking := taking{clone: root, into: own, source: whose, bytes: maxLeavingBytes, files: maxTaken}
	if err := taking.all(ctx); err != nil {
		return err
	}
	view.objects = []string{filepath.Join(view.dir, "objects")}
	if err := own.send(ctx, view, tips, maxLeavingBytes); err != nil {
		return err
	}
	if there, err := view.has(ctx, tips); err != nil || len(there) < len(tips) {
		return cmp.Or(err, errors.New("what it names is no commit that is whole"))
	}
	return view.whole(ctx, tips)
}

// emptyTree is the tree without files, by the length of a hash.
var emptyTree = map[int]string{40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904", 64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"}

// leaving describes a branch's change. A new one, and one that is pushed already, is compared with its merge base with
// the forge's HEAD.
func (v *View) leaving(ctx context.Context, old, tip, head string, first func(string) bool) (r LeavingRef, err error) {
	if r.Commits, err = v.commits(ctx, tip, "--not", "--all"); err != nil {
		return r, err
	}
	base := old
	switch {
	case old != "" && old != tip:
		if r.Lost, err = v.commits(ctx, old, "--not", tip); err != nil {
			return r, err
		}
	case head != "":
		out, err := v.git(ctx, nil, nil, "merge-base", head, tip)
		if ctx.Err() != nil {
			return r, err
		}
		base = cmp.Or(strings.TrimSpace(out), old)
	}
	return r, v.files(ctx, &r, cmp.Or(base, emptyTree[len(tip)]), tip, first)
}

func (v *View) commits(ctx context.Context, revs ...string) (c Commits, err error) {
	out, err := v.git(ctx, nil, nil, append([]string{"rev-list", "--count"}, revs...)...)
	if err != nil {
		return c, err
	}
	if c.Count, err = strconv.Atoi(strings.TrimSpace(out)); err != nil || c.Count == 0 {
		return c, err
	}
	out, err = v.git(ctx, nil, nil, append([]string{"log", "-z", "--no-color", "--no-decorate", "--no-mailmap", "--no-show-signature", "--max-count=" + strconv.Itoa(maxTold), "--format=%H%n%an <%ae>%n%s"}, revs...)...)
	for record := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if parts := strings.SplitN(record, "\n", 3); len(parts) == 3 {
			c.Some = append(c.Some, Commit{parts[0], clipped(parts[1]), clipped(parts[2])})
		}
	}
	return c, err
}

// clipped shortens a foreign text, and removes what a database refuses.
func clipped(s string) string {
	cut := s
	if len(cut) > maxSubject {
		cut = cut[:maxSubject] + "…"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(cut, "�"), "\x00", "�")
}

var diffing = []string{"diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-abbrev", "--no-color"}

// files lists the files that differ between two trees, the first ones first.
func (v *View) files(ctx context.Context, r *LeavingRef, base, tip string, first func(string) bool) error {
	out := start{left: maxListed}
	cmd := v.command(ctx, nil, append(diffing, "-z", "--raw", "--numstat", base, tip)...)
	cmd.Stdout = &out
	if err := run(ctx, cmd, nil); err != nil {
		return err
	}
	fields := strings.Split(out.String(), "\x00")
	by, order := map[string]*File{}, []string{}
	for i := 0; i < len(fields); i++ {
		if raw := strings.Fields(fields[i]); strings.HasPrefix(fields[i], ":") && len(raw) == 5 && i+1 < len(fields) {
			i++
			by[fields[i]] = changed(raw)
			by[fields[i]].Path, by[fields[i]].Orders = clipped(fields[i]), first(fields[i])
			order = append(order, fields[i])
			continue
		}
		if parts := strings.SplitN(fields[i], "\t", 3); len(parts) == 3 && by[parts[2]] != nil {
			f := by[parts[2]]
			f.Binary = parts[0] == "-"
			f.Added, _ = strconv.Atoi(parts[0])
			f.Removed, _ = strconv.Atoi(parts[1])
			r.Added, r.Removed = r.Added+f.Added, r.Removed+f.Removed
		}
	}
	var paths []string
	for _, wanted := range []bool{true, false} {
		for _, path := range order {
			f := by[path]
			if f.Orders != wanted {
				continue
			}
			if wanted {
				r.Firsts++
			}
			if len(r.Files) == maxToldFiles {
				r.More++
				continue
			}
			r.Files, paths = append(r.Files, *f), append(paths, path)
		}
		if len(paths) > 0 && !r.Cut {
			if err := v.diff(ctx, r, base, tip, paths); err != nil {
				return err
			}
		}
		paths = nil
	}
	r.Cut = r.Cut || r.More > 0
	return v.targets(ctx, r.Files)
}

// kinds are the names of tree entries other than plain files, by mode.
var kinds = map[string]string{"120000": "link", "160000": "submodule", "100755": "program"}

// changed parses a line of git's raw diff. The targets of links are still object names.
func changed(raw []string) *File {
	was, is := raw[0][1:], raw[1]
	f := &File{Status: raw[4], Kind: kinds[is]}
	switch {
	case is == "000000":
		f.Kind = kinds[was]
	case was != "000000" && kinds[was] != kinds[is]:
		f.Was = cmp.Or(kinds[was], "file")
	}
	if was == "120000" || was == "160000" {
		f.From = raw[2]
	}
	if is == "120000" || is == "160000" {
		f.To = raw[3]
	}
	return f
}

// maxTarget is the longest link target that systems follow, in bytes.
const maxTarget = 4096

// targets replaces the object names of links by their targets.
func (v *View) targets(ctx context.Context, files []File) error {
	at := map[string]string{} // targets by object
	var ends []*string
	for i := range files {
		f := &files[i]
		was := cmp.Or(f.Was, f.Kind)
		if f.From != "" && was == "link" {
			ends, at[f.From] = append(ends, &f.From), ""
		}
		if f.To != "" && f.Kind == "link" {
			ends, at[f.To] = append(ends, &f.To), ""
		}
	}
	if len(ends) == 0 {
		return nil
	}
	ask := func(how string, ids []string) (string, error) {
		return v.git(ctx, strings.NewReader(strings.Join(ids, "\n")+"\n"), nil, "cat-file", how)
	}
	sizes, err := ask("--batch-check=%(objectname) %(objectsize)", slices.Sorted(maps.Keys(at)))
	if err != nil {
		return err
	}
	var short []string
	for line := range strings.Lines(sizes) {
		id, size, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if n, err := strconv.Atoi(size); err == nil && n <= maxTarget {
			short = append(short, id)
		} else {
			at[id] = "(longer than any that works)"
		}
	}
	told := ""
	if len(short) > 0 {
		if told, err = ask("--batch=%(objectsize)", short); err != nil {
			return err
		}
	}
	for _, id := range short {
		size, rest, _ := strings.Cut(told, "\n")
		n, err := strconv.Atoi(size)
		if err != nil || n < 0 || n >= len(rest) {
			return errors.New("git does not tell where a link leads")
		}
		at[id], told = clipped(rest[:n]), rest[n+1:]
	}
	for _, end := range ends {
		*end = at[*end]
	}
	return nil
}

// diff adds the diff of some files, up to the limit.
func (v *View) diff(ctx context.Context, r *LeavingRef, base, tip string, paths []string) error {
	out := start{left: maxDiff - len(r.Diff)}
	args := append([]string{"--literal-pathspecs"}, diffing...)
	cmd := v.command(ctx, nil, append(append(args, "-p", base, tip, "--"), paths...)...)
	cmd.Stdout = &out
	err := run(ctx, cmd, nil)
	if r.Cut = out.left < 0; r.Cut {
		err = context.Cause(ctx) // git was stopped early
	}
	r.Diff += strings.ReplaceAll(strings.ToValidUTF8(out.String(), "�"), "\x00", "�")
	return err
}

// start keeps the beginning of what is written, and then fails.
type start struct {
	strings.Builder
	left int
}

func (s *start) Write(p []byte) (int, error) {
	n := min(len(p), max(s.left, 0))
	if s.left -= len(p); s.left < 0 {
		_, _ = s.Builder.Write(p[:n])
		return n, io.ErrShortWrite
	}
	return s.Builder.Write(p)
}
