package workspace

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A folder goes only when all that it has is somewhere else, and comes back as it was.
func TestPutAway(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	r.goOn("a")
	r.commit("committed", "1\n")
	r.write("not-committed", "2\n")
	away := func(what, stays string) {
		t.Helper()
		why, told, err := r.k.PutAway(t.Context(), r.thread(), r.p)
		if !strings.Contains(why, stays) || stays == "" && why != "" || len(told) > 0 || err != nil || isDir(r.dir) != (stays != "") {
			t.Errorf("%s: it stays since %q, says %q, %v; it is there: %v", what, why, told, err, isDir(r.dir))
		}
	}
	put(t, filepath.Join(r.dir, "nested/x"), "x")
	runGit(t, r.dir, "init", "--quiet", "nested")
	away("a repository in it", "nested (a repository of its own)")
	if err := os.RemoveAll(filepath.Join(r.dir, "nested")); err != nil {
		t.Fatal(err)
	}
	r.write("README.md", "stashed\n")
	runGit(t, r.dir, "stash", "--quiet")
	away("a stash", "refs/stash is nowhere else")
	runGit(t, r.dir, "stash", "drop", "--quiet")
	put(t, filepath.Join(r.dir, ".git/MERGE_HEAD"), Head(r.dir)+"\n")
	away("a merge", "MERGE_HEAD")
	if err := os.Remove(filepath.Join(r.dir, ".git/MERGE_HEAD")); err != nil {
		t.Fatal(err)
	}
	r.write("more", "3\n")
	r.k.KeepBytes = 1
	away("too large to be kept", "On this machine alone")
	r.k.KeepBytes = 0
	r.shelf.fails = errNoSandbox
	if _, _, err := r.k.PutAway(t.Context(), r.thread(), r.p); err == nil || !isDir(r.dir) {
		t.Errorf("without a shelf that takes it: %v", err)
	}
	r.shelf.fails = nil
	away("all is kept", "")
	away("it is away", "")
	told := r.goOn("a")
	r.files(map[string]string{"committed": "1\n", "not-committed": "2\n"})
	if len(told) != 1 || !strings.HasPrefix(told[0], "The folder of this thread was put away while it rested. Its commits are back, and what was not committed") {
		t.Errorf("it says %q", told)
	}
	// One that a thread has left behind for another machine.
	r.endTurn("")
	left := r.k
	r.goOn("b")
	th := r.thread()
	th.Elsewhere = true
	if stays, told, err := left.PutAway(t.Context(), th, r.p); stays != "" || len(told) > 0 || err != nil || isDir(left.ownFolder(th, r.p)) {
		t.Errorf("left behind: %q, %q, %v", stays, told, err)
	}
	if stays, _, _ := r.k.PutAway(t.Context(), Thread{ID: 9, Dir: r.dir}, Project{Name: "x", Kind: Scratch}); stays == "" {
		t.Error("a scratch folder may go")
	}
}

// What is kept of a thread is somewhere else once the forge has its commits and nothing
// else is there, or the project's own folder has it all.
func TestKeptElsewhere(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	check := func(what string, want bool) {
		t.Helper()
		r.k.kept(r.p).began = time.Time{}
		if got, err := r.k.KeptElsewhere(t.Context(), r.thread(), r.p); got != want || err != nil {
			t.Errorf("%s: it is somewhere else: %v, %v; want %v", what, got, err, want)
		}
	}
	r.goOn("a")
	check("nothing is kept", true)
	r.commit("committed", "1\n")
	r.endTurn("")
	check("a commit", false)
	runGit(t, r.dir, "push", "--quiet", r.forge, "HEAD:refs/heads/deckhand/mine")
	check("pushed", true)
	r.write("not-committed", "2\n")
	r.endTurn("")
	check("not committed", false)
	r.commit("not-committed", "2\n")
	r.endTurn("")
	check("committed, and not pushed", false)
	runGit(t, r.dir, "push", "--quiet", r.forge, "HEAD:refs/heads/deckhand/mine")
	check("pushed again", true)
	runGit(t, r.dir, "branch", "beside", "HEAD")
	runGit(t, r.dir, "checkout", "--quiet", "beside")
	r.commit("beside", "3\n")
	runGit(t, r.dir, "checkout", "--quiet", "deckhand/7")
	r.endTurn("")
	check("a branch beside it", false)
	runGit(t, r.forge, "update-ref", "-d", "refs/heads/deckhand/mine")
	runGit(t, r.dir, "branch", "-D", "beside")
	r.endTurn("")
	check("deleted at the forge", false)
	// A machine that does not know what was saved cannot tell.
	r.write("not-committed", "4\n")
	r.endTurn("")
	other := &Keeper{DataDir: filepath.Join(t.TempDir(), "data")}
	if _, _, err := other.Open(t.Context(), Thread{ID: 8, Branch: "deckhand/8"}, r.p); err != nil {
		t.Fatal(err)
	}
	if got, err := other.KeptElsewhere(t.Context(), r.thread(), r.p); got || err == nil {
		t.Errorf("on another machine: %v, %v", got, err)
	}

	// Of a project with a folder, that is where it is to be.
	own := &roaming{hut: newHut(t), shelf: &memory{}, machines: map[string]*Keeper{}}
	own.p = Project{Name: "own", Dir: own.person, Kind: Worktree}
	own.goOn("a")
	own.write("not-committed", "1\n")
	own.endTurn("")
	if got, err := own.k.KeptElsewhere(t.Context(), own.thread(), own.p); !got || err != nil {
		t.Errorf("in its own folder: %v, %v", got, err)
	}
}

func TestSurplus(t *testing.T) {
	t.Parallel()
	now := time.Now()
	dir := t.TempDir()
	for name, size := range map[string]int{"web/1/a": 10, "web/1/b/c": 10, "web/2/a": 30, "api/3/a": 40, "api/.clone-1/a": 5, "api/4.before-1/a": 5} {
		put(t, filepath.Join(dir, "workspaces", name), strings.Repeat("x", size))
	}
	all, err := Folders(t.Context(), dir)
	slices.SortFunc(all, func(a, b Folder) int { return int(a.Thread - b.Thread) })
	if !slices.Equal(all, []Folder{{1, 20}, {2, 30}, {3, 40}}) || err != nil {
		t.Fatalf("%v, %v", all, err)
	}
	resting := []Resting{{all[0], now.Add(-time.Hour)}, {all[1], now.Add(-3 * time.Hour)}}
	for name, test := range map[string]struct {
		limits Limits
		want   []int64
	}{
		"none":      {Limits{}, nil},
		"age":       {Limits{MaxAge: 2 * time.Hour}, []int64{2}},
		"size":      {Limits{MaxBytes: 80}, []int64{2}},
		"more size": {Limits{MaxBytes: 50}, []int64{2, 1}},
		"both":      {Limits{MaxAge: 2 * time.Hour, MaxBytes: 60}, []int64{2}},
		"enough":    {Limits{MaxAge: 4 * time.Hour, MaxBytes: 90}, nil},
	} {
		var got []int64
		for _, r := range test.limits.Surplus(all, resting, now) {
			got = append(got, r.Thread)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Folders(ended, dir); err == nil {
		t.Error("it went on")
	}
}

// A folder that a project's threads share is fetched into, and nothing in it changes.
func TestASharedFolderIsFetched(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	r.p.Kind = Shared
	if told := r.goOn("a"); len(told) > 0 {
		t.Errorf("at first: %q", told)
	}
	r.write("README.md", "ours\n")
	head := Head(r.dir)
	today := r.hut.commit("main", "today")
	r.dir = ""
	told := r.goOn("a")
	r.hut.at(r.thread(), head+"\n"+today, "HEAD origin/main")
	if r.files(map[string]string{"README.md": "ours\n", "today": ""}); len(told) != 1 || !strings.HasPrefix(told[0], "The folder that the threads of project web share lacks a commit of origin/main, which is fetched.") {
		t.Errorf("it says %q", told)
	}
	// What was made of its packs leads nowhere.
	packs, elsewhere := filepath.Join(r.dir, ".git/objects/pack"), t.TempDir()
	if err := os.Rename(packs, packs+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, packs); err != nil {
		t.Fatal(err)
	}
	r.hut.commit("main", "tomorrow")
	r.dir = ""
	if told := r.goOn("a"); len(told) != 1 || !regexp.MustCompile(`could not be brought up to date`).MatchString(told[0]) {
		t.Errorf("it says %q", told)
	}
	if found, _ := os.ReadDir(elsewhere); len(found) > 0 {
		t.Errorf("it was written to: %v", found)
	}
}
