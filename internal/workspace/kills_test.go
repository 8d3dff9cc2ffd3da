package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"deckhand/internal/needtest"
	"deckhand/internal/waittest"
)

// act is what a bot does that is killed meanwhile.
type act struct {
	What      string // end, open, rewind or away
	Data      string
	Thread    int64
	Dir       string
	Elsewhere bool
	Project   Project
	Shelf     string
	Key       string // of a rewind
	Now, Then map[string]State
}

// play does it.
func play(text string) error {
	var a act
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return err
	}
	ctx, k := context.Background(), &Keeper{DataDir: a.Data}
	t := Thread{Within: waittest.Limit, ID: a.Thread, Branch: fmt.Sprintf("deckhand/%d", a.Thread), Dir: a.Dir, Elsewhere: a.Elsewhere, Shelf: folderShelf(a.Shelf)}
	switch a.What {
	case "end":
		if err := k.Publish(ctx, t, a.Project); err != nil {
			return err
		}
		left, err := k.Save(ctx, t, a.Project)
		if left != "" {
			err = errors.Join(err, errors.New(left))
		}
		return err
	case "rewind":
		_, err := k.Rewind(ctx, a.Key, waysOf(a.Project, a.Dir, a.Now, a.Then)...)
		return err
	case "open":
		_, _, err := k.Open(ctx, t, a.Project)
		return err
	default:
		stays, _, err := k.PutAway(ctx, t, a.Project)
		if stays != "" {
			err = errors.Join(err, errors.New(stays))
		}
		return err
	}
}

// folderShelf is a shelf in a folder, which keeps all or nothing, as PostgreSQL does.
type folderShelf string

func (f folderShelf) name(name string) string { return filepath.Join(string(f), name) }

func (f folderShelf) Kept(context.Context) (k Kept, err error) {
	b, err := os.ReadFile(f.name("kept"))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	return k, err
}

func (f folderShelf) Read(_ context.Context, pack uuid.UUID, to io.Writer) error {
	b, err := os.ReadFile(f.name(pack.String()))
	if err == nil {
		_, err = to.Write(b)
	}
	return err
}

func (f folderShelf) Keep(_ context.Context, k Kept, pack io.Reader) error {
	if pack != nil {
		b, err := io.ReadAll(pack)
		if err == nil {
			err = os.WriteFile(f.name(k.Packs[len(k.Packs)-1].String()), b, 0o600)
		}
		if err != nil {
			return err
		}
	}
	b, err := json.Marshal(k)
	if err == nil {
		err = os.WriteFile(f.name("kept.new"), b, 0o600)
	}
	if err == nil {
		err = os.Rename(f.name("kept.new"), f.name("kept"))
	}
	return err
}

// killed is a thread whose bots are killed at whatever they do.
type killed struct {
	*roaming
	shelf  folderShelf
	strace string
	turns  int
}

// kill has a bot do something and be killed at its n-th call of the system of a kind, and
// the next one begin. It reports false when it was done before that.
func (k *killed) kill(what, call string, n int, elsewhere bool) bool {
	k.Helper()
	return k.dies(act{What: what, Thread: 7, Dir: k.dir, Elsewhere: elsewhere, Shelf: string(k.shelf)}, k.strace, call, n)
}

// dies is kill of any act.
func (r *roaming) dies(a act, strace, call string, n int) bool {
	r.Helper()
	a.Data, a.Project = r.k.DataDir, r.p
	text, err := json.Marshal(a)
	if err != nil {
		r.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	cmd := exec.CommandContext(r.Context(), strace, "-qq", "-o", os.DevNull, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n), program)
	cmd.Env = append(os.Environ(), actVariable+"="+string(text))
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || len(out) > 0 {
		r.Fatalf("%s, killed at the %d. %s: %v: %s", a.What, n, call, err, out)
	}
	r.k = &Keeper{DataDir: r.k.DataDir}
	r.machines[r.at] = r.k
	Sweep(r.k.DataDir)
	return err != nil
}

func (k *killed) thread() Thread {
	t := k.roaming.thread()
	t.Shelf = k.shelf
	return t
}

// turn has the session commit something and leave something that is not committed.
func (k *killed) turn() {
	k.turns++
	k.commit("committed", fmt.Sprintln(k.turns))
	k.write("not-committed", fmt.Sprintln(k.turns))
}

// has fails unless the folder has what the last turn has left.
func (k *killed) has(what string) {
	k.Helper()
	n := fmt.Sprintln(k.turns)
	k.files(map[string]string{"committed": n, "not-committed": n})
	if got := runGit(k.TB, k.dir, "status", "--porcelain"); got != "?? not-committed" {
		k.Errorf("%s: git says %q", what, got)
	}
}

// open opens the folder.
func (k *killed) open(elsewhere bool) []string {
	k.Helper()
	t := k.thread()
	t.Elsewhere = elsewhere
	dir, told, err := k.k.Open(k.Context(), t, k.p)
	if err != nil {
		k.Fatal(err)
	}
	k.dir = dir
	return told
}

// end ends a turn.
func (k *killed) end(what string) {
	k.Helper()
	if err := k.k.Publish(k.Context(), k.thread(), k.p); err != nil {
		k.Fatalf("%s: %v", what, err)
	}
	if left, err := k.k.Save(k.Context(), k.thread(), k.p); left != "" || err != nil {
		k.Fatalf("%s: %s, %v", what, left, err)
	}
}

// everyKill calls each with what kills a bot at call after call: at the first ones, and at
// fewer and fewer of the later ones.
func everyKill(t *testing.T, each func(call string, n int) bool) {
	t.Helper()
	for call, sparse := range map[string]int{"renameat": 3, "mkdirat": 1, "unlinkat": 1} {
		n, kills := 1, 0
		for each(call, n) {
			n += 1 + n/sparse
			kills++
		}
		t.Logf("%d kills at %s", kills, call)
		if kills == 0 {
			t.Errorf("%s is never called", call)
		}
	}
}

// TestWorkOutlivesEveryKill: a bot is killed at any moment of what it does at a turn's end,
// when it puts a folder away, and when it brings work to another machine. The next one has
// the commits and the files as the last turn has left them.
func TestWorkOutlivesEveryKill(t *testing.T) {
	t.Parallel()
	strace := needtest.Program(t, "strace")
	begin := func(t *testing.T) *killed {
		k := &killed{roaming: newRoaming(t), strace: strace, shelf: folderShelf(t.TempDir())}
		k.k, k.at = &Keeper{DataDir: filepath.Join(t.TempDir(), "data")}, "a"
		k.open(false)
		k.turn()
		k.end("at first")
		return k
	}
	t.Run("at a turn's end", func(t *testing.T) {
		t.Parallel()
		k := begin(t)
		everyKill(t, func(call string, n int) bool {
			what := fmt.Sprintf("killed at the %d. %s", n, call)
			before, _ := k.shelf.Kept(t.Context())
			k.turn()
			died := k.kill("end", call, n, false)
			tip := Head(k.dir)
			after, err := k.shelf.Kept(t.Context())
			if err != nil || after.Branch != before.Branch && after.Branch != tip || (after.Branch == before.Branch) != (after.Saved == before.Saved) {
				t.Errorf("%s: half of it is kept: %+v, %v", what, after, err)
			}
			if told := k.open(false); len(told) > 0 {
				t.Errorf("%s: it says %q", what, told)
			}
			k.has(what)
			k.end(what)
			if after, err = k.shelf.Kept(t.Context()); err != nil || after.Branch != tip {
				t.Errorf("%s: then %+v is kept, %v; want %s", what, after, err, tip)
			}
			return died
		})
	})
	t.Run("putting a folder away", func(t *testing.T) {
		t.Parallel()
		k := begin(t)
		everyKill(t, func(call string, n int) bool {
			what := fmt.Sprintf("killed at the %d. %s", n, call)
			died := k.kill("away", call, n, false)
			if there := isDir(k.dir); there {
				k.has(what)
			}
			told := k.open(false)
			k.has(what)
			if len(told) > 1 || len(told) == 1 && !strings.Contains(told[0], "was put away while it rested. Its commits are back, and what was not committed") {
				t.Errorf("%s: it says %q", what, told)
			}
			if k.k.wasPutAway(k.thread(), k.p) {
				t.Errorf("%s: it is still taken to be away", what)
			}
			if left, err := os.ReadDir(filepath.Dir(k.dir)); err != nil || len(left) != 1 {
				t.Errorf("%s: %v are left, %v", what, left, err)
			}
			return died
		})
	})
	t.Run("rewinding two repositories", func(t *testing.T) {
		t.Parallel()
		w := newTwo(t)
		w.ends(1)
		w.ends(2)
		now, then := int64(2), int64(1)
		everyKill(t, func(call string, n int) bool {
			what := fmt.Sprintf("killed at the %d. %s", n, call)
			key, ways := fmt.Sprint(call, n), w.ways(now, then)
			died := w.dies(act{What: "rewind", Dir: w.dir, Key: key, Now: w.states[now], Then: w.states[then]}, strace, call, n)
			w.opens(what)
			if own, lib := w.at(what, ""), w.at(what, "lib"); own == then && lib == now {
				t.Errorf("%s: the further repository is not rewound, and the thread's own is", what)
			}
			for range 2 { // the second time it is done
				if told, err := w.k.Rewind(t.Context(), key, ways...); told != "" || err != nil {
					t.Fatalf("%s: %s, %v", what, told, err)
				}
				w.are(what, then)
			}
			w.keep(then)
			now, then = then, now
			return died
		})
	})
	t.Run("on another machine", func(t *testing.T) {
		t.Parallel()
		k := begin(t)
		everyKill(t, func(call string, n int) bool {
			what := fmt.Sprintf("killed at the %d. %s", n, call)
			k.turn()
			k.end(what)
			// It has been there before, or has not.
			name := []string{"a", "b", fmt.Sprint("c", n, call)}[n%3]
			if name == k.at {
				name = "d"
			}
			if k.at = name; k.machines[name] == nil {
				k.machines[name] = &Keeper{DataDir: filepath.Join(t.TempDir(), name)}
			}
			k.k = k.machines[name]
			died := k.kill("open", call, n, true)
			told := k.open(true)
			k.has(what)
			if len(told) > 1 || len(told) == 1 && !strings.Contains(told[0], "goes on on another machine. Its commits are back, and what was not committed") {
				t.Errorf("%s: it says %q", what, told)
			}
			return died
		})
	})
}
