package render

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"

	"github.com/slack-go/slack"
	"github.com/tidwall/gjson"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// approveWords is the reply that approves, or asks for the second step.
func approveWords(a approvals.Approval) string {
	return "approve " + view.Code(a)
}

// Card renders the message that shows the approvals in list, of which there is at
// least one, oldest first: with buttons for each that is pending, and a line for each
// that is not. One alone has the whole card; several have a row each, and
// what has been decided makes room. Requests for which there is no room yet are
// counted and named, and have no buttons until others are decided.
func Card(list []approvals.Approval, o Options) Page {
	if len(list) == 0 {
		return Sentence("There is nothing to decide here.")
	}
	c := cardOf(approvals.Approval{}, o)
	switch {
	case !slices.ContainsFunc(list, func(a approvals.Approval) bool { return a.Status == approvals.Pending }):
		return c.decided(list)
	case len(list) > 1:
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

// card draws a card.
type card struct{ asking }

// asking says in words what is asked for, why, and who decides.
type asking struct{ drawing }

// drawing collects a card's blocks.
type drawing struct {
	a      approvals.Approval // the one being drawn
	o      Options
	room   int // units for what is asked
	blocks []slack.Block
	text   string
}

func cardOf(a approvals.Approval, o Options) card { return card{asking{drawing{a: a, o: o}}} }

func (c *card) one(a approvals.Approval) {
	c.a = a
	c.where()
	switch a.Kind {
	case approvals.Question:
		c.question()
	case approvals.Plan:
		c.plan()
	default:
		c.tool()
	}
}

func (c *drawing) pending() bool { return c.a.Status == approvals.Pending }

// isCopy reports whether the card is a direct message beside the one in the thread.
func (c *drawing) isCopy() bool { return c.o.Calling != nil && c.o.Calling.Copy }

// where says on a copy where its request comes from.
func (c *card) where() {
	if !c.isCopy() {
		return
	}
	from := c.person(c.a.RequestedBy)
	if c.a.ChannelID != "" && !access.IsDirect(c.a.ChannelID) && mrkdwn.IsID(c.a.ChannelID) {
		from += " in <#" + c.a.ChannelID + ">"
	}
	c.context(joinNonEmpty(" · ", joinNonEmpty(": ", from, c.task()), c.link("thread")))
}

// task is what whoever asked wrote in this turn: the thread may have begun with something else, by somebody else.
func (c *drawing) task() string {
	words := view.Title(c.a.Words, c.o.redact)
	if words == "" {
		return ""
	}
	return "“" + mrkdwn.Escape(words) + "”"
}

// link is a link to the thread of a copy; empty where nobody else can open it.
func (c *drawing) link(label string) string {
	if c.o.Calling.Thread == "" {
		return ""
	}
	return linkTo(c.o.Calling.Thread, label)
}

// id is a new block id. It changes with the status and the votes, so that clients
// do not keep anything of the old card.
func (c *drawing) id() string {
	state := string(c.a.Status)
	if c.a.Edited.Times > 0 {
		state += "+" + strconv.Itoa(c.a.Edited.Times) + "+"
	}
	if n := len(c.a.Votes); n > 0 && c.pending() {
		state += strconv.Itoa(n)
	}
	return plaintext.Clip(c.a.ID, 200) + ":" + state + ":" + strconv.Itoa(len(c.blocks))
}

func (c *drawing) add(b slack.Block) { c.blocks = append(c.blocks, b) }

func (c *drawing) section(text string) {
	if text != "" {
		c.add(section(c.id(), text))
	}
}

func (c *drawing) context(lines ...string) {
	if text := joinNonEmpty("\n", lines...); text != "" {
		c.add(contextBlock(c.id(), text))
	}
}

// actions adds buttons.
func (c *drawing) actions(buttons []slack.BlockElement) {
	c.add(slack.NewActionBlock(c.id(), buttons...))
}

// fits reports whether Slack takes the blocks as one message.
func (c *drawing) fits() bool {
	return blocksWidth(c.blocks) <= messageText && len(c.blocks) <= messageBlocks
}

func blocksWidth(blocks []slack.Block) (n int) {
	for _, b := range blocks {
		n += blockWidth(b)
	}
	return n
}

// blockWidth is the number of units in a block's texts, those of its buttons, their dialogs and its
// choices included.
func blockWidth(b slack.Block) int {
	raw, err := json.Marshal(b)
	if err != nil {
		panic(err) // a block is made of texts
	}
	return textsWidth(gjson.ParseBytes(raw))
}

// textsWidth is the number of units in what stands as text in a part of a block.
func textsWidth(part gjson.Result) (n int) {
	part.ForEach(func(key, value gjson.Result) bool {
		switch {
		case value.IsObject(), value.IsArray():
			n += textsWidth(value)
		case key.Str == "text":
			n += plaintext.Width(value.Str)
		}
		return true
	})
	return n
}

// toolButtons are the buttons of a pending tool call, and the menu of what else can be done.
// number is what tells it from others beside it, or empty.
func (c *asking) toolButtons(number string) []slack.BlockElement {
	label, style := "Approve", slack.StylePrimary
	if c.a.Terms.Dangerous {
		label, style = "Approve…", slack.StyleDanger
	}
	return []slack.BlockElement{
		button(view.ActionApprove, view.Ref(c.a), joinNonEmpty(" ", label, number), style),
		button(view.ActionDeny, c.a.ID, joinNonEmpty(" ", "Deny", number), ""), c.more(),
	}
}

// more is the menu beside the buttons: each of its entries opens something. [ParseMore] reads
// what was chosen.
func (c *drawing) more() *slack.OverflowBlockElement {
	a := c.a
	var options []*slack.OptionBlockObject
	add := func(action, value, label string) {
		options = append(options, slack.NewOptionBlockObject(action+" "+value, plain(label, optionMax), nil))
	}
	if a.Terms.Grantable && a.Terms.Quorum <= 1 && !a.Terms.Dangerous && a.Edited.Times == 0 {
		if c.o.OneFile != nil {
			if name := c.o.OneFile(a); name != "" {
				add(view.ActionEditsBelow, a.ID, editsBelow(c.o.redact(name)))
			}
		}
		add(view.ActionAlways, a.ID, "Always allow…")
	}
	if text, _ := view.Editable(c.a, c.o.redact); text != "" {
		add(view.ActionEdit, view.Ref(a), "Change and approve…")
	}
	add(view.ActionDenyReason, a.ID, "Deny with reason…")
	add(view.ActionViewInput, a.ID, "View all")
	return slack.NewOverflowBlockElement(view.ActionMore, options...)
}

// editsBelow is the menu's entry about further edits in the folder of a file, or of the file
// itself where that is no folder of the workspace's.
func editsBelow(name string) string {
	dir := plaintext.Visible(path.Dir(name))
	label := "Edits below " + dir + "/…"
	switch {
	case dir == ".":
		return "Edits to this file…"
	case plaintext.Width(label) > optionMax:
		return "Edits below its folder…"
	}
	return label
}

func button(action, value, label string, style slack.Style) *slack.ButtonBlockElement {
	b := slack.NewButtonBlockElement(action, value, plain(label, buttonMax))
	b.Style = style
	return b
}
