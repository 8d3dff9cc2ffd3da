package main

import (
	"context"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAPersonConnectsByALink: the bot finds a server's OAuth by itself, the person agrees by the link in the window, and
// pastes where their browser was sent, with another bot than the one that made the link. The server's tools act as them,
// by a token that is renewed. A resource is read, and nothing else is asked of the server, but by a tool use that was
// decided. When the server has ended the token its person is told; disconnecting revokes it. While the server has no
// OAuth the window takes a token, and says why.
func TestAPersonConnectsByALink(t *testing.T) {
	t.Parallel()
	auth := newOAuthServer()
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
			who := auth.owner(r.GetExtra().Header)
			mu.Lock()
			heard = append(heard, method+" "+who)
			mu.Unlock()
			return next(ctx, method, r)
		}
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/mcp":
			auth.ServeHTTP(rw, r)
		case auth.owner(r.Header) == "":
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
	w.configure("    env: ["+patience+"]\n    mcp_servers: {mine: {url: '"+web.URL+"/mcp', as: person}}\n"+sandboxHere(), "policy: {rules: [{allow: mcp__mine__whoami}]}\n")
	w.start()
	whoami, read := called("mcp__mine__whoami"), `tool: ToolSearch {"query": "select:ReadMcpResourceTool"}`+"\n"+`tool: ReadMcpResourceTool {"server":"mine","uri":"note://one"}`
	do := func(user, thread, text string) {
		t.Helper()
		w.done(eng, thread, w.post(user, eng, thread, text))
	}
	// agrees opens the link of the window, and returns the window and where the browser was sent.
	agrees := func(ts string) (v view, sent string) {
		t.Helper()
		w.opens(linus, eng, ts, "connect")
		v, shown := w.window(linus, "a page that does not load")
		_, link, _ := strings.Cut(shown, "<"+web.URL+"/oauth/authorize")
		link, _, ok := strings.Cut(link, "|"+strings.TrimPrefix(web.URL, "http://")+">")
		if !ok {
			t.Fatalf("the window has no link: %s", shown)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/oauth/authorize"+html.UnescapeString(link), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return v, resp.Header.Get("Location")
	}
	pastes := func(v view, sent string) {
		t.Helper()
		w.eventually("the bot to take the form", func() bool {
			var out struct {
				Acked bool `json:"acked"`
			}
			in := map[string]any{"user": linus, "values": map[string]any{"token": map[string]any{"token": sent}}}
			w.must(http.MethodPost, "/_control/views/"+v.ID+"/submit", in, &out)
			return out.Acked
		})
	}

	thread := w.post(linus, eng, "", "@deckhand "+whoami)
	w.done(eng, thread, thread)
	w.told(linus, eng, thread, "The MCP server mine acts as you, so its tools are missing: you are not connected to")
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
	v, sent := agrees(offer.TS)
	old := w.PIDs["bot"]
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.renewed("bot", old)
	pastes(v, sent)
	w.hears("as yourself. In work that you ask for")
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
	pastes(agrees(offer.TS))
	w.eventually("the new connection", func() bool { return w.count(`SELECT count(*) FROM connections WHERE dead_at IS NULL`) == 1 })
	do(linus, thread, whoami)
	if n := times("tools/call linus"); n != 2 {
		t.Errorf("connected again, the tool was called %d times", n)
	}
	auth.disconnects(w, linus, thread)
	w.keeps("-canary-linus")
	w.auditIsWhole()
}
