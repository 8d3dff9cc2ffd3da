package render

import (
	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// planMax is how much of a plan its card shows, and more than of anything else.
const planMax = 7000

func (c *card) plan() {
	text, _ := view.FieldOf(c.a.Input, "plan")
	if string(c.a.Input) == "{}" {
		c.planUnseen()
		return
	}
	if text == "" {
		c.tool()
		return
	}
	text = plaintext.Printable(c.o.redact(text))
	shown, left := mrkdwn.Clean(text), 0
	for room := c.room; plaintext.Width(shown) > c.room; room -= room / 8 {
		if room < 1000 { // nothing that could be cut well
			c.tool()
			return
		}
		// Cleaning makes a text longer, and what is left out is counted in the
		// model's own characters.
		c := mrkdwn.PlaceToCut(text, room)
		shown = mrkdwn.Clean(text[:c.At] + c.Closing)
		left = runes(text[c.At:])
	}
	c.section(joinNonEmpty("\n", "*Deckhand has a plan*", c.risks()))
	c.add(slack.NewMarkdownBlock(c.id(), shown))
	if left > 0 {
		c.section("⚠️ … *" + count(left) + " more characters* are left out here: *View all* shows them.")
	}
	c.provenance()
	c.end("Deckhand has a plan:\n"+mrkdwn.Convert(mrkdwn.Clean(plaintext.Prefix(text, 1500))), c.planButtons())
}

// planNotShown is said where the plan is not in the request.
const planNotShown = "The plan's text did not come with this request, as happens after a restart. If you find it above in this thread, decide by that. Otherwise choose “Keep planning…” and ask to see it again."

// planUnseen is a request to begin whose plan did not come with it, as where the process
// that had it in mind was restarted.
func (c *card) planUnseen() {
	c.section(joinNonEmpty("\n", "*Deckhand asks to begin work on its plan*", c.risks()))
	c.section(planNotShown)
	c.provenance()
	c.end("Deckhand asks to begin work on its plan. The plan's text did not come with the request.", c.planButtons())
}

func (c *card) planButtons() []slack.BlockElement {
	return []slack.BlockElement{
		button(view.ActionApprove, c.a.ID, "Start work", slack.StylePrimary),
		button(view.ActionDenyReason, c.a.ID, "Keep planning…", ""),
		button(view.ActionDeny, c.a.ID, "Deny", ""),
		button(view.ActionViewInput, c.a.ID, "View all", ""),
	}
}
