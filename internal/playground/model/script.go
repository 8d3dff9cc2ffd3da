package model

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// script is one file of scripts/: what it answers to, and the steps.
type script struct {
	file  string
	match []*regexp.Regexp
	pace  int
	steps []scriptStep
}

// scriptStep is one model call of a script.
type scriptStep struct {
	when     *condition
	thinking string
	say      string
	tools    []scriptTool
	pace     int
	label    string
	next     string
}

type scriptTool struct {
	name  string
	input any
}

// condition looks at the results of the tool calls just before.
type condition struct {
	denied   *bool
	failed   *bool
	contains string
	lacks    string
	matches  *regexp.Regexp
	planMode *bool
}

// The file format, as goccy/go-yaml reads it. Kept apart from the above so
// that what runs is always compiled and valid.
type (
	scriptFile struct {
		About string     `yaml:"about"`
		Match matchFile  `yaml:"match"`
		Pace  int        `yaml:"pace"`
		Steps []stepFile `yaml:"steps"`
	}
	matchFile struct {
		Regexp   []string `yaml:"regexp"`
		Contains []string `yaml:"contains"`
	}
	stepFile struct {
		Label    string         `yaml:"label"`
		When     *whenFile      `yaml:"when"`
		Thinking string         `yaml:"thinking"`
		Say      string         `yaml:"say"`
		Tool     string         `yaml:"tool"`
		Input    map[string]any `yaml:"input"`
		Tools    []toolFile     `yaml:"tools"`
		Pace     int            `yaml:"pace"`
		Next     string         `yaml:"next"`
	}
	toolFile struct {
		Name  string         `yaml:"name"`
		Input map[string]any `yaml:"input"`
	}
	whenFile struct {
		Denied             *bool  `yaml:"denied"`
		Failed             *bool  `yaml:"failed"`
		ToolResultContains string `yaml:"tool_result_contains"`
		ToolResultLacks    string `yaml:"tool_result_lacks"`
		ToolResultMatches  string `yaml:"tool_result_matches"`
		PlanMode           *bool  `yaml:"plan_mode"`
	}
)

// loadScripts reads every *.yaml of fsys in file-name order.
func loadScripts(fsys fs.FS) ([]script, error) {
	names, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list scripts: %w", err)
	}
	slices.Sort(names)
	var out []script
	for _, name := range names {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, fmt.Errorf("read script %s: %w", name, err)
		}
		sc, err := parseScript(path.Base(name), data)
		if err != nil {
			return nil, fmt.Errorf("read script %s: %w", name, err)
		}
		out = append(out, sc)
	}
	return out, nil
}

func parseScript(name string, data []byte) (script, error) {
	var f scriptFile
	if err := yaml.UnmarshalWithOptions(data, &f, yaml.Strict()); err != nil {
		return script{}, fmt.Errorf("decode: %w", err)
	}
	sc := script{file: name, pace: f.Pace}
	for _, m := range f.Match.Regexp {
		re, err := regexp.Compile(m)
		if err != nil {
			return script{}, fmt.Errorf("match: %w", err)
		}
		sc.match = append(sc.match, re)
	}
	for _, m := range f.Match.Contains {
		sc.match = append(sc.match, regexp.MustCompile("(?i)"+regexp.QuoteMeta(m)))
	}
	if len(sc.match) == 0 {
		return script{}, errors.New("match: name at least one regexp or contains")
	}
	if len(f.Steps) == 0 {
		return script{}, errors.New("steps: a script needs at least one")
	}
	for i, s := range f.Steps {
		st, err := compileStep(s)
		if err != nil {
			return script{}, fmt.Errorf("step %d: %w", i+1, err)
		}
		sc.steps = append(sc.steps, st)
	}
	for i, s := range sc.steps {
		if s.next != "" && sc.find(s.next) < 0 {
			return script{}, fmt.Errorf("step %d: next: no step has the label %q", i+1, s.next)
		}
	}
	return sc, nil
}

func compileStep(s stepFile) (scriptStep, error) {
	st := scriptStep{thinking: s.Thinking, say: strings.TrimRight(s.Say, "\n"), pace: s.Pace, label: s.Label, next: s.Next}
	if s.Tool != "" {
		st.tools = append(st.tools, scriptTool{s.Tool, s.Input})
	} else if s.Input != nil {
		return st, errors.New("input: there is no tool to give it to")
	}
	for _, t := range s.Tools {
		if t.Name == "" {
			return st, errors.New("tools: a tool needs a name")
		}
		st.tools = append(st.tools, scriptTool{t.Name, t.Input})
	}
	if st.say == "" && st.thinking == "" && len(st.tools) == 0 {
		return st, errors.New("nothing to say and no tool to call")
	}
	if w := s.When; w != nil {
		st.when = &condition{denied: w.Denied, failed: w.Failed, contains: w.ToolResultContains, lacks: w.ToolResultLacks, planMode: w.PlanMode}
		if w.ToolResultMatches != "" {
			re, err := regexp.Compile(w.ToolResultMatches)
			if err != nil {
				return st, fmt.Errorf("when: %w", err)
			}
			st.when.matches = re
		}
	}
	return st, nil
}

func (sc *script) find(label string) int {
	return slices.IndexFunc(sc.steps, func(s scriptStep) bool { return s.label == label })
}

// matches returns the groups of the first expression that fits text.
func (sc *script) matches(text string) []string {
	for _, re := range sc.match {
		if g := re.FindStringSubmatch(text); g != nil {
			return g
		}
	}
	return nil
}

// fits reports whether the condition holds for the results of a round.
func (c *condition) fits(results []result, planMode bool) bool {
	if c == nil {
		return true
	}
	denied, failed := false, false
	var all strings.Builder
	for _, r := range results {
		denied = denied || r.denied()
		failed = failed || r.IsError && !r.denied()
		all.WriteString(r.Text)
		all.WriteByte('\n')
	}
	text := all.String()
	return (c.denied == nil || *c.denied == denied) &&
		(c.failed == nil || *c.failed == failed) &&
		(c.contains == "" || strings.Contains(text, c.contains)) &&
		(c.lacks == "" || !strings.Contains(text, c.lacks)) &&
		(c.planMode == nil || *c.planMode == planMode) &&
		(c.matches == nil || c.matches.MatchString(text))
}

// at finds the step for a conversation: it walks the steps once per round of
// tool calls, skipping those whose condition does not fit what had come back
// by then, so that the same conversation always leads to the same step. ok is
// false when the script has no step left.
func (sc *script) at(c *conversation) (scriptStep, bool) {
	cursor := 0
	var results []result
	for k := 0; ; k++ {
		planning := c.PlanFile != ""
		if k < len(c.Rounds) {
			planning = c.Rounds[k].planFile != ""
		}
		for cursor < len(sc.steps) && !sc.steps[cursor].when.fits(results, planning) {
			cursor++
		}
		if cursor >= len(sc.steps) {
			return scriptStep{}, false
		}
		st := sc.steps[cursor]
		if k == len(c.Rounds) {
			return st, true
		}
		results = c.Rounds[k].Results
		if st.next != "" {
			cursor = sc.find(st.next)
		} else {
			cursor++
		}
	}
}

// render fills the placeholders of a script's step.
func (st scriptStep) render(c *conversation, groups []string, pace int) (step, error) {
	vars := map[string]string{"cwd": c.CWD, "plan_file": c.PlanFile, "message": c.Last}
	for i, g := range groups {
		vars[fmt.Sprintf("match.%d", i)] = g
	}
	var texts []string
	for _, r := range c.lastResults() {
		texts = append(texts, r.Text)
		if r.denied() {
			vars["denial"] = r.reason()
		}
	}
	vars["result"] = strings.Join(texts, "\n")
	fill := func(s string) string {
		return placeholder.ReplaceAllStringFunc(s, func(m string) string {
			return vars[placeholder.FindStringSubmatch(m)[1]]
		})
	}
	out := step{Thinking: fill(st.thinking), Say: fill(st.say), Pace: pace}
	for _, t := range st.tools {
		input, err := plainJSON(fillIn(t.input, fill))
		if err != nil {
			return step{}, fmt.Errorf("encode input of %s: %w", t.name, err)
		}
		if string(input) == "null" {
			input = []byte("{}")
		}
		out.Tools = append(out.Tools, toolCall{Name: t.name, Input: input})
	}
	return out, nil
}

var placeholder = regexp.MustCompile(`\{\{ *([a-z_]+(?:\.[0-9]+)?) *\}\}`)

// place fills {{cwd}} and {{plan_file}} in the tool inputs of directives;
// other braces are left as they are.
func (st *step) place(c *conversation) step {
	calls := make([]toolCall, len(st.Tools))
	for i, t := range st.Tools {
		t.Input = placeholder.ReplaceAllFunc(t.Input, func(m []byte) []byte {
			switch name := placeholder.FindSubmatch(m)[1]; string(name) {
			case "cwd":
				return inString(c.CWD)
			case "plan_file":
				return inString(c.PlanFile)
			default:
				return m
			}
		})
		calls[i] = t
	}
	out := *st
	out.Tools = calls
	return out
}

// inString is s as it stands between the quotes of a JSON string.
func inString(s string) []byte {
	b, err := plainJSON(s)
	if err != nil {
		panic(err) // strings always encode
	}
	return b[1 : len(b)-1]
}

// fillIn fills the placeholders in every string of a YAML value.
func fillIn(v any, fill func(string) string) any {
	switch v := v.(type) {
	case string:
		return fill(v)
	case map[string]any:
		if v == nil {
			return map[string]any{}
		}
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = fillIn(e, fill)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = fillIn(e, fill)
		}
		return out
	default:
		return v
	}
}

// reason is what a person gave as reason for a denial, in one line.
func (r result) reason() string {
	line, _, _ := strings.Cut(strings.TrimSpace(r.Text), "\n")
	line = strings.TrimPrefix(line, "The person denied this, and said: ") // as Deckhand tells the model
	return strings.TrimRight(line, " .")
}
