package gitway

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"deckhand/internal/gateway/gitway/forgetest"
)

// github is GitHub's API as far as an app goes, with the app 7 on team/web.
type github struct {
	*httptest.Server
	key      string // the app's private key, a file
	tokens   atomic.Int64
	lifetime time.Duration
	status   int // of the minting, if it fails
}

func newGitHub(t *testing.T) *github {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	g := &github{key: filepath.Join(forgetest.Folder(t), "key.pem"), lifetime: time.Hour}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(g.key, text, 0o600); err != nil {
		t.Fatal(err)
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		claims := jwt.RegisteredClaims{}
		bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		_, err := jwt.ParseWithClaims(bearer, &claims, func(*jwt.Token) (any, error) { return &key.PublicKey, nil }, jwt.WithValidMethods([]string{"RS256"}), jwt.WithExpirationRequired())
		switch {
		case err != nil || claims.Issuer != "7" || time.Until(claims.ExpiresAt.Time) > 10*time.Minute:
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method+r.URL.Path == "GET/repos/team/web/installation":
			fmt.Fprint(w, `{"id": 42}`)
		case r.Method+r.URL.Path == "POST/app/installations/42/access_tokens":
			g.mint(w, r)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(func() {
		g.Close()
		apiClient.CloseIdleConnections()
	})
	return g
}

func (g *github) mint(w http.ResponseWriter, r *http.Request) {
	var want struct {
		Repositories []string          `json:"repositories"`
		Permissions  map[string]string `json:"permissions"`
	}
	err := json.NewDecoder(r.Body).Decode(&want)
	if err != nil || fmt.Sprint(want) != "{[web] map[contents:write]}" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if g.status != 0 {
		w.WriteHeader(g.status)
		return
	}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"token": "ghs_%d", "expires_at": %q}`, g.tokens.Add(1), time.Now().Add(g.lifetime).Format(time.RFC3339))
}

func (g *github) app() App { return App{ID: "7", KeyFile: g.key, API: g.URL + "/"} }

// A token is minted for one repository, and used until shortly before it ends.
func TestAGitHubAppsToken(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	f := forgetest.New(t)
	f.Take("ghs_1", "ghs_2")
	r := Remote{Upstream: Upstream{URL: f.URL("web"), Access: Access{App: g.app()}}, Environ: forgetest.Environ()}
	for range 3 {
		if _, err := r.Refs(t.Context(), "HEAD"); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.tokens.Load(); n != 1 {
		t.Errorf("%d tokens were minted", n)
	}
	v := newVisit(t, f, r)
	v.clone()
	v.AllowPush("toolu_1", Pass{})
	v.must("push", "-q", "origin", "HEAD:deckhand/x")
	// One that is about to end is not used.
	short := newGitHub(t)
	short.lifetime = tokenSpare / 2
	for range 2 {
		if _, err := short.app().token(t.Context(), place{"https", "", "github.com", "team/web"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := short.tokens.Load(); n != 2 {
		t.Errorf("%d tokens were minted", n)
	}
}

// What is wrong with an app is said with its cure.
func TestAnAppThatIsNotLetIn(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	at := func(path string) place { return place{"https", "", "github.com", path} }
	other := g.app()
	other.ID = "8"
	nobody := g.app()
	nobody.KeyFile = filepath.Join(forgetest.Folder(t), "none")
	for _, c := range []struct {
		app  App
		path string
		want string
	}{
		{g.app(), "team/other", "the GitHub App 7 is not installed on team/other; install it there"},
		{other, "team/web", "GitHub does not take the key of the app 8"},
		{nobody, "team/web", "the key of the GitHub App cannot be read"},
		{App{ID: "7", KeyEnv: forgetest.TokenEnv, API: g.URL}, "team/web", "the variable " + forgetest.TokenEnv + " holds no private key"},
		{App{ID: "7", KeyFile: g.key, API: "http://127.0.0.1:1"}, "team/web", "GitHub's API cannot be reached"},
	} {
		if _, err := c.app.token(context.Background(), at(c.path)); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), forgetest.Password) {
			t.Errorf("%v", err)
		}
	}
	g.status = http.StatusUnprocessableEntity
	if _, err := g.app().token(context.Background(), at("team/web")); err == nil || !strings.Contains(err.Error(), "grant it Contents: read and write") {
		t.Errorf("%v", err)
	}
}
