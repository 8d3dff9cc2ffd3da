package policy

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDecideBash: whatever the prefix rules allow is, read by a scanner that
// shares nothing with the parser, made of words of plain text: outside quotes
// there is nothing that expands, and every command begins with a program that the
// rules name.
func FuzzDecideBash(f *testing.F) {
	ws := workspace(f)
	for _, list := range []string{"evasions.shell.txt", "evasions.programs.txt", "benign.txt", "evasions.deny.txt"} {
		for _, cmd := range lines(f, list) {
			f.Add(cmd)
		}
	}
	p := rules(f, "deny Bash(rm *)", "allow Bash(go test *)", "allow Bash(git status)", "allow Bash(git diff *)", "allow Bash(ls *)", "allow Bash(npm test)", "allow Edit(src/**)")
	f.Fuzz(func(t *testing.T, cmd string) {
		raw, err := json.Marshal(map[string]string{"command": cmd})
		if err != nil {
			t.Skip("no JSON")
		}
		c := Call{Tool: "Bash", Input: raw, Workspace: ws}
		d := p.Decide(c)
		if d.Fault != "" {
			t.Fatalf("%q: %s", cmd, d.Fault)
		}
		for _, s := range Suggest(c) {
			if ok, why := Covers(s.Pattern, c); !ok {
				t.Errorf("%s is suggested for %q and does not cover it: %s", s.Pattern, cmd, why)
			}
		}
		Assess(c)
		if d.Verdict != Allow {
			return
		}
		if why := notPlain(spelledOut(cmd)); why != "" {
			t.Errorf("%q is allowed by %q, and %s", cmd, d.Rule, why)
		}
	})
}

// spelledOut is a command without its here-document, which is a string: the scan
// by hand knows none.
func spelledOut(cmd string) string {
	text, ok := plainHereDocument(cmd)
	if !ok {
		return cmd
	}
	before, after, _ := strings.Cut(cmd, "<<")
	line, rest, _ := strings.Cut(after, "\n")
	end, line := hereEnd(line)
	rest = strings.TrimPrefix(rest, text+end)
	if head, ok := strings.CutSuffix(before, "\"$(cat "); ok {
		return head + "'x" + strings.Replace(rest, "\n)\"", "'", 1)
	}
	return before + line + rest
}

// starters are the words with which a command may begin after what the rules
// allow: programs, transparent wrappers, keywords.
var starters = map[string]bool{
	"go": true, "git": true, "ls": true, "npm": true, "cd": true, "nohup": true, "nice": true, "ionice": true, "time": true, "timeout": true, "stdbuf": true, "setsid": true, "command": true, "env": true,
	"if": true, "then": true, "else": true, "elif": true, "fi": true, "!": true, "{": true, "}": true,
}

// notPlain scans a command by hand, and says what in it is more than plain words,
// quotes, separators and redirections.
func notPlain(s string) string {
	var word strings.Builder
	inWord, first, redirect := false, true, false
	end := func() string {
		if !inWord {
			return ""
		}
		w := word.String()
		word.Reset()
		inWord = false
		switch {
		case redirect:
			redirect = false
		case first:
			name, value, assigns := strings.Cut(w, "=")
			if known := strings.ToLower(name); assigns && name == strings.ToUpper(name) && (settings[known] || stages[known] && rehearsals[value]) {
				return ""
			}
			if !starters[w] {
				return "a command begins with " + w
			}
			first = w == "if" || w == "then" || w == "else" || w == "elif" || w == "!" || w == "{" || w == "time"
			if w == "}" || w == "fi" {
				first = true
			}
		}
		return ""
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\':
			i++
			if i < len(s) && s[i] != '\n' {
				word.WriteByte(s[i])
				inWord = true
			}
		case c == '\'':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				return "a quote is open"
			}
			word.WriteString(s[i+1 : i+1+n])
			inWord = true
			i += n + 1
		case c == '"':
			inWord = true
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '$' || s[i] == '`' {
					return "double quotes hold an expansion"
				}
				if s[i] == '\\' && i+1 < len(s) {
					i++
				}
				word.WriteByte(s[i])
			}
			if i >= len(s) {
				return "a quote is open"
			}
		case c == '$' || c == '`':
			if c == '$' && (i+1 == len(s) || strings.IndexByte(" \t\n;|&)/.,:=%+-]}~^", s[i+1]) >= 0) {
				if i+1 < len(s) && s[i+1] == '-' {
					return "there is a parameter"
				}
				word.WriteByte(c) // a dollar alone
				inWord = true
				continue
			}
			return "there is an expansion"
		case c == '#' && !inWord:
			for i < len(s) && s[i] != '\n' {
				i++
			}
			first = true
		case c == ' ' || c == '\t':
			if why := end(); why != "" {
				return why
			}
		case c == '\n' || c == ';' || c == '|' || c == '(' || c == ')':
			if why := end(); why != "" {
				return why
			}
			first = true
		case c == '&':
			if i+1 < len(s) && s[i+1] == '>' { // &>
				if why := end(); why != "" {
					return why
				}
				continue
			}
			if i > 0 && (s[i-1] == '>' || s[i-1] == '<') { // >&1
				continue
			}
			if why := end(); why != "" {
				return why
			}
			first = true
		case c == '>' || c == '<':
			if strings.Trim(word.String(), "0123456789") != "" {
				if why := end(); why != "" {
					return why
				}
			}
			word.Reset()
			inWord = false
			redirect = true
			if i+1 < len(s) && (s[i+1] == '(' || c == '<' && s[i+1] == '<' && (i+2 >= len(s) || s[i+2] != '<')) {
				return "there is a substitution or a here-document"
			}
		default:
			if c < ' ' || c == 0x7f || c >= utf8.RuneSelf && !utf8.ValidString(s) {
				return "there is a control character"
			}
			word.WriteByte(c)
			inWord = true
		}
	}
	return end()
}

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
