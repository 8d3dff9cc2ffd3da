package claude_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"deckhand/internal/agent/claude"
)

func decode(t testing.TB, line string) claude.Message {
	t.Helper()
	m, err := claude.Decode([]byte(line))
	if err != nil {
		t.Fatalf("decode %s: %v", line, err)
	}
	return m
}

func TestDecodeDialects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line string
		want func(claude.Message) bool
	}{
		"camelCase result": {
			`{"type":"result","subtype":"success","isError":true,"durationMs":15234,"numTurns":5,"sessionId":"s","totalCostUsd":0.25,"modelUsage":{"m":{"inputTokens":1,"costUSD":0.25}},"result":"no"}`,
			func(m claude.Message) bool {
				r, ok := m.(*claude.Result)
				return ok && r.IsError && r.NumTurns == 5 && r.SessionID == "s" &&
					r.Running.TotalMicroUSD == 250_000 && r.Running.Models["m"] == 250_000
			},
		},
		"error object in a result": {
			`{"type":"result","subtype":"error","error":{"message":"Budget exceeded","code":"b"}}`,
			func(m claude.Message) bool {
				r, ok := m.(*claude.Result)
				return ok && r.Errors[0] == "Budget exceeded"
			},
		},
		"type near the end": {
			`{"is_error":false,"usage":{"type":"not this"},"subtype":"success","type":"result"}`,
			func(m claude.Message) bool { _, ok := m.(*claude.Result); return ok },
		},
		"result that is no text": {
			`{"type":"result","result":{"a":1}}`,
			func(m claude.Message) bool { r, ok := m.(*claude.Result); return ok && r.Text == "" },
		},
		"sdk_control_request with permission": {
			`{"type":"sdk_control_request","request":{"subtype":"permission","request_id":"perm_1","tool_name":"Bash","tool_input":{"command":"ls"}}}`,
			func(m claude.Message) bool {
				r, ok := m.(*claude.CanUseTool)
				return ok && r.RequestID == "perm_1" && r.ToolName == "Bash" && string(r.Input) == `{"command":"ls"}`
			},
		},
		"control that nests nothing": {
			`{"type":"control","subtype":"can_use_tool","request_id":"c1","tool_name":"Bash","input":{}}`,
			func(m claude.Message) bool { r, ok := m.(*claude.CanUseTool); return ok && r.RequestID == "c1" },
		},
		"lone tool_result": {
			`{"type":"tool_result","tool_use_id":"t1","result":{"type":"text","text":"contents"}}`,
			func(m claude.Message) bool {
				u, ok := m.(*claude.User)
				return ok && u.Content[0].ToolUseID == "t1" && u.Content[0].Content[0].Text == "contents"
			},
		},
		"lone tool_use": {
			`{"type":"tool_use","id":"t1","name":"Read","input":{"a":1}}`,
			func(m claude.Message) bool {
				a, ok := m.(*claude.Assistant)
				return ok && a.Content[0].ID == "t1" && string(a.Content[0].Input) == `{"a":1}`
			},
		},
		"stream with a named event": {
			`{"type":"stream","event":"delta","text":"word"}`,
			func(m claude.Message) bool {
				e, ok := m.(*claude.StreamEvent)
				return ok && e.Delta == "text_delta" && e.Text == "word"
			},
		},
		"content that is a string": {
			`{"type":"assistant","message":{"content":"plain"}}`,
			func(m claude.Message) bool { a, ok := m.(*claude.Assistant); return ok && a.Content[0].Text == "plain" },
		},
		"unknown type": {
			`{"type":"from_the_future","subtype":"x","uuid":"u","data":[1,2]}`,
			func(m claude.Message) bool {
				u, ok := m.(*claude.Unknown)
				return ok && u.Type == "from_the_future" && u.UUID == "u" && strings.Contains(string(u.Raw), `"data":[1,2]`)
			},
		},
		"unknown subtype": {
			`{"type":"system","subtype":"from_the_future","data":{"status":7}}`,
			func(m claude.Message) bool { s, ok := m.(*claude.System); return ok && s.Subtype == "from_the_future" },
		},
		"unknown block": {
			`{"type":"assistant","message":{"content":[{"type":"hologram","shape":"cube"}]}}`,
			func(m claude.Message) bool {
				a, ok := m.(*claude.Assistant)
				return ok && a.Content[0].Type == "hologram"
			},
		},
		"a camelCase stranger among snakes": {
			`{"type":"user","toolUseResult":{"stdout":"x"},"sessionId":"s","parentToolUseId":"p"}`,
			func(m claude.Message) bool {
				u, ok := m.(*claude.User)
				return ok && u.SessionID == "s" && u.ParentToolUseID == "p" && string(u.ToolUseResult) == `{"stdout":"x"}`
			},
		},
		"a number that is not whole": {
			`{"type":"system","subtype":"api_retry","attempt":2.7,"max_retries":10,"retry_delay_ms":512.7,"error_status":529,"error":{"message":"busy"}}`,
			func(m claude.Message) bool {
				s, ok := m.(*claude.System)
				return ok && s.Attempt == 2 && s.MaxRetries == 10 && s.Text == "busy"
			},
		},
		"a task that a patch changes": {
			`{"type":"system","subtype":"task_updated","task_id":"t","status":"running","patch":{"status":"completed","is_backgrounded":true}}`,
			func(m claude.Message) bool {
				s, ok := m.(*claude.System)
				return ok && cmp.Equal(*s.Task, claude.Task{ID: "t", State: "completed", Background: true})
			},
		},
		"fields of other types than usual": {
			`{"type":"system","subtype":"init","cwd":7,"tools":"Bash","model":null,"mcp_servers":{"a":1},"permissionMode":[]}`,
			func(m claude.Message) bool { s, ok := m.(*claude.System); return ok && s.Subtype == "init" },
		},
		"no type at all": {
			`{"a":1}`,
			func(m claude.Message) bool { _, ok := m.(*claude.Unknown); return ok },
		},
		"dialog request": {
			`{"type":"control_request","request_id":"d1","request":{"subtype":"request_user_dialog","dialog_kind":"confirm","payload":{}}}`,
			func(m claude.Message) bool {
				r, ok := m.(*claude.RefusedRequest)
				return ok && r.RequestID == "d1" && r.Subtype == "request_user_dialog"
			},
		},
		"every field of can_use_tool": {
			`{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm  <x>"},"tool_use_id":"t","permission_suggestions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}],"blocked_path":"/b","decision_reason":"why","decision_reason_type":"rule","title":"T","display_name":"D","description":"d","agent_id":"a","requires_user_interaction":true,"suppress_always_allow_rule":true,"default_to_no":true}}`,
			func(m claude.Message) bool {
				r, ok := m.(*claude.CanUseTool)
				if !ok {
					return false
				}
				want := claude.CanUseTool{
					Meta: r.Meta, RequestID: "r", ToolName: "Bash", Input: json.RawMessage(`{"command":"rm  <x>"}`), ToolUseID: "t",
					DecisionReason: "why", AgentID: "a",
				}
				return cmp.Equal(*r, want)
			},
		},
		"rate limit": {
			`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour","resetsAt":1700000000,"utilization":0.5}}`,
			func(m claude.Message) bool {
				r, ok := m.(*claude.RateLimit)
				return ok && r.Status == "rejected"
			},
		},
		"auth status": {
			`{"type":"auth_status","isAuthenticating":true,"output":["go to"],"error":"no"}`,
			func(m claude.Message) bool {
				a, ok := m.(*claude.AuthStatus)
				return ok && a.Error == "no"
			},
		},
		"tool progress": {
			`{"type":"tool_progress","tool_use_id":"t1","tool_name":"Bash","elapsed_time_seconds":3.5}`,
			func(m claude.Message) bool {
				p, ok := m.(*claude.ToolProgress)
				return ok && p.ToolUseID == "t1"
			},
		},
		"keep alive": {
			`{"type":"keep_alive"}`,
			func(m claude.Message) bool { _, ok := m.(*claude.KeepAlive); return ok },
		},
		"hook response": {
			`{"type":"system","subtype":"hook_response","hook_id":"h","hook_name":"n","hook_event":"SessionStart","stdout":"o","stderr":"e","exit_code":2,"outcome":"error"}`,
			func(m claude.Message) bool {
				s, ok := m.(*claude.System)
				return ok && s.HookName == "n" && s.Stderr == "e" && s.Outcome == "error"
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if m := decode(t, c.line); !c.want(m) {
				t.Errorf("%s\ndecoded to %T %+v", c.line, m, m)
			}
		})
	}
}

func TestDecodeRefusesOnlyWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	for _, line := range []string{`{"type":"user"`, `{"type":"result","a":tru}`, `{"type":"stream_event"}x`, `{"a":"` + "\x01" + `"}`, `[]`, ``} {
		if m, err := claude.Decode([]byte(line)); !errors.Is(err, claude.ErrCorrupt) {
			t.Errorf("%q decoded to %+v, %v", line, m, err)
		}
	}
}

// Whatever stands in a field, the rest of the message is there.
func TestAValueOfAnotherTypeCostsItsFieldOnly(t *testing.T) {
	t.Parallel()
	values := []json.RawMessage{
		json.RawMessage("null"), json.RawMessage("true"), json.RawMessage("7.5"), json.RawMessage("1e400"), json.RawMessage(`"x"`),
		json.RawMessage("[]"), json.RawMessage(`[7,"a",{"b":1}]`), json.RawMessage("{}"), json.RawMessage(`{"type":[],"id":{},"content":{"content":7}}`),
	}
	seen := map[string]bool{}
	for _, line := range recordedLines(t) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		want := decode(t, line)
		for name, was := range fields {
			key := fmt.Sprintf("%T %s %s", want, want.Head().Subtype, name)
			if name == "type" || name == "subtype" || name == "request" || seen[key] {
				continue // they say what the message is
			}
			seen[key] = true
			for _, value := range values {
				fields[name] = value
				changed, err := json.Marshal(fields)
				if err != nil {
					t.Fatal(err)
				}
				m := decode(t, string(changed))
				if reflect.TypeOf(m) != reflect.TypeOf(want) || name != "uuid" && m.Head().UUID != want.Head().UUID || name != "session_id" && m.Head().SessionID != want.Head().SessionID {
					t.Errorf("%s\nwith %s of %s is %T %+v", line, value, name, m, m)
				}
			}
			fields[name] = was
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d fields were tried", len(seen))
	}
}

func TestInterruptedIsNoFailure(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		`{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_tools"}`:     true,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}`: true,
		`{"type":"result","subtype":"error_during_execution","is_error":false}`:                                      true,
		`{"type":"result","subtype":"error_during_execution","is_error":true}`:                                       false,
		`{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error"}`:                        false,
		`{"type":"result","subtype":"success","is_error":false,"terminal_reason":"completed"}`:                       false,
	} {
		if got := decode(t, line).(*claude.Result).Interrupted(); got != want {
			t.Errorf("%s: interrupted %v, want %v", line, got, want)
		}
	}
}

// conversations returns the recorded ones, by name.
func conversations(tb testing.TB) map[string]*txtar.Archive {
	tb.Helper()
	paths, err := filepath.Glob("testdata/conversations/*.txtar")
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no recorded conversations: %v", err)
	}
	out := make(map[string]*txtar.Archive)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(path), ".txtar")] = txtar.Parse(b)
	}
	return out
}

// recordedLines returns the lines of all recorded conversations.
func recordedLines(tb testing.TB) []string {
	tb.Helper()
	var out []string
	for _, c := range conversations(tb) {
		out = append(out, strings.Split(strings.TrimSpace(string(section(c, "stdout"))), "\n")...)
	}
	return out
}

func section(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

func FuzzDecode(f *testing.F) {
	for _, line := range recordedLines(f) {
		f.Add([]byte(line))
	}
	f.Add([]byte(`{"type":"system","subtype":"task_updated","patch":{"status":[]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) > 1<<16 || strings.Count(string(line), "[")+strings.Count(string(line), "{") > 1000 {
			return
		}
		m, err := claude.Decode(line)
		if object := json.Valid(line) && strings.HasPrefix(strings.TrimSpace(string(line)), "{"); (err == nil) != object {
			t.Fatalf("%q: error %v, a JSON object: %v", line, err, object)
		}
		if err != nil {
			return
		}
		// A message keeps nothing of the line, whose buffer is used again.
		buf := bytes.Clone(line)
		again, err := claude.Decode(buf)
		clear(buf)
		if err != nil || !cmp.Equal(m, again, cmp.AllowUnexported(), ignoreInternals) {
			t.Fatalf("%q: %+v, from a buffer that is used again %+v, %v", line, m, again, err)
		}
	})
}

// ignoreInternals compares messages by what they export.
var ignoreInternals = cmp.FilterPath(func(p cmp.Path) bool {
	field, ok := p.Last().(cmp.StructField)
	return ok && field.Name() != "" && field.Name()[0] >= 'a' && field.Name()[0] <= 'z'
}, cmp.Ignore())
