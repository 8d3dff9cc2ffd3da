// Package forgetest is a forge for tests: git's own HTTP server with two repositories,
// behind a password.
package forgetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/waittest"
)

// Password is what the forge lets in by, with the user x-access-token. TokenEnv is the
// variable that tests have it in.
const (
	Password = "CANARY-of-the-forge-5f1d"
	TokenEnv = "FORGE_TOKEN_OF_TESTS"
)

// Forge has the repositories team/web and team/other, each with a branch main of two
// commits, and for each a working tree of somebody else's.
type Forge struct {
	t   testing.TB
	web *httptest.Server
	dir string

	mu        sync.Mutex
	passwords []string
	renamed   map[string]string // repositories' paths by those that they had
	asked     []string
}

// New starts a forge for the time of a test.
func New(t testing.TB) *Forge {
	t.Helper()
	f := &Forge{t: t, dir: Folder(t), passwords: []string{Password}}
	f.web = httptest.NewServer(f.handler())
	t.Cleanup(f.web.Close)
	for _, name := range []string{"web", "other"} {
		f.Git("", "init", "-q", "--bare", "-b", "main", f.Bare(name))
		f.Git(f.Bare(name), "config", "http.receivepack", "true")
		f.Git("", "clone", "-q", f.Bare(name), f.Work(name))
		for i := range 2 {
			f.Commit(name, fmt.Sprintf("file %d of %s", i, name))
		}
		f.Git(f.Work(name), "push", "-q", "origin", "HEAD:main")
	}
	return f
}

func (f *Forge) handler() http.Handler {
	program := filepath.Join(strings.TrimSpace(f.Git("", "--exec-path")), "git-http-backend")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		f.mu.Lock()
		for was, is := range f.renamed {
			if rest, ok := strings.CutPrefix(r.URL.RequestURI(), was); ok {
				f.mu.Unlock()
				http.Redirect(w, r, is+rest, http.StatusMovedPermanently)
				return
			}
		}
		ok := user == "x-access-token" && slices.Contains(f.passwords, password)
		if ok {
			f.asked = append(f.asked, r.Method+" "+r.URL.RequestURI())
		}
		f.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		(&cgi.Handler{
			Path: program, Dir: f.dir, InheritEnv: []string{"PATH"}, Stderr: io.Discard,
			Env: []string{"GIT_PROJECT_ROOT=" + f.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=x", "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol")},
		}).ServeHTTP(w, r)
	})
}

// URL is a repository's address.
func (f *Forge) URL(name string) string { return f.web.URL + "/team/" + name + ".git" }

// Bare is the folder of a repository, and Work a working tree of it.
func (f *Forge) Bare(name string) string { return filepath.Join(f.dir, "team", name+".git") }

// Rename gives a repository another name, and sends on whoever asks for it by the old one.
func (f *Forge) Rename(was, is string) {
	f.t.Helper()
	if err := os.Rename(f.Bare(was), f.Bare(is)); err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renamed = map[string]string{"/team/" + was + ".git": "/team/" + is + ".git"}
}

// Work is somebody else's working tree of a repository.
func (f *Forge) Work(name string) string { return filepath.Join(f.dir, "work-"+name) }

// Commit commits in somebody else's working tree.
func (f *Forge) Commit(name, text string) {
	f.t.Helper()
	f.Git(f.Work(name), "commit", "-q", "--allow-empty", "-m", text)
}

// Git runs git outside, on the forge's own folders, and returns what it prints.
func (f *Forge) Git(dir string, args ...string) string {
	f.t.Helper()
	out, err := Git(f.t, dir, Environ(), args...)
	if err != nil {
		f.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Refs are the branches and tags of team/web, a line each: name and subject.
func (f *Forge) Refs() string {
	f.t.Helper()
	return f.Git(f.Bare("web"), "for-each-ref", "--format=%(refname) %(subject)")
}

// Asked is what was asked of the forge with the password since the last time.
func (f *Forge) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.asked
	f.asked = nil
	return out
}

// Take makes these the passwords that the forge takes.
func (f *Forge) Take(passwords ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passwords = passwords
}

// Environ is the environment of a git that obeys nobody's configuration.
func Environ() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
}

// Git runs git and returns all that it says.
func Git(t testing.TB, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Folder is one with a short name, since sockets have a limit.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "forge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
