package render

import (
	"strconv"
	"strings"

	"github.com/slack-go/slack"
)

// The buttons of what is asked back. There may be several of ActionSay, with a number after
// it; a button's value is the command that it stands for. The value of ActionInstead is the
// ts of the message.
const (
	ActionSay     = "say"
	ActionInstead = "ask_claude"
)

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
