package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// oauthServer gives tokens by OAuth's device flow (RFC 8628), a code that is entered, or, once it is hosted, by a link
// with PKCE, as the MCP specification has it: a token that is renewed in every
// call of the bot's and works until the next, and one that is revoked (RFC 7009) or that its owner has ended.
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

func (o *oauthServer) give(who string) map[string]any {
	o.given++
	token, renews := fmt.Sprintf("token-canary-%s-%d", who, o.given), fmt.Sprintf("renews-canary-%s-%d", who, o.given)
	o.tokens[token], o.tokens[renews] = who, who
	return map[string]any{"access_token": token, "refresh_token": renews, "token_type": "Bearer", "expires_in": 120}
}

func (o *oauthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	say := func(status int, v map[string]any) {
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
	case "/oauth/device":
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
	case "/oauth/userinfo":
		who := o.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		say(http.StatusOK, map[string]any{"sub": "id-" + who, "email": who + "@boathouse.example", "email_verified": true})
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

// TestAPersonConnectsByACode: whoever enters the code connects, if the account is theirs by its address, and the
// server's tools act as them, by a token that is renewed. A resource is read, and nothing else is asked of the server,
// but by a tool use that was decided. When the server has ended the token its person is told; disconnecting revokes it.
func TestAPersonConnectsByACode(t *testing.T) {
	t.Parallel()
	auth := &oauthServer{codes: map[string]string{}, tokens: map[string]string{}}
	var mu sync.Mutex
	var heard []string // methods, and by whom
	server := mcp.NewServer(&mcp.Implementation{Name: "mine", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami", Description: "Says who you are."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you"}}}, nil, nil
	})
	server.AddResource(&mcp.Resource{URI: "note://one", Name: "one"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "note://one", Text: "NOTE-ONE"}}}, nil
	})
	server.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "say: PROMPTED"}}}}, nil
	})
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			auth.mu.Lock()
			who := auth.tokens[strings.TrimPrefix(r.GetExtra().Header.Get("Authorization"), "Bearer ")]
			auth.mu.Unlock()
			mu.Lock()
			heard = append(heard, method+" "+who)
			mu.Unlock()
			return next(ctx, method, r)
		}
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		auth.mu.Lock()
		who := auth.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		auth.mu.Unlock()
		switch {
		case r.URL.Path != "/mcp":
			auth.ServeHTTP(rw, r)
		case who == "":
			rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/.well-known/oauth-protected-resource"`)
			rw.WriteHeader(http.StatusUnauthorized)
		default:
			h.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(web.Close)
	times := func(what string) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range heard {
			if m == what {
				n++
			}
		}
		return n
	}
	w := unstartedWorld(t)
	w.env = withServers
	w.configure(fmt.Sprintf("    env: ["+patience+"]\n    mcp_servers: {mine: {url: '%[1]s/mcp', as: person, connect: {client_id: deckhand, device_url: '%[1]s/oauth/device', token_url: '%[1]s/oauth/token', user_url: '%[1]s/oauth/userinfo', revoke_url: '%[1]s/oauth/revoke'}}}\n", web.URL)+
		sandboxHere(), "policy: {rules: [{allow: mcp__mine__whoami}]}\n")
	w.start()
	whoami, read := called("mcp__mine__whoami"), `tool: ToolSearch {"query": "select:ReadMcpResourceTool"}`+"\n"+`tool: ReadMcpResourceTool {"server":"mine","uri":"note://one"}`
	do := func(user, thread, text string) {
		t.Helper()
		w.done(eng, thread, w.post(user, eng, thread, text))
	}
	// connects presses the button, and has somebody enter the code that the window shows.
	connects := func(user, thread, as string) {
		t.Helper()
		w.post(user, eng, thread, "@deckhand connect")
		offer := w.find(eng, thread, "the button to connect", func(m message) bool { return m.EphemeralTo == user && m.has("connect") })
		_, text := w.opens(user, eng, offer.TS, "connect")
		at := strings.Index(text, "CODE-device-")
		if at < 0 || !strings.Contains(text, web.URL+"/enter") {
			t.Fatalf("the window has no code: %s", text)
		}
		code, _, _ := strings.Cut(text[at:]+"\n", "\n")
		if !auth.enter(strings.Trim(code, "`* "), as) {
			t.Fatalf("%q is no code", code)
		}
	}

	thread := w.post(linus, eng, "", "@deckhand "+whoami)
	w.done(eng, thread, thread)
	w.told(linus, eng, thread, "The MCP server mine acts as you, so its tools are missing: you are not connected to")
	connects(linus, thread, "mallory") // somebody else was talked into entering it
	w.hears("its verified address is not the one of your Slack profile")
	connects(linus, thread, "linus")
	w.hears("You are connected to")
	do(linus, thread, whoami)
	if n := times("tools/call linus"); n != 1 {
		t.Fatalf("the tool was called %d times: %q", n, heard)
	}
	auth.mu.Lock()
	if auth.renewed == 0 {
		t.Error("a token that ends soon was not renewed")
	}
	auth.mu.Unlock()

	// What is asked of the server beside its tools.
	reading := w.post(linus, eng, thread, read)
	card := w.find(eng, thread, "the card of the resource", func(m message) bool { return m.TS > reading && m.has("approve") })
	if n := times("resources/read linus"); n != 0 {
		t.Errorf("it was read %d times before anybody decided", n)
	}
	w.click(grace, eng, card.TS, "approve")
	w.done(eng, thread, reading)
	if n := times("resources/read linus"); n != 1 {
		t.Errorf("it was read %d times: %q", n, heard)
	}
	do(linus, thread, "say: read @mine:note://one please")
	do(linus, thread, "/mcp__mine__greet")
	if a, b := times("resources/read linus"), times("prompts/get linus"); a != 1 || b != 0 {
		t.Errorf("%d readings and %d prompts without a decision", a-1, b)
	}
	mu.Lock()
	for _, m := range heard {
		if method, who, _ := strings.Cut(m, " "); who != "linus" || !slices.Contains(strings.Fields("initialize notifications/initialized ping tools/list tools/call prompts/list resources/list resources/templates/list resources/read server/discover"), method) {
			t.Errorf("the server has heard %s", m)
		}
	}
	mu.Unlock()
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"note://one"}}`, `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"greet"}}`} {
		curl := w.runs(linus, eng, thread, `curl -sS -o /dev/null -w '%{http_code}' -H "X-Deckhand-Token: $DECKHAND_WEB_TOKEN" -H 'X-Deckhand-Server: mine' -d '`+body+`' $DECKHAND_WEB/mcp > said; true`)
		card := w.find(eng, thread, "the card of the command", func(m message) bool { return m.TS > curl && m.has("approve") })
		w.click(grace, eng, card.TS, "approve")
		w.done(eng, thread, curl)
		if said, err := os.ReadFile(filepath.Join(w.Workspace, "said")); err != nil || string(said) != "403" {
			t.Errorf("%s: %s, %v", body, said, err)
		}
	}

	// The server ends the token, which can be renewed no more.
	auth.mu.Lock()
	clear(auth.tokens)
	auth.mu.Unlock()
	do(linus, thread, whoami)
	w.hears("its token is not taken there any more")
	if n := times("tools/call linus"); n != 1 {
		t.Errorf("the tool was called %d times", n)
	}
	connects(linus, thread, "linus")
	w.eventually("the new connection", func() bool { return w.count(`SELECT count(*) FROM connections WHERE dead_at IS NULL`) == 1 })
	do(linus, thread, whoami)
	if n := times("tools/call linus"); n != 2 {
		t.Errorf("connected again, the tool was called %d times", n)
	}
	w.post(linus, eng, thread, "@deckhand disconnect")
	offer := w.find(eng, thread, "the button to disconnect", func(m message) bool { return m.EphemeralTo == linus && m.has("disconnect") })
	w.click(linus, eng, offer.TS, "disconnect")
	w.eventually("the connection to be gone", func() bool { return w.count(`SELECT count(*) FROM connections`) == 0 })
	w.eventually("the tokens to be revoked", func() bool {
		auth.mu.Lock()
		defer auth.mu.Unlock()
		return slices.Equal(auth.revoked, []string{fmt.Sprintf("renews-canary-linus-%d", auth.given), fmt.Sprintf("token-canary-linus-%d", auth.given)})
	})
	for _, table := range []string{"inbox", "audit", "outbox", "connections", "approvals", "threads"} {
		if n := w.count(`SELECT count(*) FROM ` + table + ` AS r WHERE r::text LIKE '%-canary-linus%'`); n != 0 {
			t.Errorf("%d rows of %s have a token", n, table)
		}
	}
	if log, err := os.ReadFile(filepath.Join(w.dir, "bot.log")); err != nil || strings.Contains(string(log), "-canary-linus") {
		t.Error("the log has a token", err)
	}
	w.auditIsWhole()
}
