package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestContainedRunsWhatStaysInside(t *testing.T) {
	t.Parallel()
	rule := func(v Verdict, patterns ...string) Rule {
		r := Rule{Verdict: v}
		for _, text := range patterns {
			p, err := ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			r.Patterns = append(r.Patterns, p)
		}
		return r
	}
	plain := &Policy{Postures: Postures{Team: Contained}, Reads: map[string]map[string]bool{"web": {"mcp__tracker__search": true}}}
	ruled := &Policy{Postures: Postures{Team: Contained}, Rules: []Rule{
		rule(Deny, "Bash(curl *)", "Edit(secrets/**)"), rule(Ask, "Bash(terraform *)"), rule(Allow, "WebFetch(domain:go.dev)"),
	}}
	type in map[string]any
	for _, c := range []struct {
		name      string
		policy    *Policy
		tool      string
		in        in
		want      Verdict
		contained bool
	}{
		{"a command of which nothing is known", plain, "Bash", in{"command": "frobnicate --all"}, Allow, true},
		{"one that is not known before it runs", plain, "Bash", in{"command": `x=$(cat /etc/passwd); for f in *; do eval "$x"; done`}, Allow, true},
		{"one that goes on in the background", plain, "Bash", in{"command": "npm start", "run_in_background": true}, Allow, true},
		{"one that wants out of a sandbox", plain, "Bash", in{"command": "ls", "dangerouslyDisableSandbox": true}, Ask, false},
		{"one with an input that nobody knows", plain, "Bash", in{"command": "ls", "elsewhere": true}, Ask, false},
		{"no command", plain, "Bash", in{}, Ask, false},
		{"a push", plain, "Bash", in{"command": "git push origin HEAD:deckhand/x"}, Ask, false},
		{"a push among others", plain, "Bash", in{"command": "git commit -am x && git push"}, Ask, false},
		{"a commit", plain, "Bash", in{"command": "git commit -am x"}, Allow, true},
		{"an edit", plain, "Edit", in{"file_path": "/w/package.json", "old_string": "a", "new_string": "b"}, Allow, true},
		{"an edit outside the workspace", plain, "Write", in{"file_path": "/tmp/x", "content": "b"}, Allow, true},
		{"a secret of the workspace", plain, "Read", in{"file_path": "/w/.env"}, Allow, true},
		{"a language server", plain, "LSP", in{"operation": "hover", "filePath": "/w/a.go", "line": 1, "character": 1}, Allow, true},
		{"a page", plain, "WebFetch", in{"url": "https://go.dev/doc", "prompt": "x"}, Ask, false},
		{"a search", plain, "WebSearch", in{"query": "x"}, Ask, false},
		{"a host", plain, NetworkTool, in{"host": "go.dev", "port": 443}, Ask, false},
		{"a tool of a server", plain, "mcp__tracker__create", in{"title": "x"}, Ask, false},
		{"a look at the page", plain, "mcp__deckhand__preview", in{}, Allow, true},
		{"one that the project calls reading", plain, "mcp__tracker__search", in{"q": "x"}, Allow, true},
		{"a tool that nobody knows", plain, "Teleport", in{}, Ask, false},
		{"a question", plain, "AskUserQuestion", in{"questions": []any{}}, Ask, false},
		{"a plan", plain, "ExitPlanMode", in{"plan": "x"}, Ask, false},
		{"a command that a rule denies", ruled, "Bash", in{"command": "curl example.com"}, Deny, false},
		{"a line that may hold one", ruled, "Bash", in{"command": `eval "$x"`}, Ask, false},
		{"a command that a rule asks about", ruled, "Bash", in{"command": "ls; terraform plan"}, Ask, false},
		{"an edit that a rule denies", ruled, "Write", in{"file_path": "/w/secrets/a", "content": "b"}, Deny, false},
		{"a page that a rule allows", ruled, "WebFetch", in{"url": "https://go.dev/doc", "prompt": "x"}, Allow, false},
		{"any other command", ruled, "Bash", in{"command": "make all"}, Allow, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			raw, err := json.Marshal(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if c.tool == NetworkTool {
				raw = NetworkInput("go.dev", 443)
			}
			call := Call{Tool: c.tool, Input: raw, Workspace: "/w", Project: "web", Channel: "C1"}
			d := c.policy.Decide(call)
			if d.Verdict != c.want || d.Contained != c.contained {
				t.Errorf("%s %s: %s (contained %t), %s, %s; want %s (contained %t)", c.tool, raw, d.Verdict, d.Contained, d.Rule, d.Why, c.want, c.contained)
			}
			careful := *c.policy
			careful.Postures = Postures{Team: Contained, Channels: map[string]Posture{"C1": Careful}}
			if before := careful.Decide(call); before.Contained || before.Verdict == Deny && d.Verdict != Deny {
				t.Errorf("in a careful channel: %s (contained %t)", before.Verdict, before.Contained)
			}
		})
	}
}

func TestTheNearestPostureHolds(t *testing.T) {
	t.Parallel()
	p := Postures{Team: Contained, Projects: map[string]Posture{"web": Careful}, Channels: map[string]Posture{"C1": Contained}}
	for _, c := range []struct {
		project, channel string
		want             Posture
	}{{"api", "C2", Contained}, {"web", "C2", Careful}, {"web", "C1", Contained}, {"api", "", Contained}} {
		if got := p.Of(c.project, c.channel); got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.project, c.channel, got, c.want)
		}
	}
	if got := (Postures{}).Of("web", "C1"); got != Careful {
		t.Errorf("without one: %s", got)
	}
}

// The plan that Claude Code writes into its home is no second question beside the plan.
func TestThePlansFileIsNotAsked(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	home, workspace := filepath.Join(top, "home"), filepath.Join(top, "w")
	plans := filepath.Join(home, ".claude", "plans")
	for _, dir := range []string{plans, workspace} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(top, "elsewhere.md"), filepath.Join(plans, "linked.md")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool, file, home string
		want             Verdict
	}{
		{"Write", plans + "/quiet-otter.md", home, Allow},
		{"Edit", plans + "/quiet-otter.md", home, Allow},
		{"Write", plans + "/quiet-otter.md", "", Ask},
		{"Write", plans + "/linked.md", home, Ask},
		{"Write", plans + "/../settings.json", home, Ask},
		{"Write", plans + "/deeper/x.md", home, Ask},
		{"Write", plans + "/x.sh", home, Ask},
		{"Write", plans, home, Ask},
		{"Write", home + "/.claude/CLAUDE.md", home, Ask},
		{"Write", workspace + "/.claude/plans/x.md", home, Ask},
	} {
		raw, err := json.Marshal(map[string]string{"file_path": c.file, map[string]string{"Write": "content", "Edit": "old_string"}[c.tool]: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if d := (&Policy{}).Decide(Call{Tool: c.tool, Input: raw, Workspace: workspace, Home: c.home}); d.Verdict != c.want {
			t.Errorf("%s %s: %s (%s), want %s", c.tool, c.file, d.Verdict, d.Why, c.want)
		}
	}
}
