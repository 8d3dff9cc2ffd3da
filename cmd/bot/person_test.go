package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAnMCPServerActsAsWhoeverAsks: its tools are there for a person who has connected, with their
// token and in their turns alone; somebody else is told how to connect. A token that is not taken
// any more, and a connection that ends, end that. The token is nowhere inside, nor in what is
// stored, logged or shown.
func TestAnMCPServerActsAsWhoeverAsks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls []string // by whose token each call of the tool was made
	refused := ""
	server := mcp.NewServer(&mcp.Implementation{Name: "mine", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami", Description: "Says who you are."}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, r.Extra.Header.Get("Authorization"))
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you"}}}, nil, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		bad := refused
		mu.Unlock()
		who := r.Header.Get("Authorization")
		switch {
		case r.URL.Path != "/":
			t.Errorf("the gateway lets %s through", r.URL.Path)
			rw.WriteHeader(http.StatusTeapot)
		case !strings.HasPrefix(who, "Bearer token-canary-") || strings.HasSuffix(who, bad) && bad != "":
			rw.Header().Set("WWW-Authenticate", "Bearer resource_metadata=\"http://"+r.Host+"/.well-known/oauth-protected-resource\"")
			rw.WriteHeader(http.StatusUnauthorized)
		default:
			h.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(web.Close)
	heard := func(want ...string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if !slices.Equal(calls, want) {
			t.Fatalf("the server was called as %q, want %q", calls, want)
		}
	}
	w := unstartedWorld(t)
	w.env = withServers
	w.configure("    env: ["+patience+"]\n    mcp_servers: {mine: {url: '"+web.URL+"', as: person, connect: {token_page: 'https://mine.example/tokens'}}}\n"+sandboxHere(), "policy: {rules: [{allow: mcp__mine__whoami}]}\n")
	w.start()
	whoami := called("mcp__mine__whoami")
	connect := func(user, thread, token string) {
		t.Helper()
		offer := w.find(eng, thread, "the offer to connect", func(m message) bool { return m.EphemeralTo == user && m.has("connect") })
		v, _ := w.opens(user, eng, offer.TS, "connect")
		w.submit(user, v, map[string]any{"token": map[string]any{"token": token}})
	}
	do := func(user, thread, text string) {
		t.Helper()
		w.done(eng, thread, w.post(user, eng, thread, text))
	}

	thread := w.post(linus, eng, "", "@deckhand "+whoami)
	w.done(eng, thread, thread)
	w.told(linus, eng, thread, "The MCP server mine acts as you, so its tools are missing: you are not connected to")
	w.post(linus, eng, thread, "mcp")
	w.told(linus, eng, thread, "it acts as whoever asks, and Linus Engineer was told: you are not connected to")
	heard()
	connect(linus, thread, "token-canary-linus")
	w.hears("You are connected to")
	do(linus, thread, whoami)
	heard("Bearer token-canary-linus")

	// Somebody else in the same thread, and the first one again in another process of the bot.
	do(ada, thread, whoami)
	w.told(ada, eng, thread, "The MCP server mine acts as you")
	heard("Bearer token-canary-linus")
	w.stop()
	w.start()
	do(linus, thread, whoami)
	heard("Bearer token-canary-linus", "Bearer token-canary-linus")
	do(ada, thread, whoami)
	connect(ada, thread, "token-canary-linus")
	w.hears("is connected by somebody else here")
	connect(ada, thread, "token-canary-ada")
	w.eventually("hers", func() bool { return w.count(`SELECT count(*) FROM connections`) == 2 })
	do(ada, thread, whoami)
	heard("Bearer token-canary-linus", "Bearer token-canary-linus", "Bearer token-canary-ada")

	// The server takes hers no more: she is told, and nothing is called as somebody else.
	mu.Lock()
	refused = "ada"
	mu.Unlock()
	do(ada, thread, whoami)
	w.hears("its token is not taken there any more")
	do(ada, thread, whoami)
	heard("Bearer token-canary-linus", "Bearer token-canary-linus", "Bearer token-canary-ada")

	looks := w.runs(linus, eng, thread, "env > said; cat /proc/[0-9]*/environ >> said; true")
	card := w.find(eng, thread, "the card of the command", func(m message) bool { return m.TS > looks && m.has("approve") })
	w.click(grace, eng, card.TS, "approve")
	w.done(eng, thread, looks)
	said, err := os.ReadFile(filepath.Join(w.Workspace, "said"))
	if err != nil || strings.Contains(string(said), "token-canary") {
		t.Errorf("the sandbox has a token, or the file is not there: %v", err)
	}
	w.keeps("token-canary")
	w.auditIsWhole()
}
