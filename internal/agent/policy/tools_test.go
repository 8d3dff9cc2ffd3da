package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// offered is what the pinned CLI offers, as TestCLITools of internal/agent/claude
// writes it down.
type offered struct {
	Version string `json:"version"`
	Tools   map[string]struct {
		Parameters map[string][]string `json:"parameters"`
		Added      []string            `json:"added"`
	} `json:"tools"`
}

func readOffered(t *testing.T) offered {
	t.Helper()
	raw, err := os.ReadFile("testdata/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var o offered
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	if len(o.Tools) < 20 {
		t.Fatalf("testdata/tools.json holds %d tools", len(o.Tools))
	}
	return o
}

func TestEveryToolOfTheCLIIsJudged(t *testing.T) {
	t.Parallel()
	o := readOffered(t)
	for name := range tools {
		if _, ok := o.Tools[name]; !ok {
			t.Errorf("%s is judged, and the CLI does not offer it", name)
		}
	}
	for _, name := range Withheld() {
		if _, ok := o.Tools[name]; !ok {
			t.Errorf("%s is withheld, and the CLI does not offer it", name)
		}
	}
	for name, is := range o.Tools {
		judged, ok := tools[name]
		switch {
		case !ok:
			t.Errorf("the CLI offers %s with %v, and nobody has judged it in tools.go", name, is.Parameters)
			continue
		case (judged.does == isAsked) != (judged.why != ""):
			t.Errorf("%s: why is told of tools that are asked, and of no others", name)
		case judged.params == nil && judged.does != isAsked && !personal[name]:
			t.Errorf("%s is not asked, so its parameters have to be judged", name)
		}
		if judged.params == nil {
			continue
		}
		known := slices.Concat(slices.Collect(maps.Keys(is.Parameters)), is.Added)
		for p := range judged.params {
			if !slices.Contains(known, p) {
				t.Errorf("%s: the parameter %s is judged, and the CLI does not have it", name, p)
			}
		}
		for _, p := range known {
			judgement, ok := judged.params[p]
			if !ok {
				t.Errorf("%s: the CLI has the parameter %s, and nobody has judged it in tools.go", name, p)
				continue
			}
			if kinds, ok := is.Parameters[p]; ok {
				checkParam(t, name+"."+p, judgement, kinds)
			}
		}
	}
}

// checkParam holds a judgement against the types in the CLI's schema.
func checkParam(t *testing.T, name string, p param, kinds []string) {
	t.Helper()
	if p.asked != "" || p.kind == 0 {
		return
	}
	for _, one := range kinds {
		want := jsontext.Kind('"')
		values, enum := []string(nil), false
		switch {
		case one == "number", one == "integer":
			want = '0'
		case one == "boolean":
			want, values = 't', []string{"true", "false"}
		case strings.HasPrefix(one, "["):
			want = '['
		case one == "object", strings.HasPrefix(one, "{") && strings.Contains(one, ":"):
			want = '{'
		case strings.HasPrefix(one, "{"):
			values, enum = strings.Split(strings.Trim(one, "{}"), ","), true
		}
		if p.kind != want {
			t.Errorf("%s is %s to the CLI, and judged as if it began with %c", name, one, p.kind)
		}
		if p.only == nil {
			if enum {
				t.Errorf("%s: each of its values %s has to be judged", name, one)
			}
			continue
		}
		for _, v := range values {
			if _, known := p.but[v]; !known && !slices.Contains(p.only, v) {
				t.Errorf("%s: its value %s is not judged", name, v)
			}
		}
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	agent := func(more in) in {
		all := in{"description": "x", "prompt": "x"}
		maps.Copy(all, more)
		return all
	}
	for _, tt := range []struct {
		rules, tool string
		input       any
		want        Verdict
		why         string // a part of the explanation
	}{
		{"", "Agent", agent(nil), Allow, ""},
		{"", "Agent", agent(in{"model": "haiku", "subagent_type": "Explore", "run_in_background": false, "isolation": nil}), Allow, ""},
		{"", "Agent", agent(in{"isolation": "worktree"}), Ask, "isolation worktree makes a worktree and a branch"},
		{"", "Agent", agent(in{"isolation": "remote"}), Ask, "another machine"},
		{"", "Agent", agent(in{"isolation": "elsewhere"}), Ask, "its isolation has a value that is not known"},
		{"", "Agent", agent(in{"isolation": []string{"worktree"}}), Ask, "not of the kind"},
		{"", "Agent", agent(in{"mode": "bypassPermissions"}), Ask, "its mode changes how"},
		{"", "Agent", agent(in{"subagent_type": "evil"}), Ask, "not known"},
		{"", "Agent", agent(in{"subagent_type": "repository-checker"}), Allow, ""},
		{"", "Agent", agent(in{"cwd": "/"}), Ask, "the input cwd is not one that is known"},
		{"allow *", "Agent", agent(in{"isolation": "worktree"}), Ask, "isolation"},
		{"allow A*", "Agent", agent(in{"isolation": "worktree"}), Ask, "isolation"},
		{"allow Agent", "Agent", agent(in{"isolation": "worktree"}), Allow, ""},
		{"allow Agent", "Agent", agent(in{"cwd": "/"}), Ask, "the input cwd"},
		{"deny Agent", "Agent", agent(in{"cwd": "/"}), Deny, ""},
		{"", "TaskUpdate", in{"taskId": "1", "status": "deleted"}, Allow, ""},
		{"", "TaskUpdate", in{"taskId": "1", "status": "exploded"}, Ask, "status"},
		{"", "Skill", in{"skill": "x"}, Ask, "runs commands of its own"},
		{"allow Skill", "Skill", in{"skill": "x"}, Allow, ""},
		{"allow *", "Teleport", in{"to": "x"}, Ask, "the tool Teleport is not one that is known"},
		{"allow Tele*", "Teleport", in{"to": "x"}, Ask, "the tool Teleport is not one that is known"},
		{"allow Teleport", "Teleport", in{"to": "x"}, Allow, ""},
		{"allow Edit(**)", "MultiEdit", in{"file_path": ws + "/src/a.go"}, Ask, "the tool MultiEdit is not one that is known"},
		{"deny Edit(src/**)", "MultiEdit", in{"file_path": ws + "/src/a.go"}, Deny, ""},
		{"allow Edit(src/**)", "Write", in{"file_path": ws + "/src/a.go", "content": "x", "mode": "0777"}, Ask, "the input mode"},
		{"allow Edit(src/**)", "NotebookEdit", in{"notebook_path": ws + "/src/a", "edit_mode": "explode"}, Ask, "edit_mode"},
		{"", "Read", in{"file_path": "src/a.go", "follow": true}, Ask, "the input follow"},
		{"", "Read", in{"file_path": "src/a.go", "offset": "1"}, Ask, "not of the kind"},
		{"", "Grep", in{"pattern": "x", "pre": "sh"}, Ask, "the input pre"},
		{"allow WebFetch", "WebFetch", in{"url": "https://go.dev", "method": "POST"}, Ask, "the input method"},
		{"allow Bash(go test *)", "Bash", in{"command": "go test", "run_in_background": true}, Ask, "goes on after its turn"},
		{"allow Bash(go test *)", "Bash", in{"command": "go test", "cwd": "/"}, Ask, "the input cwd"},
		{"allow mcp__x__*", "mcp__x__y", in{"anything": true}, Allow, ""},
		// Tools that do what others do.
		{"allow Monitor", "Monitor", in{"command": "ls"}, Deny, "makes no sense in a thread"},
		{"deny Read(secrets/**) | allow LSP", "LSP", in{"operation": "hover", "filePath": "secrets/x"}, Deny, ""},
		{"deny mcp__prod | allow ReadMcpResourceTool", "ReadMcpResourceTool", in{"server": "prod", "uri": "x"}, Deny, ""},
		{"deny mcp__prod__* | allow ListMcpResourcesTool", "ListMcpResourcesTool", in{"server": "prod"}, Deny, ""},
		{"deny mcp__prod__* | allow ReadMcpResourceTool", "ReadMcpResourceTool", in{"server": "dev", "uri": "x"}, Allow, ""},
		{"allow mcp__dev", "ReadMcpResourceTool", in{"server": "dev", "uri": "x"}, Ask, "reads from an MCP server"},
	} {
		t.Run(fmt.Sprint(tt.rules, "/", tt.tool, "/", tt.input), func(t *testing.T) {
			t.Parallel()
			p := &Policy{}
			if tt.rules != "" {
				p = rules(t, strings.Split(tt.rules, " | ")...)
			}
			d := p.Decide(call(t, ws, tt.tool, tt.input))
			if d.Verdict != tt.want || !strings.Contains(d.Why, tt.why) {
				t.Errorf("%s by %q (%s), want %s because of %q", d.Verdict, d.Rule, d.Why, tt.want, tt.why)
			}
		})
	}
}

// Whatever is allowed, it is not with a parameter that nobody has judged, nor with a
// value that is not harmless unless the rule names the tool.
func TestNoUnjudgedInputIsAllowed(t *testing.T) {
	t.Parallel()
	ws := workspace(t)
	names := slices.Sorted(maps.Keys(tools))
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "tool")
		key := rapid.StringMatching(`[a-zA-Z_-]{1,12}`).Draw(t, "parameter")
		value := rapid.SampledFrom([]any{"x", true, false, 1, nil, []string{"x"}, map[string]any{"a": 1}}).Draw(t, "value")
		raw, err := json.Marshal(in{key: value, "file_path": "src/a.go", "command": "ls", "url": "https://go.dev"})
		if err != nil {
			t.Fatal(err)
		}
		c := Call{Tool: name, Input: raw, Workspace: ws}
		all := &Policy{Rules: []Rule{{Verdict: Allow, Patterns: []Pattern{
			mustParse("Bash"), mustParse("Read"), mustParse("Edit"), mustParse("WebFetch"), mustParse("*"), mustParse(name),
		}}}}
		judged := tools[name]
		if judged.params == nil {
			return
		}
		for _, k := range []string{key, "file_path", "command", "url"} {
			if _, ok := judged.params[k]; !ok && all.Decide(c).Verdict == Allow {
				t.Fatalf("%s is allowed with the input %s: %s", name, k, raw)
			}
		}
	})
}

const protocolDoc = "../../../docs/protocol.md"

// TestTheToolsInTheDocument holds the table of docs/protocol.md, which -update writes.
func TestTheToolsInTheDocument(t *testing.T) {
	t.Parallel()
	begin, end := []byte("<!-- tools: generated by the policy's tests with -update -->\n"), []byte("<!-- /tools -->")
	doc, err := os.ReadFile(protocolDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(doc, begin)
	got, after, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/protocol.md has no section tools")
	}
	want := toolsTable(readOffered(t))
	if *update {
		if err := os.WriteFile(protocolDoc, slices.Concat(before, begin, []byte(want), end, after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(got) != want {
		t.Error("docs/protocol.md says otherwise of the tools: run with -update and look at the difference")
	}
}

func toolsTable(o offered) string {
	var b strings.Builder
	b.WriteString("| tool | decided as | parameters |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(o.Tools)) {
		is := tools[name]
		does := string(is.does)
		if is.why != "" {
			does += ": it " + is.why
		}
		cell := paramsCell(is.params)
		if is.does == isWithheld {
			cell = ""
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, does, cell)
	}
	return b.String()
}

func paramsCell(params map[string]param) string {
	if params == nil {
		return "part of the question"
	}
	var looked, free, odd []string
	for _, k := range slices.Sorted(maps.Keys(params)) {
		switch p := params[k]; {
		case p.asked != "":
			odd = append(odd, fmt.Sprintf("`%s` is asked: it %s", k, p.asked))
		case p.decides:
			looked = append(looked, "`"+k+"`")
		case p.but != nil:
			for _, v := range slices.Sorted(maps.Keys(p.but)) {
				odd = append(odd, fmt.Sprintf("`%s: %s` is asked: it %s", k, v, p.but[v]))
			}
		default:
			free = append(free, "`"+k+"`")
		}
	}
	var cells []string
	if looked != nil {
		cells = append(cells, "**"+strings.Join(looked, ", ")+"**")
	}
	if free != nil {
		cells = append(cells, strings.Join(free, ", "))
	}
	return strings.Join(append(cells, odd...), "; ")
}
