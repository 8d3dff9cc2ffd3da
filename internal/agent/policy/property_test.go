package policy

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var somePatterns = []string{
	"Bash", "Bash(*)", "Bash(go test *)", "Bash(rm *)", "Bash(git *)", "Bash(git push *)", "Bash(ls *)", "Bash(ls)", "Bash(cat *)", "Bash(echo *)", "Bash(ls && rm x)", "Bash(sudo ls)",
	"Edit", "Edit(**)", "Edit(src/**)", "Edit(/etc/**)", "Edit(.git/**)", "Write(*.md)", "Read", "Read(**)", "Read(.env)", "Read(src/**)", "Read(/etc/**)", "Read(**/*.pem)",
	"WebFetch", "WebFetch(domain:go.dev)", "WebFetch(domain:*.go.dev)", "mcp__*", "mcp__prod__*", "mcp__prod", "*", "Web*", "AskUserQuestion", "Teleport",
}

var someWords = []string{
	"ls", "go", "test", "rm", "git", "push", "cat", "echo", "sudo", "sh", "-c", "timeout", "5", "env", "xargs", "find", "-exec", "cd", "src", "..", "/etc", "/etc/passwd", ".env", "a.go", "src/a.go", "out/secret", "link/x",
	";", "&&", "||", "|", "&", "\n", "(", ")", "{", "}", ">", "<", ">>", "2>&1", "> /dev/null", "> src/x", "> .git/config", "< .env", "$x", "$(", "`", "'", "\"", "x=1", "*", "./*", "{a,b}", "~", "if", "then", "fi", "for", "do", "done", "!", "time", "#", "\\", "rm x", "'rm x'", "--output=x",
}

var somePaths = []string{"", "src/a.go", "src", ".", "..", "../secret", "/etc/passwd", "out/secret", "dangling", "link/a", ".env", "src/.env", ".git/config", "README.md", "~/x", " /x", "src/../.env", "SRC/a.go", "a/b/c/d"}

func someCall(ws string) *rapid.Generator[Call] {
	return rapid.Custom(func(t *rapid.T) Call {
		tool := rapid.SampledFrom([]string{"Bash", "Bash", "Bash", "Bash", "Edit", "Write", "Read", "Grep", "Glob", "WebFetch", "mcp__prod__x", "mcp__dev__y", "Teleport", "TodoWrite", "AskUserQuestion"}).Draw(t, "tool")
		input := map[string]any{}
		switch tool {
		case "Bash":
			input["command"] = strings.Join(rapid.SliceOfN(rapid.SampledFrom(someWords), 1, 9).Draw(t, "words"), " ")
		case "Edit", "Write", "Read":
			input["file_path"] = rapid.SampledFrom(somePaths).Draw(t, "path")
		case "Grep", "Glob":
			input["pattern"] = rapid.SampledFrom([]string{"x", "*.go", "**/*", "../*", "/etc/*", "src/*"}).Draw(t, "pattern")
			if rapid.Bool().Draw(t, "in a folder") {
				input["path"] = rapid.SampledFrom(somePaths).Draw(t, "path")
			}
		case "WebFetch":
			input["url"] = rapid.SampledFrom([]string{"https://go.dev", "https://pkg.go.dev/x", "http://evil.com", "https://go.dev@evil.com", "x"}).Draw(t, "url")
		}
		raw, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		return Call{Tool: tool, Input: raw, Workspace: ws, Project: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "project")}
	})
}

func someRule() *rapid.Generator[Rule] {
	return rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{Verdict: rapid.SampledFrom([]Verdict{Allow, Ask, Deny}).Draw(t, "verdict")}
		for _, s := range rapid.SliceOfN(rapid.SampledFrom(somePatterns), 1, 3).Draw(t, "patterns") {
			r.Patterns = append(r.Patterns, mustParse(s))
		}
		if rapid.Bool().Draw(t, "only in a") {
			r.Projects = []string{"a"}
		}
		r.Quorum = rapid.IntRange(0, 2).Draw(t, "quorum")
		return r
	})
}

func TestADenyRuleInFrontNeverLoosens(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	rapid.Check(t, func(t *rapid.T) {
		c := someCall(ws).Draw(t, "call")
		list := rapid.SliceOfN(someRule(), 0, 6).Draw(t, "rules")
		extra := someRule().Draw(t, "extra")
		extra.Verdict = Deny
		before := (&Policy{Rules: list}).Decide(c)
		after := (&Policy{Rules: append([]Rule{extra}, list...)}).Decide(c)
		if before.Verdict.Stricter(after.Verdict) {
			t.Fatalf("%s %s was %s by %q, and with %q in front it is %s by %q (%s)", c.Tool, c.Input, before.Verdict, before.Rule, extra, after.Verdict, after.Rule, after.Why)
		}
	})
}

// Taking an allowing rule away never loosens either.
func TestAnAllowRuleAtTheEndNeverTightens(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	rapid.Check(t, func(t *rapid.T) {
		c := someCall(ws).Draw(t, "call")
		list := rapid.SliceOfN(someRule(), 0, 6).Draw(t, "rules")
		extra := someRule().Draw(t, "extra")
		extra.Verdict = Allow
		before := (&Policy{Rules: list}).Decide(c)
		after := (&Policy{Rules: append(append([]Rule{}, list...), extra)}).Decide(c)
		if after.Verdict.Stricter(before.Verdict) {
			t.Fatalf("%s %s was %s by %q, and with %q at the end it is %s by %q (%s)", c.Tool, c.Input, before.Verdict, before.Rule, extra, after.Verdict, after.Rule, after.Why)
		}
	})
}

func TestDecideIsDeterministic(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	rapid.Check(t, func(t *rapid.T) {
		c := someCall(ws).Draw(t, "call")
		p := &Policy{Rules: rapid.SliceOfN(someRule(), 0, 6).Draw(t, "rules")}
		if diff := cmp.Diff(p.Decide(c), p.Decide(c), cmpopts.IgnoreUnexported(Decision{})); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(Assess(c), Assess(c)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEverySuggestionCoversAndIsAllowed(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	rapid.Check(t, func(t *rapid.T) {
		c := someCall(ws).Draw(t, "call")
		for _, s := range Suggest(c) {
			if ok, why := Covers(s.Pattern, c); !ok {
				t.Fatalf("%s does not cover %s %s: %s", s.Pattern, c.Tool, c.Input, why)
			}
			d := (&Policy{Rules: []Rule{{Verdict: Allow, Patterns: []Pattern{s.Pattern}}}}).Decide(c)
			if d.Verdict != Allow {
				t.Fatalf("%s covers %s %s, but as a rule it is %s (%s)", s.Pattern, c.Tool, c.Input, d.Verdict, d.Why)
			}
			if again, err := ParsePattern(s.Pattern.String()); err != nil || again.String() != s.Pattern.String() {
				t.Fatalf("%s is read as %s: %v", s.Pattern, again, err)
			}
		}
	})
}

// Covers and a policy of that one rule agree.
func TestCoversIsWhatAnAllowRuleDoes(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	rapid.Check(t, func(t *rapid.T) {
		c := someCall(ws).Draw(t, "call")
		p := mustParse(rapid.SampledFrom(somePatterns).Draw(t, "pattern"))
		ok, why := Covers(p, c)
		d := (&Policy{Rules: []Rule{{Verdict: Allow, Patterns: []Pattern{p}}}}).Decide(c)
		if ok && d.Verdict != Allow || !ok && d.Verdict == Allow && !strings.Contains(d.Rule, "default") {
			t.Fatalf("%s covers %s %s: %v (%s), and as a rule it is %s by %q (%s)", p, c.Tool, c.Input, ok, why, d.Verdict, d.Rule, d.Why)
		}
	})
}

// Rules with relative globs never allow a file outside, wherever links lead.
func TestNoFileOutsideIsAllowed(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	var list []Rule
	for _, s := range []string{"Edit(**)", "Read(**)", "Edit", "Read", "*"} {
		list = append(list, Rule{Verdict: Allow, Patterns: []Pattern{mustParse(s)}})
	}
	p := &Policy{Rules: list}
	names := rapid.SampledFrom([]string{"..", ".", "src", "out", "link", "dangling", "sub", "a.go", "", "secret", "etc", "ws", "~", "SRC"})
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOfN(names, 1, 7).Draw(t, "names"), "/")
		switch rapid.IntRange(0, 2).Draw(t, "how") {
		case 0:
			path = ws + "/" + path
		case 1:
			path = "/" + path
		}
		tool := rapid.SampledFrom([]string{"Read", "Edit", "Grep"}).Draw(t, "tool")
		raw, err := json.Marshal(map[string]string{fileFields[tool]: path})
		if err != nil {
			t.Fatal(err)
		}
		if p.Decide(Call{Tool: tool, Input: raw, Workspace: ws}).Verdict != Allow || path == "" {
			return
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(ws, path)
		}
		leads, err := filepath.EvalSymlinks(filepath.Clean(path))
		if err != nil {
			leads = filepath.Clean(path)
		}
		if _, in := below(ws, leads); !in {
			t.Fatalf("%s %q is allowed and leads to %s", tool, path, leads)
		}
	})
}

// What a call costs is bounded, however many files its words may name.
func TestAWordOfManyNames(t *testing.T) {
	t.Parallel()
	p := rules(t, "deny Read(.env)", "deny Edit(vendor/**)", "allow Bash(**)")
	for _, word := range []string{strings.Repeat("@", 16_000), strings.Repeat("=/", 8_000), "-" + strings.Repeat(":", 16_000)} {
		if d := p.Decide(bash(t, workspace(t), "frob "+word)); d.Verdict != Ask || len(d.Why) > 200 {
			t.Errorf("%.10q: %s, %.200q", word, d.Verdict, d.Why)
		}
	}
}
