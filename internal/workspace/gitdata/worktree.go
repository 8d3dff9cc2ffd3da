package gitdata

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// workingTree is a clone's files in a git of ours.
type workingTree struct {
	*View
	dir   string
	files *os.Root
}

// see runs git on the files. Its output is bounded.
func (w workingTree) see(ctx context.Context, in io.Reader, args ...string) (string, error) {
	out := start{left: maxListed}
	cmd := w.command(ctx, []string{"GIT_WORK_TREE=" + w.dir, "GIT_INDEX_FILE=" + filepath.Join(w.View.dir, "index")}, args...)
	cmd.Stdin, cmd.Stdout = in, &out
	err := run(ctx, cmd, nil)
	if out.left < 0 {
		return "", errors.New("too many files have changed")
	}
	return out.String(), err
}

// read sets the view's index to a commit, using a kept index's knowledge of the files, and keeps the new one.
func (w workingTree) read(ctx context.Context, kept, head string) error {
	subdir, err := os.ReadFile(kept + coneSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	index := filepath.Join(w.View.dir, "index")
	if err := os.MkdirAll(filepath.Join(w.View.dir, "info"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.View.dir, "info/attributes"), []byte(asTheyAre), 0o600); err != nil {
		return err
	}
	tree := []string{"read-tree", "--empty"}
	if head != "" {
		tree = []string{"read-tree", "-m", head}
	}
	if err := os.Rename(kept, index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := w.see(ctx, nil, tree...); err != nil {
		_ = os.Remove(index) // whatever was kept
		if _, err := w.see(ctx, nil, tree...); err != nil {
			return err
		}
	}
	_, _ = w.see(ctx, nil, "update-index", "-q", "--refresh", "--ignore-submodules") // it fails if files have changed
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := w.narrow(ctx, string(subdir)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
		return err
	}
	return copyIndex(index, kept)
}

// unfit are names that some systems take for git's own.
var unfit = regexp.MustCompile(`(?i)(^|[/\\])(\.git|git~[0-9]+)([. :/\\]|$)`)

// changes are the files that differ from the index, and those that cannot be saved.
func (w workingTree) changes(ctx context.Context) (found []change, left []Left, err error) {
	// What a sparse checkout does not have, and is there, has changed like all else.
	raw, err := w.see(ctx, nil, "-c", "core.sparseCheckout=true", "diff-files", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", "--ignore-submodules=all")
	if err != nil {
		return nil, nil, err
	}
	others, err := w.see(ctx, nil, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, nil, err
	}
	add := func(path string, known bool) {
		info, err := w.files.Lstat(path)
		switch {
		case unfit.MatchString(path), err == nil && info.Mode().Type() == fs.ModeSymlink && strings.EqualFold(filepath.Base(path), ".gitmodules"):
			left = append(left, Left{path, "a name that git keeps for itself"})
		case err == nil && (info.Mode().IsRegular() || info.Mode().Type() == fs.ModeSymlink):
			found = append(found, change{path: path, info: info})
		case known: // deleted, or replaced by something else
			found = append(found, change{path: path, gone: true})
		}
	}
	fields := strings.Split(raw, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		add(fields[i+1], true)
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(others, "\x00"), "\x00") {
		if repository, ok := strings.CutSuffix(path, "/"); ok {
			left = append(left, Left{repository, "a repository of its own"})
		} else if path != "" {
			add(path, false)
		}
	}
	if _, err := w.files.Lstat(".gitmodules"); err == nil {
		more, err := w.submodules(ctx)
		if err != nil {
			return nil, nil, err
		}
		left = append(left, more...)
	}
	return found, left, nil
}

// ignored lists ignored files, whole folders as one. Without an answer the list is empty.
func (w workingTree) ignored(ctx context.Context) (left []Left) {
	names, err := w.see(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return nil
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		if name != "" && len(left) < maxIgnored {
			left = append(left, Left{strings.TrimSuffix(name, "/"), Ignored})
		}
	}
	return left
}

// submodules are the existing ones.
func (w workingTree) submodules(ctx context.Context) (left []Left, err error) {
	staged, err := w.see(ctx, nil, "ls-files", "-z", "--stage")
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(staged, "\x00") {
		if _, path, ok := strings.Cut(line, "\t"); ok && strings.HasPrefix(line, "160000 ") {
			if _, err := w.files.Lstat(filepath.Join(path, ".git")); err == nil {
				left = append(left, Left{path, "a repository of its own"})
			}
		}
	}
	return left, nil
}

// commit makes a commit of what was saved, under newRef. The files are read here and passed to git, which opens
// none of them: they cannot be replaced in between.
func (w workingTree) commit(ctx context.Context, s Saved, changes []change) (left []Left, err error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it is only read
	cmd := w.command(ctx, nil, "fast-import", "--quiet", "--done", "--date-format=raw")
	cmd.Stdin = in
	ran := make(chan error, 1)
	go func() {
		err := run(ctx, cmd, nil)
		_ = in.Close() // a further write fails
		ran <- err
	}()
	message := s.message()
	told := &teller{to: out}
	told.say("commit %s\ncommitter Deckhand <deckhand> %d +0000\ndata %d\n%s\n", newRef, s.At.Unix(), len(message), message)
	for i, tip := range s.tips() {
		if i == 0 {
			told.say("from %s\n", tip)
		} else {
			told.say("merge %s\n", tip)
		}
	}
	if s.head == "" && len(s.branches) > 0 {
		told.say("deleteall\n") // the first parent is not HEAD
	}
	for _, c := range changes {
		if c.gone {
			told.say("D %s\n", quoted(c.path))
		}
	}
	for _, c := range changes {
		if c.gone {
			continue
		}
		mode, data, err := w.readFile(c)
		if err != nil {
			left = append(left, Left{c.path, "it could not be read"})
			continue
		}
		told.say("M %s inline %s\ndata %d\n", mode, quoted(c.path), len(data))
		told.write(data)
		told.say("\n")
	}
	told.say("done\n")
	err = errors.Join(told.err, out.Close())
	if e := <-ran; e != nil {
		err = e // the cause
	}
	return left, err
}

// readFile reads a file of the working tree if it is still the one that was found.
func (w workingTree) readFile(c change) (mode string, data []byte, err error) {
	if c.info.Mode().Type() == fs.ModeSymlink {
		to, err := w.files.Readlink(c.path)
		return "120000", []byte(to), err
	}
	f, err := w.files.OpenFile(c.path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return "", nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	info, err := f.Stat()
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() {
		return "", nil, errNoFile
	}
	mode = "100644"
	if info.Mode()&0o100 != 0 {
		mode = "100755"
	}
	data, err = io.ReadAll(io.LimitReader(f, c.size()))
	return mode, data, err
}

// quoted quotes a path for git.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// teller keeps the first error of writing.
type teller struct {
	to  io.Writer
	err error
}

func (t *teller) say(format string, args ...any) { t.write(fmt.Appendf(nil, format, args...)) }

func (t *teller) write(p []byte) {
	if t.err == nil {
		_, t.err = t.to.Write(p)
	}
}
