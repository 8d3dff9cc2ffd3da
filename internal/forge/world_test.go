package forge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"code.gitea.io/sdk/gitea"

	"deckhand/internal/waittest"
)

// world is a forge with the API of Gitea, the real one or the playground's. In it, ada owns
// each repository, deckhand and grace write in it, and mallory reads it.
type world struct {
	make  func(t *testing.T) (url string) // with one branch main that holds firstFiles
	token func(login string) string
	log   func(t *testing.T, s *site, branch, text string) // sets a red check that has a log; nil if it cannot
	// settledIn is what takes the place of settling, if it knows at once what can be merged.
	settledIn time.Duration
}

var firstFiles = map[string]string{"a.txt": "one\ntwo\nthree\n", "README.md": "A boathouse.\n"}

// site is one repository in a world.
type site struct {
	world
	url, dir string
}

func (w world) site(t *testing.T) *site {
	t.Helper()
	s := &site{world: w, url: w.make(t), dir: t.TempDir()}
	s.git(t, "clone", "--quiet", s.pushURL(t), ".")
	return s
}

func (s *site) pushURL(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("ada", s.token("ada"))
	return u.String()
}

func (s *site) git(t *testing.T, args ...string) string {
	t.Helper()
	return gitIn(t, s.dir, args...)
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b.example", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b.example")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// push commits files to a branch, which begins at main, and returns the commit.
func (s *site) push(t *testing.T, branch string, files map[string]string) string {
	t.Helper()
	s.git(t, "fetch", "--quiet")
	from := "origin/main"
	if s.git(t, "branch", "--remotes", "--list", "origin/"+branch) != "" {
		from = "origin/" + branch
	}
	s.git(t, "checkout", "--quiet", "-B", branch, from)
	write(t, s.dir, files)
	s.git(t, "add", "--all")
	s.git(t, "commit", "--quiet", "--message=Change "+branch)
	s.git(t, "push", "--quiet", "origin", branch)
	return s.git(t, "rev-parse", "HEAD")
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *site) as(t *testing.T, login string) Repository {
	t.Helper()
	return s.by(t, Config{Token: fixed(s.token(login))})
}

func fixed(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

func (s *site) by(t *testing.T, c Config) Repository {
	t.Helper()
	c.Kind = Gitea
	if c.URL == "" {
		c.URL = s.url
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if s.settledIn != 0 {
		r.(*ofGitea).settledIn = s.settledIn
	}
	return r
}

// sdk is Gitea's own client, for what the bot has no business with.
func (s *site) sdk(t *testing.T, login string) (client *gitea.Client, owner, name string) {
	t.Helper()
	g := s.as(t, login).(*ofGitea)
	return g.api(t.Context()), g.owner, g.name
}

func open(t *testing.T, r Repository, branch string) Pull {
	t.Helper()
	p, err := r.Open(t.Context(), NewPull{Title: "Change " + branch, Body: "As asked.", Branch: branch, Base: "main"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func want(t *testing.T, what string, err error, reason Reason) {
	t.Helper()
	if ReasonOf(err) != reason {
		t.Errorf("%s: %v, reason %q, want %q", what, err, ReasonOf(err), reason)
	}
}

// until waits for what a forge does in its own time.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(waittest.Limit); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for " + what)
		}
	}
}

func becomes(t *testing.T, r Repository, number int, m Mergeable) Pull {
	t.Helper()
	var p Pull
	until(t, "it to be "+string(m), func() bool {
		var err error
		if p, err = r.Pull(t.Context(), number); err != nil {
			t.Fatal(err)
		}
		return p.Mergeable == m
	})
	return p
}

// front puts something before the API that may answer in its place.
func (s *site) front(t *testing.T, instead func(http.ResponseWriter, *http.Request) bool) (api string) {
	t.Helper()
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: u.Scheme, Host: u.Host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !instead(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/api/v1"
}

func pathOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path
}
