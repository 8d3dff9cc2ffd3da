package render

import (
	"bytes"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// preMax is how much of an input a card shows; a longer one is shown by its
// beginning and end, and says how much lies between.
const preMax = 2800

// request is what a tool call asks for, taken apart for people. Keys are matched
// exactly and the last of a repeated key counts, as in the CLI: what is shown is
// what runs.
type request struct {
	verb     string   // "run", "edit"
	object   string   // what the headline names: the tool or a path
	command  bool     // it runs pre in a shell
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
	k := tools[a.ToolName]
	if k.verb != "" {
		r.file(s, a, k)
	}
	if k.card == nil || !k.card(&r, s) {
		r.pre, r.facts = indented(input), nil
		return r
	}
	r.rest = s.rest()
	return r
}

// file makes the headline name the file of a tool that reads or changes one.
func (r *request) file(s *fieldSet, a store.Approval, k tool) {
	p, ok := s.text(k.subject)
	if !ok {
		return
	}
	r.verb, r.object = k.verb, relative(p, a.Workspace)
	switch {
	case isPlan(p, a.Workspace):
		if r.verb += " its plan"; k.verb == "write" {
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
