package policy

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

func FuzzParsePattern(f *testing.F) {
	for _, s := range append(append([]string{}, somePatterns...), `Bash(a "b c" *)`, "Bash(a:*)", "Edit({a,b}/**)", "Edit(//x/**)", `Bash(ls \*)`, "Read([a-z]*)", "mcp__a__b*", "Bash(a && b)", "x(y)", "(", ")", "Bash(", "Bash)") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePattern(s)
		if err != nil {
			if !strings.Contains(err.Error(), "column") {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if p.String() != s {
			t.Errorf("%q became %q", s, p)
		}
		again, err := ParsePattern(p.String())
		if err != nil || again.kind != p.kind {
			t.Errorf("%q is read once as %v, then as %v: %v", s, p.kind, again.kind, err)
		}
		// No pattern makes a call panic.
		for _, c := range []Call{
			{Tool: "Bash", Input: json.RawMessage(`{"command":"ls -l src > /dev/null"}`), Workspace: os.TempDir()},
			{Tool: "Edit", Input: json.RawMessage(`{"file_path":"src/a.go"}`), Workspace: os.TempDir()},
			{Tool: "Grep", Input: json.RawMessage(`{"pattern":"x","path":"src"}`), Workspace: os.TempDir()},
			{Tool: "WebFetch", Input: json.RawMessage(`{"url":"https://go.dev"}`), Workspace: os.TempDir()},
		} {
			Covers(p, c)
			(&Policy{Rules: []Rule{{Verdict: Deny, Patterns: []Pattern{p}}}}).Decide(c)
		}
	})
}

// FuzzInput: what the scanner accepts, a decoder reads the same, and no input
// makes a call allowed that names something twice.
func FuzzInput(f *testing.F) {
	for _, s := range []string{`{"command":"go test"}`, `{"command":"go test","command":"rm"}`, `{"a":{"b":[1,2,{"c":null}]}}`, `{"a":"\ud83d\ude00"}`, `{"file_path":"src/a.go"}`, `[]`, ``, `{"\u0061":1,"a":2}`, `{"a":"\\\""}`, "{\"a\":\n1 ,\t\"b\":[ ] }"} {
		f.Add([]byte(s))
	}
	ws := workspace(f)
	p := rules(f, "allow Bash(go test *)", "allow Edit(src/**)", "allow Read(src/**)")
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, bad := readInput(raw)
		for _, tool := range []string{"Bash", "Edit", "Read", "Grep", "Glob", "WebFetch", "TodoWrite"} {
			c := Call{Tool: tool, Input: raw, Workspace: ws}
			if d := p.Decide(c); d.Verdict == Allow && bad != "" {
				t.Errorf("%s %q is allowed by %q, and %s", tool, raw, d.Rule, bad)
			}
			Assess(c)
		}
		if bad != "" || len(got) == 0 {
			return
		}
		want := map[string]any{}
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatalf("%q is accepted: %v", raw, err)
		}
		if len(want) != len(got) {
			t.Fatalf("%q: %d members, want %d", raw, len(got), len(want))
		}
		for k, v := range want {
			var have any
			if err := json.Unmarshal(got[k], &have); err != nil {
				t.Fatalf("%q: %q is %q: %v", raw, k, got[k], err)
			}
			if s, ok := v.(string); ok {
				if have, _ := got.str(k); have != s {
					t.Errorf("%q: %q is %q, want %q", raw, k, have, s)
				}
			}
		}
	})
}
