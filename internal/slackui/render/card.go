package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// The action ids of our buttons and inputs. A button's value is the approval's id, of those
// that allow its Ref, for Stop the turn's id in decimal, for Revoke the grant's.
const (
	ActionApprove        = "approve" // of a dangerous call: to be confirmed, see ConfirmModal
	ActionApproveSession = "approve_session"
	ActionApproveAll     = "approve_all" // value: one of the card's approvals
	ActionApproveFiles   = "approve_files"
	ActionAlways         = "always"
	ActionEdit           = "edit_input"
	ActionDeny           = "deny"
	ActionDenyReason     = "deny_reason"
	ActionViewInput      = "view_input"
	ActionViewPage       = "view_page" // value: see ParseInputPage
	ActionPick           = "pick"
	ActionAnswer         = "answer"
	ActionAnswerOther    = "answer_other"
	ActionOther          = "other"
	ActionStop           = "stop"
	ActionRevoke         = "revoke"
	ActionSendNow        = "send_now"
	ActionDrop           = "drop"
)

// codeLetters is how many of an approval's id its code has.
const codeLetters = 5

// Code is the short code by which an approval is named in a reply, as in "approve 7K2QX",
// or "approve 7K2QX2" for one whose input was changed since.
func Code(a store.Approval) string {
	code := strings.ToUpper(a.ID[:min(codeLetters, len(a.ID))])
	if a.Edited.Times > 0 {
		code += strconv.Itoa(a.Edited.Times + 1)
	}
	return code
}

// ParseCode reads a Code: the beginning of the approval's id, and how often its input had
// been changed when it was shown.
func ParseCode(code string) (prefix string, seen int) {
	code = strings.ToUpper(code)
	if len(code) <= codeLetters {
		return code, 0
	}
	n, err := strconv.Atoi(code[codeLetters:])
	if err != nil || n < 2 {
		return code, -1 // no approval's
	}
	return code[:codeLetters], n - 1
}

// approveWords is the reply that approves.
func approveWords(a store.Approval) string {
	if a.Terms.Dangerous {
		return "approve " + Code(a) + " confirm"
	}
	return "approve " + Code(a)
}

// Card renders the message that shows the approvals in list, of which there is at
// least one, oldest first: with buttons for each that is pending, and as it ended
// for each that is not. One alone has the whole card; several have a row each, and
// what has been decided makes room. Requests for which there is no room yet are
// counted and named, and have no buttons until others are decided.
func Card(list []store.Approval, o Options) Page {
	if len(list) == 0 {
		return Sentence("There is nothing to decide here.")
	}
	c := card{o: o}
	if len(list) > 1 {
		return c.rows(list)
	}
	// What a card must have fits next to the smallest room for the input.
	for c.room = planMax; ; c.room /= 2 {
		c.blocks = nil
		c.one(list[0])
		if c.fits() || c.room < 500 {
			return Page{Text: mrkdwn.ClipEscaped(c.text, fallbackMax), Blocks: c.blocks, Instead: c.instead(list), Whom: c.whom(list)}
		}
	}
}

// card collects a card's blocks.
type card struct {
	a      store.Approval // the one being drawn
	o      Options
	room   int // units for what is asked
	blocks []slack.Block
	text   string
	isRow  bool // one of several on a card
}

func (c *card) one(a store.Approval) {
	c.a = a
	c.where(c.pending())
	switch a.Kind {
	case store.ApprovalQuestion:
		c.question()
	case store.ApprovalPlan:
		c.plan()
	default:
		c.tool()
	}
}

func (c *card) pending() bool { return c.a.Status == store.ApprovalPending }

// isCopy reports whether the card is a direct message beside the one in the thread.
func (c *card) isCopy() bool { return c.o.Calling != nil && c.o.Calling.Copy }

// where says on a copy where its request comes from.
func (c *card) where(open bool) {
	if !c.isCopy() {
		return
	}
	may, from := "You may decide about this. ", "It was asked for in a direct message."
	if !open {
		may = ""
	}
	if c.o.Calling.Thread != "" {
		from = linkTo(c.o.Calling.Thread, "The thread") + " shows what led to it."
	}
	c.context(may + from)
}

// id is a new block id. It changes with the status and the votes, so that clients
// do not keep anything of the old card.
func (c *card) id() string {
	state := string(c.a.Status)
	if c.a.Edited.Times > 0 {
		state += "+" + strconv.Itoa(c.a.Edited.Times) + "+"
	}
	if n := len(c.a.Votes); n > 0 && c.pending() {
		state += strconv.Itoa(n)
	}
	return mrkdwn.Clip(c.a.ID, 200) + ":" + state + ":" + strconv.Itoa(len(c.blocks))
}

func (c *card) add(b slack.Block) { c.blocks = append(c.blocks, b) }

func (c *card) section(text string) { c.add(section(c.id(), text)) }

func (c *card) context(lines ...string) {
	if text := joinNonEmpty("\n", lines...); text != "" {
		c.add(contextBlock(c.id(), text))
	}
}

// actions adds buttons, in two rows where many of them may take the room.
func (c *card) actions(run, others []slack.BlockElement, roomy bool) {
	if roomy && len(run) > 1 {
		c.add(slack.NewActionBlock(c.id(), run...))
		c.add(slack.NewActionBlock(c.id(), others...))
		return
	}
	c.add(slack.NewActionBlock(c.id(), slices.Concat(run, others)...))
}

// fits reports whether Slack takes the blocks as one message.
func (c *card) fits() bool {
	n := 0
	for _, b := range c.blocks {
		n += blockWidth(b)
	}
	return n <= messageText && len(c.blocks) <= messageBlocks
}

// blockWidth is the number of units in a block's texts, those of its buttons and
// their dialogs included.
func blockWidth(b slack.Block) int {
	n := 0
	switch b := b.(type) {
	case *slack.SectionBlock:
		n = textWidth(b.Text)
		if b.Accessory != nil && b.Accessory.ButtonElement != nil {
			n += elementWidth(b.Accessory.ButtonElement)
		}
	case *slack.ContextBlock:
		for _, e := range b.ContextElements.Elements {
			if t, ok := e.(*slack.TextBlockObject); ok {
				n += textWidth(t)
			}
		}
	case *slack.MarkdownBlock:
		n = mrkdwn.Width(b.Text)
	case *slack.ActionBlock:
		for _, e := range b.Elements.ElementSet {
			n += elementWidth(e)
		}
	case *slack.RichTextBlock:
		for _, e := range b.Elements {
			var parts []slack.RichTextSectionElement
			switch e := e.(type) {
			case *slack.RichTextPreformatted:
				parts = e.Elements
			case *slack.RichTextSection:
				parts = e.Elements
			}
			for _, p := range parts {
				if t, ok := p.(*slack.RichTextSectionTextElement); ok {
					n += mrkdwn.Width(t.Text)
				}
			}
		}
	}
	return n
}

func elementWidth(e slack.BlockElement) int {
	var options []*slack.OptionBlockObject
	switch e := e.(type) {
	case *slack.ButtonBlockElement:
		n := textWidth(e.Text)
		if d := e.Confirm; d != nil {
			n += textWidth(d.Title) + textWidth(d.Text) + textWidth(d.Confirm) + textWidth(d.Deny)
		}
		return n
	case *slack.RadioButtonsBlockElement:
		options = e.Options
	case *slack.CheckboxGroupsBlockElement:
		options = e.Options
	}
	n := 0
	for _, o := range options {
		n += textWidth(o.Text) + textWidth(o.Description)
	}
	return n
}

func textWidth(t *slack.TextBlockObject) int {
	if t == nil {
		return 0
	}
	return mrkdwn.Width(t.Text)
}

// toolButtons are the buttons of a pending tool call: those that let it run, and
// the others.
func (c *card) toolButtons() (run, others []slack.BlockElement) {
	a := c.a
	if a.Terms.Dangerous {
		run = append(run, button(ActionApprove, Ref(a), "Approve…", slack.StyleDanger))
	} else {
		run = append(run, button(ActionApprove, Ref(a), "Approve", slack.StylePrimary))
	}
	if a.Terms.Grantable && a.Terms.Quorum <= 1 && !a.Terms.Dangerous && a.Edited.Times == 0 {
		switch {
		case c.editsFile(a):
			if !c.isRow {
				run = append(run, button(ActionApproveFiles, a.ID, "Approve edits to this file…", ""))
			}
		case c.o.SessionGrant != nil:
			if sentence := c.o.SessionGrant(a); sentence != "" {
				b := button(ActionApproveSession, a.ID, "Approve for this session", "")
				b.Confirm = slack.NewConfirmationBlockObject(
					plain("Approve for this session?", confirmTitle), exactly(c.o.redact(sentence), confirmText),
					plain("Approve", confirmButton), plain("Cancel", confirmButton))
				run = append(run, b)
			}
		}
		run = append(run, button(ActionAlways, a.ID, "Always allow…", ""))
	}
	deny := slack.StyleDanger
	if a.Terms.Dangerous {
		deny = "" // one button in red is a warning, two are a pattern
	}
	others = []slack.BlockElement{
		button(ActionDeny, a.ID, "Deny", deny),
		button(ActionDenyReason, a.ID, "Deny with reason…", ""),
	}
	if text, _ := c.editable(); text != "" {
		others = append(others, button(ActionEdit, Ref(a), "Change and approve…", ""))
	}
	return run, append(others, button(ActionViewInput, a.ID, "View all", ""))
}

// exactly is a plain text of at most n units in which nothing is hidden; what does
// not fit is counted.
func exactly(s string, n int) *slack.TextBlockObject {
	shown := mrkdwn.Visible(strings.TrimSpace(s))
	if mrkdwn.Width(shown) <= n {
		return plain(shown, n)
	}
	head := visiblePrefix(s, n-60)
	return plain(mrkdwn.Visible(head)+" … "+count(runes(s)-runes(head))+" more characters: close this and choose View all.", n)
}

func button(action, value, label string, style slack.Style) *slack.ButtonBlockElement {
	b := slack.NewButtonBlockElement(action, value, plain(label, buttonMax))
	b.Style = style
	return b
}
