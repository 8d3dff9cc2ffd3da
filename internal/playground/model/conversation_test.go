package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// messages writes a request from lines such as "user: hello"; blocks of one
// message are separated by " | ". A tool call is "tool ID NAME", its result
// "result ID text" or "error ID text".
func messages(t *testing.T, lines ...string) *request {
	t.Helper()
	var list []map[string]any
	for _, line := range lines {
		role, text, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("no role: %q", line)
		}
		var blocks []map[string]any
		for part := range strings.SplitSeq(text, " | ") {
			kind, rest, _ := strings.Cut(part, " ")
			id, arg, _ := strings.Cut(rest, " ")
			switch kind {
			case "tool":
				blocks = append(blocks, map[string]any{"type": "tool_use", "id": id, "name": arg, "input": map[string]any{}})
			case "result", "error":
				blocks = append(blocks, map[string]any{"type": "tool_result", "tool_use_id": id, "content": arg, "is_error": kind == "error"})
			default:
				blocks = append(blocks, map[string]any{"type": "text", "text": part})
			}
		}
		list = append(list, map[string]any{"role": role, "content": blocks})
	}
	b, err := json.Marshal(map[string]any{"model": "m", "messages": list})
	if err != nil {
		t.Fatal(err)
	}
	var r request
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

func TestWhatAPersonSaidLast(t *testing.T) {
	t.Parallel()
	const sent = "The user sent a new message while you were working:\n"
	const how = "\n\nThis is how Claude Code surfaces messages the user sends mid-turn."
	for _, tc := range []struct {
		name   string
		lines  []string
		want   string
		rounds int
		added  []string
	}{
		{"one message", []string{"user: hello"}, "hello", 0, nil},
		{"reminders do not count", []string{"user: <system-reminder>\nx\n</system-reminder>\n | hello", "system: # Environment"}, "hello", 0, nil},
		{"tool results do not count", []string{"user: go", "assistant: ok | tool a Bash", "user: result a done"}, "go", 1, nil},
		{"rounds since the last message", []string{"user: go", "assistant: tool a Bash", "user: result a x", "assistant: fine", "user: again", "assistant: tool b Bash | tool c Read", "user: result b x | result c y", "assistant: tool d Bash", "user: error d no"}, "again", 2, nil},
		{"after an interruption", []string{"user: go", "assistant: tool a Bash", "user: error a stop | [Request interrupted by user for tool use] | do this instead"}, "do this instead", 0, nil},
		{"interrupted before any answer", []string{"user: go | [Request interrupted by user]\n | stop that"}, "stop that", 0, nil},
		{"two at once", []string{"user: first | second"}, "first\nsecond", 0, nil},
		{"sent again inside a note", []string{"user: say: x | The bot restarted. The message was:\nsay: x"}, "The bot restarted. The message was:\nsay: x", 0, nil},
		{"commands of the CLI do not count", []string{"user: <local-command-caveat>c</local-command-caveat> | <command-name>/cost</command-name>\n<command-message>cost</command-message>\n<command-args></command-args> | <local-command-stdout>$1</local-command-stdout> | hello"}, "hello", 0, nil},
		{"after a compaction", []string{"user: This session is being continued from a previous conversation that ran out of context.\n- say: old | new"}, "new", 0, nil},
		{"a loaded tool is no message", []string{"user: go", "assistant: tool a ToolSearch", "user: result a x | Tool loaded."}, "go", 1, nil},
		{"sent while working", []string{"user: go", "assistant: tool a Bash", "user: result a x", "system: " + sent + "and be quick" + how}, "go", 1, []string{"and be quick"}},
		{"two sent while working", []string{"user: go", "assistant: tool a Bash", "user: result a x", "system: " + sent + "one" + how + "\n" + sent + "two" + how}, "go", 1, []string{"one", "two"}},
		{"sent while working, in a reminder", []string{"user: go", "assistant: tool a Bash", "user: result a x | <system-reminder>" + sent + "hurry" + how + "</system-reminder>"}, "go", 1, []string{"hurry"}},
		{"continue after a kill in mid-text", []string{"user: go", "assistant: No response requested.", "user: The bot was restarted. Continue where you left off."}, "go", 0, nil},
		{"continue after a kill in a tool", []string{"user: go", "assistant: tool a Bash", "user: result a x | Please carry on."}, "go", 1, nil},
		{"a call lost with its process is made again", []string{"user: go", "assistant: tool a Bash", "user: result a x", "assistant: tool b Write", "user: error b [Tool call interrupted: the session ended before this call's result was recorded]", "assistant: No response requested.", "user: Please continue."}, "go", 1, nil},
		{"continue when all was done", []string{"user: go", "assistant: done", "user: continue"}, "continue", 0, nil},
		{"continue with directives", []string{"user: go", "assistant: No response requested.", "user: Continue:\nsay: x"}, "Continue:\nsay: x", 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := messages(t, tc.lines...).read()
			if c.Last != tc.want {
				t.Errorf("last: got %q, want %q", c.Last, tc.want)
			}
			if len(c.Rounds) != tc.rounds {
				t.Errorf("rounds: got %d, want %d", len(c.Rounds), tc.rounds)
			}
			if diff := cmp.Diff(tc.added, c.Added, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("added (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheWorkingDirectory(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*request{
		"system message": messages(t, "user: x", "system: # Environment\nYou have been invoked in the following environment: \n - Primary working directory: /home/a b/x\n - Is a git repository: false"),
		"reminder":       messages(t, "user: <system-reminder>\nWorking directory: /home/a b/x\n</system-reminder> | x"),
		"system prompt":  {System: content{{Type: "text", Text: "<env>\nWorking directory: /home/a b/x\nIs directory a git repo: No"}}},
	} {
		if got := r.read().CWD; got != "/home/a b/x" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := messages(t, "user: Working directory: /etc").read().CWD; got != "" {
		t.Errorf("a person's words are taken for the CLI's: %q", got)
	}
}

func TestPlanModeComesAndGoes(t *testing.T) {
	t.Parallel()
	lines := []string{
		"user: plan", "assistant: tool a EnterPlanMode", "user: result a Entered plan mode.",
		"system: Plan mode is active. You should create your plan at /h/plans/x.md using the Write tool.",
		"assistant: tool b Write", "user: result b ok", "assistant: tool c ExitPlanMode", "user: result c User has approved your plan.",
	}
	for n, want := range map[int]string{1: "", 3: "", 4: "/h/plans/x.md", 6: "/h/plans/x.md", 8: ""} {
		if got := messages(t, lines[:n]...).read().PlanFile; got != want {
			t.Errorf("after %d messages: %q, want %q", n, got, want)
		}
	}
	c := messages(t, lines...).read()
	for i, want := range []string{"", "/h/plans/x.md", "/h/plans/x.md"} {
		if got := c.Rounds[i].planFile; got != want {
			t.Errorf("round %d: %q, want %q", i, got, want)
		}
	}
}

func TestANoteAboutABackgroundTask(t *testing.T) {
	t.Parallel()
	const note = "user: <system-reminder>\n<task-notification>\n<summary>Agent \"look\" finished</summary>\n<result>found it</result>\n</task-notification>\n</system-reminder>"
	if got, want := messages(t, "user: go", "assistant: ok", note).read().Notice, `Agent "look" finished. It says: found it`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := messages(t, "user: go", "assistant: ok", note, "assistant: ok", "user: thanks").read().Notice; got != "" {
		t.Errorf("an old note is answered again: %q", got)
	}
}

func TestDenials(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"please do not": true, "Denied by @bob": true, "The user doesn't want to proceed with this tool use.": true,
		"Exit code 1\nboom": false, "<tool_use_error>File has not been read yet.</tool_use_error>": false, "File does not exist. Note: …": false,
	} {
		if got := (result{Text: text, IsError: true}).denied(); got != want {
			t.Errorf("%q: denied %v, want %v", text, got, want)
		}
	}
	if (result{Text: "please do not"}).denied() {
		t.Error("a result without an error is no denial")
	}
	if got := (result{Text: " Not on Fridays.\nReally.", IsError: true}).reason(); got != "Not on Fridays" {
		t.Errorf("reason %q", got)
	}
}

func TestOddContentIsNoError(t *testing.T) {
	t.Parallel()
	const body = `{"model":"m","system":"s","messages":[
		{"role":"user","content":[{"type":"image","source":{"type":"base64","data":"AAAA"}},{"type":"text","text":"look"},{"type":"new_kind","text":{"a":1}}]},
		{"role":"system","content":[]},
		{"role":"assistant","content":null},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"a"},{"type":"tool_reference","tool_name":"B"}]}]}],
		"tools":[{"name":"A","input_schema":{},"cache_control":{"type":"ephemeral","ttl":"1h"}}]}`
	var r request
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	if got := r.read().Last; got != "look" {
		t.Errorf("last: %q", got)
	}
	if r.promptTokens() < imageTokens {
		t.Error("an image costs nothing")
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":"tool: Bash {}"}],"tools":[{"name":"A"}]}`))
	f.Add([]byte(`{"model":"m","system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text"}]}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}}]}]}`))
	s, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var r request
		if json.Unmarshal(body, &r) != nil {
			return
		}
		c := r.read()
		st, _, err := s.choose(&r, &c)
		if err != nil {
			t.Fatal(err)
		}
		a := s.build(st, r.Model, s.count("fuzz", &r))
		if _, err := plainJSON(a.Blocks); err != nil {
			t.Fatal(err)
		}
	})
}
