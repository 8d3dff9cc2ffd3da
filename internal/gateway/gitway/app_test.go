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
	// installation is what GitHub says of the installation, and asked what the last token was
	// to have.
	installation string
	asked        atomic.Value
}

func newGitHub(t *testing.T) *github {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	g := &github{key: filepath.Join(forgetest.Folder(t), "key.pem"), lifetime: time.Hour, installation: `{"id": 42}`}
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
			fmt.Fprint(w, g.installation)
		case r.Method+r.URL.Path == "POST/app/installations/42/access_tokens":
			g.mint(w, r)
		case r.URL.Path == "/repos/team/shop/installation":
			w.WriteHeader(http.StatusMovedPermanently)
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
	g.asked.Store(fmt.Sprint(want.Permissions))
	if err != nil || fmt.Sprint(want.Repositories) != "[web]" {
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
	if asked := g.asked.Load(); asked != "map[contents:write]" {
		t.Errorf("git has a token with %v", asked)
	}
	// One that is about to end is not used.
	short := newGitHub(t)
	short.lifetime = tokenSpare / 2
	for range 2 {
		if _, err := short.app().token(t.Context(), place{"https", "", "github.com", "team/web"}, gitRights); err != nil {
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
		{g.app(), "team/shop", "the repository team/shop has another name at GitHub by now"},
		{other, "team/web", "GitHub does not take the key of the app 8"},
		{nobody, "team/web", "the key of the GitHub App cannot be read"},
		{App{ID: "7", KeyEnv: forgetest.TokenEnv, API: g.URL}, "team/web", "the variable " + forgetest.TokenEnv + " holds no private key"},
		{App{ID: "7", KeyFile: g.key, API: "http://127.0.0.1:1"}, "team/web", "GitHub's API cannot be reached"},
	} {
		if _, err := c.app.token(context.Background(), at(c.path), gitRights); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), forgetest.Password) {
			t.Errorf("%v", err)
		}
	}
	g.status = http.StatusUnprocessableEntity
	if _, err := g.app().token(context.Background(), at("team/web"), gitRights); err == nil || !strings.Contains(err.Error(), "grant it Contents: read and write") {
		t.Errorf("%v", err)
	}
}

// The API's token is another than that of git, with more rights; what the app was not given
// is said by name.
func TestATokenForTheAPI(t *testing.T) {
	t.Parallel()
	g := newGitHub(t)
	const web = "https://github.com/team/web.git"
	access := Access{App: g.app()}
	ofGit, err := g.app().token(t.Context(), place{"https", "", "github.com", "team/web"}, gitRights)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if token, err := access.APIToken(t.Context(), web); err != nil || token == ofGit {
			t.Errorf("%q, %v", token, err)
		}
	}
	if asked := g.asked.Load(); asked != "map[actions:read checks:read contents:write pull_requests:write statuses:read]" || g.tokens.Load() != 2 {
		t.Errorf("%d tokens, the last with %v", g.tokens.Load(), asked)
	}
	for _, c := range []struct {
		access       Access
		address      string
		installation string
		status       int
		want         string
	}{
		{access, web, `{"id": 42, "permissions": {"contents": "write", "checks": "write", "actions": "read", "metadata": "read", "pull_requests": "read"}}`, 422, "grant it Pull requests: read and write, Commit statuses: read, and have the owner accept"},
		{access, web, `{"id": 42, "suspended_at": "2026-01-02T03:04:05Z"}`, 403, "is suspended on team/web; have the owner unsuspend it"},
		{access, "https://github.com/team/other", "", 0, "with Contents: read and write, Pull requests: read and write, Actions: read"},
		{Access{TokenEnv: "DECKHAND_TEST_NO_SUCH"}, web, "", 0, "DECKHAND_TEST_NO_SUCH, which git.token_env names, is not set"},
		{Access{TokenEnv: forgetest.TokenEnv}, "git@github.com:team/web.git", "", 0, "a token is for https"},
		{Access{KeyFile: "/etc/deckhand/key"}, "git@github.com:team/web.git", "", 0, "a key file is for git alone"},
		{Access{}, web, "", 0, "name a token for it"},
		{Access{}, "/srv/web", "", 0, "a path is no forge"},
	} {
		h := newGitHub(t)
		h.status, h.installation = c.status, c.installation
		if c.access.App != (App{}) {
			c.access.App = h.app()
		}
		if token, err := c.access.APIToken(t.Context(), c.address); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %v, want %q", token, err, c.want)
		}
	}
	if token, err := (Access{TokenEnv: forgetest.TokenEnv}).APIToken(t.Context(), web); err != nil || token != forgetest.Password {
		t.Errorf("a token of the environment: %v", err)
	}
}
