package workspace

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/waittest"
)

// memory is a shelf in memory.
type memory struct {
	kept  Kept
	packs map[uuid.UUID][]byte
	fails error // what Keep says
	while func()
}

func (m *memory) Kept(context.Context) (Kept, error) {
	if m.while != nil {
		m.while()
	}
	return m.kept, nil
}

func (m *memory) Read(_ context.Context, pack uuid.UUID, to io.Writer) error {
	b, ok := m.packs[pack]
	if !ok {
		return errors.New("no such pack")
	}
	_, err := to.Write(b)
	return err
}

func (m *memory) Keep(_ context.Context, k Kept, pack io.Reader) error {
	if m.fails != nil {
		return m.fails
	}
	packs := map[uuid.UUID][]byte{}
	for _, id := range k.Packs {
		packs[id] = m.packs[id]
	}
	if pack != nil {
		b, err := io.ReadAll(pack)
		if err != nil {
			return err
		}
		packs[k.Packs[len(k.Packs)-1]] = b
	}
	m.kept, m.packs = k, packs
	return nil
}

func (m *memory) size() (n int) {
	for _, b := range m.packs {
		n += len(b)
	}
	return n
}

// roaming is a thread that goes from machine to machine, each with a data folder and a
// clone of its own.
type roaming struct {
	*hut
	shelf    *memory
	machines map[string]*Keeper
	at       string
	dir      string
}

func newRoaming(t testing.TB) *roaming {
	t.Helper()
	return &roaming{hut: newHut(t), shelf: &memory{}, machines: map[string]*Keeper{}}
}

// goOn has the thread go on on a machine, and returns what people are told.
func (r *roaming) goOn(machine string) []string {
	r.Helper()
	if r.machines[machine] == nil {
		r.machines[machine] = &Keeper{DataDir: filepath.Join(r.TempDir(), "data")}
	}
	r.k = r.machines[machine]
	r.k.kept(r.p).began = time.Time{}
	t := r.thread()
	t.Elsewhere = r.at != "" && r.at != machine
	dir, told, err := r.k.Open(r.Context(), t, r.p)
	if err != nil {
		r.Fatal(err)
	}
	r.dir, r.at = dir, machine
	return told
}

func (r *roaming) thread() Thread {
	return Thread{ID: 7, Branch: "deckhand/7", Dir: r.dir, Shelf: r.shelf, Within: waittest.Limit}
}

func (r *roaming) endTurn(want string) {
	r.Helper()
	if err := r.k.Publish(r.Context(), r.thread(), r.p); err != nil {
		r.Error(err)
	}
	if left, err := r.k.Save(r.Context(), r.thread(), r.p); left != want || err != nil {
		r.Errorf("at the turn's end it says %q, %v", left, err)
	}
}

func (r *roaming) write(name, text string) { put(r.TB, filepath.Join(r.dir, name), text) }

func (r *roaming) commit(name, text string) {
	r.Helper()
	r.write(name, text)
	runGit(r.TB, r.dir, "add", name)
	runGit(r.TB, r.dir, "commit", "--quiet", "--message", name)
}

// files checks what the files have; none is empty.
func (r *roaming) files(want map[string]string) {
	r.Helper()
	for name, text := range want {
		if b, err := os.ReadFile(filepath.Join(r.dir, name)); string(b) != text || (text == "") != errors.Is(err, os.ErrNotExist) {
			r.Errorf("on %s %s has %q, %v", r.at, name, b, err)
		}
	}
}

// The thread goes on with its commits and its files on a machine that has nothing but what
// the forge has, again and again, and comes back.
func TestAThreadGoesFromMachineToMachine(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	if told := r.goOn("a"); len(told) > 0 {
		t.Errorf("at first: %q", told)
	}
	r.endTurn("")
	if len(r.shelf.packs) > 0 {
		t.Errorf("%d bytes are kept of nothing", r.shelf.size())
	}
	r.write(".gitignore", "cache/\n*.log\n")
	r.write("cache/x", "x")
	r.write("a.log", "x")
	r.commit("committed", "1\n")
	r.write("not-committed", "2\n")
	tip := Head(r.dir)
	r.endTurn("")
	r.hut.commit("main", "today") // the forge goes on
	told := r.goOn("b")
	r.files(map[string]string{"committed": "1\n", "not-committed": "2\n", "a.log": "", "README.md": "one\n"})
	r.hut.at(r.thread(), tip+"\n"+tip, "HEAD deckhand/7")
	if len(told) != 1 || !strings.HasPrefix(told[0], "This thread goes on on another machine. Its commits are back, and what was not committed, as it was at 20") || !strings.HasSuffix(told[0], "UTC; not here are a.log (ignored), cache (ignored).") {
		t.Errorf("it says %q", told)
	}
	for i, machine := range []string{"a", "b", "c"} {
		r.commit(fmt.Sprint(i), "made on "+r.at+"\n")
		r.write("not-committed", machine+"\n")
		r.endTurn("")
		tip, from := Head(r.dir), r.at
		told := r.goOn(machine)
		r.files(map[string]string{"committed": "1\n", "not-committed": machine + "\n", fmt.Sprint(i): "made on " + from + "\n"})
		r.hut.at(r.thread(), tip+"\n"+tip, "HEAD deckhand/7")
		if len(told) != 1 {
			t.Errorf("on %s it says %q", machine, told)
		}
		runGit(t, r.dir, "fsck", "--strict", "--connectivity-only")
	}
	// What is kept is told as differences.
	if len(r.shelf.packs) != 4 || r.shelf.size() > 6<<10 || r.shelf.kept.Bytes != int64(r.shelf.size()) {
		t.Errorf("%d packs of %d bytes are kept, %d are told", len(r.shelf.packs), r.shelf.size(), r.shelf.kept.Bytes)
	}
	// Of many packs one is made.
	r.shelf.kept.Packs = slices.Repeat(r.shelf.kept.Packs, maxPacks/4)
	r.write("not-committed", "all\n")
	r.endTurn("")
	if len(r.shelf.packs) != 1 {
		t.Errorf("%d packs are kept", len(r.shelf.packs))
	}
	r.goOn("d")
	r.files(map[string]string{"committed": "1\n", "0": "made on b\n", "not-committed": "all\n"})
	if left, _ := os.ReadDir(r.k.scratch()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A machine that died in the middle of a turn has work that nobody else has. When the
// thread comes back there, it is not lost, and people are told.
func TestWhatAMachineHadAloneIsKept(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	r.goOn("a")
	r.commit("one", "1\n")
	r.endTurn("")
	r.commit("alone", "a\n") // and the machine dies
	r.write("alone-too", "a\n")
	lost := Head(r.dir)
	r.goOn("b")
	r.files(map[string]string{"one": "1\n", "alone": ""})
	r.commit("two", "2\n")
	r.endTurn("")
	told := r.goOn("a")
	r.files(map[string]string{"one": "1\n", "two": "2\n", "alone": "", "alone-too": ""})
	if len(told) != 3 || !strings.Contains(strings.Join(told[:2], " "), "refs/deckhand/left/7/"+lost[:12]) {
		t.Errorf("it says %q", told)
	}
	if got := runGit(t, r.dir, "show", lost+":alone"); got != "a" {
		t.Errorf("it was %q", got)
	}
	saved := runGit(t, r.k.source(r.p), "for-each-ref", "--format=%(objectname)", "refs/deckhand/left/7")
	if got := runGit(t, r.dir, "show", strings.Fields(strings.ReplaceAll(saved, lost, ""))[0]+":alone-too"); got != "a" {
		t.Errorf("it was %q", got)
	}
	// A folder that nobody can read stays where it is seen.
	r.endTurn("")
	r.goOn("b")
	was := r.machines["a"].ownFolder(r.thread(), r.p)
	if err := errors.Join(os.RemoveAll(filepath.Join(was, ".git")), os.WriteFile(filepath.Join(was, ".git"), []byte("gitdir: /etc\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	told = r.goOn("a")
	if found, _ := filepath.Glob(was + ".before-*"); len(found) != 1 || len(told) != 2 || !strings.Contains(told[0], found[0]) {
		t.Errorf("%v, it says %q", found, told)
	}
	r.files(map[string]string{"two": "2\n"})
}

// What is too large stays, the commits before the rest, and people are told.
func TestWhatIsTooLargeToBeKept(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	r.goOn("a")
	r.k.KeepBytes = 1 << 20
	noise := make([]byte, 2<<20)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	r.commit("small", "1\n")
	r.write("large", string(noise))
	r.endTurn("On this machine alone is what is not committed: with it there is more than the 1 MiB that are kept off this machine.")
	told := r.goOn("b")
	r.files(map[string]string{"small": "1\n", "large": ""})
	if len(told) != 1 || !strings.Contains(told[0], "not here are what was not committed (too large)") {
		t.Errorf("it says %q", told)
	}
	r.k.KeepBytes = 1 << 20
	r.commit("large", string(noise))
	was := r.shelf.kept.Branch
	r.endTurn("On this machine alone is its commits: they are more than the 1 MiB that are kept off this machine.")
	if r.shelf.kept.Branch != was {
		t.Error("what is kept has changed")
	}
	// With more room all of it is kept.
	r.k.KeepBytes = 0
	r.endTurn("")
	r.goOn("c")
	r.files(map[string]string{"large": string(noise)})
}

// Wherever it is cut, what is kept is whole, and nothing is begun on a part of it.
func TestKeepingThatFails(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	r.goOn("a")
	r.commit("one", "1\n")
	r.endTurn("")
	r.shelf.fails = errors.New("another replica holds this thread now")
	r.commit("two", "2\n")
	if _, err := r.k.Save(t.Context(), r.thread(), r.p); !errors.Is(err, r.shelf.fails) {
		t.Errorf("late: %v", err)
	}
	r.shelf.fails = nil
	hasty := r.thread()
	hasty.Within = time.Nanosecond
	if _, err := r.k.Save(t.Context(), hasty, r.p); err == nil || !strings.Contains(err.Error(), "no end in 1ns") {
		t.Errorf("hasty: %v", err)
	}
	r.endTurn("")
	whole := r.shelf.packs
	for what, spoil := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"changed": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"empty":   func([]byte) []byte { return nil },
	} {
		r.shelf.packs = map[uuid.UUID][]byte{}
		for id, b := range whole {
			r.shelf.packs[id] = spoil(bytes.Clone(b))
		}
		k := &Keeper{DataDir: filepath.Join(t.TempDir(), what)}
		th := r.thread()
		th.Elsewhere = true
		if dir, _, err := k.Open(t.Context(), th, r.p); err == nil || !strings.Contains(err.Error(), "cannot be brought to this machine") {
			t.Errorf("%s: it works in %s, %v", what, dir, err)
		}
		if ref, err := os.ReadFile(filepath.Join(k.DataDir, "repos/web/.git/refs/heads/deckhand/7")); err == nil {
			t.Errorf("%s: the branch is %s", what, ref)
		}
		// It is whole again, and what was half done is in nobody's way.
		r.shelf.packs = whole
		if dir, _, err := k.Open(t.Context(), th, r.p); err != nil || Head(dir) != Head(r.dir) {
			t.Errorf("%s, then whole: %s, %v", what, dir, err)
		}
	}
	// The forge has lost what the work was made on.
	runGit(t, r.person, "checkout", "--quiet", "--orphan", "new")
	r.hut.commit("main", "anew")
	runGit(t, r.forge, "reflog", "expire", "--expire=now", "--all")
	runGit(t, r.forge, "gc", "--quiet", "--prune=now")
	k := &Keeper{DataDir: filepath.Join(t.TempDir(), "late")}
	th := r.thread()
	th.Elsewhere = true
	if dir, _, err := k.Open(t.Context(), th, r.p); err == nil || !strings.Contains(err.Error(), "does not have all the commits that it was made on") {
		t.Errorf("on another base: %s, %v", dir, err)
	}
}

// TestWhatIsKeptIsDatedByItsSnapshot: what is kept is told as it was when the folder was
// read, however long it took to store it; what is done meanwhile is kept by the next save,
// and what has not changed is dated anew.
func TestWhatIsKeptIsDatedByItsSnapshot(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	r.goOn("one")
	for _, limit := range []int64{0, 1 << 10} { // with what is not committed, and without
		r.k.KeepBytes = limit
		r.commit(fmt.Sprintf("committed-%d", limit), "one\n")
		big := make([]byte, limit*2)
		_, _ = rand.Read(big)
		r.write("loose", fmt.Sprint(limit)+string(big))
		var overtaken time.Time
		r.shelf.while = func() { // as on a machine that is busy
			overtaken = time.Now()
			r.write("late", fmt.Sprint("of ", limit))
		}
		if err := r.k.Publish(t.Context(), r.thread(), r.p); err != nil {
			t.Fatal(err)
		}
		published := time.Now()
		if _, err := r.k.Save(t.Context(), r.thread(), r.p); err != nil {
			t.Fatal(err)
		}
		r.shelf.while = nil
		if at := r.shelf.kept.At; !at.Before(overtaken) || r.shelf.kept.Saved == "" && !at.Before(published) {
			t.Errorf("what was read before %v, and published at %v, is dated %v: %+v", overtaken, published, at, r.shelf.kept)
		}
	}
	r.k.KeepBytes = 0
	again := time.Now()
	r.endTurn("")
	if r.shelf.kept.At.Before(again) {
		t.Errorf("what was overtaken is dated %v after another save at %v", r.shelf.kept.At, again)
	}
	unchanged := time.Now()
	r.endTurn("")
	if r.shelf.kept.At.Before(unchanged) {
		t.Errorf("what is as it was is dated %v after a save at %v", r.shelf.kept.At, unchanged)
	}
	r.goOn("two")
	r.files(map[string]string{"late": "of 1024"})
}

// A fork begins with what another thread has kept, under a name that is nobody's at the forge.
func TestAForkTakesAFreeName(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	r.goOn("a")
	r.commit("committed", "c\n")
	r.write("loose", "l\n")
	r.endTurn("")
	theirs := r.hut.commit("deckhand/8", "theirs")
	fork := Thread{ID: 8, Branch: "deckhand/8", Forked: "deckhand/7", Shelf: r.shelf, Within: waittest.Limit}
	r.k.kept(r.p).began = time.Time{}
	_, _, err := r.k.Open(t.Context(), fork, r.p)
	taken, ok := errors.AsType[*TakenError](err)
	if !ok || taken.Free != "deckhand/8-2" {
		t.Fatalf("it says %v", err)
	}
	fork.Branch = taken.Free
	dir, told, err := r.k.Open(t.Context(), fork, r.p)
	if err != nil || !strings.Contains(strings.Join(told, "\n"), "begins with the files of the one that it was forked from, as they were") {
		t.Fatal(told, err)
	}
	r.dir = dir
	r.files(map[string]string{"committed": "c\n", "loose": "l\n", "theirs": ""})
	if got := runGit(t, dir, "branch", "--show-current"); got != fork.Branch {
		t.Errorf("it is on %s", got)
	}
	if got := runGit(t, r.k.source(r.p), "rev-parse", "refs/remotes/origin/deckhand/8"); got != theirs {
		t.Errorf("theirs is %s", got)
	}
	// A bot that ends before the folder is made has brought it already.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, told, err := r.k.Open(t.Context(), fork, r.p); err != nil || !slices.Contains(told, "This thread begins with the files of the one that it was forked from.") {
		t.Error(told, err)
	}
}
