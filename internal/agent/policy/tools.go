package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// treatment is how the rules treat a built-in tool.
type treatment string

const (
	ownState   treatment = "bookkeeping"         // touches nothing but the agent's own state: allowed
	asBash     treatment = "Bash(…)"             // decided as the command that it names
	asRead     treatment = "Read(…)"             // decided as reading the file or folder that it names
	asEdit     treatment = "Edit(…)"             // decided as writing the file that it names
	asWebFetch treatment = "WebFetch(…)"         // decided as the address that it names
	asksPerson treatment = "a person's answer"   // asked whatever the rules allow
	isAsked    treatment = "asked"               // asked, unless a rule names the tool
	isWithheld treatment = "not offered; denied" // whatever the rules say
)

// tool describes one built-in tool of the CLI: its effect, and which parameter values are known to be harmless.
type tool struct {
	does   treatment
	why    string // of one that is asked: what it does
	inside bool   // all its effects stay inside the sandbox
	// params are its parameters by name; unknown names are asked whatever the rules allow. nil: all parameters are
	// part of the question.
	params map[string]param
}

// param describes one parameter. The zero param takes no value.
type param struct {
	kind  jsontext.Kind     // of its values; 0 for any
	only  []string          // the harmless values; nil for all of the kind
	but   map[string]string // values known not to be harmless, and what they do
	asked string            // every value is asked: what it does
	// begins is how further harmless values begin; empty for none.
	begins string
	// decides: the rules look at the value itself.
	decides bool
	// inside: whatever the value, the call stays inside the sandbox.
	inside bool
}

// Kinds of parameters whose values are all harmless.
var (
	anyText   = param{kind: '"'}
	anyNumber = param{kind: '0'}
	anyFlag   = param{kind: 't'}
	anyList   = param{kind: '['}
	anyObject = param{kind: '{'}
	// decided is a text that the rules look at.
	decided = param{kind: '"', decides: true}
)

// only lists the harmless values of a text or a flag.
func only(values ...string) param {
	return param{kind: '"', only: append([]string{}, values...)}
}

// except adds a value that is not harmless, and what it does.
func (p param) except(value, does string) param {
	but := map[string]string{value: does}
	maps.Copy(but, p.but)
	p.but = but
	return p
}

// TrustedAgent begins the names of the agents that a repository brings and an admin trusts. Claude Code has none of its
// own that are called so.
const TrustedAgent = "repository-"

// beginning adds values that are harmless by how they begin.
func (p param) beginning(with string) param {
	p.begins = with
	return p
}

// never is a parameter that is always asked.
func never(does string) param { return param{asked: does} }

// unset is a flag that is harmless unless it is set.
func unset(does string) param { return param{kind: 't', only: []string{"false"}}.except("true", does) }

// within says that harmful values act inside the sandbox only.
func (p param) within() param {
	p.inside = true
	return p
}

const (
	outlives = "goes on after its turn, when nobody can be asked"
	faraway  = "belongs to a service that Deckhand does not use"
)

// tools are the built-in tools of the pinned CLI. internal/agent/claude's TestCLITools generates what the CLI
// offers (testdata/tools.json); a test compares both. Unknown tools and parameters are asked. The CLI resolves
// aliases of a tool (Task for Agent) before the hook, and adds parameters of its own to some.
var tools = map[string]tool{
	"Bash": {does: asBash, params: map[string]param{
		"command": decided, "description": anyText, "timeout": anyNumber,
		"run_in_background":         unset(outlives).within(),
		"dangerouslyDisableSandbox": unset("asks to run outside the sandbox"),
	}},
	"Read":  {does: asRead, params: map[string]param{"file_path": decided, "offset": anyNumber, "limit": anyNumber, "pages": anyText, "allow_large": anyFlag}},
	"Glob":  {does: asRead, params: map[string]param{"path": decided, "pattern": decided}},
	"Grep":  {does: asRead, params: grepParams},
	"Edit":  {does: asEdit, params: map[string]param{"file_path": decided, "old_string": anyText, "new_string": anyText, "replace_all": anyFlag}},
	"Write": {does: asEdit, params: map[string]param{"file_path": decided, "content": anyText}},
	"NotebookEdit": {does: asEdit, params: map[string]param{
		"notebook_path": decided, "cell_id": anyText, "new_source": anyText, "cell_type": only("code", "markdown"), "edit_mode": only("replace", "insert", "delete"),
	}},
	"WebFetch":  {does: asWebFetch, params: map[string]param{"url": decided, "prompt": anyText, "offset": anyNumber}},
	"WebSearch": {does: isAsked, why: "sends its words to a search engine", params: map[string]param{"query": anyText, "allowed_domains": anyList, "blocked_domains": anyList}},

	"AskUserQuestion": {does: asksPerson}, "ExitPlanMode": {does: asksPerson},

	"TodoWrite":  {does: ownState, params: map[string]param{"todos": anyList}},
	"TaskCreate": {does: ownState, params: map[string]param{"subject": anyText, "description": anyText, "activeForm": anyText, "metadata": anyObject}},
	"TaskGet":    {does: ownState, params: map[string]param{"taskId": anyText}},
	"TaskList":   {does: ownState, params: map[string]param{}},
	"TaskUpdate": {does: ownState, params: map[string]param{
		"taskId": anyText, "subject": anyText, "description": anyText, "activeForm": anyText, "owner": anyText, "metadata": anyObject, "addBlocks": anyList, "addBlockedBy": anyList,
		"status": only("pending", "in_progress", "completed", "deleted"),
	}},
	"TaskStop":       {does: ownState, params: map[string]param{"task_id": anyText, "shell_id": anyText}},
	"ToolSearch":     {does: ownState, params: map[string]param{"query": anyText, "max_results": anyNumber}},
	"ReportFindings": {does: ownState, params: map[string]param{"level": only("low", "medium", "high", "xhigh", "max"), "findings": anyList}},
	"EnterPlanMode":  {does: ownState, params: map[string]param{}},
	// The policy decides a subagent's calls one by one.
	"Agent": {does: ownState, params: map[string]param{
		"description": anyText, "prompt": anyText, "model": only("sonnet", "opus", "haiku", "fable"), "effort": only("low", "medium", "high", "xhigh", "max"),
		"subagent_type":     only("claude", "Explore", "general-purpose", "Plan", "fork").except("statusline-setup", "changes the settings of Claude Code").beginning(TrustedAgent),
		"run_in_background": unset(outlives),
		"isolation":         only().except("worktree", "makes a worktree and a branch in the repository").except("remote", "runs on another machine"),
		"mode":              never("changes how the agent's calls are permitted"),
		"name":              never("makes an agent that others write to"),
		"team_name":         never("makes an agent of a team"),
	}},

	"Skill": {does: isAsked, why: "runs commands of its own before anybody is asked", params: map[string]param{"skill": anyText, "args": anyText}},
	"LSP": {does: isAsked, inside: true, why: "starts a language server, which reads the workspace and may build it", params: map[string]param{
		"operation": only("goToDefinition", "findReferences", "hover", "documentSymbol", "workspaceSymbol", "goToImplementation", "prepareCallHierarchy", "incomingCalls", "outgoingCalls"),
		"filePath":  decided, "line": anyNumber, "character": anyNumber, "query": anyText,
	}},
	"ListMcpResourcesTool":    {does: isAsked, why: "asks an MCP server", params: map[string]param{"server": decided}},
	"ReadMcpResourceTool":     {does: isAsked, why: "reads from an MCP server", params: map[string]param{"server": decided, "uri": anyText}},
	"ReadMcpResourceDirTool":  {does: isAsked, why: "reads from an MCP server", params: map[string]param{"server": decided, "uri": anyText}},
	"StructuredOutput":        {does: isAsked, why: "ends the turn with a result by a schema, which Deckhand does not ask for"},
	"DeferredToolPlaceholder": {does: isAsked, why: "stands for a tool that is not loaded"},

	"ListConnectors": {does: isAsked, why: faraway}, "ListPlugins": {does: isAsked, why: faraway}, "ListSkills": {does: isAsked, why: faraway},
	"ReadNotifications": {does: isAsked, why: faraway}, "SearchMcpRegistry": {does: isAsked, why: faraway}, "SearchPlugins": {does: isAsked, why: faraway},
	"SearchSkills": {does: isAsked, why: faraway}, "ShowOnboardingRolePicker": {does: isAsked, why: faraway}, "SuggestConnectors": {does: isAsked, why: faraway},
	"SuggestPluginInstall": {does: isAsked, why: faraway}, "SuggestSkills": {does: isAsked, why: faraway},
}

var grepParams = map[string]param{
	"path": decided, "glob": decided, "pattern": anyText, "type": anyText, "output_mode": only("content", "files_with_matches", "count"),
	"-A": anyNumber, "-B": anyNumber, "-C": anyNumber, "context": anyNumber, "head_limit": anyNumber, "offset": anyNumber, "-i": anyFlag, "-n": anyFlag, "-o": anyFlag, "multiline": anyFlag,
}

// withheld are tools that make no sense in a thread: the CLI is told not to offer them, and calls of them are
// denied.
var withheld = []string{
	"CronCreate", "CronDelete", "CronList", "EnterWorktree", "ExitWorktree", "ListAgents", "Monitor", "PowerShell", "ScheduleWakeup", "SendMessage",
	"SendUserMessage", "Workflow",
}

// Withheld are the tools that the CLI is not to offer to the model, by name.
func Withheld() []string { return slices.Clone(withheld) }

// Offers reports whether the model may be offered a built-in tool of this name.
func Offers(name string) bool {
	t, known := tools[name]
	return known && t.does != isWithheld
}

// personal tools are allowed by no rule: a person's answer is their point, or they are
// withheld.
var personal = map[string]bool{}

func init() {
	for _, name := range withheld {
		tools[name] = tool{does: isWithheld}
	}
	for name, t := range tools {
		personal[name] = t.does == asksPerson || t.does == isWithheld
	}
}

// judge checks the tool and each of its parameters. An unknown effect keeps every rule from allowing the call, or
// every rule that does not name the tool.
func (req *request) judge(in input) {
	name := req.call.Tool
	t, known := tools[name]
	switch {
	case strings.HasPrefix(name, "mcp__"):
		return // its parameters are the server's own
	case req.kind == kindNet:
		return // it is the gateway's, and was read
	case !known && req.kind == kindName:
		req.odd = "the tool " + name + " is not one that is known"
		return
	case !known:
		req.setBad("the tool " + name + " is not one that is known")
		return
	case t.params == nil:
		return
	}
	for _, k := range slices.Sorted(maps.Keys(in)) {
		p, ok := t.params[k]
		if !ok {
			req.setBad("the input " + k + " is not one that is known, and may change what " + name + " does")
			continue
		}
		switch why := p.odd(k, in[k]); {
		case why == "":
		case req.kind == kindName:
			req.odd = first(req.odd, why)
		case p.inside:
			req.bad = first(req.bad, why)
		default:
			req.setBad(why)
		}
	}
}

// odd says why a value is not harmless; empty if it is.
func (p param) odd(name string, raw json.RawMessage) string {
	kind := jsontext.Value(raw).Kind()
	if kind == 'f' {
		kind = 't'
	}
	switch {
	case p.asked != "":
		return "its " + name + " " + p.asked
	case kind == 'n', p.kind == 0:
		return ""
	case kind != p.kind:
		return "its " + name + " is not of the kind that is known"
	case p.only == nil:
		return ""
	}
	value := string(raw)
	if kind == '"' {
		value, _ = input{name: raw}.str(name)
	}
	switch does, known := p.but[value]; {
	case slices.Contains(p.only, value), p.begins != "" && strings.HasPrefix(value, p.begins):
		return ""
	case known:
		return "its " + name + " " + value + " " + does
	}
	return "its " + name + " has a value that is not known"
}

// actsAs are calls that another tool's call amounts to: it reads a file or asks a server, whatever it is called.
// Rules that deny or ask also check these; rules that allow need the tool's own name.
func actsAs(c *Call, in input) []Call {
	var out []Call
	add := func(tool, field, value string) {
		raw, err := json.Marshal(map[string]string{field: value})
		if err == nil && value != "" {
			out = append(out, Call{Tool: tool, Input: raw, Workspace: c.Workspace, Dir: c.Dir, Project: c.Project, Channel: c.Channel})
		}
	}
	value := func(name string) string { s, _ := in.str(name); return s }
	switch c.Tool {
	case "LSP":
		add("Read", "file_path", value("filePath"))
	case ownPosts:
		add("Read", "file_path", value("path"))
	case "ListMcpResourcesTool", "ReadMcpResourceTool", "ReadMcpResourceDirTool":
		add("mcp__"+value("server")+"__resources", "uri", first(value("uri"), "all of them"))
	}
	return out
}
