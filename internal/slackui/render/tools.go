package render

import (
	"cmp"
	"path"
	"strings"

	"github.com/tidwall/gjson"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/slackui/render/mrkdwn"
)

// tool is what people are told of a tool of Claude Code's: in the status line while it runs,
// in its line of the thread, and on the card that asks about it. The zero value is right for a
// tool of which nothing is known, such as an MCP server's: its name, the first text of its
// input, and on its card all of its input as JSON. What a tool may do is decided by package
// policy, which has a table of its own.
type tool struct {
	name    string // for people; empty: as Claude Code calls it
	subject string // gjson path to what it works on in its input; empty: the input's first text
	file    bool   // the subject is a path, and is shown as seen from the workspace

	// The status line is doing and the subject, of a file its last name, or what brief makes of
	// it. Without doing, or where there is no subject, it is idle.
	doing, idle string
	brief       func(subject string) string

	unnamed bool // the line in the thread has the subject without the name
	looks   bool // it changes nothing and its result is not told: such calls share a line
	agent   bool // it starts a subagent
	// gist is what came out, in a few words; empty: how long its result is.
	gist func(v *view, t *claude.ToolUse) string
	// What it waits for while people are asked, and what they did who let it run or did not;
	// empty: "approval", "approved", "denied".
	awaits, allowed, denied string

	// verb begins the headline of the card of a tool whose subject is a file.
	verb string
	// card fills in what matters of the input, and marks the fields that it shows. It reports
	// whether it understood them: else the card has all of the input as JSON.
	card func(r *request, s *fieldSet) bool
	// change is the field that whoever decides may change, and further are others beside it.
	change  string
	further []formField
}

// The tools by which the model asks people.
const (
	questionTool = "AskUserQuestion"
	planTool     = "ExitPlanMode"
)

// tools are all that something is known of.
var tools = map[string]tool{
	"Bash": {
		subject: "command", doing: "is running", idle: "is running a command", unnamed: true,
		gist: gistOfCommand, card: cardOfCommand, change: "command",
	},

	"Read": {subject: "file_path", file: true, doing: "is reading", idle: "is reading files", looks: true, verb: "read", card: cardOfReading},
	"Glob": {subject: "pattern", idle: "is searching the files", looks: true},
	"Grep": {subject: "pattern", idle: "is searching the files", looks: true, gist: gistOfSearch},

	"Write": {
		subject: "file_path", file: true, doing: "is editing", idle: "is editing files",
		gist: gistOfWriting, verb: "write", card: cardOfWriting, change: "content",
	},
	"Edit": {
		subject: "file_path", file: true, doing: "is editing", idle: "is editing files",
		gist: gistOfEdit, verb: "edit", card: cardOfEdit, change: "new_string",
	},
	"NotebookEdit": {
		subject: "notebook_path", file: true, doing: "is editing", idle: "is editing files",
		verb: "edit", card: cardOfNotebook, change: "new_source",
	},

	"WebFetch":         {subject: "url", doing: "is reading", idle: "is reading the web", brief: hostName},
	"WebSearch":        {subject: "query", idle: "is searching the web"},
	policy.NetworkTool: {card: (*request).host},

	"Agent": {subject: "description", doing: "has a subagent at work:", idle: "has a subagent at work", agent: true},
	"Task":  {subject: "description", doing: "has a subagent at work:", idle: "has a subagent at work", agent: true},
	"Skill": {subject: "skill"},

	"mcp__deckhand__post_file":   {name: "Post file", subject: "path", file: true, doing: "is posting", idle: "is posting a file"},
	"mcp__deckhand__preview":     {name: "Preview", idle: "is looking at the page"},
	"mcp__deckhand__read_thread": {name: "Read thread", subject: "link", idle: "is reading the thread", looks: true},
	"mcp__deckhand__skill":       {name: "Read skill", subject: "name", idle: "is reading a skill", looks: true},
	"mcp__deckhand__open_pull_request": {name: "Open pull request", subject: "title", doing: "is opening a pull request:", idle: "is opening a pull request", card: cardOfPull, change: "body", further: []formField{
		{key: "title", label: "Title", kind: lineField}, {key: "labels", label: "Labels, with commas between", kind: listField}, {key: "draft", label: "It is a draft", kind: flagField},
	}},
	"mcp__deckhand__read_pull_request":  {name: "Read pull request", idle: "is reading the pull request", looks: true},
	"mcp__deckhand__merge_pull_request": {name: "Merge pull request", subject: "method", idle: "is merging the pull request"},
	"mcp__deckhand__reply_to_review":    {name: "Answer a review", subject: "text", idle: "is answering a review"},

	questionTool: {name: "Question", subject: "questions.0.question", awaits: "an answer", allowed: "answered", denied: "skipped"},
	planTool:     {name: "Plan", awaits: "a decision"},
}

// fieldWords name the fields of Claude Code's own tools.
var fieldWords = map[string]string{
	"command": "Command", "description": "Purpose", "timeout": "Time limit in milliseconds",
	"run_in_background": "Goes on in the background", "dangerouslyDisableSandbox": "Outside the sandbox",
	"file_path": "File", "content": "Content", "old_string": "Old text", "new_string": "New text", "replace_all": "Every occurrence",
	"notebook_path": "Notebook", "new_source": "New source", "cell_id": "Cell", "cell_type": "Kind of cell", "edit_mode": "Kind of edit",
	"path": "Path", "pattern": "Pattern", "offset": "Start at", "limit": "At most", "glob": "Files", "output_mode": "Form of the result",
	"url": "Address", "query": "Search for", "prompt": "Prompt", "subagent_type": "Kind of subagent", "model": "Model",
	"plan": "Plan", "questions": "Questions", "host": "Host", "port": "Port",
}

// toolName is a tool's name for people; mcp__server__tool is "server · tool".
func toolName(name string) string {
	if known := tools[name].name; known != "" {
		return known
	}
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		if server, tool, ok := strings.Cut(rest, "__"); ok {
			return server + " · " + tool
		}
	}
	return name
}

// subjectIn is what a call works on: the first line of it, redacted, a path as seen from the
// workspace. more reports that there is more of it.
func subjectIn(t *claude.ToolUse, workspace string, o Options) (s string, more bool) {
	k := tools[t.Name]
	if k.subject != "" {
		s = gjson.GetBytes(t.Input, k.subject).String()
	} else {
		gjson.ParseBytes(t.Input).ForEach(func(_, value gjson.Result) bool {
			if value.Type == gjson.String {
				s = value.Str
			}
			return s == ""
		})
	}
	s, _, more = strings.Cut(strings.TrimSpace(s), "\n")
	more = more || len(s) > redactMax
	s = o.redact(mrkdwn.Prefix(s, redactMax))
	switch {
	case k.file:
		s = relative(s, workspace)
	case t.Name == planTool:
		s = strings.TrimLeft(s, "# ") // it begins with a heading
	}
	return s, more
}

// doingTool is what a call that runs does.
func doingTool(t *claude.ToolUse, workspace string, o Options) string {
	k := tools[t.Name]
	if k.doing != "" {
		if s, _ := subjectIn(t, workspace, o); s != "" {
			switch {
			case k.file:
				s = path.Base(s)
			case k.brief != nil:
				s = k.brief(s)
			}
			return k.doing + " " + s
		}
	}
	if claude.ToolKeepsList(t.Name) {
		return "is planning"
	}
	return cmp.Or(k.idle, "is using "+toolName(t.Name))
}

// hostName is the host of an address, or what is no address.
func hostName(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address, _, _ = strings.Cut(rest, "/")
	}
	return address
}

func gistOfCommand(_ *view, t *claude.ToolUse) string {
	if strings.TrimSpace(t.Result) == "" && t.ResultBytes == 0 {
		return "no output"
	}
	return ""
}

func gistOfSearch(v *view, t *claude.ToolUse) string {
	if first := firstLine(t.Result); strings.HasPrefix(first, "Found ") || strings.HasPrefix(first, "No ") {
		return mrkdwn.Escape(mrkdwn.Clip(v.o.redact(lowerFirst(first)), 40))
	}
	return ""
}

func gistOfWriting(_ *view, t *claude.ToolUse) string {
	content := gjson.GetBytes(t.Input, "content")
	if !content.Exists() {
		return ""
	}
	return plural(countLines(content.String()), "line", "lines")
}

// gistOfEdit counts the lines that a replacement adds and removes, without what both texts
// have in common at their ends.
func gistOfEdit(_ *view, t *claude.ToolUse) string {
	before, after := gjson.GetBytes(t.Input, "old_string"), gjson.GetBytes(t.Input, "new_string")
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

func cardOfCommand(r *request, s *fieldSet) bool {
	command, ok := s.text("command")
	if !ok {
		return false
	}
	r.verb, r.pre, r.command = "run", command, true
	r.why, _ = s.text("description")
	if s.flag("run_in_background") {
		r.facts = append(r.facts, "goes on in the background")
	}
	if s.flag("dangerouslyDisableSandbox") {
		r.cautions = append(r.cautions, "It asks to run outside of the sandbox.")
	}
	return true
}

func cardOfReading(r *request, _ *fieldSet) bool {
	if r.verb != "read" { // a file of which the name alone is shown
		return false
	}
	r.pre, r.cautions = r.object, nil // that it is outside is among what is risky in it
	return true
}

func cardOfWriting(r *request, s *fieldSet) bool {
	content, ok := s.text("content")
	r.pre = content
	r.facts = append(r.facts, "the whole file: "+plural(len(splitLines(content)), "line", "lines"))
	return ok
}

// cardOfPull shows the text of a pull request: its headline has the title.
func cardOfPull(r *request, s *fieldSet) bool {
	body, ok := s.text("body")
	_, titled := s.text("title")
	r.verb, r.object, r.pre = "open", "a pull request", body
	return ok && titled
}

func cardOfEdit(r *request, s *fieldSet) bool {
	before, ok1 := s.text("old_string")
	after, ok2 := s.text("new_string")
	r.edit(before, after, s.flag("replace_all"))
	return ok1 && ok2
}

func cardOfNotebook(r *request, s *fieldSet) (ok bool) {
	r.pre, ok = s.text("new_source")
	return ok
}
