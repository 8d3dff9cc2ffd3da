package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/internal/needtest"
	"deckhand/internal/playground/slacktypes"
)

// TestMCPServersFromTheThread: people see how the MCP servers of a session are, switch one off,
// which holds in the next process, too, and have one that has died be connected again. What the
// server says of itself calls nobody, and tells no secret.
func TestMCPServersFromTheThread(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	var dead atomic.Bool
	address := stockThatDies(t, &calls, &dead)
	w := unstartedWorld(t)
	w.env = withServers
	w.configure(stockServer(address)+demoSandbox(t.Context()), "policy: {rules: [{allow: [mcp__stock__count]}]}\n")
	w.start()
	count := `tool: mcp__stock__count {"of": "apples"}`
	do := func(thread, text string) {
		t.Helper()
		w.done(eng, thread, w.post(linus, eng, thread, text))
	}
	counted := func(want int64, when string) {
		t.Helper()
		if n := calls.Load(); n != want {
			t.Fatalf("%s: the server has heard %d calls, not %d", when, n, want)
		}
	}

	thread := w.post(linus, eng, "", "@deckhand "+count)
	w.done(eng, thread, thread)
	counted(1, "at first")
	w.post(linus, eng, thread, "mcp")
	w.told(linus, eng, thread, "connected · 1 tool")
	do(thread, "context")
	w.post(linus, eng, thread, "mcp")
	w.told(linus, eng, thread, "1 tool · about ")
	w.post(linus, eng, thread, "mcp off nothing")
	if n := w.count(`SELECT count(*) FROM audit WHERE kind = 'steered'`); n != 0 {
		t.Error("a server that is not there was switched off")
	}
	w.post(mallory, eng, thread, "@deckhand mcp off stock")
	w.told(mallory, eng, thread, "You don't have access")

	// Off holds at once, and in the next process.
	w.post(linus, eng, thread, "mcp off stock")
	w.says(eng, thread, "switched the MCP server stock off in this thread")
	do(thread, count)
	counted(1, "when it was off")
	w.stop()
	w.start()
	do(thread, count)
	counted(1, "when it was off, in the next process")
	w.post(linus, eng, thread, "mcp")
	card := w.find(eng, thread, "the list", func(m message) bool { return m.EphemeralTo == linus && strings.Contains(m.all(), "stock` · off") })
	w.click(linus, eng, card.TS, "say:0")
	w.says(eng, thread, "switched the MCP server stock on in this thread")
	do(thread, count)
	counted(2, "when it was on again")

	// One that has died is said once, also by the next process.
	dead.Store(true)
	w.stop()
	w.start()
	do(thread, "say: one")
	died := w.says(eng, thread, "The MCP server stock does not work, so its tools are missing")
	if all := died.all(); strings.Contains(all, "stock-canary") || strings.Contains(all, "<!channel>") {
		t.Errorf("what is said of it: %s", all)
	}
	do(thread, "say: two")
	w.stop()
	w.start()
	do(thread, "say: three")
	w.post(linus, eng, thread, "mcp")
	w.told(linus, eng, thread, "stock` · ❌")
	n := 0
	for _, m := range w.messages(eng, thread) {
		n += strings.Count(m.Text, "The MCP server stock does not work")
	}
	if n != 1 {
		t.Errorf("it was said %d times that it died", n)
	}
	dead.Store(false)
	w.post(linus, eng, thread, "mcp reconnect stock")
	w.says(eng, thread, "The MCP server stock is connected again. Its tools: 1.")
	do(thread, count)
	counted(3, "when it was connected again")
	if got := w.text(`SELECT string_agg(details::jsonb->>'what' || ' ' || (details::jsonb->>'value'), ', ' ORDER BY seq) FROM audit WHERE kind = 'steered'`); got != "mcp off stock, mcp on stock, mcp reconnect stock" {
		t.Errorf("the audit tells of %s", got)
	}
	w.auditIsWhole()
}

// TestAnMCPServerInTheSandbox: the official "everything" server runs beside the CLI in its
// sandbox. Each of its tools is asked, and its environment has what is set for it and nothing
// of the session's or the bot's.
func TestAnMCPServerInTheSandbox(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "node")
	folder, err := slacktypes.Folder(t.Context(), "../../internal/playground/bolt/install.sh", needtest.Required())
	if err != nil {
		needtest.Missing(t, err.Error())
	}
	server := filepath.Join(folder, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	w := unstartedWorld(t)
	w.env = withServers
	w.configure("    mcp_servers: {everything: {command: [node, '"+server+"', stdio], env: {GREETING: hello there}}}\n"+
		"    env: [STOCK_TOKEN, "+patience+"]\nsandbox: {see: ['"+folder+"']}", "")
	w.start()

	thread := w.post(linus, eng, "", "@deckhand say: ready")
	w.done(eng, thread, thread)
	w.post(linus, eng, thread, "mcp")
	w.told(linus, eng, thread, "everything` · connected · 1")
	w.done(eng, thread, w.post(linus, eng, thread, "context"))
	w.post(linus, eng, thread, "mcp")
	w.told(linus, eng, thread, "tools · about ")

	env := w.post(linus, eng, thread, "tool: mcp__everything__get-env {}")
	w.click(grace, eng, w.card(eng, thread).TS, "approve")
	w.done(eng, thread, env)
	denied := w.post(linus, eng, thread, `tool: mcp__everything__echo {"message": "never said"}`)
	card := w.find(eng, thread, "the card of the second call", func(m message) bool { return m.TS > denied && m.has("approve") })
	w.click(grace, eng, card.TS, "deny")
	w.done(eng, thread, denied)

	var got map[string]string
	files, _ := filepath.Glob(filepath.Join(w.dir, "bot/home/*/.claude/projects/*/*.jsonl"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "Echo: never said") {
			t.Error("what was denied ran")
		}
		for line := range strings.Lines(string(b)) {
			var entry struct {
				ToolUseResult []struct{ Text string } `json:"toolUseResult"`
			}
			if json.Unmarshal([]byte(line), &entry) == nil && len(entry.ToolUseResult) > 0 && strings.Contains(line, "GREETING") {
				if err := json.Unmarshal([]byte(entry.ToolUseResult[0].Text), &got); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if got["GREETING"] != "hello there" || got["HOME"] == "" {
		t.Errorf("the server's environment: %v, of %d transcripts", got, len(files))
	}
	allowed := strings.Fields("GREETING PATH HOME LANG LANGUAGE LC_ALL TZ TMPDIR USER LOGNAME SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS" +
		" HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy")
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !slices.Contains(allowed, name) || strings.Contains(got[name], "stock-canary") {
			t.Errorf("the server sees %s=%s", name, got[name])
		}
	}
	w.auditIsWhole()
}
