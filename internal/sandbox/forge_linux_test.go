package sandbox

import (
	"crypto/rand"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/gateway/gitway"
	"deckhand/internal/gateway/gitway/forgetest"
)

// In every kind, and without a network, git fetches from the project's forge and pushes to
// it by what lies in the socket's folder.
func TestGitReachesTheForge(t *testing.T) {
	t.Setenv(forgetest.TokenEnv, forgetest.Password)
	inEachKind(t, func(t *testing.T, spec Spec) {
		f := forgetest.New(t)
		s := newSession(t)
		gate, err := gitway.New(filepath.Join(s.data, "forge"), nil)
		must(t, err)
		way, err := gate.Open(filepath.Dir(s.Socket), "web", []gitway.Remote{{
			Upstream: gitway.Upstream{URL: f.URL("web"), Access: gitway.Access{TokenEnv: forgetest.TokenEnv}}, Environ: forgetest.Environ(),
		}})
		must(t, err)
		t.Cleanup(way.Close)
		way.AllowPush("toolu_1", gitway.Pass{})
		s.Program = []string{"git"}
		s.Env = append(append(s.Env, way.Env()...), gitway.Settings(way.Settings())...)
		git := func(args ...string) (string, error) {
			s.Name = "deckhand-test-" + strings.ToLower(rand.Text()[:8]) // one box, one process
			out, err := s.prepare(t, spec, args...).CombinedOutput()
			return string(out), err
		}
		for _, args := range [][]string{{"clone", "-q", f.URL("web"), "."}, {"push", "-q", "origin", "HEAD~1:refs/heads/deckhand/x"}} {
			if out, err := git(args...); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, out)
			}
		}
		if got := f.Refs(); got != "refs/heads/deckhand/x file 0 of web\nrefs/heads/main file 1 of web\n" {
			t.Errorf("the forge has\n%s", got)
		}
		if out, err := git("push", "--force", "origin", "HEAD~1:main"); err == nil || !strings.Contains(out, "branches below deckhand/ alone") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}
