package main

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAPersonConnectsByALink: the bot finds a server's OAuth by itself, the person agrees by the link in the window, and
// pastes where their browser was sent, with another bot than the one that made the link. The server's tools act as them,
// and disconnecting ends the token. While the server has no OAuth the window takes a token, and says why.
func TestAPersonConnectsByALink(t *testing.T) {
	t.Parallel()
	auth := &oauthServer{codes: map[string]string{}, tokens: map[string]string{}, agreed: map[string]url.Values{}}
	who := func(r *http.Request) string {
		auth.mu.Lock()
		defer auth.mu.Unlock()
		return auth.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	}
	var calls atomic.Int32
	server := mcp.NewServer(&mcp.Implementation{Name: "mine", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami", Description: "Says who you are."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you"}}}, nil, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/mcp":
			auth.ServeHTTP(rw, r)
		case who(r) != "linus":
			rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+`/.well-known/oauth-protected-resource"`)
			rw.WriteHeader(http.StatusUnauthorized)
		default:
			h.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(web.Close)
	w := unstartedWorld(t)
	w.env = withServers
	w.configure("    env: ["+patience+"]\n    mcp_servers: {mine: {url: '"+web.URL+"/mcp', as: person}}\n"+sandboxHere(), "policy: {rules: [{allow: mcp__mine__whoami}]}\n")
	w.start()
	whoami := called("mcp__mine__whoami")
	thread := w.post(linus, eng, "", "@deckhand "+whoami)
	w.done(eng, thread, thread)
	offer := w.find(eng, thread, "the offer to connect", func(m message) bool { return m.EphemeralTo == linus && m.has("connect") })
	w.opens(linus, eng, offer.TS, "connect")
	v, shown := w.window(linus, "has no OAuth that Deckhand can use: it tells of none")
	if !strings.Contains(shown, "and enter it here") {
		t.Errorf("the window takes no token: %s", shown)
	}
	w.must(http.MethodPost, "/_control/views/"+v.ID+"/close", map[string]any{"user": linus}, nil)

	auth.mu.Lock()
	auth.hosted = true
	auth.mu.Unlock()
	w.opens(linus, eng, offer.TS, "connect")
	v, shown = w.window(linus, "a page that does not load")
	_, link, _ := strings.Cut(shown, "<"+web.URL+"/oauth/authorize")
	link, _, ok := strings.Cut(link, "|"+strings.TrimPrefix(web.URL, "http://")+">")
	if !ok {
		t.Fatalf("the window has no link: %s", shown)
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/oauth/authorize"+html.UnescapeString(link), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	old := w.PIDs["bot"]
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("bot", old)
	w.eventually("the next bot to take the form", func() bool {
		var out struct {
			Acked bool `json:"acked"`
		}
		in := map[string]any{"user": linus, "values": map[string]any{"token": map[string]any{"token": resp.Header.Get("Location")}}}
		w.must(http.MethodPost, "/_control/views/"+v.ID+"/submit", in, &out)
		return out.Acked
	})
	w.hears("as yourself. In work that you ask for")
	w.done(eng, thread, w.post(linus, eng, thread, whoami))
	if calls.Load() != 1 {
		t.Errorf("the tool was called %d times", calls.Load())
	}
	w.post(linus, eng, thread, "@deckhand disconnect")
	offer = w.find(eng, thread, "the button to disconnect", func(m message) bool { return m.EphemeralTo == linus && m.has("disconnect") })
	w.click(linus, eng, offer.TS, "disconnect")
	w.eventually("the tokens to be revoked", func() bool {
		auth.mu.Lock()
		defer auth.mu.Unlock()
		return strings.Join(auth.revoked, " ") == fmt.Sprintf("renews-canary-linus-%d token-canary-linus-%d", auth.given, auth.given)
	})
	for _, table := range []string{"inbox", "audit", "outbox", "connections", "threads"} {
		if n := w.count(`SELECT count(*) FROM ` + table + ` AS r WHERE r::text LIKE '%-canary-linus%'`); n != 0 {
			t.Errorf("%d rows of %s have a code or a token", n, table)
		}
	}
	if log, err := os.ReadFile(filepath.Join(w.dir, "bot.log")); err != nil || strings.Contains(string(log), "-canary-linus") {
		t.Error("the log has a code or a token", err)
	}
}
