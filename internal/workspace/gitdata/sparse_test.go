package gitdata_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// files are those of the clone's working tree.
func (b *bench) files() string {
	b.Helper()
	var out []string
	b.must(filepath.WalkDir(b.clone, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "/.git/") {
			out = append(out, strings.TrimPrefix(path, b.clone+"/"))
		}
		return err
	}))
	return strings.Join(out, " ")
}

// A clone of a subfolder has that folder and the files above it. What is left out is not deleted, whatever was merged
// meanwhile; what a session makes outside is saved, and comes back.
func TestASubfolder(t *testing.T) {
	t.Parallel()
	for _, subdir := range []string{"services/web", "services/w*b [1]"} {
		t.Run(subdir, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.subdir = subdir
			for _, file := range []string{"services/all.txt", subdir + "/src/main.go", subdir + "/a.go", "services/api/a.go", "services/web-too/a.go", "libs/lib.go", "info/attributes", "objects/a"} {
				b.write(filepath.Join(b.source, file), file+"\n")
			}
			base := b.commit(b.source, "go.mod", "module x\n")
			b.make()
			want := "README.md go.mod services/all.txt " + subdir + "/a.go " + subdir + "/src/main.go"
			if got := b.files(); got != want {
				t.Errorf("it has %s\nwant %s", got, want)
			}
			if b.save(); b.saved() != "" {
				t.Errorf("of an untouched clone is saved\n%s", b.git(b.source, "show", "--stat", b.saved()))
			}
			// The base moves, outside and inside, and is merged.
			b.write(filepath.Join(b.source, "libs/new/deep.go"), "new\n")
			b.write(filepath.Join(b.source, "libs/lib.go"), "changed\n")
			b.commit(b.source, subdir+"/b.go", "b\n")
			b.git(b.clone, "pull", "--quiet", b.source, "main")
			if got := b.git(b.clone, "status", "--porcelain"); got != "" {
				t.Errorf("after a merge git says %s", got)
			}
			if b.save(); b.saved() != "" {
				t.Errorf("after a merge is saved\n%s", b.git(b.source, "show", "--stat", b.saved()))
			}
			b.write(filepath.Join(b.clone, subdir, "a.go"), "changed\n")
			b.must(os.Remove(filepath.Join(b.clone, subdir, "src/main.go")))
			b.write(filepath.Join(b.clone, "libs/lib.go"), "changed here\n") // git's sparse checkout has left it out
			b.write(filepath.Join(b.clone, "libs/mine.go"), "mine\n")
			b.must(os.Remove(filepath.Join(b.clone, "go.mod")))
			state, _, _ := strings.Cut(b.state(), "refs/heads/main")
			if left := b.save(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			at := b.saved()
			if got := b.git(b.source, "diff", "--name-status", at+"^", at); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields("D go.mod M libs/lib.go A libs/mine.go M "+subdir+"/a.go D "+subdir+"/src/main.go"), " ") {
				t.Errorf("saved is\n%s", got)
			}
			if b.save(); b.saved() != at {
				t.Error("it is saved again, and nothing has changed")
			}
			b.lose()
			if made := b.make(); made.Saved == nil {
				t.Errorf("it is made of %+v", made)
			}
			if got := b.state(); !strings.HasPrefix(got, state) {
				t.Errorf("it has\n%s\nwant\n%s", got, state)
			}
			// Without what the bot knows of the files, too.
			b.must(os.Remove(b.index()))
			if b.save(); b.git(b.source, "rev-parse", b.saved()+"^{tree}") != b.git(b.source, "rev-parse", at+"^{tree}") {
				t.Errorf("saved is\n%s", b.git(b.source, "diff", "--name-status", at, b.saved()))
			}
			// A commit has what is left out.
			b.git(b.clone, "commit", "--quiet", "--all", "--message", "mine")
			if got := b.git(b.clone, "diff", "--name-only", base, "HEAD", "--", "objects", "services/api", "info"); got != "" {
				t.Errorf("a commit changes %s", got)
			}
			b.whole(b.clone)
			b.whole(b.source)
		})
	}
}

// A new thread does not start where its folder is none.
func TestNoSubfolder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.must(os.Symlink("src", filepath.Join(b.source, "link")))
	b.commit(b.source, "src/a", "a\n")
	for subdir, want := range map[string]string{
		"web": "has no folder web; correct subdir", "src/a": "src/a is no folder", "link": "link is a link", "link/x": "has no folder link/x", "*": "has no folder *",
	} {
		b.subdir = subdir
		if err := b.tryClone(""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", subdir, err)
		}
		if _, err := os.Lstat(b.clone); err == nil {
			t.Fatalf("%s: there is a clone", subdir)
		}
	}
	// A thread that goes on does, on whatever its branch has.
	b.subdir = ""
	b.makeClone("")
	b.git(b.clone, "rm", "--quiet", "-r", "src")
	b.commit(b.clone, "lib/a", "a\n")
	if _, err := b.publish(); err != nil {
		t.Fatal(err)
	}
	b.must(os.RemoveAll(b.clone))
	b.subdir = "src"
	if b.makeClone(""); b.files() != "README.md link" {
		t.Errorf("it has %s", b.files())
	}
}
