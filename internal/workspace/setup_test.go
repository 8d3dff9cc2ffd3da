package workspace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var errNoSandbox = errors.New("no sandbox")

// A setup runs unasked in folders that are as the project's people have left them, or whose
// inputs are; what a thread has changed is told, and not run.
func TestSetUp(t *testing.T) {
	t.Parallel()
	r := newRoaming(t)
	r.p.Setup = Setup{Run: "make deps", Files: []string{"README.md", "not-there"}}
	const asked = "The setup of project web (make deps) was not run here: what it works on is the thread's own by now. Ask for it, if it is needed."
	step := func(what, want string, runs int, fails error) {
		t.Helper()
		ran := 0
		told, err := r.k.SetUp(t.Context(), r.thread(), r.p, func(context.Context) error { ran++; return fails })
		if told != want || ran != runs || !errors.Is(err, fails) {
			t.Errorf("%s: it ran %d times and says %q, %v", what, ran, told, err)
		}
	}
	r.goOn("a")
	step("it cannot start", "", 1, errNoSandbox)
	step("at first", "", 1, nil)
	step("again", "", 0, nil)
	again := r.k
	r.k = &Keeper{DataDir: again.DataDir}
	step("after a restart", "", 0, nil)
	r.write("README.md", "mine\n")
	step("it has changed the inputs", asked, 0, nil)
	step("and says so once", "", 0, nil)
	// The folder is made again, with inputs that are people's and with others.
	r.endTurn("")
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	r.goOn("a")
	step("made again with its own inputs", asked, 0, nil)
	r.write("README.md", "one\n")
	r.write("other", "mine\n")
	r.endTurn("")
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	r.goOn("a")
	step("made again with people's inputs", "", 1, nil)
	// No other thread had it run on another machine.
	r.endTurn("")
	r.goOn("b")
	step("on another machine", asked, 0, nil)
	// Who is cut has not run it.
	r.shelf, r.dir, r.at = &memory{}, "", ""
	r.goOn("c")
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	if _, err := r.k.SetUp(ctx, r.thread(), r.p, func(context.Context) error { cancel(stopped); return nil }); !errors.Is(err, stopped) {
		t.Errorf("cut: %v", err)
	}
	step("after it was cut", "", 1, nil)
	// An input that leads elsewhere is none, and a pipe holds nobody.
	secret := filepath.Join(t.TempDir(), "secret")
	put(t, secret, "1")
	for _, name := range []string{"README.md", "not-there"} {
		if err := errors.Join(os.RemoveAll(filepath.Join(r.dir, name)), os.Symlink(secret, filepath.Join(r.dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	one, err := r.p.Setup.key(r.dir)
	put(t, secret, "2")
	if two, e := r.p.Setup.key(r.dir); one != two || err != nil || e != nil {
		t.Errorf("what is elsewhere decides: %v, %v", err, e)
	}
	for _, s := range []Setup{{Run: " "}, {Run: "x", Files: []string{"../x"}}, {Run: "x", Files: []string{"/x"}}, {Run: "x", Files: []string{"*.json"}}, {Run: "x", Timeout: 2 * time.Hour}} {
		if s.Check() == nil {
			t.Errorf("%+v is a setup", s)
		}
	}
	if err := (Setup{Run: "x", Files: []string{"a/b.json"}, Timeout: time.Hour}).Check(); err != nil {
		t.Error(err)
	}
	if told, err := r.k.SetUp(t.Context(), r.thread(), Project{}, nil); told != "" || err != nil {
		t.Errorf("none: %q, %v", told, err)
	}
}
