package render

import (
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
)

// The buttons of what is asked back. There may be several of ActionSay, with a number after
// it; a button's value is the command that it stands for. The value of ActionInstead is the
// ts of the message.
const (
	ActionSay     = "say"
	ActionInstead = "ask_claude"
	// ActionPickProject chooses a project for a message; its value is the message's ts, its author and the
	// project, which is empty for none after all.
	ActionPickProject = "pick_project"
)

// PickProject asks a message's author which project it is for. There are at most pickMost buttons.
func PickProject(user, ts string, projects []string) Page {
	page := Page{}
	sentence := mrkdwn.Mention(user) + ", which project is this for? Your message waits until you choose. Next time, begin it with “in " + mrkdwn.Escape(projects[0]) + ": …”."
	page.Text = sentence
	page.Blocks = append(page.Blocks, slack.NewSectionBlock(slack.NewTextBlockObject(slack.MarkdownType, sentence, false, false), nil, nil))
	var buttons []slack.BlockElement
	for i, p := range append(slices.Clone(projects[:min(len(projects), pickMost)]), "") {
		label := p
		if p == "" {
			label = "None of them"
		}
		buttons = append(buttons, button(ActionPickProject+":"+strconv.Itoa(i), ts+" "+user+" "+p, label, slack.StyleDefault))
	}
	page.Blocks = append(page.Blocks, slack.NewActionBlock("", buttons...))
	return page
}

// pickMost is how many projects are offered: a row of buttons has 25.
const pickMost = 24

// ActionOf is what a button does: where several of a block do the same, a number or a word after
// a colon tells them apart, since their ids must differ.
func ActionOf(id string) string {
	action, _, _ := strings.Cut(id, ":")
	return action
}

// Choice is a command that somebody may have meant.
type Choice struct {
	Say   string // the command
	Label string // the same for people
}

// AskBack asks a person what they meant: a sentence, a button for each command that it may
// have been, and one that gives the message with that ts to the model, unless it is empty.
func AskBack(sentence string, choices []Choice, ts string) Page {
	page := Sentence(sentence)
	var buttons []slack.BlockElement
	for i, c := range choices {
		if len(c.Say) <= buttonValueMax {
			buttons = append(buttons, button(ActionSay+":"+strconv.Itoa(i), c.Say, capital(c.Label), slack.StyleDefault))
		}
	}
	if ts != "" {
		buttons = append(buttons, button(ActionInstead, ts, "Ask Claude instead", slack.StyleDefault))
	}
	if len(buttons) > 0 {
		page.Blocks = append(page.Blocks, slack.NewActionBlock("", buttons...))
	}
	return page
}
