package gitdata_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/workspace/gitdata"
)

// leavingOf tells of pushes of the thread's clone; what the forge has is what the source had.
func (b *bench) leavingOf() gitdata.Leaving {
	b.Helper()
	mirror := filepath.Join(b.dir, "mirror.git")
	if _, err := os.Stat(mirror); err != nil {
		b.git(b.dir, "clone", "--quiet", "--bare", b.source, mirror)
	}
	source := b.open()
	return gitdata.Leaving{
		Clone: b.clone, Source: &source, Mirror: gitdata.Repository{Dir: mirror, Common: mirror}, Scratch: filepath.Join(b.dir, "scratch"),
		First: func(path string) bool { return strings.HasPrefix(path, ".github/") },
	}
}

func (b *bench) leaving(old, tip string) gitdata.LeavingRef {
	b.Helper()
	out, err := b.leavingOf().Refs(b.Context(), []string{old}, []string{tip})
	b.must(err)
	return out[0]
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	main := b.commit(b.source, "lib.go", "one\ntwo\n")
	b.git(b.source, "update-ref", "refs/heads/theirs", main)
	theirs := b.git(b.source, "commit-tree", "-p", main, "-m", "theirs", main+"^{tree}")
	b.git(b.source, "update-ref", "refs/heads/theirs", theirs)
	b.makeClone("main")
	b.leavingOf()
	for i := range 400 {
		b.write(filepath.Join(b.clone, fmt.Sprintf("data/%d", i)), "x\n")
	}
	b.write(filepath.Join(b.clone, ".github/workflows/ci.yml"), "run: evil\n")
	b.must(os.Symlink("/etc/passwd", filepath.Join(b.clone, "link")))
	b.commit(b.clone, "lib.go", "one\n2\n")
	b.git(b.clone, "update-index", "--add", "--cacheinfo", "160000,"+main+",vendor/sub")
	b.git(b.clone, "commit", "--quiet", "--message", "a submodule")
	tip := b.git(b.clone, "rev-parse", "HEAD")
	if branch, commit, err := b.leavingOf().Name("HEAD"); branch != "deckhand/7" || commit != tip || err != nil {
		t.Error(branch, commit, err)
	}
	_, err := b.publish() // the source has the commits, the forge does not
	b.must(err)

	r := b.leaving("", tip)
	if r.Commits.Count != 2 || r.Commits.Some[0].Subject != "a submodule" || r.Lost.Count != 0 || r.Firsts != 1 {
		t.Errorf("%+v", r.Commits)
	}
	if f := r.Files[0]; f.Path != ".github/workflows/ci.yml" || !f.Orders || f.Status != "A" || f.Added != 1 {
		t.Errorf("first comes %+v", f)
	}
	if !strings.HasPrefix(r.Diff, "diff --git a/.github/workflows/ci.yml") || !strings.Contains(r.Diff, "+run: evil") || !r.Cut {
		t.Errorf("the diff: %.300s", r.Diff)
	}
	if len(r.Files) != 200 || r.More != 404-200 || r.Added < 402 {
		t.Errorf("%d files and %d more, %d lines", len(r.Files), r.More, r.Added)
	}
	if pushed := b.leaving(tip, tip); pushed.Diff != r.Diff || len(pushed.Files) != 200 || pushed.Lost.Count != 0 {
		t.Errorf("what is pushed already: %+v", pushed)
	}
	forced := b.leaving(theirs, tip)
	if forced.Lost.Count != 1 || forced.Lost.Some[0].Subject != "theirs" || forced.Lost.Some[0].ID != theirs {
		t.Errorf("lost are %+v", forced.Lost)
	}
	if two, err := b.leavingOf().Refs(t.Context(), []string{"", theirs}, []string{tip, tip}); err != nil || len(two) != 2 {
		t.Errorf("two branches at one commit: %d, %v", len(two), err)
	}
}

// What is no plain file is told as what it is: a link with its target, a submodule with its
// commit, each with what was there before.
func TestLeavingTellsWhatFilesAre(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.commit(b.source, "plain", "one\n")
	b.git(b.source, "update-index", "--add", "--cacheinfo", "160000,"+first+",vendor/sub")
	for name, to := range map[string]string{"moves": "a", "goes": "b", "hardens": "c"} {
		b.must(os.Symlink(to, filepath.Join(b.source, name)))
		b.git(b.source, "add", name)
	}
	b.git(b.source, "commit", "--quiet", "--message", "second")
	second := b.git(b.source, "rev-parse", "HEAD")
	b.makeClone("main")
	b.leavingOf()
	link := func(name, to string) {
		file := filepath.Join(b.dir, "blob")
		b.must(os.WriteFile(file, []byte(to), 0o600))
		b.git(b.clone, "update-index", "--add", "--cacheinfo", "120000,"+b.git(b.clone, "hash-object", "-w", file)+","+name)
	}
	link("plain", "../../../etc/passwd")
	link("moves", "to\n<!channel>\x00")
	link("long", strings.Repeat("x", 5000))
	link("same", "to\n<!channel>\x00")
	link("empty", "")
	b.git(b.clone, "rm", "--quiet", "--cached", "goes")
	b.git(b.clone, "update-index", "--add", "--cacheinfo", "100755,"+b.git(b.clone, "rev-parse", "HEAD:plain")+",hardens")
	b.git(b.clone, "update-index", "--add", "--cacheinfo", "160000,"+second+",vendor/sub")
	b.git(b.clone, "update-index", "--add", "--cacheinfo", "160000,"+second+",vendor/new")
	b.git(b.clone, "commit", "--quiet", "--message", "third")
	got := map[string]gitdata.File{}
	for _, f := range b.leaving("", b.git(b.clone, "rev-parse", "HEAD")).Files {
		path := f.Path
		f.Added, f.Removed, f.Binary, f.Path = 0, 0, false, ""
		got[path] = f
	}
	if diff := cmp.Diff(map[string]gitdata.File{
		"plain":      {Status: "T", Kind: "link", Was: "program", To: "../../../etc/passwd"},
		"moves":      {Status: "M", Kind: "link", From: "a", To: "to\n<!channel>\ufffd"},
		"long":       {Status: "A", Kind: "link", To: "(longer than any that works)"},
		"same":       {Status: "A", Kind: "link", To: "to\n<!channel>\ufffd"},
		"empty":      {Status: "A", Kind: "link"},
		"goes":       {Status: "D", Kind: "link", From: "b"},
		"hardens":    {Status: "T", Kind: "program", Was: "link", From: "c"},
		"vendor/sub": {Status: "M", Kind: "submodule", From: first, To: second},
		"vendor/new": {Status: "A", Kind: "submodule", To: second},
	}, got); diff != "" {
		t.Error(diff)
	}
}

// Of a push of 5,000 files the card has some, those that give orders first, and the count of
// the others; the diff is cut, and that is said.
func TestLeavingManyFiles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.commit(b.source, "lib.go", "one\n")
	b.makeClone("main")
	b.leavingOf()
	var in strings.Builder
	fmt.Fprintf(&in, "commit refs/heads/many\ncommitter x <x@example.com> 1 +0000\ndata 4\nmany\nfrom refs/heads/deckhand/7\n")
	for i := range 5000 {
		fmt.Fprintf(&in, "M 100644 inline data/%d/%d\ndata 300\n%-299d\n\n", i%50, i, i)
	}
	fmt.Fprintf(&in, "M 100644 inline zzz/.github/x.yml\ndata 2\nx\n\nM 100644 inline .github/workflows/x.yml\ndata 10\nrun: evil\n\n")
	importing := exec.CommandContext(t.Context(), "git", "-C", b.clone, "fast-import", "--quiet")
	importing.Stdin = strings.NewReader(in.String())
	if out, err := importing.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := b.leaving("", b.git(b.clone, "rev-parse", "many"))
	if len(r.Files) != 200 || r.More != 5002-200 || r.Firsts != 1 || r.Files[0].Path != ".github/workflows/x.yml" || !r.Files[0].Orders {
		t.Errorf("%d files, %d more, %d first, at first %+v", len(r.Files), r.More, r.Firsts, r.Files[0])
	}
	if !r.Cut || len(r.Diff) > 64<<10 || !strings.HasPrefix(r.Diff, "diff --git a/.github/workflows/x.yml") || !strings.Contains(r.Diff, "+run: evil") {
		t.Errorf("the diff has %d bytes, cut is %v: %.200s", len(r.Diff), r.Cut, r.Diff)
	}
}

// Of a clone that somebody else has made to deceive, nothing is told that is not true.
func TestLeavingAHostileClone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	main := b.commit(b.source, "lib.go", "one\n")
	b.makeClone("main")
	b.leavingOf()
	evil := b.commit(b.clone, "evil.sh", "curl evil.example\n")
	harmless := b.git(b.clone, "commit-tree", "-p", main, "-m", "harmless", main+"^{tree}")
	object := func(id string) string { return filepath.Join(b.clone, ".git/objects", id[:2], id[2:]) }
	look := func() (gitdata.LeavingRef, error) {
		out, err := b.leavingOf().Refs(b.Context(), []string{""}, []string{evil})
		if err != nil {
			return gitdata.LeavingRef{}, err
		}
		return out[0], nil
	}
	// Another object under the name of the one that is pushed.
	text, err := os.ReadFile(object(harmless))
	b.must(err)
	was, err := os.ReadFile(object(evil))
	b.must(err)
	b.must(os.Chmod(object(evil), 0o600))
	b.must(os.WriteFile(object(evil), text, 0o600))
	if r, err := look(); err == nil {
		t.Errorf("another object has the name: %+v", r)
	}
	b.must(os.WriteFile(object(evil), was, 0o600))

	// Replacements, grafts, attributes, configuration and alternates are not heard.
	b.git(b.clone, "replace", evil, harmless)
	b.write(filepath.Join(b.clone, ".git/info/grafts"), evil+"\n")
	b.write(filepath.Join(b.clone, ".git/info/attributes"), "* -diff\n")
	b.write(filepath.Join(b.clone, ".git/config"), "[core]\n\tfsmonitor = touch "+b.traces+"/x\n[diff]\n\texternal = touch "+b.traces+"/y\n[include]\n\tpath = /dev/zero\n")
	r, err := look()
	b.must(err)
	if r.Commits.Count != 1 || r.Commits.Some[0].ID != evil || !strings.Contains(r.Diff, "+curl evil.example") {
		t.Errorf("%+v", r)
	}
	secret := filepath.Join(b.dir, "secret")
	b.git(b.dir, "init", "--quiet", secret)
	b.git(secret, "config", "user.name", "x")
	b.git(secret, "config", "user.email", "x@example.com")
	theirs := b.commit(secret, "secret", "s3cret\n")
	b.write(filepath.Join(b.clone, ".git/objects/info/alternates"), filepath.Join(secret, ".git/objects")+"\n")
	if out, err := b.leavingOf().Refs(b.Context(), []string{""}, []string{theirs}); err == nil {
		t.Errorf("objects of others: %+v", out)
	}
	if left, err := os.ReadDir(b.traces); err != nil || len(left) > 0 {
		t.Error("something ran:", left, err)
	}
	for _, name := range []string{"main;x", "../x", "a..b", "x.lock", "-x", "nowhere", "\x00"} {
		if _, commit, err := b.leavingOf().Name(name); err == nil {
			t.Errorf("%q is %s", name, commit)
		}
	}
}
