package render_test

import (
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	"deckhand/internal/slackui/render"
)

func TestDoing(t *testing.T) {
	t.Parallel()
	tool := func(name, input string) []claude.Item {
		return []claude.Item{{Kind: claude.ItemText, Text: "So.", Final: true}, {Kind: claude.ItemToolUse, Tool: &claude.ToolUse{Name: name, State: claude.ToolRunning, Input: []byte(input)}}}
	}
	done := claude.Item{Kind: claude.ItemToolUse, Tool: &claude.ToolUse{Name: "Bash", State: claude.ToolDone}}
	for want, v := range map[string]agent.TurnView{
		"":                                 {State: agent.TurnDone, Waiting: 1},
		"is thinking":                      {},
		"is writing":                       {Content: claude.Output{Items: []claude.Item{{Kind: claude.ItemText, Text: "Wel"}}}},
		"waits for an approval":            {Waiting: 1},
		"waits for 3 approvals":            {Waiting: 3, Content: claude.Output{Items: tool("Read", `{}`)}},
		"waits for a budget":               {Held: "the team's"},
		"is reading auth.go":               {Content: claude.Output{Items: tool("Read", `{"file_path":"/w/a/auth.go"}`)}},
		"is reading files":                 {Content: claude.Output{Items: tool("Read", `{"file_pa`)}},
		"is editing ‹!channel›":            {Content: claude.Output{Items: tool("Edit", `{"file_path":"/w/<!channel>"}`)}},
		"is running go test ./...":         {Content: claude.Output{Items: tool("Bash", `{"command":"go test ./...\nrm -rf /"}`)}},
		"is running curl -H ***":           {Content: claude.Output{Items: tool("Bash", `{"command":"curl -H hunter2"}`)}},
		"is reading go.dev":                {Content: claude.Output{Items: tool("WebFetch", `{"url":"https://go.dev/doc?x=<@U1>"}`)}},
		"is using linear · search":         {Content: claude.Output{Items: tool("mcp__linear__search", `{}`)}},
		"is planning":                      {Content: claude.Output{Items: tool("TodoWrite", `{}`)}},
		"is searching the files":           {Content: claude.Output{Items: append(tool("Grep", `{}`), done)}},
		"has a subagent at work: look":     {Content: claude.Output{Items: append(tool("Task", `{"description":"look"}`), claude.Item{ParentID: "1", Kind: claude.ItemText, Text: "x"})}},
		"is waiting: the model is at rest": {Content: claude.Output{Status: "the model\nis at rest"}},
	} {
		redact := func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
		if want != "" {
			v.State, v.Workspace = agent.TurnRunning, "/w"
		}
		if got := render.Doing(v, render.Options{Redact: redact}); got != want {
			t.Errorf("it %q, want %q", got, want)
		}
	}
	long := render.Doing(agent.TurnView{State: agent.TurnRunning, Content: claude.Output{Items: tool("Bash", `{"command":"`+strings.Repeat("x", 9000)+`"}`)}}, render.Options{})
	if n := len([]rune(long)); n > 60 {
		t.Errorf("a line of %d", n)
	}
	if got, want := render.WaitsFor("Ada <@U1>\n @channel", false), "waits for Ada ‹@U1› @\u200bchannel’s approval"; got != want {
		t.Errorf("it %q, want %q", got, want)
	}
}
