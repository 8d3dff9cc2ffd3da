package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// questionsMax is how many questions a card shows; the tool asks at most four.
const questionsMax = 8

// question is one of AskUserQuestion's.
type question struct {
	Question    string `json:"question"`
	Header      string `json:"header"`
	MultiSelect bool   `json:"multiSelect"`
	Options     []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// questions reads the input of AskUserQuestion; raw is its list as it came.
func questions(a store.Approval) (list []question, raw json.RawMessage, err error) {
	all, ok := fields(a.Input)
	if !ok {
		return nil, nil, errors.New("these questions cannot be read")
	}
	s := fieldSet{all: all}
	raw = s.raw("questions")
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, nil, errors.New("these questions cannot be read")
	}
	for _, q := range list {
		if q.Question == "" {
			return nil, nil, errors.New("one of these questions is empty")
		}
	}
	return list, raw, nil
}

func (c *card) question() {
	list, _, err := questions(c.a)
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
		if more := len(q.Options) - optionsMax; more > 0 {
			c.context(plural(more, "more choice", "more choices") + ": *View all* shows them, *Other…* takes them.")
		}
	}
	c.provenance()
	c.end("Deckhand asks: "+mrkdwn.Escape(mrkdwn.Clip(c.o.redact(list[0].Question), 1500)), []slack.BlockElement{
		button(ActionAnswer, c.a.ID, oneOrMany(len(list), "Send answer", "Send answers"), slack.StylePrimary),
		button(ActionAnswerOther, c.a.ID, "Other…", ""),
		button(ActionDeny, c.a.ID, "Skip", ""),
		button(ActionViewInput, c.a.ID, "View all", ""),
	})
}

func oneOrMany(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// questionText is a question in about most units, and how much does not fit.
func (c *card) questionText(q question, most int) string {
	whole := mrkdwn.Visible(c.o.redact(q.Question))
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
func (c *card) questionBrief(most int) string {
	_, words := c.name(c.a)
	if words == "" {
		return "a question"
	}
	return "“" + mrkdwn.EscapeWithin(words, most) + "”"
}

// options is the element to choose with, nil when there is nothing to choose from.
func (c *card) options(q question) slack.BlockElement {
	var list []*slack.OptionBlockObject
	for i, option := range q.Options[:min(len(q.Options), optionsMax)] {
		label := mrkdwn.OneLine(c.o.redact(option.Label))
		if label == "" {
			label = "(no label)"
		}
		var description *slack.TextBlockObject
		if d := mrkdwn.OneLine(c.o.redact(option.Description)); d != "" {
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
		return slack.NewCheckboxGroupsBlockElement(ActionPick, list...)
	}
	return slack.NewRadioButtonsBlockElement(ActionPick, list...)
}

// AnswerError says to the person who answered what is wrong with the answer.
type AnswerError struct{ Sentence string }

func (e *AnswerError) Error() string { return e.Sentence }

func answerError(format string, q question) error {
	return &AnswerError{fmt.Sprintf(format, mrkdwn.Clip(mrkdwn.OneLine(q.Question), 200))}
}

// Answers builds the input that answers a question's card or its modal: the
// questions exactly as they were asked, and the answers. state is the state of the
// message or the view: block id → action id → value. A question without an answer
// and a choice that was not offered give an [*AnswerError].
func Answers(a store.Approval, state map[string]map[string]slack.BlockAction) (json.RawMessage, error) {
	list, raw, err := questions(a)
	if err != nil {
		return nil, err
	}
	answers := map[string]string{}
	for i, q := range list {
		n := strconv.Itoa(i)
		picks, err := picked(q, state["q"+n][ActionPick])
		if err != nil {
			return nil, err
		}
		if other := strings.TrimSpace(state["o"+n][ActionOther].Value); other != "" {
			if !q.MultiSelect {
				picks = nil // what somebody took the trouble to write outweighs a choice
			}
			picks = append(picks, other)
		}
		if len(picks) == 0 {
			return nil, answerError("Please answer “%s” first, or choose Skip.", q)
		}
		answer := strings.Join(picks, ", ")
		if earlier, ok := answers[q.Question]; ok && earlier != answer {
			answer = earlier + ", " + answer
		}
		answers[q.Question] = answer
	}
	out, err := json.Marshal(struct {
		Questions json.RawMessage   `json:"questions"`
		Answers   map[string]string `json:"answers"`
	}{raw, answers})
	if err != nil {
		return nil, fmt.Errorf("encode the answers: %w", err)
	}
	return out, nil
}

// picked returns the labels that were chosen, which must have been offered.
func picked(q question, got slack.BlockAction) ([]string, error) {
	chosen := got.SelectedOptions
	if got.SelectedOption.Value != "" {
		chosen = append(chosen, got.SelectedOption)
	}
	if len(chosen) > 1 && !q.MultiSelect {
		return nil, answerError("Only one answer fits “%s”.", q)
	}
	var labels []string
	for _, option := range chosen {
		i, err := strconv.Atoi(option.Value)
		if err != nil || i < 0 || i >= min(len(q.Options), optionsMax) {
			return nil, answerError("That is not one of the choices for “%s”. Please choose again.", q)
		}
		labels = append(labels, q.Options[i].Label)
	}
	return labels, nil
}
