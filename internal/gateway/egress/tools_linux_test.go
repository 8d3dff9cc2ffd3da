package egress

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/needtest"
	"deckhand/internal/sandbox"
	"deckhand/internal/waittest"
)

// room is a workspace and a home, in a real bwrap with a forwarder to a session.
type room struct{ workspace, home string }

func newRoom(t *testing.T) room {
	t.Helper()
	needtest.Programs(t, "bwrap", "curl", "git", "node", "npm")
	dir := t.TempDir()
	r := room{filepath.Join(dir, "workspace"), filepath.Join(dir, "home")}
	for _, d := range []string{r.workspace, r.home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// run runs a script inside and returns what it prints.
func (r room) run(t *testing.T, w *world, script string) string {
	t.Helper()
	s, err := sandbox.New(sandbox.Spec{Kind: sandbox.Bwrap, Network: sandbox.Domains})
	if err != nil {
		t.Fatal(err)
	}
	box, err := s.Prepare(t.Context(), sandbox.Session{
		Name: "deckhand-test-web", Owner: "deckhand-test", Workspace: r.workspace, Home: r.home, Program: []string{"/bin/bash", "-c"}, Web: w.Socket(),
		Env: []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "CA=" + filepath.Join(r.workspace, "ca.pem")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close() //nolint:errcheck // of the test
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, box.Command[0], append(box.Command[1:], script)...)
	cmd.Env, cmd.Dir = box.Env, r.workspace
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// goods is a server with a git repository and a registry of npm's with one package.
func goods(t *testing.T) http.Handler {
	t.Helper()
	repo := t.TempDir()
	git := exec.CommandContext(t.Context(), "sh", "-c", `git init -q -b main work && cd work && echo hello >file && git add file &&
		git -c user.name=a -c user.email=a@example.com commit -qm one && cd .. && git clone -q --bare work repo.git && cd repo.git && git update-server-info`)
	git.Dir = repo
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	tw := tar.NewWriter(z)
	text := `{"name":"tiny","version":"1.0.0","main":"i.js"}`
	for name, content := range map[string]string{"package/package.json": text, "package/i.js": "module.exports = 42"} {
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = tw.Close(), z.Close() // to memory
	sum := sha512.Sum512(packed.Bytes())
	mux := http.NewServeMux()
	mux.Handle("/git/", http.StripPrefix("/git/", http.FileServer(http.Dir(repo))))
	mux.HandleFunc("/npm/tiny.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed.Bytes()) })
	mux.HandleFunc("/npm/tiny", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"name":"tiny","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"tiny","version":"1.0.0","main":"i.js","dist":{"tarball":"https://%s/npm/tiny.tgz","integrity":"sha512-%s"}}}}`,
			r.Host, base64.StdEncoding.EncodeToString(sum[:]))
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "a page") })
	return mux
}

// curl, git, npm and node reach what is listed, by the environment that they find, and
// nothing else. What they say of a refusal is what people see.
func TestToolsReachTheWeb(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	server := httptest.NewUnstartedServer(goods(t))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the front
	server.StartTLS()
	t.Cleanup(server.Close)
	plain := httptest.NewServer(goods(t))
	t.Cleanup(plain.Close)
	port, plainPort := portOf(server.Listener.Addr().String()), portOf(plain.Listener.Addr().String())
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(r.workspace, "ca.pem"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, Options{Rules: rules(t, "internal:example.com:"+port, "internal:example.com:"+plainPort)})
	w.lives("example.com", "127.0.0.1")
	out := r.run(t, w, strings.NewReplacer("SECURE", "https://example.com:"+port, "PLAIN", "http://example.com:"+plainPort).Replace(`
say() { echo "$1: $(tr '\n' ' ')"; }
curl -sS --cacert $CA SECURE/page 2>&1 | say curl
curl -sS PLAIN/page 2>&1 | say plain
git -c http.sslCAInfo=$CA clone -q SECURE/git/repo.git cloned 2>&1; cat cloned/file 2>&1 | say git
npm install --silent --no-audit --no-fund --no-update-notifier --cafile $CA --registry SECURE/npm/ tiny 2>&1; node -p 'require("tiny")' 2>&1 | say npm
curl -sS https://evil.com/ 2>&1 | say refused
curl -sS http://evil.com/ 2>&1 | say refused-plain
git clone -q https://evil.com/x 2>&1 | say refused-git
npm view --no-update-notifier --registry https://evil.com/ --fetch-retries=0 tiny 2>&1 | say refused-npm
curl -sS --noproxy '*' --connect-timeout 5 https://93.184.216.34/ 2>&1 | say around
curl -sS --noproxy '*' PLAIN/page 2>&1 | say around-by-name
curl -sS -k --connect-to evil.com:443:example.com:`+port+` https://evil.com/page 2>&1 | say fronting
true`))
	for _, want := range []string{
		"curl: a page\n", "plain: a page\n", "git: hello \n", "npm: 42 \n",
		"refused-plain: network: of project shop does not allow evil.com:80; an admin can add it in deckhand.yaml \n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	for line := range strings.Lines(out) {
		name, said, _ := strings.Cut(line, ": ")
		if (strings.HasPrefix(name, "refused") && !strings.Contains(said, "403") && name != "refused-plain") ||
			(strings.HasPrefix(name, "around") || name == "fronting") && !strings.HasPrefix(said, "curl: (") {
			t.Errorf("%s", line)
		}
	}
}
