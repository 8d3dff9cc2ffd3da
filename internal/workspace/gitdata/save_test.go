package gitdata_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/workspace/gitdata"
)

const savedRef = "refs/deckhand/saved/7"

// make makes the thread's clone, with what was saved of an earlier one.
func (b *bench) make() gitdata.Made {
	b.Helper()
	c := b.cloning("")
	c.Saved, c.Index = savedRef, b.index()
	made, err := c.Make(b.Context())
	b.must(err)
	return made
}

func (b *bench) index() string { return filepath.Join(b.dir, "saved/7") }

// save publishes and saves, as the end of a turn does, and returns what was left.
func (b *bench) save() []string {
	b.Helper()
	_, err := b.publish()
	b.must(err)
	return b.saveOnly()
}

func (b *bench) saveOnly() []string {
	b.Helper()
	left, err := gitdata.Saving{
		Clone: b.clone, Source: b.open(), Branch: "deckhand/7", Ref: savedRef, Index: b.index(), Scratch: filepath.Join(b.dir, "scratch"), MaxFile: 1 << 20, MaxBytes: 2 << 20, MaxFiles: 20,
	}.Save(b.Context())
	b.must(err)
	out := []string{}
	for _, l := range left {
		out = append(out, l.Name+": "+l.Why)
	}
	slices.Sort(out)
	return out
}

// saved is what the source's ref names, empty if there is none.
func (b *bench) saved() string {
	b.Helper()
	hash, err := b.open().Ref(savedRef)
	b.must(err)
	return hash
}

// state is all that a thread's folder has: its files with their modes, what git says of
// them, and where its branches are.
func (b *bench) state() string {
	b.Helper()
	files := map[string]string{}
	b.must(filepath.WalkDir(b.clone, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, filepath.Join(b.clone, ".git")+"/") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, _ := os.ReadFile(path)
		if d.Type() == os.ModeSymlink {
			to, _ := os.Readlink(path)
			text = []byte("-> " + to)
		}
		files[strings.TrimPrefix(path, b.clone)] = fmt.Sprintf("%o %q", info.Mode()&0o100, text)
		return nil
	}))
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&out, "%s %s\n", name, files[name])
	}
	return out.String() + b.git(b.clone, "status", "--porcelain", "--branch") + "\n" + b.git(b.clone, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
}

// lose deletes the thread's folder, and has the source's gc throw away what it can.
func (b *bench) lose() {
	b.Helper()
	b.must(os.RemoveAll(b.clone))
	b.git(b.source, "gc", "--quiet", "--prune=now")
}

// What a thread had when its folder was lost is there again: its commits, its files byte
// by byte, and the other branches that it made.
func TestWhatWasNotCommittedComesBack(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(b *bench){
		"files": func(b *bench) {
			b.commit(b.clone, "a", "a\n")
			b.write(filepath.Join(b.clone, "a"), "b\n")
			b.write(filepath.Join(b.clone, "deep/er/new \"file\"\nand é\\"), "new\n")
			b.must(os.Chmod(filepath.Join(b.clone, "a b"), 0o600))
			b.must(os.Symlink("/etc/passwd", filepath.Join(b.clone, "link")))
			b.write(filepath.Join(b.clone, "x.txt"), "a\r\nb\nc\r\n")
			b.write(filepath.Join(b.clone, "x.utf16"), "\xff\xfeno\x00 such")
			b.git(b.clone, "mv", "README.md", "MOVED.md")
			b.write(filepath.Join(b.clone, "README.md/x"), "a folder where a file was\n")
			b.must(os.RemoveAll(filepath.Join(b.clone, "dir")))
			b.write(filepath.Join(b.clone, "dir"), "a file where a folder was\n")
			b.git(b.clone, "reset", "--quiet") // what was staged is staged no more
		},
		"another branch, and one beside it": func(b *bench) {
			b.git(b.clone, "checkout", "--quiet", "-b", "beside")
			b.commit(b.clone, "f", "f\n")
			b.git(b.clone, "pack-refs", "--all")
			b.git(b.clone, "checkout", "--quiet", "-b", "feature", "deckhand/7")
			b.commit(b.clone, "f", "g\n")
			b.write(filepath.Join(b.clone, "f"), "h\n")
		},
		"no branch": func(b *bench) {
			b.commit(b.clone, "f", "f\n")
			b.git(b.clone, "checkout", "--quiet", "--detach", "HEAD~1")
			b.commit(b.clone, "g", "g\n")
		},
		"an ignored file that was committed": func(b *bench) {
			b.write(filepath.Join(b.clone, "x.log"), "log\n")
			b.git(b.clone, "add", "--force", "x.log")
			b.git(b.clone, "commit", "--quiet", "--message", "log")
			b.write(filepath.Join(b.clone, "new"), "a\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.write(filepath.Join(b.source, ".gitattributes"), "*.txt text eol=crlf\n*.utf16 working-tree-encoding=UTF-16\n* ident\n")
			b.write(filepath.Join(b.source, ".gitignore"), "*.log\n")
			b.write(filepath.Join(b.source, "dir/file"), "file\n")
			b.commit(b.source, "a b", "in a script $Id$\n")
			if made := b.make(); made.Branch || made.Saved != nil || made.Aside != nil {
				t.Errorf("at first: %+v", made)
			}
			b.save()
			b.write(filepath.Join(b.clone, "earlier"), "what was saved before\n")
			b.save()
			b.must(os.Remove(filepath.Join(b.clone, "earlier")))
			work(b)
			want := b.state()
			if left := b.save(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			at := b.saved()
			if b.save(); b.saved() != at {
				t.Error("it is saved again, and nothing has changed")
			}
			b.whole(b.source)
			b.lose()
			made := b.make()
			if !made.Branch || made.Saved == nil || made.Aside != nil || made.Saved.At.IsZero() {
				t.Errorf("what it was made of: %+v", made)
			}
			if got := b.state(); got != want {
				t.Errorf("it has\n%s\nwant\n%s", got, want)
			}
			b.whole(b.clone)
			if left, _ := os.ReadDir(filepath.Join(b.dir, "scratch")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// Nothing is saved of a thread that has nothing but its branch.
func TestWhatIsOnTheBranchIsNotSavedTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.make()
	b.commit(b.clone, "a", "a")
	if b.save(); b.saved() != "" {
		t.Error("it is")
	}
	b.must(os.Remove(b.index()))
	if b.save(); b.saved() != "" {
		t.Error("without an index it is")
	}
}

func TestWhatIsNotSavedIsTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(filepath.Join(b.source, ".gitignore"), "ignored/\n")
	b.commit(b.source, "a", "a")
	b.make()
	b.write(filepath.Join(b.clone, "ignored/x"), "x")
	b.write(filepath.Join(b.clone, "large"), strings.Repeat("x", 1<<20+1))
	b.write(filepath.Join(b.clone, "GIT~1"), "x")
	b.must(syscall.Mkfifo(filepath.Join(b.clone, "pipe"), 0o600))
	b.must(os.Symlink("x", filepath.Join(b.clone, "sub.gitmodules")))
	b.git(b.clone, "init", "--quiet", "nested")
	b.write(filepath.Join(b.clone, "nested/x"), "x")
	for i := range 3 {
		b.write(filepath.Join(b.clone, fmt.Sprint("half", i)), strings.Repeat(fmt.Sprint(i), 1<<20-1000))
	}
	want := []string{"GIT~1: a name that git keeps for itself", "half2: beyond 2 MiB in all", "large: larger than 1 MiB", "nested: a repository of its own"}
	if got := b.save(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := b.git(b.source, "ls-tree", "-r", "--name-only", savedRef); got != ".gitignore\nREADME.md\na\nhalf0\nhalf1\nsub.gitmodules" {
		t.Errorf("saved are\n%s", got)
	}
	for i := range 20 {
		b.write(filepath.Join(b.clone, fmt.Sprint("many/", i)), "x")
	}
	if got := strings.Join(b.save(), "\n"); !strings.Contains(got, ": beyond 20 files") {
		t.Errorf("%q", got)
	}
	b.whole(b.source)
}

// A branch that has gone on without what was saved is checked out as it stands, and what
// was saved is beside it.
func TestABranchIsNeverReset(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.make()
	b.commit(b.clone, "a", "a\n")
	b.write(filepath.Join(b.clone, "not-committed"), "x\n")
	b.save()
	saved := b.saved()
	b.git(b.source, "checkout", "--quiet", "deckhand/7")
	on := b.commit(b.source, "theirs", "theirs\n")
	b.git(b.source, "checkout", "--quiet", "main")
	b.lose()
	made := b.make()
	if got := b.git(b.clone, "rev-parse", "HEAD", "deckhand/7", "refs/deckhand/saved"); got != on+"\n"+on+"\n"+saved || made.Aside == nil || made.Aside.Commit != saved || made.Saved != nil {
		t.Errorf("%s\n%+v", got, made)
	}
	if got := b.git(b.clone, "status", "--porcelain"); got != "" {
		t.Errorf("it has %s", got)
	}
	b.write(filepath.Join(b.clone, "more"), "x\n")
	b.save()
	b.git(b.source, "gc", "--quiet", "--prune=now")
	if got := b.git(b.clone, "show", saved+":not-committed"); got != "x" {
		t.Errorf("what was saved before is %q", got)
	}
	// What could not be published, as somebody stands on the branch, is saved all the same.
	b.git(b.source, "checkout", "--quiet", "deckhand/7")
	ahead := b.commit(b.clone, "ahead", "x\n")
	b.saveOnly()
	b.lose()
	if b.make(); b.git(b.clone, "rev-parse", "HEAD") != ahead || b.published() != on {
		t.Errorf("a commit that was not published is lost")
	}
}

// What a branch was before a thread took commits back is not lost to gc.
func TestWhatWasTakenBackIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.makeClone("")
	var tips []string
	for i := range 3 {
		tips = append(tips, b.commit(b.clone, "a", fmt.Sprint(i)))
		_, err := b.publish()
		b.must(err)
	}
	b.git(b.clone, "reset", "--quiet", "--hard", "HEAD~2")
	_, err := b.publish()
	b.must(err)
	b.git(b.source, "reflog", "expire", "--expire=now", "--all")
	b.git(b.source, "gc", "--quiet", "--prune=now")
	b.git(b.source, "cat-file", "-e", tips[2])
	if kept := b.git(b.source, "for-each-ref", "--format=%(objectname)", "refs/deckhand/kept"); strings.Contains(kept, tips[1]) || !strings.Contains(kept, tips[2]) {
		t.Errorf("kept are %s", kept)
	}
}

// Whatever the folder of a thread has, saving it runs nothing, waits for nothing, and
// takes no file from elsewhere.
func TestHostileFoldersAreSaved(t *testing.T) {
	t.Parallel()
	secret := "a secret of the bot's\n"
	for name, attack := range map[string]func(b *bench){
		"repositories": func(b *bench) {
			for _, name := range []string{"sub", "nested"} {
				dir := filepath.Join(b.clone, name)
				b.git(b.clone, "init", "--quiet", name)
				b.git(dir, "config", "user.name", "x")
				b.git(dir, "config", "user.email", "x@example.com")
				b.commit(dir, "x", "x")
			}
			b.git(b.clone, "add", "sub")
			b.git(b.clone, "commit", "--quiet", "--message", "sub")
			b.write(filepath.Join(b.clone, ".gitmodules"), "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n")
			b.write(filepath.Join(b.clone, "sub/x"), "y")
			for _, dir := range []string{"sub/.git", "nested/.git", ".git"} {
				b.poison(filepath.Join(b.clone, dir))
			}
			b.write(filepath.Join(b.clone, ".gitattributes"), "[attr]evil filter=evil\n* evil diff=evil working-tree-encoding=evil\n")
		},
		"links, names and pipes": func(b *bench) {
			b.must(os.Symlink(b.dir, filepath.Join(b.clone, "out")))
			b.must(os.Symlink(filepath.Join(b.dir, "secret"), filepath.Join(b.clone, "secret")))
			b.must(os.Remove(filepath.Join(b.clone, "README.md")))
			b.must(os.Symlink(filepath.Join(b.dir, "secret"), filepath.Join(b.clone, "README.md")))
			b.must(os.Symlink(filepath.Join(b.dir, "secret"), filepath.Join(b.clone, ".gitignore")))
			b.must(syscall.Mkfifo(filepath.Join(b.clone, "pipe"), 0o600))
			b.must(os.RemoveAll(filepath.Join(b.clone, "dir/file")))
			b.must(syscall.Mkfifo(filepath.Join(b.clone, "dir/file"), 0o600))
			b.must(syscall.Mkfifo(filepath.Join(b.clone, ".git/refs/heads/pipe"), 0o600))
			b.write(filepath.Join(b.clone, ".git/refs/heads/x"), strings.Repeat("1", 40)+"\n")
			b.write(filepath.Join(b.clone, ".git/index"), "DIRC\x00\x00\x00\x02\xff\xff\xff\xff")
			b.write(filepath.Join(b.clone, "-c\n\x1bM 100644 \"evil"), "x")
			b.write(filepath.Join(b.clone, "nested2/.GIT/hooks/x"), "x")
			b.write(filepath.Join(b.clone, `a\.git\x`), "x")
		},
		"an index that was kept and is none": func(b *bench) { b.write(b.index(), "DIRC\x00\x00\x00\x02\xff\xff\xff\xff") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.write(filepath.Join(b.dir, "secret"), secret)
			b.commit(b.source, "dir/file", "file\n")
			b.make()
			b.write(filepath.Join(b.clone, "new"), "new\n")
			attack(b)
			left := b.saveOnly()
			b.untouched()
			if got := b.git(b.source, "show", savedRef+":new"); got != "new" {
				t.Errorf("saved is %q; left: %q", got, left)
			}
			for object := range strings.FieldsSeq(b.git(b.source, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")) {
				if text := b.git(b.source, "cat-file", "-p", object); strings.Contains(text, strings.TrimSpace(secret)) {
					t.Error("the secret has been taken")
				}
			}
			b.whole(b.source)
			b.must(os.RemoveAll(b.clone))
			b.make()
			b.untouched()
			if text, err := os.ReadFile(filepath.Join(b.clone, "new")); err != nil || string(text) != "new\n" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

var errNobodyWaits = errors.New("nobody waits so long")

// A folder that cannot be saved says so, and what was saved stays.
func TestWhatCannotBeSaved(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(b *bench)
		err   string
	}{
		"no git folder": {func(b *bench) { b.must(os.RemoveAll(filepath.Join(b.clone, ".git"))) }, "no folder any more"},
		"a link to one": {func(b *bench) {
			b.must(os.Rename(filepath.Join(b.clone, ".git"), filepath.Join(b.dir, "moved")))
			b.must(os.Symlink(filepath.Join(b.dir, "moved"), filepath.Join(b.clone, ".git")))
		}, "no folder any more"},
		"no commit":            {func(b *bench) { b.write(filepath.Join(b.clone, ".git/HEAD"), strings.Repeat("1", 40)) }, "no commit that is whole"},
		"rules without an end": {func(b *bench) { b.must(syscall.Mkfifo(filepath.Join(b.clone, ".gitignore"), 0o600)) }, errNobodyWaits.Error()},
	} {
		b := newBench(t)
		b.make()
		b.write(filepath.Join(b.clone, "a"), "a")
		b.saveOnly()
		before := b.saved()
		tt.spoil(b)
		ctx, cancel := context.WithCancel(t.Context())
		if tt.err == errNobodyWaits.Error() {
			ctx, cancel = context.WithTimeoutCause(ctx, 500*time.Millisecond, errNobodyWaits)
		}
		_, err := gitdata.Saving{Clone: b.clone, Source: b.open(), Branch: "deckhand/7", Ref: savedRef, Index: b.index(), Scratch: filepath.Join(b.dir, "scratch")}.Save(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), tt.err) || b.saved() != before {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// cut is a context that is over, for a reason, when it has been looked at so many times.
type cut struct {
	context.Context
	left atomic.Int64
	end  context.CancelCauseFunc
}

func (c *cut) look() {
	if c.left.Add(-1) < 0 {
		c.end(errNobodyWaits)
	}
}

func (c *cut) Done() <-chan struct{} { c.look(); return c.Context.Done() }
func (c *cut) Err() error            { c.look(); return c.Context.Err() }

// TestWhatIsCutSaysWhy: wherever work with git is cut, its error is why, which people are told.
func TestWhatIsCutSaysWhy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.make()
	b.commit(b.clone, "a", "a")
	b.write(filepath.Join(b.clone, "b"), "b")
	for name, work := range map[string]func(context.Context) error{
		"a save": func(ctx context.Context) error {
			_, err := gitdata.Saving{Clone: b.clone, Source: b.open(), Branch: "deckhand/7", Ref: savedRef, Index: b.index(), Scratch: filepath.Join(b.dir, "scratch")}.Save(ctx)
			return err
		},
		"a publication": func(ctx context.Context) error {
			_, err := gitdata.Publication{Clone: b.clone, Source: b.open(), Branch: "deckhand/7", Scratch: filepath.Join(b.dir, "scratch")}.Publish(ctx)
			return err
		},
		"a clone": func(ctx context.Context) error {
			c := b.cloning("")
			c.Dir = filepath.Join(b.dir, "another")
			b.must(os.RemoveAll(c.Dir))
			c.Saved, c.Index = savedRef, b.index()
			_, err := c.Make(ctx)
			return err
		},
	} {
		for n, done := int64(0), false; !done; n++ {
			ctx, end := context.WithCancelCause(t.Context())
			c := &cut{Context: ctx, end: end}
			c.left.Store(n)
			err := work(c)
			if done = c.left.Load() >= 0; err != nil && !errors.Is(err, errNobodyWaits) {
				t.Errorf("%s that is cut after %d looks: %v", name, n, err)
			}
			end(nil)
		}
	}
}
