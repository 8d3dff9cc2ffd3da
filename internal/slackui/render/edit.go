package render

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// CallbackEdit is the callback id of the modal that changes what a call is about to do,
// and allows it so. Its private metadata is the approval's Ref.
const CallbackEdit = "edit_input"

// EditInput names the one input of that modal, its block and its action.
const EditInput = "input"

// formField is a field of an input that whoever decides may change beside its text. Its input's
// block and action in the modal are EditInput, a colon and its key.
type formField struct {
	key, label string
	kind       fieldKind
}

type fieldKind int

const (
	lineField fieldKind = iota
	listField           // of texts
	flagField
)

func (f formField) name() string { return EditInput + ":" + f.key }

// value is what the field holds as the modal has it: a list with commas, a flag as yes or empty.
func (f formField) value(a store.Approval) string {
	all, _ := fields(a.ToRun())
	s := fieldSet{all: all}
	switch raw := s.raw(f.key); {
	case f.kind == lineField:
		text, _ := s.text(f.key)
		return text
	case f.kind == listField:
		var list []string
		_ = json.Unmarshal(raw, &list) // another value is none
		return strings.Join(list, ", ")
	case raw == nil && a.Push != nil && a.Push.Pull != nil && a.Push.Pull.Draft, s.flag(f.key):
		return "yes"
	}
	return ""
}

// sent is what somebody has made of it.
func (f formField) sent(values map[string]map[string]slack.BlockAction) string {
	v := values[f.name()][f.name()]
	if f.kind == flagField {
		return strings.Repeat("yes", len(v.SelectedOptions))
	}
	return f.shown(v.Value)
}

// shown is a value as a line has it.
func (formField) shown(value string) string { return strings.Join(strings.Fields(value), " ") }

// whole reports whether a line shows all that the field holds, and what it holds.
func (f formField) whole(a store.Approval) bool {
	all, _ := fields(a.ToRun())
	s := fieldSet{all: all}
	var had, shown any
	if raw := s.raw(f.key); f.kind == flagField || raw == nil || json.Unmarshal(raw, &had) != nil || had == nil {
		return true
	}
	value := f.value(a)
	_ = json.Unmarshal(f.encoded(f.shown(value)), &shown) // it is JSON
	return mrkdwn.Width(value) <= lineMost && reflect.DeepEqual(had, shown)
}

// encoded is a value in JSON.
func (f formField) encoded(value string) []byte {
	switch f.kind {
	case flagField:
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

// input is the field's place in the modal.
func (f formField) input(value string) slack.Block {
	var element slack.BlockElement
	if f.kind == flagField {
		yes := slack.NewOptionBlockObject("yes", plain(f.label, optionMax), nil)
		box := slack.NewCheckboxGroupsBlockElement(f.name(), yes)
		if value != "" {
			box.InitialOptions = []*slack.OptionBlockObject{yes}
		}
		element = box
	} else {
		line := slack.NewPlainTextInputBlockElement(nil, f.name())
		line.MaxLength, line.InitialValue = lineMost, value
		element = line
	}
	b := slack.NewInputBlock(f.name(), plain(f.label, 2000), nil, element)
	b.Optional = f.kind != lineField
	return b
}

// How many characters an input takes: Slack's own bound, and that of a line. Slack opens no form
// with more in it.
const (
	editMost = 3000
	lineMost = 300
)

// Ref names an approval and its input as it stands: what was shown of it before somebody
// changed it decides nothing. It is the value of the buttons that allow.
func Ref(a store.Approval) string {
	if a.Edited.Times == 0 {
		return a.ID
	}
	return a.ID + "." + strconv.Itoa(a.Edited.Times)
}

// ParseRef reads a Ref: the approval's id, and how often its input had been changed.
func ParseRef(ref string) (id string, seen int) {
	id, times, ok := strings.Cut(ref, ".")
	if !ok {
		return id, 0
	}
	seen, err := strconv.Atoi(times)
	if err != nil || seen < 0 {
		return id, -1 // no approval's
	}
	return id, seen
}

// fieldOf is a text field of an input; false when there is none.
func fieldOf(input json.RawMessage, key string) (string, bool) {
	all, ok := fields(input)
	if !ok {
		return "", false
	}
	s := fieldSet{all: all}
	return s.text(key)
}

// editable is what a pending call's field holds that may be changed. Where the policy would
// have it changed, and it cannot be done here, why says so.
func (c *card) editable() (text, why string) {
	a := c.a
	field := tools[a.ToolName].change
	if field == "" || !c.pending() || a.Kind != store.ApprovalTool || a.Terms.Fixed || a.Terms.Dangerous {
		return "", ""
	}
	if a.Push != nil && a.Push.Pull != nil && a.Push.Pull.Number > 0 {
		return "", "" // it is open, and has its words
	}
	text, ok := fieldOf(a.ToRun(), field)
	if !ok {
		return "", ""
	}
	if mrkdwn.Width(text) > editMost {
		return "", "too long to be changed here (more than " + count(editMost) + " characters)"
	}
	all, whole := changeable(a), true
	for _, f := range tools[a.ToolName].further {
		whole = whole && f.whole(a)
	}
	if shown, _ := mrkdwn.Reveal(all); !whole || c.o.redact(all) != all || shown != all || strings.Contains(all, "\r") {
		return "", "not to be changed here, since not all of it can be shown"
	}
	return text, ""
}

// EditModal is the modal in which somebody changes what a call is about to do. ok is false
// if it may not be changed, or cannot be.
func EditModal(a store.Approval, o Options) (v slack.ModalViewRequest, ok bool) {
	c := card{a: a, o: o}
	text, _ := c.editable()
	if text == "" {
		return v, false
	}
	v = modal("Change and approve", CallbackEdit, Ref(a))
	v.Submit = plain("Approve this", modalTitle)
	c.asked(600)
	input := slack.NewPlainTextInputBlockElement(nil, EditInput)
	input.Multiline, input.MaxLength, input.InitialValue = true, editMost, text
	label, hint := "What Deckhand writes instead", "The file gets this instead of the request."
	switch t := tools[a.ToolName]; {
	case len(t.further) > 0:
		label, hint = "Text", "The pull request gets this instead."
	case !t.file:
		label, hint = "What runs instead", "This runs instead of the request."
	}
	for _, f := range tools[a.ToolName].further {
		c.add(f.input(f.value(a)))
	}
	if a.Terms.Quorum > 1 || !a.Terms.RequesterMay {
		hint += " Earlier approvals do not count for it: others must approve your text."
	}
	c.add(slack.NewInputBlock(EditInput, plain(label, 2000), plain(hint+" The policy decides about it as about a new request, and the card shows what you changed.", 2000), input))
	v.Blocks.BlockSet = c.blocks
	return v, true
}

// WrongEdit says what is wrong with what somebody wrote into EditModal, by its input, whatever
// the request; nil if nothing is.
func WrongEdit(values map[string]map[string]slack.BlockAction) map[string]string {
	wrong := map[string]string{}
	for name := range values {
		text := strings.ReplaceAll(values[name][name].Value, "\r\n", "\n")
		if shown, _ := mrkdwn.Reveal(text); shown != text {
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
func ParseEdit(a store.Approval, values map[string]map[string]slack.BlockAction) (json.RawMessage, error) {
	t := tools[a.ToolName]
	before, ok := fieldOf(a.ToRun(), t.change)
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
	all, _ := fields(a.ToRun())
	for _, f := range t.further {
		switch now := f.sent(values); {
		case now == f.value(a):
			continue
		case now == "" && f.kind == lineField:
			return nil, &AnswerError{f.label + " is empty."}
		default:
			set[f.key] = f.encoded(now)
		}
		if !slices.ContainsFunc(all, func(had field) bool { return had.key == f.key }) {
			all = append(all, field{key: f.key})
		}
	}
	if len(set) == 0 {
		return nil, &AnswerError{"Nothing was changed. Approve the request as it is, on its card."}
	}
	var out bytes.Buffer
	for i, f := range all {
		value := []byte(f.raw)
		if set[f.key] != nil {
			value = set[f.key]
		}
		out.WriteString(oneOrMany(min(i+1, 2), "{", ","))
		out.Write(encoded(f.key))
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

// changeable is what of a call's input people may change.
func changeable(a store.Approval) string {
	t := tools[a.ToolName]
	text, _ := fieldOf(a.ToRun(), t.change)
	for _, f := range slices.Backward(t.further) {
		text = f.label + ": " + f.value(a) + "\n" + text
	}
	return text
}

// changed shows how people have changed what was asked for: by whom, the difference in
// about most units, and the hash of what runs.
func (c *card) changed(most int) {
	a := c.a
	if a.Edited.Times == 0 {
		return
	}
	asked := a
	asked.Edited = store.Edited{}
	diff, minus, plus := lineDiff(changeable(asked), changeable(a))
	c.context("*Changed by* " + c.person(a.Edited.By) + " (" + plusMinus(plus, minus) + "). This is what is to be decided about now; approvals from before do not count. SHA-256 of the input: " +
		mrkdwn.Code(hex.EncodeToString(a.Edited.SHA256[:])))
	if diff = mrkdwn.Visible(c.o.redact(diff)); mrkdwn.Width(diff) > most {
		diff = mrkdwn.Prefix(diff, most) + "\n… (*View all* shows what runs whole)"
	}
	c.add(preBlock(c.id(), diff))
}
