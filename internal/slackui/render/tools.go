package render

import (
	"cmp"
	"path"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// gists are what came out of a call, in a few words; empty: how long its result is.
var gists = map[string]func(v *turnWords, t *claude.ToolUse) string{
	"Bash": gistOfCommand, "Grep": gistOfSearch, "Write": gistOfWriting, "Edit": gistOfEdit,
	"mcp__deckhand__open_pull_request": gistOfPull, "mcp__deckhand__merge_pull_request": gistOfPull,
}

// inputCards fill in what matters of an input on a card, and mark the fields that they show. They
// report whether they understood them: else the card has all of the input as JSON.
var inputCards = map[string]func(r *request, s *view.FieldSet) bool{
	"Bash": cardOfCommand, "Read": cardOfReading, "Write": cardOfWriting, "Edit": cardOfEdit, "NotebookEdit": cardOfNotebook,
	policy.NetworkTool: (*request).host, "mcp__deckhand__post_file": cardOfPosting,
	"mcp__deckhand__open_pull_request": cardOfPull, "mcp__deckhand__merge_pull_request": cardOfMerge,
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

// subjectIn is what a call works on: the first line of it, redacted, a path as seen from the
// workspace. more reports that there is more of it.
func subjectIn(t *claude.ToolUse, workspace string, o Options) (s string, more bool) {
	k := view.Tools[t.Name]
	if k.Subject != "" {
		s = gjson.GetBytes(t.Input, k.Subject).String()
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
	s = o.redact(plaintext.Prefix(s, redactMax))
	switch {
	case k.File:
		s = relative(s, workspace)
	case t.Name == view.PlanTool:
		s = strings.TrimLeft(s, "# ") // it begins with a heading
	}
	return s, more
}

// doingTool is what a call that runs does.
func doingTool(t *claude.ToolUse, workspace string, o Options) string {
	k := view.Tools[t.Name]
	if k.Doing != "" {
		if s, _ := subjectIn(t, workspace, o); s != "" {
			switch {
			case k.File:
				s = path.Base(s)
			case k.Brief != nil:
				s = k.Brief(s)
			}
			return k.Doing + " " + s
		}
	}
	if claude.ToolKeepsList(t.Name) {
		return "is planning"
	}
	return cmp.Or(k.Idle, "is using "+view.ToolName(t.Name))
}

func gistOfCommand(_ *turnWords, t *claude.ToolUse) string {
	if strings.TrimSpace(t.Result) == "" && t.ResultBytes == 0 {
		return "no output"
	}
	return ""
}

func gistOfSearch(v *turnWords, t *claude.ToolUse) string {
	if first := firstLine(t.Result); strings.HasPrefix(first, "Found ") || strings.HasPrefix(first, "No ") {
		return mrkdwn.Escape(plaintext.Clip(v.o.redact(lowerFirst(first)), 40))
	}
	return ""
}

func gistOfWriting(_ *turnWords, t *claude.ToolUse) string {
	content := gjson.GetBytes(t.Input, "content")
	if !content.Exists() {
		return ""
	}
	return plural(countLines(content.String()), "line", "lines")
}

// gistOfEdit counts the lines that a replacement adds and removes, without what both texts
// have in common at their ends.
func gistOfEdit(_ *turnWords, t *claude.ToolUse) string {
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

var pullNumber = regexp.MustCompile(`#[0-9]+`)

func gistOfPull(_ *turnWords, t *claude.ToolUse) string {
	return pullNumber.FindString(firstLine(t.Result))
}

func cardOfCommand(r *request, s *view.FieldSet) bool {
	command, ok := s.Text("command")
	if !ok {
		return false
	}
	r.verb, r.pre, r.command = "run", command, true
	r.why, _ = s.Text("description")
	if s.Flag("run_in_background") {
		r.facts = append(r.facts, "goes on in the background")
	}
	if s.Flag("dangerouslyDisableSandbox") {
		r.cautions = append(r.cautions, "It asks to run outside of the sandbox.")
	}
	return true
}

func cardOfReading(r *request, _ *view.FieldSet) bool {
	if r.verb != "read" { // a file of which the name alone is shown
		return false
	}
	r.pre, r.cautions = r.object, nil // that it is outside is among what is risky in it
	return true
}

func cardOfPosting(r *request, _ *view.FieldSet) bool {
	r.pre = r.object
	return r.verb == "post"
}

func cardOfWriting(r *request, s *view.FieldSet) bool {
	content, ok := s.Text("content")
	r.pre = content
	r.facts = append(r.facts, "the whole file: "+plural(len(splitLines(content)), "line", "lines"))
	return ok
}

// cardOfPull shows the text of a pull request: its headline has the title.
func cardOfPull(r *request, s *view.FieldSet) bool {
	body, ok := s.Text("body")
	_, titled := s.Text("title")
	r.verb, r.object, r.pre = "open", "a pull request", body
	return ok && titled
}

func cardOfMerge(r *request, s *view.FieldSet) bool {
	commit, ok1 := s.Text("head")
	method, ok2 := s.Text("method")
	r.verb, r.object, r.pre = "merge", "a pull request", method+" "+commit
	return ok1 && ok2
}

func cardOfEdit(r *request, s *view.FieldSet) bool {
	before, ok1 := s.Text("old_string")
	after, ok2 := s.Text("new_string")
	r.edit(before, after, s.Flag("replace_all"))
	return ok1 && ok2
}

func cardOfNotebook(r *request, s *view.FieldSet) (ok bool) {
	r.pre, ok = s.Text("new_source")
	return ok
}
