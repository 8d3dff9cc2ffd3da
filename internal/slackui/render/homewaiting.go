package render

import (
	"cmp"
	"strconv"

	"github.com/slack-go/slack"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

const (
	// homeWaiting is how many requests are shown with their buttons, homeInput how much of
	// each one's input.
	homeWaiting = 6
	homeInput   = 600
)

func addWaiting(h view.Home, add func(slack.Block)) {
	if len(h.Waiting) == 0 {
		add(section("", "Nothing waits for your decision."))
		return
	}
	for i, w := range h.Waiting[:min(len(h.Waiting), homeWaiting)] {
		number := ""
		if len(h.Waiting) > 1 {
			number = strconv.Itoa(i + 1)
		}
		for _, b := range waitingBlocks(w, number, h.Redact) {
			add(b)
		}
	}
	if more := len(h.Waiting) - homeWaiting; more > 0 {
		add(contextBlock("", "… and "+count(more)+" more. They move up as you decide these; their cards are in their threads."))
	}
}

// waitingBlocks are one request: what is asked, as much of its input as its card would show in
// little room, who asked where, and what can be done about it here.
func waitingBlocks(w view.HomeApproval, number string, redact func(string) string) []slack.Block {
	a := w.Approval
	c := cardOf(a, Options{Redact: redact})
	where := "its thread"
	switch {
	case access.IsDirect(a.ChannelID):
		where = "a direct message"
	case mrkdwn.IsID(a.ChannelID):
		where = "<#" + a.ChannelID + ">"
	}
	open := "in " + where
	if w.Permalink != "" {
		open += " · " + linkTo(w.Permalink, cmp.Or(w.Title, "Open its thread"))
	}
	numbered := ""
	if number != "" {
		numbered = "*" + number + "* · "
	}
	since := ""
	if !a.CreatedAt.IsZero() {
		since = "since " + dateTime(a.CreatedAt)
	}
	if a.Kind == approvals.Tool {
		s := c.subjectOf(a, 150)
		c.section(joinNonEmpty("\n", numbered+c.headline(s), c.risks()))
		if !s.told {
			c.showInput(s, homeInput)
		}
		c.changed(homeInput)
		if a.ToolChange != nil {
			c.section("⚠️ What the model is told of this tool is not what was allowed. *View all* shows both texts; it is decided in its thread.")
		}
		c.section(s.warnings())
		c.context(c.reason(s, 160), joinFacts(c.facts(s, 300), 300))
	} else {
		c.section(joinNonEmpty("\n", numbered+capital(c.brief(150)), c.risks()))
	}
	c.context(joinNonEmpty(" · ", joinNonEmpty(" ", c.person(a.RequestedBy), open), since, c.deadline(), c.votes()))
	if buttons := c.homeButtons(a, number); len(buttons) > 0 {
		c.add(slack.NewActionBlock(view.HomeBlock(a.ID), buttons...))
	}
	return c.blocks
}

// homeButtons are what can be done about a request without its card: a call and its input
// stand on the tab, questions open as a form, and a plan, and what the model is told of a changed
// tool, can be read; these are decided in their threads.
func (c *card) homeButtons(a approvals.Approval, number string) []slack.BlockElement {
	label := func(words string) string { return joinNonEmpty(" ", words, number) }
	switch {
	case a.Kind == approvals.Question:
		return []slack.BlockElement{
			button(view.ActionAnswerOther, a.ID, label("Answer…"), slack.StylePrimary),
			button(view.ActionDeny, a.ID, label("Skip"), ""),
		}
	case a.Kind == approvals.Plan, a.ToolChange != nil:
		return []slack.BlockElement{button(view.ActionViewInput, a.ID, label("View all"), "")}
	}
	return c.toolButtons(number)
}
