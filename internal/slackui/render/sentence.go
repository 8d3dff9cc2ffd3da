package render

import (
	"cmp"
	"strings"

	"deckhand/internal/agent/trust"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// Sentence is a message of plain words, for example an error that somebody should
// read. Nothing in it is markup. It calls those who are named by their ids.
func Sentence(text string, whom ...string) Page {
	text = cmp.Or(strings.TrimSpace(text), "Deckhand has nothing to add.")
	call := mentions(whom, " ")
	if call != "" {
		call += " "
	}
	safe := call + mrkdwn.ClipEscaped(mrkdwn.Escape(plaintext.Clip(text, sectionMax)), sectionMax-len(call))
	return Page{Text: safe, Blocks: []slack.Block{section("", safe)}}
}

// Help says what can be said to the bot.
func Help(v view.Help) Page {
	me := "me"
	if mrkdwn.IsID(v.BotUser) {
		me = mrkdwn.Mention(v.BotUser)
	}
	var lines []string
	if v.Complaint != "" {
		lines = append(lines, mrkdwn.Escape(plaintext.Visible(v.Complaint)))
	}
	lines = append(lines,
		"*What you can say*",
		"Mention "+me+" and say what you want done. Reply in the thread to go on.")
	for _, l := range v.Lines {
		also := make([]string, len(l.Say)-1)
		for i, example := range l.Say[1:] {
			also[i] = mrkdwn.Code(example)
		}
		lines = append(lines, "• "+mrkdwn.Code(l.Say[0])+" – "+joinNonEmpty("; also ", mrkdwn.Escape(l.Means), strings.Join(also, ", ")))
	}
	if v.Attach != "" {
		lines = append(lines, mrkdwn.Escape(v.Attach))
	}
	lines = append(lines, "In a channel, mention "+me+" before these words.")
	text := strings.Join(lines, "\n")
	page := Page{Text: text, Blocks: []slack.Block{section("", text)}}
	if len(v.Commands) > 0 {
		page.Blocks = append(page.Blocks, section("", broughtCommands(me, v.Commands)))
	}
	return page
}

// commandsShown is how many of a repository's commands the help has.
const commandsShown = 25

func broughtCommands(me string, list []trust.Entry) string {
	lines := []string{"*Commands of the repository*, after " + me}
	for _, c := range list[:min(len(list), commandsShown)] {
		lines = append(lines, "• "+mrkdwn.Code(strings.TrimSpace("/"+c.Name+" "+plaintext.Clip(plaintext.OneLine(c.Hint), 60)))+" "+mrkdwn.Escape(plaintext.Clip(plaintext.OneLine(c.Description), 80)))
	}
	if more := len(list) - commandsShown; more > 0 {
		lines = append(lines, "and "+count(more)+" more, in .claude of the repository.")
	}
	return strings.Join(lines, "\n")
}
