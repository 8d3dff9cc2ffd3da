package gitway

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/time/rate"

	"deckhand/internal/gateway/gitway/forgetest"
)

// remoteOf is a repository of the forge, as the bot reaches it.
func remoteOf(f *forgetest.Forge, name string) Remote {
	return Remote{Upstream: Upstream{URL: f.URL(name), Access: Access{TokenEnv: forgetest.TokenEnv}}, Environ: forgetest.Environ()}
}

// visit is a session with a clone of the forge's repository.
type visit struct {
	t     testing.TB
	forge *forgetest.Forge
	gate  *Gate
	*Session
	work string
	env  []string

	mu     sync.Mutex
	events []Event
}

func newVisit(t testing.TB, f *forgetest.Forge, remotes ...Remote) *visit {
	t.Helper()
	gate, err := New(filepath.Join(forgetest.Folder(t), "forge"), nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visit{t: t, forge: f, gate: gate}
	if v.Session, err = gate.Open(forgetest.Folder(t), "web", remotes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	v.pace.SetLimit(rate.Inf)
	v.OnEvent(func(e Event) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.events = append(v.events, e)
	})
	v.env = append(append(forgetest.Environ(), v.Env()...), Settings(v.Settings())...)
	v.work = filepath.Join(forgetest.Folder(t), "clone")
	return v
}

// run runs git inside.
func (v *visit) run(args ...string) (string, error) {
	v.t.Helper()
	return forgetest.Git(v.t, v.work, v.env, args...)
}

func (v *visit) must(args ...string) string {
	v.t.Helper()
	out, err := v.run(args...)
	if err != nil {
		v.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (v *visit) clone() {
	v.t.Helper()
	if out, err := forgetest.Git(v.t, "", v.env, "clone", v.forge.URL("web"), v.work); err != nil {
		v.t.Fatal(err, out)
	}
}

func (v *visit) commit(text string) {
	v.t.Helper()
	v.must("commit", "-q", "--allow-empty", "-m", text)
}

// last is the event that was told last.
func (v *visit) last() Event {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.events) == 0 {
		return Event{}
	}
	return v.events[len(v.events)-1]
}
