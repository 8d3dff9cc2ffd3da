package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/gateway/egress"
	"deckhand/internal/needtest"
)

// stock is an MCP server that takes calls with a credential only, and counts them.
func stock(t *testing.T, calls *atomic.Int64) (address string) {
	t.Helper()
	return stockThatDies(t, calls, new(atomic.Bool))
}

// stockThatDies is such a server that answers nothing while it is dead.
func stockThatDies(t *testing.T, calls *atomic.Int64, dead *atomic.Bool) (address string) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "stock", Version: "1"}, nil)
	type of struct {
		Of string `json:"of"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "count", Description: strings.Repeat("counts what is in stock; ", 200)}, func(_ context.Context, _ *mcp.CallToolRequest, in of) (*mcp.CallToolResult, any, error) {
		calls.Add(1)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "42 " + in.Of}}}, nil, nil
	})
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case dead.Load():
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "no stock; <!channel> use stock-canary")
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

// withServers is the environment of a bot whose project has MCP servers, and names patience: the
// CLI begins the first turn without a server that has not answered after five seconds, and gives
// it up after thirty, which on a busy machine is too early.
var (
	withServers = []string{"STOCK_TOKEN=stock-canary", "MCP_CONNECT_TIMEOUT_MS=600000", "MCP_TIMEOUT=600000"}
	patience    = "MCP_CONNECT_TIMEOUT_MS, MCP_TIMEOUT"
)

// stockServer are the lines of a project that has the server.
func stockServer(address string) string {
	return "    env: [" + patience + "]\n    mcp_servers: {stock: {url: 'http://" + address + "/api/mcp', headers: {Authorization: 'Bearer ${STOCK_TOKEN}'}}}\n"
}

// TestTheWayToTheWeb: an agent in bwrap, which has no other network, reaches its project's
// MCP server and domain through the gateway with the real CLI. The server's credential is
// nowhere inside. The audit has what was visited, turn by turn.
func TestTheWayToTheWeb(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "curl")
	var calls atomic.Int64
	address := stock(t, &calls)
	port := address[strings.LastIndexByte(address, ':')+1:]
	w := unstartedWorld(t)
	w.env = withServers
	w.configure(stockServer(address)+"sandbox: {network: ['internal:localhost:"+port+"']}", "policy: {rules: [{allow: [mcp__stock__count]}]}\n")
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
		`curl -sS -o /dev/null -w '%{http_code}\n' -H "X-Deckhand-Token: $DECKHAND_WEB_TOKEN" -H 'X-Deckhand-Server: stock' -d '{"method":"tools/call","params":{"name":"count","arguments":{"of":"apples"}}}' $DECKHAND_WEB/api/mcp >> out`,
		`cat /proc/*/environ /proc/*/cmdline $HOME/.claude/projects/*/* 2>/dev/null | tr '\0' '\n' | grep -c 'stock[-]canary' >> out`, "true",
	}, "; "))
	w.click(ada, eng, w.card(eng, again).TS, "approve")
	w.done(eng, again, again)
	out, err := os.ReadFile(filepath.Join(w.Workspace, "out"))
	if err != nil {
		t.Fatalf("%v\n%s", err, w.messages(eng, again)[len(w.messages(eng, again))-1].all())
	}
	want := "a page\nnetwork: of project sample does not allow evil.com:80; an admin can add it in deckhand.yaml\nno way around\n404\n404\n403\n0\n"
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

// TestTheWebIsAsked: with network: ask, the real CLI's curl in bwrap waits until somebody
// has decided about its host: one is allowed for the thread, one is denied, and the audit
// tells of both, with the bytes. Hosts are behind a company's proxy, as it has none of its
// own on a machine of tests.
func TestTheWebIsAsked(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "curl")
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "page of", r.URL.Host+r.URL.Path) }))
	t.Cleanup(proxy.Close)
	w := unstartedWorld(t)
	w.env = []string{"HTTP_PROXY=" + proxy.URL}
	w.configure("sandbox: {network: {allow: [listed.example], otherwise: ask}}", "policy: {rules: [{deny: 'SandboxNetworkAccess(domain:evil.example)'}, {allow: ['Bash(curl **)', Edit(out)]}]}\n")
	w.start()
	get := func(hosts ...string) string { return "curl -sS " + strings.Join(hosts, " ") + " > out" }
	asked := func(thread, host string) message {
		return w.find(eng, thread, "a card about "+host, func(m message) bool { return m.has("approve") && strings.Contains(m.all(), host) })
	}
	thread := w.runs(linus, eng, "", get("listed.example/a", "FIRST.example/b", "first.example/c", "second.example/d", "evil.example/e", "nexus/f"))
	first := asked(thread, "first.example:80")
	for _, want := range []string{"curl -sS listed.example/a FIRST.example/b", "Approve holds for every program in the sandbox until this turn ends"} {
		if !strings.Contains(first.all(), want) {
			t.Errorf("the card has no %q:\n%s", want, first.all())
		}
	}
	if shown := w.alwaysAllow(grace, eng, first.TS, 0, "thread"); !strings.Contains(shown, "SandboxNetworkAccess(domain:first.example:80)") {
		t.Errorf("what is offered:\n%s", shown)
	}
	second := asked(thread, "second.example:80")
	w.clickOn(ada, eng, second.TS, "deny", w.text(`SELECT id FROM approvals WHERE status = 'pending'`))
	w.done(eng, thread, thread)
	out, err := os.ReadFile(filepath.Join(w.Workspace, "out"))
	if err != nil {
		t.Fatal(err)
	}
	want := "page of listed.example/a\npage of FIRST.example/b\npage of first.example/c\n" +
		"The person denied this. Do not try to get around it; say what you would have done, or ask.\n" +
		"This team's policy does not allow it (deny SandboxNetworkAccess(domain:evil.example)). Do not try to get around it; say what you would have needed it for.\n" +
		"nexus:80 is not reached, and nobody is asked about it: it is no name of the public network; an admin can list it under network: in deckhand.yaml, with internal: before it\n"
	if string(out) != want {
		t.Errorf("what the command saw: %q", out)
	}
	// The next turn has the permission and the command both, and nobody is asked.
	again := w.runs(linus, eng, thread, get("first.example/g"))
	w.done(eng, thread, again)

	results := w.text(`SELECT string_agg(details, ' ' ORDER BY seq) FROM audit WHERE kind = 'tool_result'`)
	if n := w.count(`SELECT count(*) FROM approvals WHERE tool_name = 'SandboxNetworkAccess'`); n != 4 {
		t.Errorf("%d decisions about hosts, not 4; results: %s", n, results)
	}
	for host, want := range map[string]string{
		"first.example": "allowed modal U0GRACE, allowed grant U0GRACE", "second.example": "denied button U0ADA", "evil.example": "denied rule rule",
	} {
		if got := w.text(`SELECT string_agg(status || ' ' || decided_via || ' ' || decided_by, ', ' ORDER BY created_at) FROM approvals WHERE input = '{"host":"` + host + `","port":80}'`); got != want {
			t.Errorf("%s: %q, not %q", host, got, want)
		}
	}
	if n := w.count(`SELECT count(*) FROM approvals h JOIN approvals b ON b.tool_use_id = h.tool_use_id AND b.tool_name = 'Bash' WHERE h.tool_name = 'SandboxNetworkAccess'`); n != 4 {
		t.Errorf("%d of 4 decisions name the command that asked", n)
	}
	var all []egress.Visit
	if err := json.Unmarshal([]byte(w.text(`SELECT details::jsonb->>'visits' FROM audit WHERE kind = 'web' ORDER BY seq LIMIT 1`)), &all); err != nil {
		t.Fatal(err)
	}
	var visits []string
	for _, v := range all {
		visits = append(visits, fmt.Sprintf("%s %d/%d %t", v.Host, v.Connections, v.Refused, v.Up > 0 && v.Down > 0))
	}
	if got, want := strings.Join(visits, ", "), "evil.example:80 0/1 false, first.example:80 2/0 true, listed.example:80 1/0 true, nexus:80 0/1 false, second.example:80 0/1 false"; got != want {
		t.Errorf("visits: %s, not %s", got, want)
	}
	w.auditIsWhole()
}
