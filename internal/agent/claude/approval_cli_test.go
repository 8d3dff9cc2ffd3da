package claude_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/agent/claude"
)

func bash(t *testing.T, command string) string {
	t.Helper()
	return "tool: Bash " + mustJSON(t, map[string]string{"command": command, "description": "run it"})
}

var approvalRows = []row{
	{"allow", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		var asked *claude.CanUseTool
		s.onAsk = func(m *claude.CanUseTool) {
			asked = m
			if cli.version != "2.0.0" {
				if item, ok := s.turn.Tool(m.ToolUseID); !ok || item.Tool.State != claude.ToolAsked || item.Tool.RequestID != m.RequestID {
					t.Errorf("asked for %+v, shown %+v", m, item)
				}
			}
			s.must(s.p.Allow(m.RequestID, m.Input))
			if err := s.p.Allow(m.RequestID, m.Input); !errors.Is(err, claude.ErrNotPending) {
				t.Errorf("second answer: %v", err)
			}
		}
		turn := s.run(bash(t, "echo 'made by <hand> & more' > out.txt; cat out.txt"), "say: Done.")
		if asked == nil || asked.ToolName != "Bash" || !json.Valid(asked.Input) || !bytes.Contains(asked.Input, []byte("<hand>")) {
			t.Fatalf("asked %+v", asked)
		}
		tool := s.tool(turn, "Bash")
		if tool.State != claude.ToolDone || tool.ResultBytes != len(tool.Result) ||
			cli.version != "2.0.0" && len(tool.StructuredResult) == 0 {
			t.Errorf("%+v", tool)
		}
	}},
	{"allow runs what was passed on", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.onAsk = func(m *claude.CanUseTool) {
			s.must(s.p.Allow(m.RequestID, json.RawMessage(`{"command":"echo changed > out.txt"}`)))
		}
		s.run(bash(t, "echo original > out.txt"), "say: Done.")
		if b, err := os.ReadFile(filepath.Join(s.dir, "out.txt")); err != nil || string(b) != "changed\n" {
			t.Errorf("ran %q, %v", b, err)
		}
	}},
	{"deny with a reason", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.onAsk = func(m *claude.CanUseTool) { s.must(s.p.Deny(m.RequestID, "use the staging host", false)) }
		turn := s.run(bash(t, "touch denied"), "say: Understood.")
		tool := s.tool(turn, "Bash")
		if tool.State != claude.ToolDenied || !strings.Contains(tool.Result, "use the staging host") {
			t.Errorf("%+v", tool)
		}
		if turn.Result.IsError || len(turn.Result.PermissionDenials) != 1 {
			t.Errorf("result %s", turn.Result.Raw)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "denied")); err == nil {
			t.Error("the denied command ran")
		}
	}},
	{"deny and interrupt", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.onAsk = func(m *claude.CanUseTool) { s.must(s.p.Deny(m.RequestID, "stop", true)) }
		s.prompt(bash(t, "touch denied"), "say: Not reached.")
		if r := s.result(); !r.Interrupted() {
			t.Errorf("result %s", r.Raw)
		}
	}},
	{"several calls in one response", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		asked := map[string]bool{}
		s.onAsk = func(m *claude.CanUseTool) {
			asked[m.RequestID] = true
			s.must(s.p.Allow(m.RequestID, m.Input))
		}
		calls := []map[string]any{}
		for _, name := range []string{"a", "b", "c"} {
			calls = append(calls, map[string]any{"name": "Bash", "input": map[string]string{"command": "touch " + name, "description": "touch"}})
		}
		turn := s.run("tools: "+mustJSON(t, calls), "say: All three.")
		done := 0
		for _, item := range turn.Items {
			if item.Tool != nil && item.Tool.State == claude.ToolDone {
				done++
			}
		}
		if len(asked) != 3 || done != 3 {
			t.Errorf("asked %d, done %d: %s", len(asked), done, show(turn))
		}
	}},
	{"PreToolUse sees every tool", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.hooked, everyTool)
		s.must(os.WriteFile(filepath.Join(s.dir, "seen.txt"), []byte("content"), 0o600))
		var hooked []string
		s.onHook = func(m *claude.HookCallback) {
			hooked = append(hooked, m.ToolName)
			if m.Event != "PreToolUse" || m.ToolUseID == "" || !json.Valid(m.ToolInput) {
				t.Errorf("hook %s", m.Raw)
			}
			s.must(s.p.AnswerHook(m.RequestID, nil))
		}
		s.run("tool: Read "+mustJSON(t, map[string]string{"file_path": filepath.Join(s.dir, "seen.txt")}), bash(t, "ls"), "say: Done.")
		if strings.Join(hooked, " ") != "Read Bash" {
			t.Errorf("hooked %v", hooked)
		}
	}},
	{"PreToolUse denies", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.hooked, everyTool)
		s.onHook = func(m *claude.HookCallback) {
			s.must(s.p.AnswerPreToolUse(m.RequestID, claude.HookDeny, "house rule 7"))
		}
		turn := s.run(bash(t, "ls"), "say: Done.")
		if tool := s.tool(turn, "Bash"); tool.State == claude.ToolDone || !strings.Contains(tool.Result, "house rule 7") {
			t.Errorf("%+v", tool)
		}
	}},
	{"PreToolUse allows", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.hooked, everyTool)
		s.onHook = func(m *claude.HookCallback) { s.must(s.p.AnswerPreToolUse(m.RequestID, claude.HookAllow, "policy")) }
		s.onAsk = func(m *claude.CanUseTool) {
			t.Errorf("asked all the same: %s", m.Raw)
			s.must(s.p.Allow(m.RequestID, m.Input))
		}
		turn := s.run(bash(t, "touch allowed"), "say: Done.")
		if tool := s.tool(turn, "Bash"); tool.State != claude.ToolDone {
			t.Errorf("%+v", tool)
		}
	}},
	{"PreToolUse has a safe command asked", "2.1.150", func(t *testing.T, cli program) {
		s := share(t, cli, cli.hooked, everyTool)
		asked := false
		s.onHook = func(m *claude.HookCallback) { s.must(s.p.AnswerPreToolUse(m.RequestID, claude.HookAsk, "look at it")) }
		s.onAsk = func(m *claude.CanUseTool) {
			asked = true
			s.must(s.p.Allow(m.RequestID, m.Input))
		}
		s.run(bash(t, "ls"), "say: Done.")
		if !asked {
			t.Error("ls was not asked")
		}
	}},
	{"other hooks", "2.0.0", func(t *testing.T, cli program) {
		s := prepare(t, cli)
		var mu sync.Mutex
		var read []byte // by the model
		model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"tools":[{`)) { // else older ones ask a small model which files a command has read
				mu.Lock()
				read = append(read, body...)
				mu.Unlock()
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			s.model.ServeHTTP(w, r)
		}))
		t.Cleanup(model.Close)
		s.url = model.URL
		s.start(func(_ *session, _ *claude.Options, r *claude.InitializeRequest) {
			r.Hooks = map[string][]claude.HookMatcher{
				"UserPromptSubmit":   {{CallbackIDs: []string{"submit"}}},
				"PostToolUse":        {{Matcher: "Bash|Write", CallbackIDs: []string{"post"}}},
				"PostToolUseFailure": {{Matcher: "Bash|Write", CallbackIDs: []string{"post"}}},
				"Stop":               {{CallbackIDs: []string{"stop"}}},
			}
		})
		s.onAsk = func(m *claude.CanUseTool) {
			s.must(s.p.Allow(m.RequestID, bytes.Replace(m.Input, []byte("as-asked"), []byte("as-changed"), 1)))
		}
		seen := map[string]int{}
		s.onHook = func(m *claude.HookCallback) {
			seen[m.Event]++
			var answer map[string]any
			if strings.HasPrefix(m.Event, "PostToolUse") {
				answer = map[string]any{"hookEventName": m.Event, "additionalContext": "told after " + m.Event}
			}
			s.must(s.p.AnswerHook(m.RequestID, answer))
		}
		turn := s.run(bash(t, "echo posted; touch as-asked"), bash(t, "touch as-asked-too; exit 3"), "say: first end")
		if seen["UserPromptSubmit"] != 1 || seen["PostToolUse"] != 1 || seen["Stop"] != 1 {
			t.Errorf("seen %v", seen)
		}
		if turn.Result.IsError {
			t.Errorf("result %s", turn.Result.Raw)
		}
		// The model is shown its own words with the result of others', unless it is told.
		mu.Lock()
		defer mu.Unlock()
		if bytes.Contains(read, []byte("as-changed")) || !bytes.Contains(read, []byte("told after PostToolUse")) {
			t.Errorf("the model read %s", read)
		}
		if told := bytes.Contains(read, []byte("told after PostToolUseFailure")); told != (seen["PostToolUseFailure"] == 1) || cli.version == pinned && !told {
			t.Errorf("a call that fails: seen %v, told %v", seen, told)
		}
	}},
	{"a hostile repository's settings are not loaded", "2.0.0", func(t *testing.T, cli program) {
		s := prepare(t, cli)
		s.must(os.MkdirAll(filepath.Join(s.dir, ".claude"), 0o700))
		s.must(os.WriteFile(filepath.Join(s.dir, ".claude", "settings.json"), []byte(mustJSON(t, map[string]any{
			"permissions": map[string]any{"allow": []string{"Bash"}},
			"hooks": map[string]any{"SessionStart": []any{map[string]any{"hooks": []any{
				map[string]string{"type": "command", "command": "touch " + filepath.Join(s.dir, "hook-ran")},
			}}}},
		})), 0o600))
		s.must(os.WriteFile(filepath.Join(s.dir, ".mcp.json"), []byte(mustJSON(t, map[string]any{
			"mcpServers": map[string]any{"evil": map[string]any{"command": "touch", "args": []string{filepath.Join(s.dir, "mcp-ran")}}},
		})), 0o600))
		s.start()
		asked := false
		s.onAsk = func(m *claude.CanUseTool) {
			asked = true
			s.must(s.p.Deny(m.RequestID, "no", false))
		}
		s.run(bash(t, "touch tool-ran"), "say: Done.")
		if !asked {
			t.Error("the repository's settings allowed a command")
		}
		for _, name := range []string{"hook-ran", "mcp-ran", "tool-ran"} {
			if _, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
				t.Errorf("%s exists", name)
			}
		}
	}},
	{"interrupt while streaming", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.prompt("slow: 20", "say: "+strings.Repeat("on and on ", 100))
		s.until("the first delta", isDelta)
		s.must(s.p.Interrupt(s.ctx))
		note(t, "→ interrupt")
		if r := s.result(); !r.Interrupted() {
			t.Errorf("result %s", r.Raw)
		}
		if turn := s.run("say: And on we go."); turn.Result.IsError || !strings.Contains(turn.Text(), "And on we go.") {
			t.Errorf("after it: %s", show(turn))
		}
	}},
	{"interrupt while a command runs", "2.1.276", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.onAsk = func(m *claude.CanUseTool) { s.must(s.p.Allow(m.RequestID, m.Input)) }
		s.prompt(bash(t, "touch begun; sleep 1000"), "say: Not reached.")
		s.until("an approval", func(m claude.Message) bool { _, ok := m.(*claude.CanUseTool); return ok })
		eventually(s.ctx, t, func() bool { _, err := os.Stat(filepath.Join(s.dir, "begun")); return err == nil })
		s.must(s.p.Interrupt(s.ctx))
		s.result()
		if i := slices.IndexFunc(s.turn.Items, func(it claude.Item) bool { return it.Tool != nil }); s.turn.Items[i].Tool.State != claude.ToolInterrupted {
			t.Errorf("the command is %s: %q", s.turn.Items[i].Tool.State, s.turn.Items[i].Tool.Result)
		}
	}},
	{"interrupt while asked", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		var request string
		s.onAsk = func(m *claude.CanUseTool) { request = m.RequestID }
		s.prompt(bash(t, "touch never"), "say: Not reached.")
		s.until("an approval", func(m claude.Message) bool { _, ok := m.(*claude.CanUseTool); return ok })
		s.must(s.p.Interrupt(s.ctx))
		if r := s.result(); !r.Interrupted() {
			t.Errorf("result %s", r.Raw)
		}
		if cli.version == pinned {
			if err := s.p.Allow(request, []byte(`{}`)); !errors.Is(err, claude.ErrNotPending) {
				t.Errorf("answer after the interrupt: %v", err)
			}
		}
	}},
}

func everyTool(_ *session, _ *claude.Options, r *claude.InitializeRequest) { r.PreToolUse = true }
