package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// oauthServer gives tokens as GitLab does, by a code that is entered (RFC 8628), and once it is hosted by a link with
// PKCE, as the MCP specification has it: a token that is renewed in every call of the bot's and works until the next,
// and one that is revoked (RFC 7009) or that its owner has ended.
type oauthServer struct {
	mu      sync.Mutex
	codes   map[string]string // who has entered a code, by the device's; empty: nobody yet
	tokens  map[string]string // whose a token is, or a token for renewal
	given   int
	renewed int
	revoked []string
	hosted  bool
	agreed  map[string]url.Values // what the links asked for, by the code that came of it
}

func newOAuthServer() *oauthServer {
	return &oauthServer{codes: map[string]string{}, tokens: map[string]string{}, agreed: map[string]url.Values{}}
}

// owner is whose token a call has.
func (o *oauthServer) owner(r http.Header) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tokens[strings.TrimPrefix(r.Get("Authorization"), "Bearer ")]
}

func (o *oauthServer) give(who string) map[string]any {
	o.given++
	token, renews := fmt.Sprintf("token-canary-%s-%d", who, o.given), fmt.Sprintf("renews-canary-%s-%d", who, o.given)
	o.tokens[token], o.tokens[renews] = who, who
	return map[string]any{"access_token": token, "refresh_token": renews, "token_type": "Bearer", "expires_in": 120}
}

func (o *oauthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	bearer := o.owner(r.Header)
	o.mu.Lock()
	defer o.mu.Unlock()
	say := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	here := "http://" + r.Host
	switch r.URL.Path {
	case "/.well-known/oauth-protected-resource":
		say(map[bool]int{false: http.StatusNotFound, true: http.StatusOK}[o.hosted], map[string]any{"resource": here + "/mcp", "authorization_servers": []string{here}})
	case "/.well-known/oauth-authorization-server":
		say(map[bool]int{false: http.StatusNotFound, true: http.StatusOK}[o.hosted], map[string]any{
			"issuer": here, "authorization_endpoint": here + "/oauth/authorize", "token_endpoint": here + "/oauth/token", "registration_endpoint": here + "/oauth/register",
			"revocation_endpoint": here + "/oauth/revoke", "code_challenge_methods_supported": []string{"S256"},
		})
	case "/oauth/register":
		say(http.StatusCreated, map[string]any{"client_id": "deckhand", "redirect_uris": []string{"http://127.0.0.1:8976/callback"}, "token_endpoint_auth_method": "none"})
	case "/oauth/authorize": // whoever has the link agrees as linus
		q := r.URL.Query()
		code := fmt.Sprintf("code-canary-linus-%d", len(o.agreed)+1)
		o.agreed[code] = q
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	case "/oauth/authorize_device":
		device := fmt.Sprintf("device-%d", len(o.codes)+1)
		o.codes[device] = ""
		say(http.StatusOK, map[string]any{"device_code": device, "user_code": "CODE-" + device, "verification_uri": "http://" + r.Host + "/enter", "expires_in": 600, "interval": 1})
	case "/oauth/token":
		who, ok := o.codes[r.FormValue("device_code")]
		renews := o.tokens[r.FormValue("refresh_token")]
		switch {
		case r.FormValue("client_id") != "deckhand":
			say(http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		case r.FormValue("grant_type") == "authorization_code":
			sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
			if o.agreed[r.FormValue("code")].Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || r.FormValue("resource") != here+"/mcp" {
				say(http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
				return
			}
			delete(o.agreed, r.FormValue("code"))
			say(http.StatusOK, o.give("linus"))
		case r.FormValue("grant_type") == "refresh_token" && renews != "":
			delete(o.tokens, r.FormValue("refresh_token")) // it works once
			o.renewed++
			say(http.StatusOK, o.give(renews))
		case r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:device_code" || !ok:
			say(http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		case who == "":
			say(http.StatusBadRequest, map[string]any{"error": "authorization_pending"})
		default:
			delete(o.codes, r.FormValue("device_code"))
			say(http.StatusOK, o.give(who))
		}
	case "/api/v4/user":
		say(http.StatusOK, map[string]any{"id": len(bearer), "username": bearer, "name": bearer})
	case "/api/v4/user/emails":
		say(http.StatusOK, []map[string]any{{"email": bearer + "@boathouse.example", "confirmed_at": "2026-01-01T00:00:00Z"}})
	case "/oauth/revoke":
		delete(o.tokens, r.FormValue("token"))
		o.revoked = append(o.revoked, r.FormValue("token"))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// enter enters the newest code as somebody, on the server's page.
func (o *oauthServer) enter(code, who string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	device, ok := strings.CutPrefix(code, "CODE-")
	if _, known := o.codes[device]; !ok || !known {
		return false
	}
	o.codes[device] = who
	return true
}

// disconnects ends the one connection, by the button that a person is shown, and waits until its tokens are revoked.
func (o *oauthServer) disconnects(w *world, user, thread string) {
	w.t.Helper()
	w.post(user, eng, thread, "@deckhand disconnect")
	offer := w.find(eng, thread, "the button to disconnect", func(m message) bool { return m.EphemeralTo == user && m.has("disconnect") })
	w.click(user, eng, offer.TS, "disconnect")
	w.eventually("the connection to be gone", func() bool { return w.count(`SELECT count(*) FROM connections`) == 0 })
	w.eventually("the tokens to be revoked", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return slices.Equal(o.revoked, []string{fmt.Sprintf("renews-canary-linus-%d", o.given), fmt.Sprintf("token-canary-linus-%d", o.given)})
	})
}

// TestAPersonConnectsByACode: whoever enters the code at the forge connects, if the account is theirs by its address.
// Disconnecting revokes the token, which was nowhere in clear.
func TestAPersonConnectsByACode(t *testing.T) {
	t.Parallel()
	auth := newOAuthServer()
	web := httptest.NewServer(auth)
	t.Cleanup(web.Close)
	w := unstartedWorld(t)
	w.configure("    workspace: worktree\n    git: {url: '"+web.URL+"/team/boathouse.git', token_env: "+forgeToken+"}\n    pull_requests: {forge: gitlab, connect: {client_id: deckhand}}\n"+demoSandbox(t.Context()), "")
	w.start()
	thread := w.post(linus, eng, "", "@deckhand connect")
	offer := w.find(eng, thread, "the button to connect", func(m message) bool { return m.EphemeralTo == linus && m.has("connect") })
	connects := func(as string) {
		t.Helper()
		_, text := w.opens(linus, eng, offer.TS, "connect")
		at := strings.Index(text, "CODE-device-")
		if at < 0 || !strings.Contains(text, web.URL+"/enter") {
			t.Fatalf("the window has no code: %s", text)
		}
		code, _, _ := strings.Cut(text[at:]+"\n", "\n")
		if !auth.enter(strings.Trim(code, "`* "), as) {
			t.Fatalf("%q is no code", code)
		}
	}
	connects("mallory") // somebody else was talked into entering it
	w.hears("nothing shows that the account mallory")
	connects("linus")
	w.hears("You are connected to " + strings.TrimPrefix(web.URL, "http://") + " as linus")
	auth.disconnects(w, linus, thread)
	w.keeps("-canary-linus")
	w.auditIsWhole()
}
