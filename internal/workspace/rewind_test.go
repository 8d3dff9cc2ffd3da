package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/waittest"
	"deckhand/internal/workspace/gitdata"
)

// rewindable is a roaming thread whose states are kept.
type rewindable struct{ *roaming }

// write writes a file of the thread's folder, with the folders above.
func (r rewindable) write(name, text string) {
	r.Helper()
	at := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

func (r rewindable) commit(name, text string) {
	r.Helper()
	r.write(name, text)
	runGit(r.T(), r.dir, "add", "-f", name)
	runGit(r.T(), r.dir, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "-m", name)
}

// ends ends a turn: the state is kept.
func (r rewindable) ends(turn int64) State {
	r.Helper()
	t := r.thread()
	t.End = &End{Turn: turn}
	if err := r.k.Publish(r.Context(), t, r.p); err != nil {
		r.Fatal(err)
	}
	if left, err := r.k.Save(r.Context(), t, r.p); left != "" || err != nil {
		r.Fatal(left, err)
	}
	s := r.shelf.kept.States
	if len(s) == 0 || s[len(s)-1].Turn != turn {
		r.Fatalf("the states are %+v", s)
	}
	return s[len(s)-1]
}

func (r rewindable) T() testing.TB { return r.TB }

// has checks what is in the folder: the content by name, empty for nothing.
func (r rewindable) has(files map[string]string) {
	r.Helper()
	for name, want := range files {
		if b, err := os.ReadFile(filepath.Join(r.dir, name)); string(b) != want {
			r.Errorf("%s is %q, %v; want %q", name, b, err, want)
		}
	}
}

// TestRewind: the folder is as it was, its branch and its other branches too, and what git ignores stays; nothing that
// the session has written into its git folder is run or stays. It can be had back, once by each key, and on another
// machine.
func TestRewind(t *testing.T) {
	t.Parallel()
	r := rewindable{newRoaming(t)}
	r.goOn("a")
	r.commit(".gitignore", "cache/\n*.tmp\n")
	r.commit("kept", "one\n")
	r.write("loose", "one\n")
	one := r.ends(1)

	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	r.commit("kept", "two\n")
	r.commit("more/deep", "two\n")
	runGit(t, r.dir, "branch", "side", runGit(t, r.dir, "-c", "user.name=x", "-c", "user.email=x@y", "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "side"))
	r.write("loose", "two\n")
	r.write("cache/big", "ignored\n")
	r.write("more/x.tmp", "ignored\n")
	r.write("new", "two\n")
	// Hostile: a hook, a filter, a link out of the folder.
	r.write(".git/hooks/post-checkout", "#!/bin/sh\ntouch "+outside+"/hook\n")
	if err := os.Chmod(filepath.Join(r.dir, ".git/hooks/post-checkout"), 0o755); err != nil {
		t.Fatal(err)
	}
	runGit(t, r.dir, "config", "filter.x.smudge", "touch "+outside+"/filter")
	r.write(".gitattributes", "* filter=x\n")
	if err := os.Symlink(outside, filepath.Join(r.dir, "way")); err != nil {
		t.Fatal(err)
	}
	two := r.ends(2)
	if slices.Equal([]string{one.Branch, one.Saved}, []string{two.Branch, two.Saved}) || r.shelf.kept.Held == "" {
		t.Fatalf("%+v, %+v", one, r.shelf.kept)
	}

	d, err := r.k.Differs(t.Context(), Way{r.thread(), r.p, two, one}, "")
	if err != nil || d.Lost.Count != 3 || len(d.Files) != 6 || d.Pushed != 0 || d.Alone != "" {
		t.Errorf("the way back: %+v, %v", d, err)
	}
	if d, err := r.k.Differs(t.Context(), Way{r.thread(), r.p, two, one}, runGit(t, r.dir, "rev-parse", "HEAD~1")); err != nil || d.Pushed != 1 {
		t.Errorf("with a commit that was pushed: %+v, %v", d, err)
	}
	if _, err := r.k.Differs(t.Context(), Way{r.thread(), r.p, two, State{Branch: strings.Repeat("ab", 20)}}, ""); !errors.Is(err, gitdata.ErrGone) {
		t.Errorf("to what is not there: %v", err)
	}

	back := func(key string, now, then State) {
		t.Helper()
		if told, err := r.k.Rewind(t.Context(), key, Way{r.thread(), r.p, now, then}); told != "" || err != nil {
			t.Fatal(told, err)
		}
		if left, err := filepath.Glob(r.dir + ".*"); err != nil || len(left) > 0 {
			t.Errorf("beside the folder is %v, %v", left, err)
		}
	}
	wasOne := map[string]string{"kept": "one\n", "loose": "one\n", "new": "", "more/deep": "", "cache/big": "ignored\n", "more/x.tmp": "ignored\n", ".gitattributes": "", ".git/hooks/post-checkout": ""}
	back("k1", two, one)
	r.has(wasOne)
	if got := runGit(t, r.dir, "rev-parse", "HEAD"); got != one.Branch {
		t.Errorf("HEAD is %s", got)
	}
	if got := runGit(t, r.dir, "status", "--porcelain"); got != "?? loose" {
		t.Errorf("git says %q", got)
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) > 0 {
		t.Errorf("outside the folder there is %v, %v", found, err)
	}
	r.write("loose", "later\n")
	back("k1", two, one)
	r.has(map[string]string{"loose": "later\n"})
	r.write("loose", "one\n")
	r.ends(1)

	back("k2", one, two)
	r.has(map[string]string{"kept": "two\n", "loose": "two\n", "new": "two\n", "more/deep": "two\n", "cache/big": "ignored\n", "more/x.tmp": "ignored\n", ".gitattributes": "* filter=x\n"})
	if got := runGit(t, r.dir, "branch", "--list", "side"); got != "side" {
		t.Errorf("the other branch: %q", got)
	}
	r.ends(2)

	r.goOn("b")
	back("k3", two, one)
	delete(wasOne, "cache/big")
	delete(wasOne, "more/x.tmp")
	r.has(wasOne)
}

// TestRewindIsKilled: whenever it is killed, the folder is as it was or as it is to be, with all that git ignores, and a
// second try ends it.
func TestRewindIsKilled(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]func(r rewindable, was string){
		"when the new folder is ready": func(r rewindable, _ string) {
			if err := os.CopyFS(r.dir+".next", os.DirFS(r.dir)); err != nil {
				r.Fatal(err)
			}
		},
		"between the folders": func(r rewindable, was string) {
			if err := os.Rename(r.dir, was); err != nil {
				r.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rewindable{newRoaming(t)}
			r.goOn("a")
			r.commit(".gitignore", "cache/\n")
			one := r.ends(1)
			r.commit("kept", "two\n")
			r.write("cache/big", "ignored\n")
			two := r.ends(2)
			killed(r, r.dir+".was-6b-"+two.git().Tree())
			if dir, _, err := r.k.Open(t.Context(), r.thread(), r.p); dir != r.dir || err != nil {
				t.Fatal(dir, err)
			}
			r.has(map[string]string{"kept": "two\n", "cache/big": "ignored\n"})
			if told, err := r.k.Rewind(t.Context(), "k", Way{r.thread(), r.p, two, one}); told != "" || err != nil {
				t.Fatal(told, err)
			}
			r.has(map[string]string{"kept": "", "cache/big": "ignored\n"})
		})
	}
	t.Run("before what is ignored went over", func(t *testing.T) {
		t.Parallel()
		r := rewindable{newRoaming(t)}
		r.goOn("a")
		r.commit(".gitignore", "cache/\n")
		one := r.ends(1)
		r.commit("kept", "two\n")
		r.write("cache/big", "ignored\n")
		two := r.ends(2)
		if _, err := r.k.Rewind(t.Context(), "x", Way{r.thread(), r.p, two, one}); err != nil {
			t.Fatal(err)
		}
		was := r.dir + ".was-6b-" + two.git().Tree()
		if err := errors.Join(os.Mkdir(was, 0o755), os.Rename(filepath.Join(r.dir, "cache"), filepath.Join(was, "cache"))); err != nil {
			t.Fatal(err)
		}
		if told, err := r.k.Rewind(t.Context(), "k", Way{r.thread(), r.p, two, one}); told != "" || err != nil {
			t.Fatal(told, err)
		}
		r.has(map[string]string{"kept": "", "cache/big": "ignored\n"})
	})
}

// TestRewindLosesNothing: what a rewind would lose is named instead; what a rewind has moved away is not replaced by the
// next one; submodules keep their git folders; and what it left when it was killed does not outlive the folder.
func TestRewindLosesNothing(t *testing.T) {
	t.Parallel()
	r := rewindable{newRoaming(t)}
	r.goOn("a")
	r.commit("large", "small\n")
	r.write("out", "first\n")
	one := r.ends(1)
	if err := errors.Join(os.Remove(filepath.Join(r.dir, "out")), os.Mkdir(filepath.Join(r.dir, ".git/modules"), 0o755)); err != nil {
		t.Fatal(err)
	}
	r.write(".git/modules/lib/HEAD", "ref\n")
	r.commit(".gitignore", "out\nout.before-rewind\n")
	r.write("out", "second\n")
	r.write("out.before-rewind", "earlier\n")
	two := r.ends(2)

	r.write("large", strings.Repeat("x", 17<<20))
	if _, err := r.k.Rewind(t.Context(), "k0", Way{r.thread(), r.p, two, one}); err == nil || !strings.Contains(err.Error(), "large") {
		t.Errorf("a large file that differs: %v", err)
	}
	r.write("large", "small\n")
	if told, err := r.k.Rewind(t.Context(), "k1", Way{r.thread(), r.p, two, one}); told != "" || err != nil {
		t.Fatal(told, err)
	}
	r.has(map[string]string{"out": "first\n", ".git/modules/lib/HEAD": "ref\n"})
	earlier, _ := filepath.Glob(filepath.Join(r.dir, "out.before-rewind*"))
	var texts []string
	for _, name := range earlier {
		b, _ := os.ReadFile(name)
		texts = append(texts, string(b))
	}
	if slices.Sort(texts); !slices.Equal(texts, []string{"earlier\n", "second\n"}) {
		t.Errorf("moved away are %q", texts)
	}

	if err := errors.Join(os.MkdirAll(r.dir+".was-6b-"+two.git().Tree(), 0o755), os.Mkdir(r.dir+".next", 0o755)); err != nil {
		t.Fatal(err)
	}
	Sweep(r.k.DataDir)
	if _, _, err := r.k.PutAway(t.Context(), r.thread(), r.p); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(r.dir + ".*"); len(left) > 0 {
		t.Errorf("there is still %v", left)
	}
}

// TestRewindOfFurther: what a session puts beside a further repository's folder is never taken for a rewind's.
func TestRewindOfFurther(t *testing.T) {
	t.Parallel()
	r := rewindable{newRoaming(t)}
	r.goOn("a")
	p := r.p
	p.Further = "lib"
	own := r.k.ownFolder(r.thread(), p)
	outside := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, own+".was-6b-"+strings.Repeat("ab", 20)); err != nil {
		t.Fatal(err)
	}
	if told, err := r.k.settle(t.Context(), r.thread(), p); told != "" || err != nil {
		t.Error(told, err)
	}
	if _, err := os.Lstat(own); err == nil {
		t.Error("a link of the session's became the repository's folder")
	}
}

// TestRewindOfTwo: if one of a thread's repositories cannot be taken back none is; else each is, and git is obeyed there as
// before.
func TestRewindOfTwo(t *testing.T) {
	t.Parallel()
	w := newTwo(t)
	w.ends(1)
	w.ends(2)
	obeyed := func(when string) {
		t.Helper()
		if way := w.ways(2, 2)[0]; !w.k.Obeys(way.Thread, way.Project) {
			t.Errorf("%s git is not obeyed in the further repository", when)
		}
	}
	obeyed("before the rewind")
	put(t, filepath.Join(w.dir, "committed"), strings.Repeat("x", 17<<20))
	if _, err := w.k.Rewind(t.Context(), "k0", w.ways(2, 1)...); err == nil || errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), "committed") {
		t.Errorf("a large file that differs: %v", err)
	}
	put(t, filepath.Join(w.dir, "committed"), "2\n")
	w.are("after a rewind that failed", 2)
	if told, err := w.k.Rewind(t.Context(), "k1", w.ways(2, 1)...); told != "" || err != nil {
		t.Fatal(told, err)
	}
	w.are("after the rewind", 1)
	obeyed("after the rewind")
	// What cannot be ended now, since one of them is taken back already, is no failure.
	put(t, filepath.Join(w.dir, "committed"), strings.Repeat("x", 17<<20))
	ways := w.ways(1, 2)
	if _, err := w.k.Rewind(t.Context(), "k2", ways[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := w.k.Rewind(t.Context(), "k2", ways...); !errors.Is(err, ErrUnfinished) {
		t.Errorf("the other one fails: %v", err)
	}
	put(t, filepath.Join(w.dir, "committed"), "1\n")
	if told, err := w.k.Rewind(t.Context(), "k2", ways...); told != "" || err != nil {
		t.Fatal(told, err)
	}
	w.are("after another try", 2)
	// What is gone of a further one is left alone; what is gone of the thread's own is an error.
	ways = w.ways(2, 1)
	ways[0].Then.Branch = strings.Repeat("ab", 20)
	if told, err := w.k.Rewind(t.Context(), "k3", ways...); told != "" || err != nil {
		t.Fatal(told, err)
	}
	if own, lib := w.at("one is gone", ""), w.at("one is gone", "lib"); own != 1 || lib != 2 {
		t.Errorf("its own is at %d, the other one at %d", own, lib)
	}
	ways = w.ways(1, 2)
	ways[1].Then.Branch = strings.Repeat("ab", 20)
	if _, err := w.k.Rewind(t.Context(), "k4", ways...); !errors.Is(err, gitdata.ErrGone) {
		t.Errorf("its own is gone: %v", err)
	}
}

// two is a thread with a further repository, lib, whose states are remembered.
type two struct {
	*roaming
	states map[int64]map[string]State
}

func newTwo(t *testing.T) *two {
	t.Helper()
	w := &two{newRoaming(t), map[int64]map[string]State{}}
	w.opens("at first")
	for _, way := range w.ways(0, 0) {
		put(t, filepath.Join(way.Thread.Dir, "cache"), "ignored\n")
		put(t, filepath.Join(way.Thread.Dir, ".gitignore"), "cache\n.deckhand\n")
		runGit(t, way.Thread.Dir, "add", ".gitignore")
		runGit(t, way.Thread.Dir, "commit", "-q", "-m", "ignore")
	}
	return w
}

// ways are those of both from the end of a turn to that of another one.
func (w *two) ways(now, then int64) []Way {
	return waysOf(w.p, w.dir, w.states[now], w.states[then])
}

func waysOf(p Project, dir string, now, then map[string]State) (ways []Way) {
	for _, p.Further = range []string{"lib", ""} {
		ways = append(ways, Way{Thread{Within: waittest.Limit, ID: 7, Branch: "deckhand/7", Dir: Within(dir, p.Further)}, p, now[p.Further], then[p.Further]})
	}
	return ways
}

// opens opens both folders.
func (w *two) opens(what string) {
	w.Helper()
	w.dir = w.k.ownFolder(Thread{ID: 7}, w.p)
	for _, way := range slices.Backward(w.ways(0, 0)) {
		if dir, told, err := w.k.Open(w.Context(), way.Thread, way.Project); dir != way.Thread.Dir || err != nil {
			w.Fatalf("%s: %s, %q, %v", what, dir, told, err)
		}
	}
}

// ends ends a turn that writes its number into both, committed and not.
func (w *two) ends(turn int64) {
	w.Helper()
	for _, way := range w.ways(0, 0) {
		dir := way.Thread.Dir
		put(w, filepath.Join(dir, "committed"), fmt.Sprintln(turn))
		put(w, filepath.Join(dir, "loose"), fmt.Sprintln(turn))
		runGit(w, dir, "add", "committed")
		runGit(w, dir, "commit", "-q", "-m", "turn")
	}
	w.keep(turn)
}

// keep remembers what both are as the states of a turn.
func (w *two) keep(turn int64) {
	w.Helper()
	w.states[turn] = map[string]State{}
	for _, way := range w.ways(0, 0) {
		_, err := w.k.Save(w.Context(), way.Thread, way.Project)
		if err = errors.Join(w.k.Publish(w.Context(), way.Thread, way.Project), err); err != nil {
			w.Fatal(err)
		}
		source, err := gitdata.Open(w.k.source(way.Project))
		if err != nil {
			w.Fatal(err)
		}
		refs, err := source.Refs()
		if err != nil {
			w.Fatal(err)
		}
		w.states[turn][way.Project.Further] = State{Turn: turn, Branch: refs["refs/heads/deckhand/7"], Saved: refs[savedRef(7)]}
	}
}

// at is of which turn's end a repository's folder is.
func (w *two) at(what, name string) (turn int64) {
	w.Helper()
	dir := Within(w.dir, name)
	for file, want := range map[string]string{"committed": "", "loose": "", "cache": "ignored\n"} {
		b, err := os.ReadFile(filepath.Join(dir, file))
		if want == "" {
			if n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); turn == 0 || turn == n {
				turn = n
				continue
			}
		}
		if err != nil || string(b) != want {
			w.Fatalf("%s: %s of %q is %q, %v", what, file, name, b, err)
		}
	}
	if head := Head(dir); head != w.states[turn][name].Branch {
		w.Errorf("%s: %q is at %s and not %s", what, name, head, w.states[turn][name].Branch)
	}
	return turn
}

// are checks that both are as at the end of a turn, and that nothing else is left.
func (w *two) are(what string, turn int64) {
	w.Helper()
	for _, name := range []string{"", "lib"} {
		if at := w.at(what, name); at != turn {
			w.Errorf("%s: %q is at %d and not %d", what, name, at, turn)
		}
	}
	left, err := filepath.Glob(filepath.Join(w.k.DataDir, "workspaces", "*", "*"))
	within, err2 := os.ReadDir(filepath.Join(w.dir, Repositories))
	if err = errors.Join(err, err2); err != nil || !slices.Equal(left, []string{w.dir}) || len(within) != 1 {
		w.Errorf("%s: there are %v and %v, %v", what, left, within, err)
	}
}

// TestStates: the newest are kept, one for each turn; of a turn after which something has changed the folder none is.
// Too large to be kept off the machine, they are here.
func TestStates(t *testing.T) {
	t.Parallel()
	r := rewindable{newRoaming(t)}
	r.goOn("a")
	began := Head(r.dir)
	r.commit("f", "0\n")
	first := r.thread()
	first.End = &End{Turn: 1, Began: map[string]string{"": began}}
	if err := errors.Join(r.k.Publish(t.Context(), first, r.p), func() error { _, err := r.k.Save(t.Context(), first, r.p); return err }()); err != nil {
		t.Fatal(err)
	}
	r.ends(1)
	if s := r.shelf.kept.States; len(s) != 2 || s[0].Turn != 0 || s[0].Branch != began || s[0].Saved != "" {
		t.Errorf("%+v", s)
	}
	for n := range maxStates + 2 {
		r.write("f", strings.Repeat("x", n+1))
		r.ends(int64(n + 2))
	}
	if s := r.shelf.kept.States; len(s) != maxStates || s[0].Turn != 4 {
		t.Errorf("%d states from %+v on", len(s), s[0])
	}
	late := r.thread()
	late.End = &End{Turn: 99, Still: func() bool { return false }}
	r.write("f", "late")
	if _, err := r.k.Save(t.Context(), late, r.p); err != nil {
		t.Fatal(err)
	}
	if s := r.shelf.kept.States; s[len(s)-1].Turn == 99 {
		t.Error("there is a state of a turn after which the folder has changed")
	}
}
