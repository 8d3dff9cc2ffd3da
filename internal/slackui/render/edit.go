package render

import (
	"encoding/hex"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// fieldInput is the field's place in the modal.
func fieldInput(f view.FormField, value string) slack.Block {
	var element slack.BlockElement
	if f.Kind == view.FlagField {
		yes := slack.NewOptionBlockObject("yes", plain(f.Label, optionMax), nil)
		box := slack.NewCheckboxGroupsBlockElement(f.Name(), yes)
		if value != "" {
			box.InitialOptions = []*slack.OptionBlockObject{yes}
		}
		element = box
	} else {
		line := slack.NewPlainTextInputBlockElement(nil, f.Name())
		line.MaxLength, line.InitialValue = view.LineMost, value
		element = line
	}
	b := slack.NewInputBlock(f.Name(), plain(f.Label, 2000), nil, element)
	b.Optional = f.Kind != view.LineField
	return b
}

// EditModal is the modal in which somebody changes what a call is about to do. ok is false
// if it may not be changed, or cannot be.
func EditModal(a approvals.Approval, o Options) (v slack.ModalViewRequest, ok bool) {
	c := cardOf(a, o)
	text, _ := view.Editable(a, o.redact)
	if text == "" {
		return v, false
	}
	v = modal("Change and approve", "Approve this", view.CallbackEdit, view.Ref(a))
	c.asked(600)
	input := longText(view.EditInput, view.EditMost)
	input.InitialValue = text
	label, hint := "What Deckhand writes instead", "The file gets this instead of the request."
	switch t := view.Tools[a.ToolName]; {
	case len(t.Further) > 0:
		label, hint = "Text", "The pull request gets this instead."
	case !t.File:
		label, hint = "What runs instead", "This runs instead of the request."
	}
	for _, f := range view.Tools[a.ToolName].Further {
		c.add(fieldInput(f, f.Value(a)))
	}
	if a.Terms.Quorum > 1 || !a.Terms.RequesterMay {
		hint += " Earlier approvals do not count for it: others must approve your text."
	}
	c.add(slack.NewInputBlock(view.EditInput, plain(label, 2000), plain(hint+" The policy decides about it as about a new request, and the card shows what you changed.", 2000), input))
	v.Blocks.BlockSet = c.blocks
	return v, true
}

// changed shows how people have changed what was asked for: by whom, the difference in
// about most units, and the hash of what runs.
func (c *card) changed(most int) {
	a := c.a
	if a.Edited.Times == 0 {
		return
	}
	asked := a
	asked.Edited = approvals.Edited{}
	diff, minus, plus := lineDiff(view.Changeable(asked), view.Changeable(a))
	c.context("*Changed by* " + c.person(a.Edited.By) + " (" + plusMinus(plus, minus) + "). This is what is to be decided about now; approvals from before do not count. SHA-256 of the input: " +
		mrkdwn.Code(hex.EncodeToString(a.Edited.SHA256[:])))
	if diff = plaintext.Visible(c.o.redact(diff)); plaintext.Width(diff) > most {
		diff = plaintext.Prefix(diff, most) + "\n… (*View all* shows what runs whole)"
	}
	c.add(preBlock(c.id(), diff))
}
