package view

import (
	"strings"
)

// Tool is what people are told of a tool of Claude Code's: in the status line while it runs,
// in its line of the thread, and on the card that asks about it. The zero value is right for a
// tool of which nothing is known, such as an MCP server's: its name, the first text of its
// input, and on its card all of its input as JSON. What a tool may do is decided by package
// policy, which has a table of its own.
type Tool struct {
	name    string // for people; empty: as Claude Code calls it
	Subject string // gjson path to what it works on in its input; empty: the input's first text
	File    bool   // the subject is a path, and is shown as seen from the workspace

	// The status line is doing and the subject, of a file its last name, or what brief makes of
	// it. Without doing, or where there is no subject, it is idle.
	Doing, Idle string
	Brief       func(subject string) string

	Unnamed bool // the line in the thread has the subject without the name
	Looks   bool // it changes nothing and its result is not told: such calls share a line
	Agent   bool // it starts a subagent
	// What it waits for while people are asked, and what they did who let it run or did not;
	// empty: "approval", "approved", "denied".
	Awaits, Allowed, Denied string

	// Verb begins the headline of the card of a tool whose subject is a file.
	Verb string
	// change is the field that whoever decides may change, and further are others beside it.
	change  string
	Further []FormField
}

// The tools by which the model asks people.
const (
	QuestionTool = "AskUserQuestion"
	PlanTool     = "ExitPlanMode"
)

// Tools are all that something is known of.
var Tools = map[string]Tool{
	"Bash": {
		Subject: "command", Doing: "is running", Idle: "is running a command", Unnamed: true,
		change: "command",
	},

	"Read": {Subject: "file_path", File: true, Doing: "is reading", Idle: "is reading files", Looks: true, Verb: "read"},
	"Glob": {Subject: "pattern", Idle: "is searching the files", Looks: true},
	"Grep": {Subject: "pattern", Idle: "is searching the files", Looks: true},

	"Write": {
		Subject: "file_path", File: true, Doing: "is editing", Idle: "is editing files",
		Verb: "write", change: "content",
	},
	"Edit": {
		Subject: "file_path", File: true, Doing: "is editing", Idle: "is editing files",
		Verb: "edit", change: "new_string",
	},
	"NotebookEdit": {
		Subject: "notebook_path", File: true, Doing: "is editing", Idle: "is editing files",
		Verb: "edit", change: "new_source",
	},

	"WebFetch":  {Subject: "url", Doing: "is reading", Idle: "is reading the web", Brief: hostName},
	"WebSearch": {Subject: "query", Idle: "is searching the web"},

	"Agent": {Subject: "description", Doing: "has a subagent at work:", Idle: "has a subagent at work", Agent: true},
	"Task":  {Subject: "description", Doing: "has a subagent at work:", Idle: "has a subagent at work", Agent: true},
	"Skill": {Subject: "skill"},

	"mcp__deckhand__post_file":   {name: "Post file", Subject: "path", File: true, Doing: "is posting", Idle: "is posting a file", Verb: "post"},
	"mcp__deckhand__preview":     {name: "Preview", Idle: "is looking at the page"},
	"mcp__deckhand__read_thread": {name: "Read thread", Subject: "link", Idle: "is reading the thread", Looks: true},
	"mcp__deckhand__skill":       {name: "Read skill", Subject: "name", Idle: "is reading a skill", Looks: true},
	"mcp__deckhand__open_pull_request": {name: "Open pull request", Subject: "title", Doing: "is opening a pull request:", Idle: "is opening a pull request", change: "body", Further: []FormField{
		{key: "title", Label: "Title", Kind: LineField}, {key: "labels", Label: "Labels, with commas between", Kind: listField}, {key: "draft", Label: "It is a draft", Kind: FlagField},
	}},
	"mcp__deckhand__read_pull_request":  {name: "Read pull request", Idle: "is reading the pull request", Looks: true},
	"mcp__deckhand__merge_pull_request": {name: "Merge pull request", Subject: "method", Idle: "is merging the pull request"},
	"mcp__deckhand__reply_to_review":    {name: "Answer a review", Subject: "text", Idle: "is answering a review"},

	QuestionTool:    {name: "Question", Subject: "questions.0.question", Awaits: "an answer", Allowed: "answered", Denied: "skipped"},
	PlanTool:        {name: "Plan", Awaits: "a decision"},
	"EnterPlanMode": {name: "Plan mode", Idle: "is planning"},
}

// ToolName is a tool's name for people; mcp__server__tool is "server · tool".
func ToolName(name string) string {
	if known := Tools[name].name; known != "" {
		return known
	}
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		if server, tool, ok := strings.Cut(rest, "__"); ok {
			return server + " · " + tool
		}
	}
	return name
}

// hostName is the host of an address, or what is no address.
func hostName(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address, _, _ = strings.Cut(rest, "/")
	}
	return address
}
