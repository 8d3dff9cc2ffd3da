package render

import (
	"strings"

	"github.com/slack-go/slack"
)

// Sentence is a message of plain words, for example an error that somebody should
// read. Nothing in it is markup.
func Sentence(text string) Page {
	text = strings.TrimSpace(text)
	if text == "" {
		text = "…"
	}
	safe := clipEscaped(escape(clip(text, sectionMax)), sectionMax)
	return Page{Text: safe, Blocks: []slack.Block{section("", safe)}}
}

// Help says what can be said to the bot.
func Help(botUser string) Page {
	me := "me"
	if isSlackID(botUser) {
		me = mention(botUser)
	}
	lines := []string{
		"*What you can say*",
		"Mention " + me + " with what you want done; the thread becomes a session. Answers in the thread go on with it.",
		"• " + code("stop") + " – interrupt what runs",
		"• " + code("costs") + " – what was spent; also " + code("costs last month by project") + ", " + code("costs this week for me") + ", " + code("costs today with csv"),
		"• " + code("grants") + " – what is allowed here without being asked again, and by whom",
		"• " + code("approvals 30 days") + " – how long decisions took, and who made them (for admins)",
		"• " + code("approve CODE") + ", " + code("deny CODE reason") + " – decide a card by its code, where buttons do not work",
		"• " + code("help") + " – this",
		"In a channel, mention " + me + " before these words.",
	}
	text := strings.Join(lines, "\n")
	return Page{Text: text, Blocks: []slack.Block{section("", text)}}
}
