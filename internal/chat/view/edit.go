package view

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/plaintext"
	"deckhand/internal/report"
	"deckhand/internal/store/approvals"
)

// EditInput names the one input of that modal, its block and its action.
const EditInput = "input"

// FormField is a field of an input that whoever decides may change beside its text. Its input's
// block and action in the modal are EditInput, a colon and its key.
type FormField struct {
	key, Label string
	Kind       fieldKind
}

type fieldKind int

// The kinds of fields: a line, several texts, and a box to tick.
const (
	LineField fieldKind = iota
	listField           // of texts
	FlagField
)

// Name is the name of the field's input.
func (f FormField) Name() string { return EditInput + ":" + f.key }

// Value is what the field holds as the modal has it: a list with commas, a flag as yes or empty.
func (f FormField) Value(a approvals.Approval) string {
	s := FieldsOf(a.ToRun())
	switch raw := s.Raw(f.key); {
	case f.Kind == LineField:
		text, _ := s.Text(f.key)
		return text
	case f.Kind == listField:
		var list []string
		_ = json.Unmarshal(raw, &list) // another value is none
		return strings.Join(list, ", ")
	case raw == nil && a.Push != nil && a.Push.Pull != nil && a.Push.Pull.Draft, s.Flag(f.key):
		return "yes"
	}
	return ""
}

// sent is what somebody has made of it.
func (f FormField) sent(values Inputs) string {
	v := values[f.Name()][f.Name()]
	if f.Kind == FlagField {
		return strings.Repeat("yes", len(v.Chosen))
	}
	return f.shown(v.Value)
}

// shown is a value as a line has it.
func (FormField) shown(value string) string { return strings.Join(strings.Fields(value), " ") }

// whole reports whether a line shows all that the field holds, and what it holds.
func (f FormField) whole(a approvals.Approval) bool {
	var had, shown any
	if f.Kind == FlagField || json.Unmarshal(FieldsOf(a.ToRun()).Raw(f.key), &had) != nil || had == nil {
		return true
	}
	value := f.Value(a)
	_ = json.Unmarshal(f.encoded(f.shown(value)), &shown) // it is JSON
	return plaintext.Width(value) <= LineMost && reflect.DeepEqual(had, shown)
}

// encoded is a value in JSON.
func (f FormField) encoded(value string) []byte {
	switch f.Kind {
	case FlagField:
		return []byte(strconv.FormatBool(value != ""))
	case listField:
		list := [][]byte{}
		for one := range strings.SplitSeq(value, ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, encoded(one))
			}
		}
		return append(append([]byte("["), bytes.Join(list, []byte(","))...), ']')
	}
	return encoded(value)
}

// How many characters an input takes: Slack's own bound, and that of a line. Slack opens no form
// with more in it.
const (
	EditMost = 3000
	LineMost = 300
)

// FieldOf is a text field of an input; false when there is none.
func FieldOf(input json.RawMessage, key string) (string, bool) {
	return FieldsOf(input).Text(key)
}

// Editable is what a pending call's field holds that may be changed. Where the policy would
// have it changed, and it cannot be done here, why says so.
func Editable(a approvals.Approval, redact func(string) string) (text, why string) {
	field := Tools[a.ToolName].change
	if field == "" || a.Status != approvals.Pending || a.Kind != approvals.Tool || a.Terms.Fixed || a.Terms.Dangerous {
		return "", ""
	}
	if a.Push != nil && a.Push.Pull != nil && a.Push.Pull.Number > 0 {
		return "", "" // it is open, and has its words
	}
	text, ok := FieldOf(a.ToRun(), field)
	if !ok {
		return "", ""
	}
	if plaintext.Width(text) > EditMost {
		return "", "too long to be changed here (more than " + report.Count(EditMost) + " characters)"
	}
	all, whole := Changeable(a), true
	for _, f := range Tools[a.ToolName].Further {
		whole = whole && f.whole(a)
	}
	if shown, _ := plaintext.Reveal(all); !whole || redact(all) != all || shown != all || strings.Contains(all, "\r") {
		return "", "not to be changed here, since not all of it can be shown"
	}
	return text, ""
}

// WrongEdit says what is wrong with what somebody wrote into EditModal, by its input, whatever
// the request; nil if nothing is.
func WrongEdit(values Inputs) map[string]string {
	wrong := map[string]string{}
	for name := range values {
		text := strings.ReplaceAll(values[name][name].Value, "\r\n", "\n")
		if shown, _ := plaintext.Reveal(text); shown != text {
			wrong[name] = "It has characters that people cannot see, or that look like others. Write it without them."
		}
	}
	if strings.TrimSpace(values[EditInput][EditInput].Value) == "" {
		wrong[EditInput] = "Nothing is left to run. Deny the request instead, and say why."
	}
	if len(wrong) == 0 {
		return nil
	}
	return wrong
}

// ParseEdit is a call's input with what somebody wrote into EditModal: nothing else of it
// changes. What cannot be run so gives an [*AnswerError].
func ParseEdit(a approvals.Approval, values Inputs) (json.RawMessage, error) {
	t := Tools[a.ToolName]
	before, ok := FieldOf(a.ToRun(), t.change)
	if !ok {
		return nil, &AnswerError{"This request cannot be changed."}
	}
	text := strings.ReplaceAll(values[EditInput][EditInput].Value, "\r\n", "\n")
	if end := before[len(strings.TrimRight(before, "\n")):]; !strings.HasSuffix(text, "\n") {
		text += end // a line's end that a form does not show is not taken away by it
	}
	for _, wrong := range WrongEdit(values) {
		return nil, &AnswerError{wrong}
	}
	set := map[string][]byte{}
	if text != before {
		set[t.change] = encoded(text)
	}
	all, _ := Fields(a.ToRun())
	for _, f := range t.Further {
		switch now := f.sent(values); {
		case now == f.Value(a):
			continue
		case now == "" && f.Kind == LineField:
			return nil, &AnswerError{f.Label + " is empty."}
		default:
			set[f.key] = f.encoded(now)
		}
		if !slices.ContainsFunc(all, func(had Field) bool { return had.Key == f.key }) {
			all = append(all, Field{Key: f.key})
		}
	}
	if len(set) == 0 {
		return nil, &AnswerError{"Nothing was changed. Approve the request as it is, on its card."}
	}
	var out bytes.Buffer
	for i, f := range all {
		value := []byte(f.Raw)
		if set[f.Key] != nil {
			value = set[f.Key]
		}
		out.WriteByte("{,"[min(i, 1)])
		out.Write(encoded(f.Key))
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// encoded is a text in JSON, with < and > as they are.
func encoded(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // a text
		panic(err)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Changeable is what of a call's input people may change.
func Changeable(a approvals.Approval) string {
	t := Tools[a.ToolName]
	text, _ := FieldOf(a.ToRun(), t.change)
	for _, f := range slices.Backward(t.Further) {
		text = f.Label + ": " + f.Value(a) + "\n" + text
	}
	return text
}
