package egress

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAToolIsCalledAsDecided: a call of a tool leaves once for each tool use that was decided about, with its input, and
// so does a reading of a resource, page by page; what tells what there is leaves, and nothing else.
func TestAToolIsCalledAsDecided(t *testing.T) {
	t.Parallel()
	forgets := false
	w := withServers(t, func(w http.ResponseWriter, r *http.Request) {
		if forgets {
			w.WriteHeader(http.StatusNotFound)
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprint(w, "called with ", string(body))
	})
	post := func(what, server, body string, status int) {
		t.Helper()
		path := map[string]string{"stock": "/api/mcp", "old": "/old/messages", "bare": "/"}[server]
		resp, text := w.call("POST", server, serverToken, path, body)
		if resp.StatusCode != status || status == 200 && text != "called with "+body {
			t.Errorf("%s: %d %s", what, resp.StatusCode, text)
		}
	}
	call := func(name, arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"` + name + `","arguments":` + arguments + `}}`
	}
	allow := func(use, tool, input string) { w.AllowCall(use, tool, json.RawMessage(input)) }
	const list, answer = `{"method":"tools/list","id":1}`, `{"id":1,"result":{"method":"tools/call"}}`

	post("a list", "stock", list, 200)
	post("an answer", "stock", answer, 200)
	post("a batch without a call", "stock", "["+list+","+answer+"]", 200)
	post("an undecided call", "stock", call("buy", `{"n":1}`), 403)
	post("one of the older form", "old", call("buy", `{"n":1}`), 403)

	allow("1", "mcp__stock__buy", `{"n": 1, "of": "é"}`)
	good := call("buy", `{"of":"\u00e9","n":1.0}`)
	post("with another input", "stock", call("buy", `{"n":2,"of":"é"}`), 403)
	post("of another tool", "stock", call("sell", `{"n":1,"of":"é"}`), 403)
	post("of another server", "bare", good, 403)
	post("beside an undecided one", "stock", "["+good+","+call("sell", "{}")+"]", 403)
	post("twice at once", "stock", "["+good+","+good+"]", 403)
	post("as decided", "stock", good, 200)
	post("a second time", "stock", good, 403)
	allow("1", "mcp__stock__buy", `{"n":1,"of":"é"}`) // Claude Code asks twice about one tool use
	post("after it was allowed again", "stock", good, 403)

	allow("2", "mcp__stock__look_up_", `{}`)
	forgets = true
	post("refused by the server", "stock", call("look.up!", "{}"), 404)
	forgets = false
	post("made again", "stock", call("look.up!", "{}"), 200)

	allow("3", "mcp__stock__buy", `{}`)
	allow("4", "mcp__old__buy", `{}`)
	w.EndCall("3")
	post("after its end", "stock", call("buy", "{}"), 403)
	post("another one", "old", `[{"method":"ping"},{"method":"tools/call","params":{"name":"buy"}}]`, 200)
	allow("5", "mcp__stock__buy", `{}`)
	w.EndCall("")
	post("after the end of all", "stock", call("buy", "{}"), 403)

	read := func(method, uri, more string) string {
		return `{"id":1,"method":"` + method + `","params":{"uri":"` + uri + `"` + more + `}}`
	}
	post("an undecided reading", "stock", read("resources/read", "note://a", ""), 403)
	allow("7", "ReadMcpResourceTool", `{"server":"stock","uri":"note://a"}`)
	post("of another resource", "stock", read("resources/read", "note://b", ""), 403)
	post("of another server's", "bare", read("resources/read", "note://a", ""), 403)
	post("of a folder", "stock", read("resources/directory/read", "note://a", ""), 403)
	for _, more := range []string{"", `,"cursor":"2","_meta":{}`} {
		post("a page that was decided", "stock", read("resources/read", "note://a", more), 200)
	}
	w.EndCall("7")
	post("after its end", "stock", read("resources/read", "note://a", ""), 403)
	allow("8", "ReadMcpResourceDirTool", `{"uri":"note://a","server":"stock"}`)
	post("a folder that was decided", "stock", read("resources/directory/read", "note://a", ""), 200)
	for _, method := range undecided {
		post(method, "stock", `{"id":1,"method":"`+method+`","params":{}}`, 200)
	}
	for _, method := range []string{
		"prompts/get", "skills/get", "completion/complete", "resources/subscribe", "resources/unsubscribe", "logging/setLevel",
		"tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "notifications/claude/channel/permission_request", "Initialize", "own/method", "",
	} {
		post(method, "stock", `{"id":1,"method":"`+method+`","params":{"name":"buy"}}`, 403)
	}

	allow("6", "mcp__stock__buy", `{}`)
	for _, body := range []string{
		"", "a", "[", "1", `"tools/call"`, "[1]", list + list, `{"method":"ping","method":"tools/call"}`, `{"method":"ping","Method":"tools/call"}`,
		`{"method":"ping","__proto__":{"method":"tools/call"}}`, `{"method":["tools/call"]}`, `{"method":"tools/call"}`, `{"method":"resources/read"}`, `{"method":"resources/read","params":{"Uri":"note://a"}}`,
		`{"method":"tools/call","params":{"name":"buy","Name":"sell"}}`, `{"method":"tools/call","params":{"name":"buy","argument` + "\u017f" + `":{"n":9}}}`,
		`{"method":"tools/call","param` + "\u017f" + `":{"name":"sell"},"params":{"name":"buy"}}`, `{"method":"tools/call","params":{"name":"buy\ud800"}}`,
		"[[" + call("buy", "{}") + "]]",
	} {
		post("what is read in different ways: "+body, "stock", body, 400)
	}
	post("in another spelling", "stock", strings.Replace(call("sell", "{}"), "tools/call", "Tools/Call ", 1), 403)
	if resp, text := w.call("GET", "stock", serverToken, "/api/mcp", call("buy", "{}")); text != "called with " {
		t.Errorf("a GET with a message: %d %s", resp.StatusCode, text)
	}
}
