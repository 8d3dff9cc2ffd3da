package model

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// sideCall answers the calls that the CLI makes for itself (titles, summaries,
// probes, web searches), which no script should see. ok is false for a
// person's prompt.
func sideCall(r *request, c *conversation) (st step, ok bool) {
	system := r.System.text()
	switch {
	case r.probe():
		return step{Say: "#"}, true
	case r.schema() != nil:
		return step{Say: jsonText(r.schema().example(c.Last))}, true
	case strings.Contains(c.Last, "Your task is to create a detailed summary"):
		return step{Say: "<analysis>\nThe conversation was short.\n</analysis>\n\n<summary>\n" + summaryOf(r) + "</summary>"}, true
	case strings.Contains(system, "isNewTopic"):
		return step{Say: jsonText(map[string]any{"isNewTopic": true, "title": titleOf(c.Last)})}, true
	case len(r.Tools) == 1 && r.Tools[0].Name == "web_search":
		return step{
			Say:   "I searched, but the playground has no way out: there are no results.",
			Usage: json.RawMessage(`{"server_tool_use":{"web_search_requests":1}}`),
		}, true
	case len(r.Tools) == 0 && strings.Contains(system, "title"):
		return step{Say: titleOf(c.Last)}, true
	}
	return step{}, false
}

// probe reports whether the call asks for one token only: the CLI wants to
// know whether the model answers, or how much of a quota is left.
func (r *request) probe() bool { return r.MaxTokens == 1 }

// schema is a JSON schema, as far as an answer to it needs.
type schema struct {
	Type       string             `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Enum       []any              `json:"enum"`
}

// schema is the schema that the answer is asked for in, nil without one.
func (r *request) schema() *schema {
	raw := r.Format
	if r.Output != nil && len(r.Output.Format) > 0 {
		raw = r.Output.Format
	}
	var f struct {
		Type   string  `json:"type"`
		Schema *schema `json:"schema"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &f) != nil || f.Type != "json_schema" {
		return nil
	}
	return f.Schema
}

// example makes a small value that fits the schema; texts are made of prompt.
func (s *schema) example(prompt string) any {
	if s == nil {
		return nil
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	switch s.Type {
	case "object":
		out := map[string]any{}
		for name, p := range s.Properties {
			out[name] = p.example(prompt)
		}
		return out
	case "array":
		return []any{}
	case "string":
		return titleOf(prompt)
	case "boolean":
		return false
	case "number", "integer":
		return 0
	default:
		return nil
	}
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only values made above come here
	}
	return string(b)
}

var (
	tags      = regexp.MustCompile(`</?[a-z_-]+>`)
	titleWord = regexp.MustCompile(`[\pL\pN][\pL\pN_./#'-]*`)
)

// titleOf names a conversation by the first words of its first line.
func titleOf(text string) string {
	text = strings.TrimSpace(tags.ReplaceAllString(text, "\n"))
	line, _, _ := strings.Cut(text, "\n")
	words := titleWord.FindAllString(spoken(strings.TrimSpace(line)), 5)
	if len(words) == 0 {
		return "Conversation"
	}
	head, rest := cutRunes(strings.Join(words, " "), 1)
	return strings.ToUpper(head) + rest
}

// summaryOf lists what people asked, for a compaction. Directives are named
// only: the summary must not make the model follow them again.
func summaryOf(r *request) string {
	var out strings.Builder
	out.WriteString("1. Primary request and intent:\n")
	for _, m := range slices.DeleteFunc(slices.Clone(r.Messages), func(m message) bool { return m.Role != "user" }) {
		t := userText(m)
		if t == "" || strings.Contains(t, "create a detailed summary") {
			continue
		}
		if hasDirectives(t) {
			t = "a list of directives"
		}
		line, _, _ := strings.Cut(t, "\n")
		out.WriteString("   - " + line + "\n")
	}
	return out.String()
}
