package render

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"strings"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/store/approvals"
)

// preMax is how much of an input a card shows; a longer one is shown by its
// beginning and end, and says how much lies between.
const preMax = 2800

// request is what a tool call asks for, taken apart for people. Keys are matched
// exactly and the last of a repeated key counts, as in the CLI: what is shown is
// what runs.
type request struct {
	verb     string       // "run", "edit"
	object   string       // what the headline names: the tool or a path
	command  bool         // it runs pre in a shell
	pre      string       // what matters most, to be shown as it is
	why      string       // the model's own description
	facts    []string     // short things to know, in our words
	rest     []view.Field // that are not shown apart
	cautions []string
}

// fieldLine is the field on one line, as key: value, without secrets; what is left out
// of a long value is counted.
func fieldLine(f view.Field, o Options) string {
	value := o.redact(compact(f.Raw)) // as a whole, before it is cut
	if n := runes(value); n > 120 {
		value = plaintext.Prefix(value, 100)
		value += " … " + count(n-runes(value)) + " more characters"
	}
	return o.redact(f.Key) + ": " + value
}

// compact is JSON on one line.
func compact(raw json.RawMessage) string { return formed(raw, json.Compact) }

// indented is JSON for people. Escapes stay as they are, so that a value cannot
// look like another key.
func indented(raw json.RawMessage) string {
	return formed(raw, func(b *bytes.Buffer, raw []byte) error { return json.Indent(b, raw, "", "  ") })
}

func formed(raw json.RawMessage, write func(*bytes.Buffer, []byte) error) string {
	var b bytes.Buffer
	if err := write(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

// describe takes an approval's input apart.
func describe(a approvals.Approval) request {
	r := request{verb: "use", object: a.ToolName}
	input := a.ToRun()
	all, ok := view.Fields(input)
	if !ok {
		r.pre = string(input)
		r.cautions = append(r.cautions, "The input is not what this tool usually gets; it is shown as it came.")
		return r
	}
	s := &view.FieldSet{All: all}
	k := view.Tools[a.ToolName]
	if k.Verb != "" {
		r.file(s, a, k)
	}
	if shown := inputCards[a.ToolName]; shown == nil || !shown(&r, s) {
		r.pre, r.facts = indented(input), nil
		return r
	}
	r.rest = s.Rest()
	return r
}

// file makes the headline name the file of a tool that reads or changes one.
func (r *request) file(s *view.FieldSet, a approvals.Approval, k view.Tool) {
	p, ok := s.Text(k.Subject)
	if !ok {
		return
	}
	r.verb, r.object = k.Verb, relative(p, a.Workspace)
	switch {
	case isPlan(p, a.Workspace):
		if r.verb += " its plan"; k.Verb == "write" {
			r.verb += " to"
		}
		r.cautions = append(r.cautions, "The file is outside the workspace, where plans are kept: *View all* shows its path.")
	case outside(p, a.Workspace):
		r.cautions = append(r.cautions, "The file is outside the workspace.")
	}
}

// isPlan reports whether a path is where the CLI has the model write its plan: in a folder
// for plans outside of the workspace. Whose folder it is, the path alone does not tell.
func isPlan(p, workspace string) bool { return outside(p, workspace) && planFile.MatchString(p) }

var planFile = regexp.MustCompile(`/\.claude/plans/[^/]+\.md$`)

// edit shows a replacement as a difference.
func (r *request) edit(before, after string, everywhere bool) {
	diff, removed, added := lineDiff(before, after)
	switch {
	case diff != "":
	case before != after:
		diff = "(only the line end at the very end changes)"
	default:
		diff = "(nothing changes)"
	}
	r.pre, r.facts = diff, append(r.facts, plusMinus(added, removed))
	if everywhere {
		r.facts = append(r.facts, "replaces every occurrence")
	}
}

func plusMinus(added, removed int) string { return "+" + count(added) + " −" + count(removed) }

// relative shows a path as seen from the workspace, when it is inside, and a plan by its
// name alone, since the home's path says nothing to people.
func relative(p, workspace string) string {
	if isPlan(p, workspace) {
		return path.Base(p)
	}
	if workspace == "" || outside(p, workspace) || !path.IsAbs(p) {
		return p
	}
	if rel := strings.TrimPrefix(path.Clean(p), path.Clean(workspace)); rel != "" {
		return strings.TrimPrefix(rel, "/")
	}
	return "."
}

// outside reports whether a path leads out of the workspace, as far as its name tells.
func outside(p, workspace string) bool {
	if workspace == "" || p == "" {
		return false
	}
	workspace = path.Clean(workspace)
	if !path.IsAbs(p) {
		p = path.Join(workspace, p)
	}
	p = path.Clean(p)
	return p != workspace && workspace != "/" && !strings.HasPrefix(p, workspace+"/")
}
