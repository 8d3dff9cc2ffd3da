package render

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/agent/policy"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// preMax is how much of an input a card shows; a longer one is shown by its
// beginning and end, and says how much lies between.
const (
	preMax  = 2800
	preHead = 1900
	preTail = 700
)

// request is what a tool call asks for, taken apart for people. Keys are matched
// exactly and the last of a repeated key counts, as in the CLI: what is shown is
// what runs.
type request struct {
	verb     string   // "run", "edit"
	object   string   // what the headline names: the tool or a path
	tool     string   // shown besides when the headline names something else
	pre      string   // what matters most, to be shown as it is
	why      string   // the model's own description
	facts    []string // short things to know, in our words
	rest     []field  // that are not shown apart
	cautions []string
}

// field is one key of an input.
type field struct {
	key string
	raw json.RawMessage
}

// fields returns the top level of an input in order, the last of repeated keys
// winning, or false when it is not an object.
func fields(input json.RawMessage) ([]field, bool) {
	d := json.NewDecoder(bytes.NewReader(input))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []field
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, false
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, false
		}
		out = slices.DeleteFunc(out, func(f field) bool { return f.key == key })
		out = append(out, field{key, raw})
	}
	return out, true
}

// fieldSet looks fields up and remembers which have been shown.
type fieldSet struct {
	all  []field
	used []string
}

func (s *fieldSet) raw(key string) json.RawMessage {
	for _, f := range s.all {
		if f.key == key {
			return f.raw
		}
	}
	return nil
}

// text returns a string field and marks it as shown; false when there is none.
func (s *fieldSet) text(key string) (string, bool) {
	var v *string
	if raw := s.raw(key); raw == nil || json.Unmarshal(raw, &v) != nil || v == nil {
		return "", false
	}
	s.used = append(s.used, key)
	return *v, true
}

// flag returns a boolean field and marks it as shown when it is one.
func (s *fieldSet) flag(key string) bool {
	var v *bool
	if raw := s.raw(key); raw == nil || json.Unmarshal(raw, &v) != nil || v == nil {
		return false
	}
	s.used = append(s.used, key)
	return *v
}

// rest lists the fields that were not shown.
func (s *fieldSet) rest() []field {
	var out []field
	for _, f := range s.all {
		if !slices.Contains(s.used, f.key) {
			out = append(out, f)
		}
	}
	return out
}

// line is the field on one line, as key: value, without secrets; what is left out
// of a long value is counted.
func (f field) line(o Options) string {
	value := o.redact(compact(f.raw)) // as a whole, before it is cut
	if n := runes(value); n > 120 {
		value = mrkdwn.Prefix(value, 100)
		value += " … " + count(n-runes(value)) + " more characters"
	}
	return o.redact(f.key) + ": " + value
}

// compact is JSON on one line.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return string(raw)
	}
	return b.String()
}

// indented is JSON for people. Escapes stay as they are, so that a value cannot
// look like another key.
func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

// describe takes an approval's input apart.
func describe(a store.Approval) request {
	r := request{verb: "use", object: a.ToolName}
	input := a.ToRun()
	all, ok := fields(input)
	if !ok {
		r.pre = string(input)
		r.cautions = append(r.cautions, "The input is not what this tool usually gets; it is shown as it came.")
		return r
	}
	s := &fieldSet{all: all}
	known := false // whether what matters is shown apart
	switch a.ToolName {
	case "Bash":
		if command, ok := s.text("command"); ok {
			known = true
			r.verb, r.pre = "run", command
			r.why, _ = s.text("description")
			if s.flag("run_in_background") {
				r.facts = append(r.facts, "goes on in the background")
			}
			if s.flag("dangerouslyDisableSandbox") {
				r.cautions = append(r.cautions, "It asks to run outside of the sandbox.")
			}
		}
	case "Edit":
		r.file(s, a, "file_path", "edit")
		before, ok1 := s.text("old_string")
		after, ok2 := s.text("new_string")
		if known = ok1 && ok2; known {
			r.edits(change{before, after, s.flag("replace_all")})
		}
	case "MultiEdit":
		r.file(s, a, "file_path", "edit")
		if changes, ok := s.changes(); ok {
			known = true
			r.edits(changes...)
		}
	case "Write":
		r.file(s, a, "file_path", "write")
		if content, ok := s.text("content"); ok {
			known = true
			r.pre = content
			r.facts = append(r.facts, "the whole file: "+plural(len(splitLines(content)), "line", "lines"))
		}
	case "Read":
		r.file(s, a, "file_path", "read")
		if known = r.verb == "read"; known {
			r.pre, r.cautions = r.object, nil // that it is outside is among what is risky in it
		}
	case policy.NetworkTool:
		known = r.host(s)
	case "NotebookEdit":
		r.file(s, a, "notebook_path", "edit")
		if source, ok := s.text("new_source"); ok {
			known = true
			r.pre = source
		}
	}
	if !known {
		r.pre, r.facts = indented(input), nil
		return r
	}
	r.rest = s.rest()
	return r
}

// file makes the headline name the file of a tool that reads or changes one.
func (r *request) file(s *fieldSet, a store.Approval, key, verb string) {
	p, ok := s.text(key)
	if !ok {
		return
	}
	r.verb, r.object, r.tool = verb, relative(p, a.Workspace), a.ToolName
	switch {
	case isPlan(p, a.Workspace):
		if r.verb += " its plan"; a.ToolName == "Write" {
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

// change is one replacement in a file.
type change struct {
	before, after string
	all           bool
}

// changes reads MultiEdit's list and marks it as shown, if all of it is understood.
func (s *fieldSet) changes() ([]change, bool) {
	var list []json.RawMessage
	if json.Unmarshal(s.raw("edits"), &list) != nil || len(list) == 0 {
		return nil, false
	}
	var out []change
	for _, raw := range list {
		f, ok := fields(raw)
		if !ok {
			return nil, false
		}
		e := &fieldSet{all: f}
		before, ok1 := e.text("old_string")
		after, ok2 := e.text("new_string")
		c := change{before, after, e.flag("replace_all")}
		if !ok1 || !ok2 || len(e.rest()) > 0 {
			return nil, false
		}
		out = append(out, c)
	}
	s.used = append(s.used, "edits")
	return out, true
}

// edits shows replacements as differences.
func (r *request) edits(changes ...change) {
	var b strings.Builder
	removed, added, everywhere := 0, 0, 0
	for i, c := range changes {
		diff, minus, plus := lineDiff(c.before, c.after)
		removed, added = removed+minus, added+plus
		if i > 0 {
			b.WriteByte('\n')
		}
		if len(changes) > 1 {
			b.WriteString("@@ " + count(i+1) + " of " + count(len(changes)) + " @@\n")
		}
		if c.all {
			everywhere++
		}
		switch {
		case diff != "":
			b.WriteString(diff)
		case c.before != c.after:
			b.WriteString("(only the line end at the very end changes)")
		default:
			b.WriteString("(nothing changes)")
		}
	}
	r.pre = b.String()
	r.facts = append(r.facts, plusMinus(added, removed))
	if everywhere > 0 {
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
