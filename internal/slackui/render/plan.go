package render

import (
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// planMax is how much of a plan its card shows.
const planMax = 7000

func (c *card) plan() {
	all, ok := fields(c.a.Input)
	s := fieldSet{all: all}
	text, ok2 := s.text("plan")
	if !ok || !ok2 || text == "" {
		c.tool()
		return
	}
	c.section("*Deckhand has a plan*")
	text = printable(c.o.redact(text))
	shown, left := cleanMarkdown(text), 0
	for room := planMax; width(shown) > planMax; room -= planMax / 8 {
		// Cleaning makes a text longer, and what is left out is counted in the
		// model's own characters.
		c := placeToCut(text, room)
		shown = cleanMarkdown(text[:c.at] + c.closing)
		left = utf8.RuneCountInString(text[c.at:])
	}
	c.blocks = append(c.blocks, slack.NewMarkdownBlock(c.id(), shown))
	if left > 0 {
		c.section("⚠️ … *" + count(left) + " more characters* are left out here: *View all* shows them.")
	}
	c.provenance()
	c.end([]slack.BlockElement{
		button(ActionApprove, c.a.ID, "Start work", slack.StylePrimary),
		button(ActionDenyReason, c.a.ID, "Keep planning…", ""),
		button(ActionDeny, c.a.ID, "Deny", slack.StyleDanger),
		button(ActionViewInput, c.a.ID, "View all", ""),
	}, "Deckhand has a plan:\n"+Mrkdwn(prefix(text, 1500)))
}
