package render

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"deckhand/internal/agent/claude"
	"deckhand/internal/money"
	"deckhand/internal/report"
	"deckhand/internal/slackui/render/mrkdwn"
)

const (
	lineMax   = 195 // units of a line about a tool
	argMax    = 80  // units of its argument
	runLines  = 6   // lines of a run of tools without text between
	agentWork = 2   // lines about what a subagent is doing
	// redactMax bounds what is redacted of an argument, of which much less is shown:
	// a secret that this cuts is far behind.
	redactMax = 64 << 10
)

// run is a row of tool calls with no text between them.
type run struct {
	tools []*claude.Item
	agent bool // one of them has a subagent
}

// cost is what a run is counted for on a page. It depends on nothing that changes
// after the run has ended, so that pages do not move when a tool finishes.
func (r *run) cost() int {
	lines := min(len(r.tools), runLines)
	if r.agent {
		lines += agentWork
	}
	return lines * (lineMax + 1)
}

// listTools keep the list of work, which is shown itself.
var listTools = map[string]bool{"TodoWrite": true, "TaskCreate": true, "TaskUpdate": true, "TaskList": true, "TaskGet": true}

// BookkeepingTools are the tools of whose uses nothing is shown but the list that they keep.
func BookkeepingTools() []string { return slices.Sorted(maps.Keys(listTools)) }

// isAgent reports whether a tool starts a subagent.
func isAgent(name string) bool { return name == "Task" || name == "Agent" }

func unfinished(s claude.ToolState) bool {
	return s == claude.ToolStreaming || s == claude.ToolAsked || s == claude.ToolRunning
}

// lines renders a run: all of it when it is short, else a summary, a line for the
// oldest calls that are not finished, and one for each of the last ones.
func (v *view) lines(r *run) string {
	shown, rest := r.tools, []*claude.Item(nil)
	if len(r.tools) > runLines {
		const oldMax = 2
		var old []*claude.Item
		edge := len(r.tools) - (runLines - 1)
		for i := 0; i < edge; i++ {
			if t := r.tools[i]; unfinished(t.Tool.State) && len(old) < oldMax {
				old = append(old, t)
				edge = len(r.tools) - (runLines - 1 - len(old))
			} else {
				rest = append(rest, t)
			}
		}
		shown = append(old, r.tools[edge:]...)
	}
	var b strings.Builder
	b.WriteString(v.summary(rest))
	agents := agentWork
	for _, t := range shown {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(v.line(t, ""))
		if isAgent(t.Tool.Name) && unfinished(t.Tool.State) {
			work := v.children[t.ID]
			for _, child := range work[max(0, len(work)-agents):] {
				b.WriteString("\n")
				b.WriteString(v.line(child, "   ↳ "))
				agents--
			}
		}
	}
	return b.String()
}

// summary counts calls by name, the most frequent first.
func (v *view) summary(tools []*claude.Item) string {
	if len(tools) == 0 {
		return ""
	}
	type tally struct {
		name string
		n    int
	}
	var names []tally
	failed, open := 0, 0
next:
	for _, it := range tools {
		t := it.Tool
		switch {
		case t.State == claude.ToolFailed || t.State == claude.ToolDenied:
			failed++
		case unfinished(t.State):
			open++
		}
		for i := range names {
			if names[i].name == t.Name {
				names[i].n++
				continue next
			}
		}
		names = append(names, tally{t.Name, 1})
	}
	for i := 1; i < len(names); i++ { // few, and stable
		for j := i; j > 0 && names[j].n > names[j-1].n; j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
	s := "✅ " + plural(len(tools), "tool call", "tool calls") + " done"
	if open > 0 {
		s = "⏳ " + plural(len(tools), "tool call", "tool calls")
	}
	for i, t := range names {
		switch {
		case i == 4:
			s += " …"
		case i > 4:
		case i == 0:
			s += ": " + mrkdwn.Escape(mrkdwn.Clip(toolName(t.name), 30)) + " ×" + strconv.Itoa(t.n)
		default:
			s += ", " + mrkdwn.Escape(mrkdwn.Clip(toolName(t.name), 30)) + " ×" + strconv.Itoa(t.n)
		}
	}
	if failed > 0 {
		s += " · " + strconv.Itoa(failed) + " failed or denied"
	}
	if open > 0 {
		s += " · " + strconv.Itoa(open) + " not finished"
	}
	return s
}

// line renders one call: state, name, what it works on, and what came out.
func (v *view) line(it *claude.Item, indent string) string {
	t := it.Tool
	icon := "⏳"
	switch t.State {
	case claude.ToolAsked:
		icon = "✋"
	case claude.ToolDone:
		icon = "✅"
	case claude.ToolFailed:
		icon = "❌"
	case claude.ToolDenied:
		icon = "🚫"
	case claude.ToolInterrupted:
		icon = "⏹️"
	case claude.ToolStreaming, claude.ToolRunning:
	}
	if unfinished(t.State) && v.ended {
		icon = "⏹️"
	}
	var b strings.Builder
	b.Grow(lineMax + 32)
	b.WriteString(indent)
	b.WriteString(icon)
	b.WriteByte(' ')
	b.WriteString(mrkdwn.Escape(mrkdwn.Clip(toolName(t.Name), 40)))
	if arg := v.argument(t); arg != "" {
		b.WriteByte(' ')
		b.WriteString(arg)
	}
	b.WriteString(" — ")
	b.WriteString(v.outcome(t))
	// No name: a mention would call its maker at every use. The list of grants has it.
	if g, ok := v.t.Granted[t.ID]; ok {
		b.WriteString(" · by a rule of " + g.At.UTC().Format("2 Jan"))
	}
	if isAgent(t.Name) {
		if n := len(v.children[it.ID]); n > 0 {
			b.WriteString(" · " + plural(n, "tool call", "tool calls"))
		}
		if micro, ok := v.t.Spent[t.ID]; ok {
			b.WriteString(" · " + money.USD(micro))
		}
	}
	return b.String()
}

// The tools by which the model asks people.
const (
	questionTool = "AskUserQuestion"
	planTool     = "ExitPlanMode"
)

// awaited is what a tool waits for while it is asked about.
func awaited(name string) string {
	switch name {
	case questionTool:
		return "an answer"
	case planTool:
		return "a decision"
	}
	return "approval"
}

// toolName makes mcp__server__tool readable, and calls a question a question.
func toolName(name string) string {
	switch name {
	case questionTool:
		return "Question"
	case planTool:
		return "Plan"
	}
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		if server, tool, ok := strings.Cut(rest, "__"); ok {
			return server + " · " + tool
		}
	}
	return name
}

// arguments says which key of a tool's input tells what it works on.
var arguments = map[string]string{
	"Bash": "command", "BashOutput": "bash_id", "KillShell": "shell_id", "KillBash": "shell_id",
	"Read": "file_path", "Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path",
	"NotebookEdit": "notebook_path", "NotebookRead": "notebook_path", "LS": "path",
	"Grep": "pattern", "Glob": "pattern", "WebFetch": "url", "WebSearch": "query",
	"Task": "description", "Agent": "description", "Skill": "skill", "SlashCommand": "command",
	"ToolSearch": "query", "TaskOutput": "task_id", questionTool: "questions.0.question",
}

// argument is what the call works on, as code.
func (v *view) argument(t *claude.ToolUse) string {
	if len(t.Input) == 0 {
		return ""
	}
	var s string
	if key, ok := arguments[t.Name]; ok {
		s = gjson.GetBytes(t.Input, key).String()
	} else {
		gjson.ParseBytes(t.Input).ForEach(func(_, value gjson.Result) bool {
			if value.Type == gjson.String {
				s = value.Str
			}
			return s == ""
		})
	}
	s = strings.TrimSpace(s)
	more := false
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s, more = s[:i], true
	}
	if len(s) > redactMax {
		s, more = v.o.redact(mrkdwn.Prefix(s, redactMax)), true
	} else {
		s = v.o.redact(s)
	}
	switch t.Name {
	case "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "NotebookRead", "LS":
		s = relative(s, v.workspace)
	}
	if more {
		s = mrkdwn.Clip(s, argMax-2) + " …"
	}
	return mrkdwn.CodeWithin(s, argMax)
}

// outcome says how a call stands, in a word and not by its sign alone, and what came out.
func (v *view) outcome(t *claude.ToolUse) string {
	if unfinished(t.State) && v.ended {
		return "interrupted"
	}
	switch t.State {
	case claude.ToolAsked:
		return "waiting for " + awaited(t.Name)
	case claude.ToolDenied:
		return "denied"
	case claude.ToolFailed:
		return "failed" + v.failure(t)
	case claude.ToolInterrupted:
		return "interrupted"
	case claude.ToolStreaming, claude.ToolRunning:
		return "running"
	case claude.ToolDone:
		if t.Name == questionTool {
			return "answered"
		}
	}
	return joinNonEmpty(", ", "done", v.gist(t))
}

// gist is what came out of a call that is done, in a few words.
func (v *view) gist(t *claude.ToolUse) string {
	switch t.Name {
	case "Edit":
		return plusMinusOf(t.Input, "old_string", "new_string")
	case "MultiEdit":
		if n := len(gjson.GetBytes(t.Input, "edits").Array()); n > 0 {
			return plural(n, "edit", "edits")
		}
		return ""
	case "Write":
		if content := gjson.GetBytes(t.Input, "content"); content.Exists() {
			return plural(countLines(content.String()), "line", "lines")
		}
		return ""
	case "Grep":
		if first := firstLine(t.Result); strings.HasPrefix(first, "Found ") || strings.HasPrefix(first, "No ") {
			return mrkdwn.Escape(mrkdwn.Clip(v.o.redact(lowerFirst(first)), 40))
		}
	case "Task", "Agent":
		return ""
	case "Bash":
		if strings.TrimSpace(t.Result) == "" && t.ResultBytes == 0 {
			return "no output"
		}
	}
	if t.ResultBytes > len(t.Result) {
		return bytesOf(t.ResultBytes) // only the beginning was kept
	}
	if t.Result == "" {
		return ""
	}
	return plural(countLines(t.Result), "line", "lines")
}

// failure is a failed call's exit code or the first line of what it said, after “failed”.
func (v *view) failure(t *claude.ToolUse) string {
	plain, _ := t.Unframed()
	first := strings.TrimPrefix(firstLine(plain), "Error: ")
	if rest, ok := strings.CutPrefix(first, "Exit code "); ok && len(rest) <= 3 {
		return ", exit " + mrkdwn.Escape(rest)
	}
	if first == "" {
		return ""
	}
	return ": " + mrkdwn.Escape(mrkdwn.Clip(mrkdwn.Visible(v.o.redact(first)), 32))
}

func firstLine(s string) string {
	s = strings.TrimLeft(s, " \n\t")
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

func countLines(s string) int {
	if s == "" {
		return 0
	}
	n := strings.Count(s, "\n")
	if !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// plusMinusOf counts the lines that a replacement adds and removes, without what
// both texts have in common at their ends.
func plusMinusOf(input []byte, beforeKey, afterKey string) string {
	before, after := gjson.GetBytes(input, beforeKey), gjson.GetBytes(input, afterKey)
	if !before.Exists() || !after.Exists() {
		return ""
	}
	a, b := before.String(), after.String()
	if len(a)+len(b) > 64<<10 {
		return plusMinus(countLines(b), countLines(a))
	}
	la, lb := splitLines(a), splitLines(b)
	for len(la) > 0 && len(lb) > 0 && la[0] == lb[0] {
		la, lb = la[1:], lb[1:]
	}
	for len(la) > 0 && len(lb) > 0 && la[len(la)-1] == lb[len(lb)-1] {
		la, lb = la[:len(la)-1], lb[:len(lb)-1]
	}
	return plusMinus(len(lb), len(la))
}

// bytesOf writes a size for people.
func bytesOf(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n) + " bytes"
	case n < 999_950:
		return report.Short(int64(n), 1000, 1) + " kB"
	}
	return report.Short(int64(n), 1_000_000, 1) + " MB"
}

// holdBack cuts the last word off a text that is still being written when it is
// long enough to be the beginning of a secret or of a link: it is shown once it is
// complete and can be judged.
func holdBack(s string) string {
	const wordMax = 12
	i := strings.LastIndexAny(s, " \t\n")
	if len(s)-i-1 <= wordMax {
		return s
	}
	word := s[i+1:]
	if utf8.RuneCountInString(word) < len(word)/2 {
		return s // a script that puts no blanks between words
	}
	return s[:i+1]
}
