package render

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/render/mrkdwn"
)

// PickProject asks a message's author which project it is for. There are at most pickMost buttons.
func PickProject(user, ts string, projects []string) Page {
	sentence := mrkdwn.Mention(user) + ", which project is this for? Your message waits until you choose. Next time, begin it with “in " + mrkdwn.Escape(projects[0]) + ": …”."
	var buttons []slack.BlockElement
	for i, p := range append(slices.Clone(projects[:min(len(projects), pickMost)]), "") {
		buttons = append(buttons, button(view.ActionPickProject+":"+strconv.Itoa(i), ts+" "+user+" "+p, cmp.Or(p, "None of them"), slack.StyleDefault))
	}
	text := slack.NewTextBlockObject(slack.MarkdownType, sentence, false, false)
	return Page{Text: sentence, Blocks: []slack.Block{slack.NewSectionBlock(text, nil, nil), slack.NewActionBlock("", buttons...)}}
}

// pickMost is how many projects are offered: a row of buttons has 25.
const pickMost = 24

// AskBack asks a person what they meant: a sentence, a button for each command that it may
// have been, and one that gives the message with that ts to the model, unless it is empty.
func AskBack(sentence string, choices []view.Choice, ts string) Page {
	page := Sentence(sentence)
	var buttons []slack.BlockElement
	for i, c := range choices {
		if len(c.Say) <= buttonValueMax {
			buttons = append(buttons, button(view.ActionSay+":"+strconv.Itoa(i), c.Say, capital(c.Label), slack.StyleDefault))
		}
	}
	if ts != "" {
		buttons = append(buttons, button(view.ActionInstead, ts, "Ask Claude instead", slack.StyleDefault))
	}
	if len(buttons) > 0 {
		page.Blocks = append(page.Blocks, slack.NewActionBlock("", buttons...))
	}
	return page
}
