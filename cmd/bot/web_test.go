package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/gateway/egress"
)

// stock is an MCP server that takes calls with a credential only, and counts them.
func stock(t *testing.T, calls *atomic.Int64) (address string) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "stock", Version: "1"}, nil)
	type of struct {
		Of string `json:"of"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "count", Description: "counts what is in stock"}, func(_ context.Context, _ *mcp.CallToolRequest, in of) (*mcp.CallToolResult, any, error) {
		calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "42 " + in.Of}}}, nil, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/page":
			fmt.Fprint(w, "a page")
		case r.URL.Path != "/api/mcp":
			w.WriteHeader(http.StatusTeapot) // nothing of ours comes here
		case r.Header.Get("Authorization") != "Bearer stock-canary" || r.Header.Get("X-Deckhand-Token") != "":
			t.Errorf("%s: %v", r.URL, r.Header)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(web.Close)
	return web.Listener.Addr().String()
}

// TestTheWayToTheWeb: an agent in bwrap, which has no other network, reaches its project's
// MCP server and domain through the gateway with the real CLI. The server's credential is
// nowhere inside. The audit has what was visited, turn by turn.
func TestTheWayToTheWeb(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		need(t, "curl is not installed: .ci/setup test")
	}
	var calls atomic.Int64
	address := stock(t, &calls)
	port := address[strings.LastIndexByte(address, ':')+1:]
	w := unstartedWorld(t)
	w.env = []string{"STOCK_TOKEN=stock-canary"}
	w.configure("sandbox: {network: ['internal:localhost:"+port+"']}", "policy: {rules: [{allow: [mcp__stock__count]}]}\n")
	file := filepath.Join(w.dir, "deckhand.yaml")
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	server := "    mcp_servers: {stock: {url: 'http://" + address + "/api/mcp', headers: {Authorization: 'Bearer ${STOCK_TOKEN}'}}}\n"
	if err := os.WriteFile(file, []byte(strings.Replace(string(config), "    dir:", server+"    dir:", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	thread := w.post(linus, eng, "", `@deckhand tool: mcp__stock__count {"of": "apples"}`)
	w.done(eng, thread, thread)
	if n := calls.Load(); n != 1 {
		t.Fatalf("the server has heard %d calls", n)
	}
	// Slack makes a link of what begins with http.
	again := w.runs(linus, eng, "", strings.Join([]string{
		`curl -sS --noproxy '' localhost:` + port + `/page > out; echo >> out`,
		`curl -sS evil.com/ >> out`,
		`curl -sS --noproxy '*' ` + address + `/page >> out 2>/dev/null || echo no way around >> out`,
		`curl -sS -o /dev/null -w '%{http_code}\n' $DECKHAND_WEB/api/mcp >> out`,
		`curl -sS -o /dev/null -w '%{http_code}\n' -H "X-Deckhand-Token: $DECKHAND_WEB_TOKEN" -H 'X-Deckhand-Server: stock' $DECKHAND_WEB/api/other >> out`,
		`cat /proc/*/environ /proc/*/cmdline $HOME/.claude/projects/*/* 2>/dev/null | tr '\0' '\n' | grep -c 'stock[-]canary' >> out`, "true",
	}, "; "))
	w.click(ada, eng, w.card(eng, again).TS, "approve")
	w.done(eng, again, again)
	out, err := os.ReadFile(filepath.Join(w.Workspace, "out"))
	if err != nil {
		t.Fatalf("%v\n%s", err, w.messages(eng, again)[len(w.messages(eng, again))-1].all())
	}
	want := "a page\nnetwork: of project sample does not allow evil.com:80; an admin can add it in deckhand.yaml\nno way around\n404\n404\n0\n"
	if string(out) != want {
		t.Errorf("what a command saw: %q", out)
	}
	visits := func(turn string) map[string]egress.Visit {
		var all []egress.Visit
		text := w.text(`SELECT details::jsonb->>'visits' FROM audit WHERE kind = 'web' AND turn_id = (SELECT ` + turn + `(id) FROM turns)`)
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
		by := map[string]egress.Visit{}
		for _, v := range all {
			by[v.Host] = v
		}
		return by
	}
	if v := visits("min")["mcp:stock"]; v.Connections == 0 || v.Up == 0 || v.Down == 0 {
		t.Errorf("the first turn: %+v", v)
	}
	second := visits("max")
	if v := second["localhost:"+port]; v.Connections != 1 || v.Down == 0 {
		t.Errorf("the second turn: %+v", second)
	}
	if v := second["evil.com:80"]; v.Refused != 1 || v.Connections != 0 {
		t.Errorf("the second turn: %+v", second)
	}
	if out, ok := w.bot("audit", "verify"); !ok {
		t.Error(out)
	}
}
