package forge

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	playforge "deckhand/internal/playground/forge"
)

// TestThePlaygroundsForge: the demo's forge keeps what a real one does.
func TestThePlaygroundsForge(t *testing.T) {
	t.Parallel()
	contract(t, world{
		settledIn: 100 * time.Millisecond,
		token:     func(login string) string { return "playground-" + login },
		make: func(t *testing.T) string {
			t.Helper()
			from, dir := t.TempDir(), t.TempDir()
			gitIn(t, from, "init", "--quiet", "--initial-branch=main")
			write(t, from, firstFiles)
			gitIn(t, from, "add", "--all")
			gitIn(t, from, "commit", "--quiet", "--message=First")
			if err := playforge.Make(dir, "web.git", from); err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			server := httptest.NewServer(checkingFirst(mux))
			t.Cleanup(server.Close)
			f, err := playforge.New(filepath.Clean(dir), func() string { return server.URL })
			if err != nil {
				t.Fatal(err)
			}
			f.Register(mux)
			return server.URL + playforge.Root + "web.git"
		},
		log: func(t *testing.T, s *site, branch, text string) {
			t.Helper()
			body, err := json.Marshal(map[string]string{"branch": branch, "name": "test", "state": "failure", "log": text})
			if err != nil {
				t.Fatal(err)
			}
			at := strings.Replace(s.url, pathOf(t, s.url), "/_control/forge/checks?repo=web", 1)
			response, err := http.Post(at, "application/json", strings.NewReader(string(body))) //nolint:noctx // a test
			if err != nil || response.StatusCode != http.StatusOK {
				t.Fatalf("%v, %v", response, err)
			}
			_ = response.Body.Close()
		},
	})
}

// checkingFirst answers the first time that something is to be merged as Gitea does while it finds out whether that is
// possible.
func checkingFirst(forge http.Handler) http.Handler {
	var asked sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/merge") {
			body, err := io.ReadAll(r.Body)
			if _, again := asked.LoadOrStore(r.URL.Path+string(body), true); err != nil || !again {
				w.WriteHeader(http.StatusMethodNotAllowed)
				_, _ = io.WriteString(w, `{"message": "`+checking+`"}`) // the caller sees it
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		forge.ServeHTTP(w, r)
	})
}
