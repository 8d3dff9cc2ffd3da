package accounts

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/oauth2"

	"deckhand/internal/forge"
	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
)

// site is a forge with GitLab's device flow, below a path of its host: answers are what it says to the
// polls, in turn, and the account of each token is its login.
type site struct {
	*httptest.Server
	base      string // its address
	mu        sync.Mutex
	answers   []string
	refreshes atomic.Int32
	revoked   atomic.Value
	refusing  atomic.Bool
}

func newSite(t *testing.T, below string, answers ...string) *site {
	s := &site{answers: answers}
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("POST /oauth/authorize_device", func(w http.ResponseWriter, r *http.Request) {
		say(w, 200, map[string]any{"device_code": "device", "user_code": "ABCD-1234", "verification_uri": s.base + "/oauth/device", "expires_in": 300, "interval": 1})
	})
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("grant_type") == "refresh_token" {
			n := s.refreshes.Add(1)
			if s.refusing.Load() {
				say(w, 400, map[string]any{"error": "invalid_grant"})
				return
			}
			say(w, 200, map[string]any{"access_token": fmt.Sprintf("ada-fresh-%d", n), "refresh_token": "next", "token_type": "bearer", "expires_in": 7200})
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		answer := s.answers[0]
		s.answers = s.answers[1:]
		if login, ok := strings.CutPrefix(answer, "token "); ok {
			say(w, 200, map[string]any{"access_token": login, "token_type": "bearer"})
			return
		}
		say(w, 400, map[string]any{"error": answer})
	})
	mux.HandleFunc("POST /oauth/revoke", func(_ http.ResponseWriter, r *http.Request) { s.revoked.Store(r.FormValue("token")) })
	login := func(r *http.Request) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "-")
		return name
	}
	mux.HandleFunc("GET /api/v4/user", func(w http.ResponseWriter, r *http.Request) {
		if s.refusing.Load() {
			say(w, 401, map[string]any{"message": "401 Unauthorized"})
			return
		}
		say(w, 200, map[string]any{"id": len(login(r)), "username": login(r), "name": login(r)})
	})
	mux.HandleFunc("GET /api/v4/user/emails", func(w http.ResponseWriter, r *http.Request) {
		say(w, 200, []map[string]any{
			{"email": login(r) + "@example.com", "confirmed_at": "2026-01-01T00:00:00Z"}, {"email": "grace@example.com", "confirmed_at": nil},
		})
	})
	s.Server = httptest.NewServer(http.StripPrefix(below, mux))
	s.base = s.URL + below
	t.Cleanup(s.Close)
	return s
}

// site is how people connect there.
func (s *site) site() Site {
	at := Site{Kind: forge.GitLab, URL: s.base + "/team/web.git", ClientID: "app"}
	if s.base != s.URL {
		at.API = s.base + "/api/v4"
	}
	return at
}

func key(t *testing.T, fill string) Key {
	k, err := ParseKey(base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fill, 32))))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// world is a service with that site and a database.
func world(t *testing.T, at *site) (s *Service, where Site, db *store.Store, told *[]string) {
	db, err := store.Open(t.Context(), storetest.URL(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	where = at.site()
	var mu sync.Mutex
	told = new([]string)
	s = New(Config{Store: db, Key: key(t, "k"), Sites: []Site{where}, Logins: map[string]map[string]string{"UNAMED": {where.Host(): "nora"}}, Log: zap.NewNop()})
	s.EmailOf = func(_ context.Context, user string) string { return strings.ToLower(user[1:]) + "@example.com" }
	s.Tell = func(_, sentence string) {
		mu.Lock()
		defer mu.Unlock()
		*told = append(*told, sentence)
	}
	return s, where, db, told
}

func wants(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("the error is %v, want one with %q", err, part)
	}
}

// TestACodeIsEntered: the forge says again and again that nobody has entered it, and that it is
// asked too often; it says how it ended.
func TestACodeIsEntered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ below, last, want string }{
		{"", "token ada", ""}, {"/gitlab", "token ada", ""}, {"", "access_denied", "told not to connect"}, {"", "expired_token", "has expired"}, {"/gitlab", "<b>odd", "did not connect"},
	} {
		below, last, want := c.below, c.last, c.want
		t.Run(last+below, func(t *testing.T) {
			t.Parallel()
			at := newSite(t, below, "authorization_pending", last)
			if want == "" {
				at.answers = []string{"authorization_pending", "slow_down", last}
			}
			s := New(Config{Log: zap.NewNop()})
			code, address, wait, err := s.Begin(t.Context(), at.site())
			if err != nil || code != "ABCD-1234" || address != at.base+"/oauth/device" {
				t.Fatal(code, address, err)
			}
			token, err := wait(t.Context())
			if want != "" {
				wants(t, err, want)
			} else if err != nil || token.AccessToken != "ada" {
				t.Error(token, err)
			}
		})
	}
}

// TestWhoseAccountItIs: an account is bound by its verified address or by deckhand.yaml alone,
// and to one person; the token is nowhere in clear.
func TestWhoseAccountItIs(t *testing.T) {
	t.Parallel()
	s, at, db, _ := world(t, newSite(t, ""))
	bind := func(user, token string) error {
		_, err := s.Bind(t.Context(), at, "T1", user, &oauth2.Token{AccessToken: token})
		return err
	}
	wants(t, bind("UMALLORY", "ada-secret"), "nothing shows that the account ada")
	wants(t, bind("UGRACE", "ada-secret"), "nothing shows that the account ada") // an address that is not verified
	wants(t, bind("UNAMED", "named-secret"), "deckhand.yaml says that yours is nora")
	if err := bind("UNAMED", "nora-secret"); err != nil {
		t.Error(err)
	}
	if err := bind("UADA", "ada-secret"); err != nil {
		t.Error(err)
	}
	s.Logins["UMALLORY"] = map[string]string{at.Host(): "ada"}
	wants(t, bind("UMALLORY", "ada-secret"), "connected by somebody else")
	if token, err := s.Token(t.Context(), "T1", "UADA", at.Host()); err != nil || token != "ada-secret" {
		t.Error(token, err)
	}
	c, err := db.Connection(t.Context(), "T1", "UADA", at.Host())
	if err != nil || strings.Contains(string(c.Sealed), "secret") {
		t.Error("the token is in the database in clear", err)
	}
	// Another key is told, and another person's row does not open.
	other := *s
	other.Key = key(t, "o")
	_, err = other.Token(t.Context(), "T1", "UADA", at.Host())
	wants(t, err, "another DECKHAND_TOKEN_KEY")
	c.UserID = "UMALLORY"
	_, _, err = s.Key.open(c)
	wants(t, err, "cannot be read")
}

// TestATokenEnds: two callers renew it once; one that is refused is told once, and nothing is
// done with it any more; disconnecting has the forge forget it, for its owner alone.
func TestATokenEnds(t *testing.T) {
	t.Parallel()
	forges := newSite(t, "/gitlab")
	s, at, _, told := world(t, forges)
	bind := func() {
		if _, err := s.Bind(t.Context(), at, "T1", "UADA", &oauth2.Token{AccessToken: "ada-old", RefreshToken: "r", Expiry: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	bind()
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if token, err := s.Token(t.Context(), "T1", "UADA", at.Host()); err != nil || token != "ada-fresh-1" {
				t.Error(token, err)
			}
		})
	}
	both.Wait()
	if n := forges.refreshes.Load(); n != 1 {
		t.Errorf("it was renewed %d times", n)
	}
	bind()
	forges.refusing.Store(true)
	for range 2 {
		_, err := s.Token(t.Context(), "T1", "UADA", at.Host())
		wants(t, err, "has ended")
	}
	forges.refusing.Store(false)
	bind()
	if _, err := s.Token(t.Context(), "T1", "UADA", at.Host()); err != nil {
		t.Error(err)
	}
	forges.refusing.Store(true)
	for range 2 {
		token := fmt.Sprintf("ada-fresh-%d", forges.refreshes.Load())
		call, err := http.NewRequestWithContext(t.Context(), http.MethodGet, forges.base+"/api/v4/user", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := s.Client("T1", "UADA", at.Host(), token).Do(call); err == nil {
			_ = response.Body.Close()
		}
	}
	_, err := s.Token(t.Context(), "T1", "UADA", at.Host())
	wants(t, err, "has ended")
	if len(*told) != 2 {
		t.Errorf("they were told %q", *told)
	}
	if _, err := s.Disconnect(t.Context(), "T1", "UMALLORY", at.Host()); err == nil {
		t.Error("somebody else disconnected it")
	}
	if login, err := s.Disconnect(t.Context(), "T1", "UADA", at.Host()); err != nil || login != "ada" || !strings.HasPrefix(forges.revoked.Load().(string), "ada-fresh-") {
		t.Error(login, err, forges.revoked.Load())
	}
	if token, err := s.Token(t.Context(), "T1", "UADA", at.Host()); err != nil || token != "" {
		t.Error(token, err)
	}
}

// TestAPersonEntersAnMCPServersToken: it is one person's, and ends as a forge's does. Its name is no forge's.
func TestAPersonEntersAnMCPServersToken(t *testing.T) {
	t.Parallel()
	s, forges, db, told := world(t, newSite(t, ""))
	at := Site{URL: forges.URL + "/other/", Server: &Server{}}
	s.Sites = append(s.Sites, at)
	if !at.EntersToken() || forges.EntersToken() || !IsServer(at.Host()) || IsServer(forges.Host()) {
		t.Errorf("the sites are %s and %s", at.Host(), forges.Host())
	}
	bind := func(user string) error {
		_, err := s.Bind(t.Context(), at, "T1", user, &oauth2.Token{AccessToken: "made-by-ada"})
		return err
	}
	wants(t, s.Connected(t.Context(), "T1", "UADA", at.Host()), "you are not connected")
	if err := bind("UADA"); err != nil {
		t.Fatal(err)
	}
	wants(t, bind("UGRACE"), "connected by somebody else")
	s.Refused(t.Context(), "T1", "UADA", at.Host(), "another")
	if err := s.Connected(t.Context(), "T1", "UADA", at.Host()); err != nil {
		t.Error(err)
	}
	s.Refused(t.Context(), "T1", "UADA", at.Host(), "made-by-ada")
	wants(t, s.Connected(t.Context(), "T1", "UADA", at.Host()), "has ended")
	if len(*told) != 1 {
		t.Errorf("she was told %q", *told)
	}
	if _, err := s.Disconnect(t.Context(), "T1", "UADA", at.Host()); err != nil {
		t.Error(err)
	}
	if all, err := db.Connections(t.Context(), "T1", "UADA"); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}
