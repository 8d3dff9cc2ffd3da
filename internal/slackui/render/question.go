package render

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// questionsMax is how many questions a card shows; the tool asks at most four.
const questionsMax = 8

func (c *card) question() {
	list, _, err := view.Questions(c.a)
	if err != nil || len(list) > questionsMax {
		// Shown as any tool call, so that it can at least be seen and denied.
		c.tool()
		return
	}
	each := c.room / len(list)
	if each < 150 {
		c.tool()
		return
	}
	c.section("*Deckhand has " + oneOrMany(len(list), "a question", "questions") + "*")
	for i, q := range list {
		c.section(c.questionText(q, min(1800, each)))
		if element := c.options(q); element != nil {
			c.add(slack.NewActionBlock("q"+strconv.Itoa(i), element))
		}
		if more := len(q.Options) - view.OptionsMax; more > 0 {
			c.context(plural(more, "more choice", "more choices") + ": *View all* shows them, *Other…* takes them.")
		}
	}
	c.provenance()
	c.end("Deckhand asks: "+mrkdwn.Escape(plaintext.Clip(c.o.redact(list[0].Question), 1500)), []slack.BlockElement{
		button(view.ActionAnswer, c.a.ID, oneOrMany(len(list), "Send answer", "Send answers"), slack.StylePrimary),
		button(view.ActionAnswerOther, c.a.ID, "Other…", ""),
		button(view.ActionDeny, c.a.ID, "Skip", ""),
		button(view.ActionViewInput, c.a.ID, "View all", ""),
	})
}

func oneOrMany(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// questionText is a question in about most units, and how much does not fit.
func (c *asking) questionText(q view.Question, most int) string {
	whole := plaintext.Visible(c.o.redact(q.Question))
	text := mrkdwn.EscapeLines(whole, most)
	if text != mrkdwn.Escape(whole) {
		text += "\n⚠️ … the question has *" + count(runes(whole)) + " characters*: *View all* shows them."
	}
	if q.Header != "" {
		text = "*" + strings.ReplaceAll(mrkdwn.EscapeWithin(c.o.redact(q.Header), 100), "*", "") + "*\n" + text
	}
	if q.MultiSelect {
		text += "\n_Choose any number._"
	}
	return text
}

// questionBrief is a question in its own words, in about most units.
func (c *asking) questionBrief(most int) string {
	_, words := c.name(c.a)
	if words == "" {
		return "a question"
	}
	return "“" + mrkdwn.EscapeWithin(words, most) + "”"
}

// options is the element to choose with, nil when there is nothing to choose from.
func (c *asking) options(q view.Question) slack.BlockElement {
	var list []*slack.OptionBlockObject
	for i, option := range q.Options[:min(len(q.Options), view.OptionsMax)] {
		label := cmp.Or(plaintext.OneLine(c.o.redact(option.Label)), "(no label)")
		var description *slack.TextBlockObject
		if d := plaintext.OneLine(c.o.redact(option.Description)); d != "" {
			description = plain(d, optionMax)
		}
		// The value is the option's place: labels may be longer than a value or
		// than what is shown.
		list = append(list, slack.NewOptionBlockObject(strconv.Itoa(i), plain(label, optionMax), description))
	}
	switch {
	case len(list) == 0:
		return nil
	case q.MultiSelect:
		return slack.NewCheckboxGroupsBlockElement(view.ActionPick, list...)
	}
	return slack.NewRadioButtonsBlockElement(view.ActionPick, list...)
}
