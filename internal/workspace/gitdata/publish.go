package gitdata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Publication brings a branch of a clone into its source.
type Publication struct {
	// Clone is the folder of the working tree, whose git folder is untrusted and may change.
	Clone  string
	Source Repository
	// Branch is the branch's name in both.
	Branch string
	// Scratch is a folder for temporary files, fastest beside the clone.
	Scratch string
	// MaxBytes and MaxFiles bound what is copied from the clone at once; 0 means 1 GiB and 200,000 files.
	MaxBytes int64
	MaxFiles int
}

// Default limits of what is copied from a clone at once.
const (
	maxPublished = 1 << 30 // bytes
	maxTaken     = 200_000 // files
)

// Publish sets the source's branch to the clone's, and returns its commit; empty if the clone has no such branch.
// The reflog of the source's branch has the earlier commit. Its error is a sentence; then the source's branch is
// unchanged.
func (p Publication) Publish(ctx context.Context) (commit string, err error) {
	p.MaxBytes, p.MaxFiles = cmp.Or(p.MaxBytes, maxPublished), cmp.Or(p.MaxFiles, maxTaken)
	ref := "refs/heads/" + p.Branch
	root, err := openClone(p.Clone)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	gitDir := filepath.Join(p.Clone, ".git")
	tip, err := Repository{Dir: gitDir, Common: gitDir}.Ref(ref)
	if err != nil || tip == "" {
		return "", err
	}
	before, err := p.Source.Ref(ref)
	switch {
	case err != nil:
		return "", err
	case before == tip:
		return tip, nil
	case p.Source.checkedOut(ref):
		return "", fmt.Errorf("the branch %s is checked out in the project's own folder, so it is not changed; check out another one there", p.Branch)
	}
	if err := p.bring(ctx, root, tip); err != nil {
		return "", err
	}
	if err := p.keepWhatIsTakenBack(ctx, before, tip); err != nil {
		return "", err
	}
	if err := p.Source.SetRef(ref, tip); err != nil {
		return "", err
	}
	return tip, p.Source.log(ref, before, tip, "published")
}

// keepWhatIsTakenBack protects the branch's old commit from the source's gc, unless the new one descends from it.
func (p Publication) keepWhatIsTakenBack(ctx context.Context, before, tip string) error {
	if before == "" {
		return nil
	}
	source, err := OpenView(p.Scratch, p.Source)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // only read
	if _, err := source.git(ctx, nil, nil, "merge-base", "--is-ancestor", before, tip); err == nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return p.Source.keep(map[string]string{p.Branch: before})
}

// openClone opens the git folder of a working tree if it looks as Make made it.
func openClone(dir string) (*os.Root, error) {
	for _, name := range []string{dir, filepath.Join(dir, ".git"), filepath.Join(dir, ".git/objects")} {
		if info, err := os.Lstat(name); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is no folder any more", name)
		}
	}
	return os.OpenRoot(filepath.Join(dir, ".git"))
}

// bring adds the commits to the source completely.
func (p Publication) bring(ctx context.Context, clone *os.Root, tips ...string) error {
	source, err := OpenView(p.Scratch, p.Source)
	if err != nil {
		return err
	}
	defer source.Close() //nolint:errcheck // only read
	there, err := source.has(ctx, tips)
	tips = slices.DeleteFunc(slices.Clone(tips), func(tip string) bool { return slices.Contains(there, tip) })
	if err != nil || len(tips) == 0 {
		return err
	}
	shallow, err := readShallow(p.Source)
	if err != nil {
		return err
	}
	known, err := p.Source.Refs()
	if err != nil {
		return err
	}
	// Only the clone's own objects and the source's, no others that the clone may name.
	own, err := newView(p.Scratch, layout{head: "ref: refs/heads/.none", refs: known, objects: source.objects, shallow: shallow, config: "\tbare = true\n"})
	if err != nil {
		return err
	}
	defer own.Close() //nolint:errcheck // only read
	taking := taking{clone: clone, into: own, source: p.Source, bytes: p.MaxBytes, files: p.MaxFiles}
	if err := taking.all(ctx); err != nil {
		return err
	}
	if err := own.send(ctx, source, tips, p.MaxBytes); err != nil {
		return err
	}
	if there, err := source.has(ctx, tips); err != nil || len(there) < len(tips) {
		return cmp.Or(err, fmt.Errorf("the branch %s names no commit that is whole", p.Branch))
	}
	return nil
}

// send packs what the commits add to the refs, and stores it, checked, in another view's repository.
func (v *View) send(ctx context.Context, to *View, tips []string, limit int64) error {
	list, err := v.git(ctx, nil, nil, slices.Concat([]string{"rev-list", "--objects", "--ignore-missing"}, tips, []string{"--not", "--all"})...)
	if err != nil || list == "" {
		return err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // it is only read
	pack := v.command(ctx, nil, "pack-objects", "--quiet", "--stdout", "--delta-base-offset")
	pack.Stdin, pack.Stdout = strings.NewReader(list), in
	packed := make(chan error, 1)
	go func() {
		err := run(ctx, pack, nil)
		_ = in.Close() // its reader sees the end
		packed <- err
	}()
	_, err = to.git(ctx, out, []string{"GIT_OBJECT_DIRECTORY=" + to.objects[0]},
		"index-pack", "--stdin", "--strict", "--max-input-size="+fmt.Sprint(limit))
	_ = out.Close() // a further write fails
	return errors.Join(<-packed, err)
}

// taking copies objects from a clone.
type taking struct {
	clone  *os.Root
	into   *View
	source Repository
	bytes  int64 // still allowed
	files  int
}

var (
	fanOut     = regexp.MustCompile(`^[0-9a-f]{2}$`)
	looseName  = regexp.MustCompile(`^([0-9a-f]{38}|[0-9a-f]{62})$`)
	packedName = regexp.MustCompile(`^pack-([0-9a-f]{40}|[0-9a-f]{64})\.pack$`)
)

func (t *taking) all(ctx context.Context) error {
	for _, dir := range t.folder("objects") {
		switch {
		case !dir.IsDir():
		case fanOut.MatchString(dir.Name()):
			for _, e := range t.folder("objects/" + dir.Name()) {
				if looseName.MatchString(e.Name()) && e.Type().IsRegular() {
					if err := t.loose(ctx, path.Join("objects", dir.Name(), e.Name())); err != nil {
						return err
					}
				}
			}
		case dir.Name() == "pack":
			for _, e := range t.folder("objects/pack") {
				if packedName.MatchString(e.Name()) && e.Type().IsRegular() {
					if err := t.pack(ctx, "objects/pack/"+e.Name()); err != nil {
						return err
					}
				}
			}
		}
	}
	return context.Cause(ctx)
}

// folder lists a folder of the clone; an unreadable one, or a link, is empty.
func (t *taking) folder(name string) []fs.DirEntry {
	if info, err := t.clone.Lstat(name); err != nil || !info.IsDir() {
		return nil
	}
	dir, err := t.clone.Open(name)
	if err != nil {
		return nil
	}
	defer dir.Close()                       //nolint:errcheck // it is only read
	entries, _ := dir.ReadDir(t.files + 10) // git notices what is missing
	return entries
}

// open opens a plain file of the clone, and counts it.
func (t *taking) open(name string) (*os.File, error) {
	info, err := t.clone.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", name, errNoFile)
	}
	f, err := t.clone.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	now, err := f.Stat()
	if err == nil && !os.SameFile(info, now) {
		err = fmt.Errorf("%s: %w", name, errNoFile)
	}
	if err == nil {
		t.bytes -= now.Size()
		t.files--
		if t.bytes < 0 || t.files < 0 {
			err = errors.New("the thread's repository is too large to be published by the bot; push the branch from the thread")
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// loose copies a loose object that the source lacks.
func (t *taking) loose(ctx context.Context, name string) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, err := os.Lstat(filepath.Join(t.source.Common, name)); err == nil {
		return nil
	}
	src, err := t.open(name)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it is only read
	info, err := src.Stat()
	if err != nil {
		return err
	}
	to := filepath.Join(t.into.dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, io.LimitReader(src, info.Size()))
	return errors.Join(err, dst.Close())
}

// pack makes git read a pack as from a network.
func (t *taking) pack(ctx context.Context, name string) error {
	src, err := t.open(name)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it is only read
	if info, err := os.Lstat(filepath.Join(t.source.Common, name)); err == nil && info.Mode().IsRegular() {
		return nil
	}
	_, err = t.into.git(ctx, src, nil, "index-pack", "--stdin", "--fix-thin", "--max-input-size="+fmt.Sprint(max(t.bytes, 1)))
	return err
}

// log appends to a branch's reflog.
func (r Repository) log(ref, before, after, what string) (err error) {
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it only names a folder
	name := "logs/" + ref
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return err
	}
	before = cmp.Or(before, strings.Repeat("0", len(after)))
	_, err = fmt.Fprintf(f, "%s %s Deckhand <deckhand> %d +0000\t%s\n", before, after, time.Now().Unix(), what)
	return errors.Join(err, f.Close())
}
