package render

import (
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
)

// Sentence is a message of plain words, for example an error that somebody should
// read. Nothing in it is markup.
func Sentence(text string) Page {
	text = strings.TrimSpace(text)
	if text == "" {
		text = "…"
	}
	safe := mrkdwn.ClipEscaped(mrkdwn.Escape(mrkdwn.Clip(text, sectionMax)), sectionMax)
	return Page{Text: safe, Blocks: []slack.Block{section("", safe)}}
}

// Help says what can be said to the bot.
func Help(botUser string) Page {
	me := "me"
	if mrkdwn.IsID(botUser) {
		me = mrkdwn.Mention(botUser)
	}
	lines := []string{
		"*What you can say*",
		"Mention " + me + " with what you want done; the thread becomes a session. Answers in the thread go on with it.",
		"• " + mrkdwn.Code("stop") + " – interrupt what runs",
		"• " + mrkdwn.Code("costs") + " – what was spent; also " + mrkdwn.Code("costs last month by project") + ", " + mrkdwn.Code("costs this week for me") + ", " + mrkdwn.Code("costs today with csv"),
		"• " + mrkdwn.Code("grants") + " – what is allowed here without being asked again, and by whom",
		"• " + mrkdwn.Code("approvals 30 days") + " – how long decisions took, and who made them (for admins)",
		"• " + mrkdwn.Code("approve CODE") + ", " + mrkdwn.Code("deny CODE reason") + " – decide a card by its code, where buttons do not work",
		"• " + mrkdwn.Code("help") + " – this",
		"In a channel, mention " + me + " before these words.",
	}
	text := strings.Join(lines, "\n")
	return Page{Text: text, Blocks: []slack.Block{section("", text)}}
}
