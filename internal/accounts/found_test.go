package accounts

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
)

// hosted is an MCP server at /mcp and its OAuth server below /as: as the MCP specification says, but for what a test
// has it do otherwise.
type hosted struct {
	*httptest.Server
	mu sync.Mutex
	// resource and meta change what it says of itself, and says a whole answer by its path; unnamed has its 401 name
	// no metadata.
	resource map[string]any
	meta     map[string]any
	says     map[string]func(http.ResponseWriter)
	unnamed  bool
	codes    map[string]url.Values // what was agreed to, by the code
	renews   string                // the one token that renews now
	given    int
	revoked  []string
	asked    []string // the paths, in order
	apps     []map[string]any
	secret   string // of the apps that it registers
}

func newHosted(t *testing.T) *hosted {
	h := &hosted{codes: map[string]url.Values{}, says: map[string]func(http.ResponseWriter){}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	h.resource = map[string]any{"resource": h.URL + "/mcp", "authorization_servers": []string{h.URL + "/as"}, "scopes_supported": []string{"read", "write"}}
	h.meta = map[string]any{
		"issuer": h.URL + "/as", "authorization_endpoint": h.URL + "/as/authorize", "token_endpoint": h.URL + "/as/token",
		"registration_endpoint": h.URL + "/as/register", "revocation_endpoint": h.URL + "/as/revoke",
		"code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"read", "offline_access"},
		"token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic"},
	}
	return h
}

func (h *hosted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, r.URL.Path)
	say := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	if odd := h.says[r.URL.Path]; odd != nil {
		odd(w)
		return
	}
	id, secret, inHeader := r.BasicAuth()
	if inHeader {
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	switch r.URL.Path {
	case "/mcp":
		if !h.unnamed {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+h.URL+`/named"`)
		}
		w.WriteHeader(http.StatusUnauthorized)
	case "/named", "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource":
		if h.unnamed == (r.URL.Path == "/named") || h.resource == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		say(http.StatusOK, h.resource)
	case "/.well-known/oauth-authorization-server/as", "/.well-known/oauth-authorization-server":
		say(http.StatusOK, h.meta)
	case "/as/register":
		var app map[string]any
		_ = json.NewDecoder(r.Body).Decode(&app)
		h.apps = append(h.apps, app)
		app["client_id"] = fmt.Sprintf("app-%d", len(h.apps))
		if h.secret != "" {
			app["client_secret"], app["token_endpoint_auth_method"] = h.secret, "client_secret_basic"
		}
		say(http.StatusCreated, app)
	case "/as/token":
		agreed := h.codes[r.FormValue("code")]
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		renewed := r.FormValue("grant_type") == "refresh_token"
		switch {
		case id == "" || h.secret != "" && (secret != h.secret || !inHeader):
			say(http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
			return
		case r.FormValue("resource") != h.URL+"/mcp":
			say(http.StatusBadRequest, map[string]any{"error": "invalid_target"})
			return
		case renewed && r.FormValue("refresh_token") == h.renews && h.renews != "":
		case !renewed && agreed != nil && agreed.Get("client_id") == id && agreed.Get("redirect_uri") == r.FormValue("redirect_uri") &&
			agreed.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]):
			delete(h.codes, r.FormValue("code"))
		default:
			say(http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": "<!channel> oh no"})
			return
		}
		h.given++
		h.renews = fmt.Sprintf("renews-%d", h.given)
		say(http.StatusOK, map[string]any{"access_token": fmt.Sprintf("secret-%d", h.given), "refresh_token": h.renews, "token_type": "Bearer", "expires_in": 60})
	case "/as/revoke":
		h.revoked = append(h.revoked, id+" "+r.FormValue("token"))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// agrees is what a browser does at a link: the address to which it is sent with a code.
func (h *hosted) agrees(t *testing.T, link string) url.Values {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil || !strings.HasPrefix(link, h.URL+"/as/authorize?") {
		t.Fatalf("the link is %s: %v", link, err)
	}
	q := u.Query()
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("resource") != h.URL+"/mcp" || q.Get("redirect_uri") != comeBack {
		t.Errorf("the link asks for %v", q)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	code := fmt.Sprintf("code-%d", len(h.asked))
	h.codes[code] = q
	return url.Values{"code": {code}, "state": {q.Get("state")}}
}

func address(q url.Values) string { return comeBack + "?" + q.Encode() }

// TestAPersonConnectsByAnAddress: the OAuth is found by what the 401 names or by well-known paths, the bot registers
// itself or is what an admin has named, and the address that is pasted becomes a token, which is renewed and revoked.
func TestAPersonConnectsByAnAddress(t *testing.T) {
	for _, c := range []struct {
		name, id, secret, scope string
		unnamed, older          bool
	}{
		{name: "named by the 401", scope: "read write offline_access"},
		{name: "well-known", unnamed: true, scope: "read write offline_access"},
		{name: "older than the metadata", unnamed: true, older: true, scope: "offline_access"},
		{name: "with a secret", secret: "s/ecret", scope: "read write offline_access"},
		{name: "an admin's app", id: "mine", secret: "s/ecret", scope: "read write offline_access"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHosted(t)
			h.unnamed, h.secret = c.unnamed, c.secret
			if c.older {
				h.resource, h.meta["issuer"] = nil, h.URL
			}
			s, _, db, _ := world(t, newSite(t, ""))
			at := Site{URL: h.URL + "/mcp", ClientID: c.id, Server: &Server{}}
			if c.id != "" {
				at.ClientSecretEnv = "MCP_APP_SECRET"
				t.Setenv(at.ClientSecretEnv, c.secret)
			}
			s.Sites = []Site{at}
			link, kept, err := s.Find(t.Context(), at, "T1", "UADA")
			if err != nil {
				t.Fatal(err)
			}
			agreed := h.agrees(t, link)
			if q := h.codes[agreed.Get("code")]; q.Get("scope") != c.scope || c.id != "" && q.Get("client_id") != c.id || (len(h.apps) == 0) != (c.id != "") {
				t.Errorf("it asks for %v as one of %v", q, h.apps)
			}
			agreed.Set("iss", h.meta["issuer"].(string))
			found, token, err := s.Redeem(t.Context(), at, "T1", "UADA", kept, address(agreed))
			if err != nil {
				t.Fatal(err)
			}
			if login, err := s.Bind(t.Context(), found, "T1", "UADA", token); err != nil || login != "yourself" {
				t.Fatal(login, err)
			}
			_, _, err = s.Redeem(t.Context(), at, "T1", "UADA", kept, address(agreed))
			wants(t, err, "has connected you to")
			for n := 2; n < 4; n++ { // each ends soon, and each renewal gives another that renews
				if got, err := s.Token(t.Context(), "T1", "UADA", at.Host()); err != nil || got != fmt.Sprintf("secret-%d", n) {
					t.Fatal(got, err)
				}
			}
			if row, err := db.Connection(t.Context(), "T1", "UADA", at.Host()); err != nil || strings.Contains(string(row.Sealed), "secret") {
				t.Error("the token is in the database in clear", err)
			}
			if _, err := s.Disconnect(t.Context(), "T1", "UADA", at.Host()); err != nil {
				t.Error(err)
			}
			id := cmp.Or(c.id, "app-1")
			if got := strings.Join(h.revoked, ", "); got != id+" renews-3, "+id+" secret-3" {
				t.Errorf("revoked are %s", got)
			}
		})
	}
}

// TestAnAddressThatIsNoneOfTheForms: nothing becomes a token but what came of this person's link, in time, from that
// server, once.
func TestAnAddressThatIsNoneOfTheForms(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	h.meta["authorization_response_iss_parameter_supported"] = true
	at := Site{URL: h.URL + "/mcp", Server: &Server{}}
	s, _, _, _ := world(t, newSite(t, ""))
	s.Sites = []Site{at}
	link, kept, err := s.Find(t.Context(), at, "T1", "UADA")
	if err != nil {
		t.Fatal(err)
	}
	good := h.agrees(t, link)
	good.Set("iss", h.URL+"/as")
	other, _, err := s.Find(t.Context(), at, "T1", "UADA")
	if err != nil {
		t.Fatal(err)
	}
	var old attempt
	raw, _ := base64.RawURLEncoding.DecodeString(kept)
	if err := s.Key.opened(raw, &old, "attempt", "T1", "UADA", at.Host()); err != nil {
		t.Fatal(err)
	}
	old.Until = time.Now().Add(-time.Second)
	late := base64.RawURLEncoding.EncodeToString(s.Key.sealed(old, "attempt", "T1", "UADA", at.Host()))
	with := func(changes ...string) string {
		q := maps.Clone(good)
		for i := 0; i < len(changes); i += 2 {
			q.Del(changes[i])
			if changes[i+1] != "" {
				q.Set(changes[i], changes[i+1])
			}
		}
		return address(q)
	}
	for name, c := range map[string]struct{ team, user, kept, pasted, want string }{
		"another's form":     {"T1", "UMALLORY", kept, address(good), "this form is not yours"},
		"another team's":     {"T2", "UADA", kept, address(good), "this form is not yours"},
		"no form":            {"T1", "UADA", "x", address(good), "this form is not yours"},
		"a changed form":     {"T1", "UADA", strings.Replace(kept, kept[40:41], map[bool]string{true: "B", false: "A"}[kept[40] == 'A'], 1), address(good), "this form is not yours"},
		"an old form":        {"T1", "UADA", late, address(good), "older than ten minutes"},
		"another state":      {"T1", "UADA", kept, with("state", "x"), "not from the link in this form"},
		"no state":           {"T1", "UADA", kept, with("state", ""), "not from the link in this form"},
		"another's address":  {"T1", "UADA", kept, address(h.agrees(t, other)), "not from the link in this form"},
		"another server":     {"T1", "UADA", kept, with("iss", "https://evil.example"), "does not say that it is from the OAuth of"},
		"no server":          {"T1", "UADA", kept, with("iss", ""), "does not say that it is from the OAuth of"},
		"a code alone":       {"T1", "UADA", kept, good.Get("code"), "paste the whole address"},
		"denied":             {"T1", "UADA", kept, with("code", "", "error", "access_denied"), "was told not to connect"},
		"another error":      {"T1", "UADA", kept, with("code", "", "error", "<!channel>"), "did not connect (it gives no reason)"},
		"no code":            {"T1", "UADA", kept, with("code", ""), "did not connect"},
		"another's code":     {"T1", "UADA", kept, with("code", h.agrees(t, other).Get("code")), "did not connect (invalid_grant)"},
		"a page of the docs": {"T1", "UADA", kept, "https://example.com/", "paste the whole address"},
	} {
		_, token, err := s.Redeem(t.Context(), at, c.team, c.user, c.kept, c.pasted)
		if token != nil || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "oh no") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := s.Redeem(t.Context(), at, "T1", "UADA", kept, strings.TrimPrefix(address(good), "http://")+"#"); err != nil {
		t.Error("what browsers leave out was missed", err)
	}
	_, _, err = s.Redeem(t.Context(), at, "T1", "UADA", kept, address(good))
	wants(t, err, "invalid_grant") // nothing was connected, and the server takes a code once

	// Where the server does not say whence an address is, a code alone will do: it is bound to the form by PKCE.
	delete(h.meta, "authorization_response_iss_parameter_supported")
	link, kept, err = s.Find(t.Context(), at, "T1", "UADA")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Redeem(t.Context(), at, "T1", "UADA", kept, h.agrees(t, link).Get("code")); err != nil {
		t.Error(err)
	}
}

// TestAServerWhoseOAuthIsNotUsed: the reason is words of ours, and nothing is sent where it may not go.
func TestAServerWhoseOAuthIsNotUsed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	huge := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"issuer":"`))
		for range 40 {
			_, _ = w.Write([]byte(strings.Repeat("x", 64<<10)))
		}
	}
	redirect := func(w http.ResponseWriter) {
		w.Header().Set("Location", elsewhere.URL)
		w.WriteHeader(http.StatusFound)
	}
	const meta, odd = "/.well-known/oauth-authorization-server/as", "it does not answer as the MCP specification says"
	for name, c := range map[string]struct {
		change func(*hosted)
		want   string
	}{
		"none":            {func(h *hosted) { h.says[meta] = notFound }, "it tells of none"},
		"no server of it": {func(h *hosted) { delete(h.resource, "authorization_servers") }, "it names no server of it"},
		"no PKCE":         {func(h *hosted) { delete(h.meta, "code_challenge_methods_supported") }, odd},
		"plain PKCE":      {func(h *hosted) { h.meta["code_challenge_methods_supported"] = []string{"plain"} }, "it has no PKCE with S256"},
		"another issuer":  {func(h *hosted) { h.meta["issuer"] = "https://evil.example" }, odd},
		"another's resource": {func(h *hosted) {
			h.resource["resource"] = "https://other.example/mcp"
			h.says["/.well-known/oauth-authorization-server"] = notFound
		}, "it tells of none"},
		"no registration": {func(h *hosted) { delete(h.meta, "registration_endpoint") }, "it takes no app by itself"},
		"a refused registration": {func(h *hosted) {
			h.says["/as/register"] = func(w http.ResponseWriter) {
				w.WriteHeader(400)
				_, _ = w.Write([]byte(`{"error":"invalid_redirect_uri","error_description":"<!channel>"}`))
			}
		}, "(invalid_redirect_uri)"},
		"a huge answer":              {func(h *hosted) { h.says[meta] = huge }, odd},
		"a huge registration":        {func(h *hosted) { h.says["/as/register"] = huge }, "it does not take Deckhand as an app"},
		"a redirect":                 {func(h *hosted) { h.says[meta] = redirect }, odd},
		"a redirected registration":  {func(h *hosted) { h.says["/as/register"] = redirect }, "it does not take Deckhand as an app"},
		"a script":                   {func(h *hosted) { h.meta["authorization_endpoint"] = "javascript:alert(1)" }, odd},
		"a link in clear":            {func(h *hosted) { h.meta["authorization_endpoint"] = "http://evil.example/" }, odd},
		"a link with a password":     {func(h *hosted) { h.meta["authorization_endpoint"] = "https://a:b@evil.example/" }, "one of its addresses is not https"},
		"an end in clear":            {func(h *hosted) { h.meta["revocation_endpoint"] = "http://evil.example/" }, "one of its addresses is not https"},
		"no link":                    {func(h *hosted) { delete(h.meta, "authorization_endpoint") }, "one of its addresses is not https"},
		"a long link":                {func(h *hosted) { h.meta["authorization_endpoint"] = h.URL + "/" + strings.Repeat("x", linkMost) }, "longer than Slack takes"},
		"a cloud's metadata address": {func(h *hosted) { h.meta["registration_endpoint"] = "https://[::ffff:169.254.169.254]/latest" }, odd},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHosted(t)
			c.change(h)
			at := Site{URL: h.URL + "/mcp", Server: &Server{}}
			s := New(Config{Key: key(t, "k"), Sites: []Site{at}, Log: zap.NewNop()})
			link, _, err := s.Find(t.Context(), at, "T1", "UADA")
			if link != "" || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "channel") {
				t.Errorf("%q, %v", link, err)
			}
		})
	}
}

func notFound(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }

// TestAServerNamesAddressesInside: one that is not inside itself has the bot connect to public addresses alone.
func TestAServerNamesAddressesInside(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	for inside, want := range map[bool]int{false: 0, true: 1} {
		at := Site{URL: "https://mcp.example/mcp", Server: &Server{}, found: &found{Inside: inside}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(h.URL, "127.0.0.1", "localhost", 1)+"/as/token", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := at.caller().Do(r); err == nil {
			_ = resp.Body.Close()
		} else {
			wants(t, err, "the address is not public")
		}
		h.mu.Lock()
		if len(h.asked) != want {
			t.Errorf("inside %v: it was asked %v", inside, h.asked)
		}
		h.asked = nil
		h.mu.Unlock()
	}
}
