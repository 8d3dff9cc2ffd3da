package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/waittest"
)

// hut is a forge, somebody's clone of it, and a bot with a project of it.
type hut struct {
	testing.TB
	k             *Keeper
	forge, person string
	p             Project
}

func newHut(t testing.TB) *hut {
	t.Helper()
	dir := t.TempDir()
	u := &hut{TB: t, forge: filepath.Join(dir, "forge.git"), person: filepath.Join(dir, "person")}
	repositoryOf(t, u.person)
	runGit(t, dir, "clone", "--quiet", "--bare", u.person, u.forge)
	runGit(t, u.person, "remote", "add", "origin", u.forge)
	u.p = Project{Name: "web", Repo: u.forge, Kind: Worktree}
	u.k = &Keeper{DataDir: filepath.Join(dir, "data")}
	return u
}

// commit commits on a branch of the person's, and pushes it.
func (u *hut) commit(branch, file string) string {
	u.Helper()
	put(u.TB, filepath.Join(u.person, file), file+"\n")
	runGit(u.TB, u.person, "add", ".")
	runGit(u.TB, u.person, "commit", "--quiet", "--message", file)
	runGit(u.TB, u.person, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/"+branch)
	return runGit(u.TB, u.person, "rev-parse", "HEAD")
}

// begin makes a thread's folder, long after the last one was made.
func (u *hut) begin(id int64, dir string) (Thread, []string) {
	u.Helper()
	t := Thread{Within: waittest.Limit, ID: id, Branch: fmt.Sprintf("deckhand/%d", id), Dir: dir}
	u.k.kept(u.p).began = time.Time{}
	made, told, err := u.k.Open(u.Context(), t, u.p)
	if err != nil {
		u.Fatal(err)
	}
	t.Dir = made
	return t, told
}

// end is what the end of a turn does.
func (u *hut) end(t Thread) {
	u.Helper()
	if err := u.k.Publish(u.Context(), t, u.p); err != nil {
		u.Error(err)
	}
	if left, err := u.k.Save(u.Context(), t, u.p); left != "" || err != nil {
		u.Errorf("left: %s, %v", left, err)
	}
}

func (u *hut) at(t Thread, want, revisions string) {
	u.Helper()
	if got := runGit(u.TB, t.Dir, append([]string{"rev-parse"}, strings.Fields(revisions)...)...); got != want {
		u.Errorf("%s are\n%s\nwant\n%s", revisions, got, want)
	}
}

// A new thread begins at what the forge has now, whatever became of its branches.
func TestANewThreadBeginsAtTodaysBase(t *testing.T) {
	t.Parallel()
	u := newHut(t)
	one, told := u.begin(1, "")
	if len(told) > 0 {
		t.Errorf("at first: %q", told)
	}
	put(t, filepath.Join(one.Dir, "mine"), "mine\n")
	u.end(one)
	runGit(t, u.person, "tag", "v1")
	runGit(t, u.person, "push", "--quiet", "origin", "v1", "HEAD:refs/heads/old", "HEAD:refs/heads/a")
	today := u.commit("main", "today")
	two, told := u.begin(2, "")
	if u.at(two, strings.Repeat(today+"\n", 3)+today, "HEAD deckhand/2 main origin/main"); len(told) > 0 {
		t.Errorf("it says %q", told)
	}
	// The branch is renamed, another deleted, and one has the name of a folder.
	runGit(t, u.person, "push", "--quiet", "origin", "HEAD:refs/heads/trunk")
	runGit(t, u.forge, "symbolic-ref", "HEAD", "refs/heads/trunk")
	runGit(t, u.person, "push", "--quiet", "origin", ":main", ":old", ":a", "HEAD:refs/heads/a/b")
	tomorrow := u.commit("trunk", "tomorrow")
	three, told := u.begin(3, "")
	if u.at(three, tomorrow+"\n"+tomorrow+"\n"+today, "HEAD trunk origin/a/b"); len(told) > 0 {
		t.Errorf("it says %q", told)
	}
	if got := runGit(t, three.Dir, "branch", "--remotes", "--format=%(refname) %(symref)"); got != "refs/remotes/origin/HEAD refs/remotes/origin/trunk\nrefs/remotes/origin/a/b \nrefs/remotes/origin/trunk" {
		t.Errorf("it knows\n%s", got)
	}
	// History that was written anew, and a base that is said.
	runGit(t, u.person, "checkout", "--quiet", "v1")
	anew := u.commit("trunk", "anew")
	u.p.Base = "trunk"
	four, _ := u.begin(4, "")
	u.at(four, anew+"\n"+anew, "HEAD trunk")
	u.p.Base = "v1"
	five, _ := u.begin(5, "")
	u.at(five, runGit(t, u.person, "rev-parse", "v1"), "HEAD")
	u.p.Base = "main" // the bot's clone has a branch of this name still
	if dir, _, err := u.k.Open(t.Context(), Thread{ID: 6, Branch: "deckhand/6"}, u.p); err == nil || !strings.Contains(err.Error(), "it has no main that could be started from") {
		t.Errorf("a base that is no more: %s, %v", dir, err)
	}
	// What the threads before have goes on.
	u.p.Base = ""
	u.end(one)
	u.end(two)
	runGit(t, u.k.source(u.p), "gc", "--quiet", "--prune=now")
	for _, dir := range []string{one.Dir, two.Dir, three.Dir, u.k.source(u.p)} {
		runGit(t, dir, "fsck", "--strict", "--connectivity-only")
	}
	if left, _ := os.ReadDir(u.k.scratch()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Where the forge cannot be reached a thread starts from what is there, and says so.
func TestAForgeThatCannotBeReached(t *testing.T) {
	t.Parallel()
	u := newHut(t)
	one, _ := u.begin(1, "")
	base := Head(one.Dir)
	u.commit("main", "today")
	if err := os.Chtimes(filepath.Join(u.k.source(u.p), ".git/deckhand-fetched"), time.Time{}, time.Now().Add(-3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(u.forge, u.forge+".away"); err != nil {
		t.Fatal(err)
	}
	two, told := u.begin(2, "")
	u.at(two, base, "HEAD")
	if want := regexp.MustCompile(`^The repository of project web could not be brought up to date \(.*does not appear to be a git repository\), so this thread starts from what was fetched 3 hours ago\.$`); len(told) != 1 || !want.MatchString(told[0]) {
		t.Errorf("it says %q", told)
	}
	// A forge that has lost everything takes nothing from what is there.
	runGit(t, filepath.Dir(u.forge), "init", "--quiet", "--bare", u.forge)
	three, told := u.begin(3, "")
	if u.at(three, base, "HEAD"); len(told) != 1 || !strings.Contains(told[0], "it has no branch") {
		t.Errorf("it says %q", told)
	}
}

func TestAgo(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]string{
		time.Second: "less than a minute ago", time.Minute: "a minute ago", 59 * time.Minute: "59 minutes ago", time.Hour: "an hour ago", 25 * time.Hour: "a day ago", 80 * time.Hour: "3 days ago",
	} {
		if got := ago(time.Now().Add(-age)); got != want {
			t.Errorf("%s: %q", age, got)
		}
	}
	if got := ago(time.Time{}); got != "at an unknown time" {
		t.Error(got)
	}
}

// First mentions that come together make one clone, or one fetch.
func TestFirstMentionsShareAFetch(t *testing.T) {
	t.Parallel()
	u := newHut(t)
	var all sync.WaitGroup
	for id := range 4 {
		all.Go(func() {
			if _, _, err := u.k.Open(t.Context(), Thread{ID: int64(id + 1), Branch: fmt.Sprintf("deckhand/%d", id+1)}, u.p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	one := turnstile{busy: make(chan struct{}, 1)}
	var ran atomic.Int32
	gone, leave := context.WithCancelCause(t.Context())
	begun, release := make(chan struct{}), make(chan struct{})
	fails := errors.New("it fails")
	all.Go(func() {
		err := one.once(gone, func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, fails) {
			t.Errorf("who had to leave hears %v", err)
		}
	})
	<-begun
	for range 5 {
		all.Go(func() {
			err := one.once(t.Context(), func(context.Context) error {
				ran.Add(1)
				<-release
				return fails
			})
			if !errors.Is(err, fails) {
				t.Errorf("somebody hears %v", err)
			}
		})
	}
	leave(fails)
	close(release)
	all.Wait()
	if ran.Load() != 1 {
		t.Errorf("it ran %d times", ran.Load())
	}
}

// A thread whose folder is gone, in this data folder or in another one with the same
// repository, has its commits and its files again, and says so.
func TestAFolderThatIsGone(t *testing.T) {
	t.Parallel()
	u := newHut(t)
	u.p.Repo, u.p.Dir = "", u.person
	one, _ := u.begin(1, "")
	put(t, filepath.Join(one.Dir, "committed"), "1\n")
	runGit(t, one.Dir, "add", ".")
	runGit(t, one.Dir, "commit", "--quiet", "--message", "mine")
	tip := Head(one.Dir)
	put(t, filepath.Join(one.Dir, "not-committed"), "2\n")
	u.end(one)
	if err := os.RemoveAll(one.Dir); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		again, told := u.begin(1, one.Dir)
		u.at(again, tip+"\n"+tip, "HEAD deckhand/1")
		if text, err := os.ReadFile(filepath.Join(again.Dir, "not-committed")); err != nil || string(text) != "2\n" {
			t.Errorf("%s: %q, %v", what, text, err)
		}
		if len(told) != 1 || !strings.HasPrefix(told[0], "The folder that this thread worked in was gone. Its commits are back, and what was not committed, as it was at 20") {
			t.Errorf("%s: it says %q", what, told)
		}
		u.end(again)
	}
	check("here")
	u.k = &Keeper{DataDir: filepath.Join(t.TempDir(), "other")}
	one.Dir += ".elsewhere"
	check("in another data folder")
	// The bot ended before it could write down that there is a folder.
	if got, told := u.begin(1, ""); got.Dir != u.k.ownFolder(got, u.p) || len(told) != 1 || !strings.Contains(told[0], "an earlier thread") {
		t.Errorf("%s, %q", got.Dir, told)
	}
	if _, told := u.begin(2, "/nowhere"); len(told) != 1 || !strings.Contains(told[0], "starts anew") {
		t.Errorf("nothing is left of it: %q", told)
	}
	if got, told := u.begin(2, ""); len(told) > 0 || !isDir(got.Dir) {
		t.Errorf("made and not written down: %q", told)
	}
}

// What a killed run has left half done goes when the next one begins, and nothing else.
func TestWhatWasHalfDoneIsSwept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	half := []string{"scratch/view-1/x", "repos/.clone-1/x", "workspaces/web/.clone-2/x"}
	whole := []string{"repos/web/x", "workspaces/web/1/.clone-3/x", "saved/web/1"}
	for _, name := range append(slices.Clone(half), whole...) {
		put(t, filepath.Join(dir, name), "x")
	}
	Sweep(dir)
	for _, name := range half {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	for _, name := range whole {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestNamesOfFiles(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"cmd/bot/main.go": "cmd/bot/main.go", "größe.md": "größe.md", "a b": `"a b"`, "x\nApproved by Ada.": `"x\nApproved by Ada."`,
		strings.Repeat("d/", 60) + "end": `"…` + strings.Repeat("/d", 48) + `/end"`,
	} {
		if got := named(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestWhatIsNotSavedIsSaid(t *testing.T) {
	t.Parallel()
	u := newHut(t)
	one, _ := u.begin(1, "")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		runGit(t, one.Dir, "init", "--quiet", name)
		put(t, filepath.Join(one.Dir, name, "x"), "x")
	}
	got, err := u.k.Save(t.Context(), one, u.p)
	if got != "In this thread's folder alone, and lost with it, are a (a repository of its own), b (a repository of its own), c (a repository of its own), d (a repository of its own), e (a repository of its own), and 2 more. What else is not committed is saved." || err != nil {
		t.Errorf("it says %q, %v", got, err)
	}
	if got := Unsaved(errors.New("the disk is full")); got != "What is not committed here is in this thread's folder alone, since it could not be saved: the disk is full." {
		t.Errorf("it says %q", got)
	}
	_, full := os.ReadFile(filepath.Join(one.Dir, "nothing"))
	if got := Unpublished(fmt.Errorf("publish: %w", full)); got != "What was committed here is not in the project's repository yet: no such file or directory." {
		t.Errorf("it says %q", got)
	}
	if left, err := u.k.Save(t.Context(), one, Project{Kind: Shared}); left != "" || err != nil {
		t.Errorf("a shared folder: %q, %v", left, err)
	}
}

// TestANewThreadStartsFromTheBase that the forge has today.
func TestANewThreadStartsFromTheBase(t *testing.T) {
	t.Parallel()
	u := newHut(t)
	for id, file := range []string{"one", "two"} {
		want := u.commit("main", file)
		thread, _ := u.begin(int64(id+1), "")
		u.k.kept(u.p).began = time.Time{}
		if Head(thread.Dir) != want {
			t.Errorf("after %s a new thread is at %s, and the forge at %s", file, Head(thread.Dir), want)
		}
	}
}

// A branch that somebody else has at the forge is nobody's to begin on, and the next free name is
// said. Whoever has begun keeps the name.
func TestABranchThatSomebodyElseTook(t *testing.T) {
	t.Parallel()
	u := newHut(t)
	u.commit("deckhand/1", "theirs")
	u.commit("deckhand/1-2", "theirs-too")
	_, _, err := u.k.Open(t.Context(), Thread{ID: 1, Branch: "deckhand/1"}, u.p)
	taken, ok := errors.AsType[*TakenError](err)
	if !ok || taken.Free != "deckhand/1-3" || isDir(u.k.ownFolder(Thread{ID: 1}, u.p)) {
		t.Fatalf("it says %v", err)
	}
	one := Thread{ID: 1, Branch: taken.Free}
	if one.Dir, _, err = u.k.Open(t.Context(), one, u.p); err != nil {
		t.Fatal(err)
	}
	u.commit(one.Branch, "as-pushed")
	u.at(one, runGit(t, one.Dir, "rev-parse", "main"), taken.Free)
	if err := os.RemoveAll(one.Dir); err != nil {
		t.Fatal(err)
	}
	u.k.kept(u.p).began = time.Time{}
	if _, _, err := u.k.Open(t.Context(), one, u.p); err != nil {
		t.Errorf("made again: %v", err)
	}
}

// A thread's folder has neither submodules nor the content of files in Git LFS, which is said once.
func TestWhatIsNotFetchedIsSaid(t *testing.T) {
	t.Parallel()
	u := newHut(t)
	put(t, filepath.Join(u.person, "art/.gitattributes"), "*.png filter=lfs diff=lfs merge=lfs -text\n")
	u.commit("main", "art/a.png") // committed before there was LFS
	if _, told := u.begin(1, ""); told != nil {
		t.Errorf("nothing is missing, and it says %q", told)
	}
	put(t, filepath.Join(u.person, "art/b.png"), "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
	u.commit("main", "art/c.txt")
	two, told := u.begin(2, "")
	if len(told) != 1 || !strings.Contains(told[0], "Git LFS") {
		t.Errorf("of files in LFS it says %q", told)
	}
	runGit(t, u.person, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", u.forge, "lib")
	u.commit("main", "more")
	if _, told = u.begin(3, ""); len(told) != 2 || !strings.Contains(told[0], "git: also of project web") {
		t.Errorf("of submodules it says %q", told)
	}
	if _, told = u.begin(2, two.Dir); told != nil {
		t.Errorf("the second time it says %q", told)
	}
	shared := Project{Name: "all", Repo: u.forge, Kind: Shared}
	if _, told, err := u.k.Open(t.Context(), Thread{ID: 4}, shared); err != nil || len(told) != 2 {
		t.Errorf("in a shared folder it says %q, %v", told, err)
	}
	if _, told, err := u.k.Open(t.Context(), Thread{ID: 5}, shared); err != nil || told != nil {
		t.Errorf("later it says %q, %v", told, err)
	}
}

// TestWhatABranchChanges is what differs since it has left its base, also where it has taken in a newer one.
func TestWhatABranchChanges(t *testing.T) {
	t.Parallel()
	u := newHut(t)
	one, _ := u.begin(1, "")
	for i := range 250 {
		put(t, filepath.Join(one.Dir, fmt.Sprintf("many/%d", i)), "x")
	}
	put(t, filepath.Join(one.Dir, "a \"name\"\nof two lines"), "x")
	runGit(t, one.Dir, "add", ".")
	runGit(t, one.Dir, "commit", "--quiet", "--message", "mine")
	theirs := u.commit("main", "theirs")
	runGit(t, one.Dir, "fetch", "--quiet", u.forge, "main")
	runGit(t, one.Dir, "merge", "--quiet", "--no-edit", "FETCH_HEAD")
	u.k.kept(u.p).began = time.Time{}
	left, changed, _, err := u.k.Before(t.Context(), one, u.p)
	if err != nil || left != theirs || len(changed) != 200 || changed[0] != "a \"name\"\nof two lines" || changed[1] != "many/0" {
		t.Errorf("since %s it changes %d files, %.2q, %v", left, len(changed), changed, err)
	}
	two, _ := u.begin(2, "")
	runGit(t, two.Dir, "commit", "--quiet", "--allow-empty", "--message", "nothing")
	if _, changed, _, err := u.k.Before(t.Context(), two, u.p); err != nil || len(changed) != 0 {
		t.Errorf("nothing is %q, %v", changed, err)
	}
}
