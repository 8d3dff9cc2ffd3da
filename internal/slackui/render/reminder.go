package render

import (
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// Reminder renders a reminder. It shows what is asked for in a line and where to
// decide, and has no buttons: what is approved is read on its card.
func Reminder(v view.Reminder) Page {
	a := v.Approval
	c := cardOf(a, Options{Redact: v.Redact})
	lead := "⏰ "
	if v.Escalation {
		lead = "🚨 "
	}
	if len(v.To) > 0 {
		lead += mentions(v.To, " ") + " "
	}
	what := "asks to " + c.brief(200)
	if a.Kind == approvals.Question {
		what = "asks: " + c.questionBrief(300)
	}
	first := "*a request waits for a decision*: Deckhand " + what
	if a.Kind != approvals.Question { // whose own mark ends it
		first += "."
	}
	if v.Escalation {
		first = "*nobody has decided about this yet*: Deckhand " + what + ", and the people who were asked first have not answered."
	}
	if len(v.To) == 0 {
		first = "*" + capital(first[1:])
	}
	where := "Its card in the thread shows all of it and takes the decision."
	if v.Link != "" {
		where = "*" + linkTo(v.Link, "Open the request") + "* to read all of it and to decide."
	}
	since := ""
	if !a.CreatedAt.IsZero() {
		since = "waiting since " + dateTime(a.CreatedAt)
	}
	lines := []string{lead + first, c.risks(), where}
	text := joinNonEmpty("\n", lines...)
	c.section(text)
	c.context(c.origin(100), c.deciders(), joinNonEmpty(" · ", since, c.deadline()))
	return Page{Text: mrkdwn.ClipEscaped(text+"\n"+joinNonEmpty(" · ", since, c.deadline()), fallbackMax), Blocks: c.blocks}
}
