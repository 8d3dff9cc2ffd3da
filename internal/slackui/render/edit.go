package render

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
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

// editMost is how many characters Slack takes in an input.
const editMost = 3000

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
	text, ok := fieldOf(a.ToRun(), field)
	if !ok {
		return "", ""
	}
	switch shown, _ := mrkdwn.Reveal(text); {
	case mrkdwn.Width(text) > editMost:
		return "", "too long to be changed here (more than " + count(editMost) + " characters)"
	case c.o.redact(text) != text || shown != text || strings.Contains(text, "\r"):
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
	if !tools[a.ToolName].file {
		label, hint = "What runs instead", "This runs instead of the request."
	}
	if a.Terms.Quorum > 1 || !a.Terms.RequesterMay {
		hint += " Earlier approvals do not count for it: others must approve your text."
	}
	c.add(slack.NewInputBlock(EditInput, plain(label, 2000), plain(hint+" The policy decides about it as about a new request, and the card shows what you changed.", 2000), input))
	v.Blocks.BlockSet = c.blocks
	return v, true
}

// WrongEdit says what is wrong with what somebody wrote into EditModal, whatever the request;
// empty if nothing is.
func WrongEdit(values map[string]map[string]slack.BlockAction) string {
	text := strings.ReplaceAll(values[EditInput][EditInput].Value, "\r\n", "\n")
	if strings.TrimSpace(text) == "" {
		return "Nothing is left to run. Deny the request instead, and say why."
	}
	if shown, _ := mrkdwn.Reveal(text); shown != text {
		return "It has characters that people cannot see, or that look like others. Write it without them."
	}
	return ""
}

// ParseEdit is a call's input with what somebody wrote into EditModal: nothing else of it
// changes. What cannot be run so gives an [*AnswerError].
func ParseEdit(a store.Approval, values map[string]map[string]slack.BlockAction) (json.RawMessage, error) {
	field := tools[a.ToolName].change
	before, ok := fieldOf(a.ToRun(), field)
	if !ok {
		return nil, &AnswerError{"This request cannot be changed."}
	}
	text := strings.ReplaceAll(values[EditInput][EditInput].Value, "\r\n", "\n")
	if end := before[len(strings.TrimRight(before, "\n")):]; !strings.HasSuffix(text, "\n") {
		text += end // a line's end that a form does not show is not taken away by it
	}
	if wrong := WrongEdit(values); wrong != "" {
		return nil, &AnswerError{wrong}
	}
	if text == before {
		return nil, &AnswerError{"Nothing was changed. Approve the request as it is, on its card."}
	}
	all, _ := fields(a.ToRun())
	var out bytes.Buffer
	for i, f := range all {
		value := []byte(f.raw)
		if f.key == field {
			value = encoded(text)
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

// changed shows how people have changed what was asked for: by whom, the difference in
// about most units, and the hash of what runs.
func (c *card) changed(most int) {
	a := c.a
	if a.Edited.Times == 0 {
		return
	}
	before, _ := fieldOf(a.Input, tools[a.ToolName].change)
	after, _ := fieldOf(a.Edited.Input, tools[a.ToolName].change)
	diff, minus, plus := lineDiff(before, after)
	c.context("*Changed by* " + c.person(a.Edited.By) + " (" + plusMinus(plus, minus) + "). This is what is to be decided about now; approvals from before do not count. SHA-256 of the input: " +
		mrkdwn.Code(hex.EncodeToString(a.Edited.SHA256[:])))
	if diff = mrkdwn.Visible(c.o.redact(diff)); mrkdwn.Width(diff) > most {
		diff = mrkdwn.Prefix(diff, most) + "\n… (*View all* shows what runs whole)"
	}
	c.add(preBlock(c.id(), diff))
}
