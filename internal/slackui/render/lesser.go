package render

import (
	"cmp"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"deckhand/internal/chat/view"
	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store/approvals"
)

// Plain is the page by what every workspace takes: its sections, buttons and fields as they
// are, and what all other blocks say in sections of text.
func (p Page) Plain() Page {
	text := ""
	blocks := make([]slack.Block, 0, len(p.Blocks))
	for _, b := range p.Blocks {
		switch b.BlockType() {
		case slack.MBTSection, slack.MBTAction, slack.MBTInput:
			blocks, text = append(append(blocks, sections(text)...), b), ""
		default:
			text = joinNonEmpty("\n", text, told(b))
		}
	}
	p.Blocks = append(blocks, sections(text)...)
	return p
}

// Worded is the page as text alone, with what can be written instead of pressing a button;
// cut reports that not all of it is in there.
func (p Page) Worded() (worded Page, cut bool) {
	text, room := cmp.Or(p.said(), p.Text), fallbackMax-plaintext.Width(p.Instead)-2
	if cut = plaintext.Width(text) > room; cut {
		text = p.Text // made to be short
	}
	p.Text, p.Blocks = joinNonEmpty("\n", mrkdwn.ClipEscaped(text, room), p.Instead), nil
	return p, cut
}

// said is all that the blocks say, in mrkdwn.
func (p Page) said() string {
	parts := make([]string, len(p.Blocks))
	for i, b := range p.Blocks {
		parts[i] = told(b)
	}
	return joinNonEmpty("\n\n", parts...)
}

// leastMax is how much of a page's first line its least one has.
const leastMax = 120

// Least is what stands where Slack takes not even the page's text: a sentence of our own, with
// the page's first words, and with what can be written instead of pressing a button.
func (p Page) Least() Page {
	first, _, _ := strings.Cut(p.Text, "\n")
	p.Text = "Slack did not accept this message as it is: " + mrkdwn.ClipEscaped(first, leastMax)
	p.Text, p.Blocks = joinNonEmpty("\n", p.Text, joinNonEmpty(" ", p.Whom, p.Instead)), nil
	return p
}

// Everything is all that the page says, as the text of a file.
func (p Page) Everything() string {
	return unescaper.Replace(cmp.Or(p.said(), p.Text)) + "\n"
}

var unescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// sections are as many sections as a text takes, without ids, as those of its block are
// another's.
func sections(text string) (out []slack.Block) {
	for plaintext.Width(text) > sectionMax {
		head, tail := mrkdwn.Cut(text, sectionMax-200)
		if len(tail) >= len(text) {
			break
		}
		if text = tail; strings.TrimSpace(head) != "" {
			out = append(out, section("", head))
		}
	}
	if strings.TrimSpace(text) != "" {
		out = append(out, section("", text))
	}
	return out
}

// told is what a block says, in mrkdwn; empty for what says nothing without its look.
func told(b slack.Block) string {
	switch b := b.(type) {
	case *slack.SectionBlock:
		lines := []string{objectText(b.Text)}
		for _, f := range b.Fields {
			lines = append(lines, objectText(f))
		}
		return joinNonEmpty("\n", lines...)
	case *slack.ContextBlock:
		var lines []string
		for _, e := range b.ContextElements.Elements {
			if t, ok := e.(*slack.TextBlockObject); ok {
				lines = append(lines, objectText(t))
			}
		}
		return joinNonEmpty("\n", lines...)
	case *slack.HeaderBlock:
		return "*" + objectText(b.Text) + "*"
	case *slack.MarkdownBlock:
		return mrkdwn.Convert(b.Text)
	case *slack.RichTextBlock:
		return strings.Join(richLines(b.Elements), "\n")
	case *slack.TableBlock:
		return tableText(b)
	case *slack.InputBlock:
		return objectText(b.Label)
	case *slack.DataVisualizationBlock:
		return mrkdwn.Escape(b.Title) + " (a chart, which Slack does not show here)"
	}
	return ""
}

// objectText is a text object in mrkdwn.
func objectText(t *slack.TextBlockObject) string {
	switch {
	case t == nil:
		return ""
	case t.Type == slack.MarkdownType:
		return t.Text
	}
	return mrkdwn.Escape(t.Text)
}

func richLines(list []slack.RichTextElement) (lines []string) {
	for _, e := range list {
		switch e := e.(type) {
		case *slack.RichTextPreformatted:
			lines = append(lines, "```\n"+strings.ReplaceAll(richText(e.Elements), "```", "`\u200b`\u200b`")+"\n```")
		case *slack.RichTextSection:
			lines = append(lines, richText(e.Elements))
		}
	}
	return lines
}

func richText(list []slack.RichTextSectionElement) string {
	var b strings.Builder
	for _, e := range list {
		switch e := e.(type) {
		case *slack.RichTextSectionTextElement:
			b.WriteString(mrkdwn.Escape(e.Text))
		case *slack.RichTextSectionLinkElement:
			b.WriteString(mrkdwn.Escape(e.Text + " " + e.URL))
		case *slack.RichTextSectionUserElement:
			b.WriteString(mrkdwn.Mention(e.UserID))
		}
	}
	return b.String()
}

// tableText is a table with its cells apart.
func tableText(b *slack.TableBlock) string {
	var lines []string
	for _, row := range b.Rows {
		var texts []string
		for _, cell := range row {
			switch c := cell.(type) {
			case *slack.TableRichTextCell:
				texts = append(texts, strings.Join(richLines(c.Elements), " "))
			case *slack.TableRawTextCell:
				texts = append(texts, mrkdwn.Escape(c.Text))
			}
		}
		lines = append(lines, strings.Join(texts, " · "))
	}
	return strings.Join(lines, "\n")
}

// insteadMax is how many requests of one card are named with what decides about them.
const insteadMax = 8

// whom are mentions of those who are asked by a card.
func (c *card) whom(list []approvals.Approval) string {
	i := slices.IndexFunc(list, func(a approvals.Approval) bool { return a.Status == approvals.Pending })
	if i < 0 || c.o.Calling == nil || c.isCopy() {
		return ""
	}
	return mentions(c.o.Calling.Mention(list[i]), " ")
}

// instead says how to decide about what is pending of a card by a reply.
func (c *card) instead(list []approvals.Approval) string {
	var lines []string
	more := 0
	for _, a := range list {
		switch {
		case a.Status != approvals.Pending:
			continue
		case c.isCopy():
			return "Decide in " + mrkdwn.Link(c.o.Calling.Thread, "the thread") + "."
		case len(lines) == insteadMax:
			more++
			continue
		}
		yes := mrkdwn.Code(approveWords(a)) + " or " + mrkdwn.Code("deny "+view.Code(a))
		if a.Kind == approvals.Question {
			yes = mrkdwn.Code("deny "+view.Code(a)+" your answer") + " (the question is skipped, and the model reads your answer)"
		}
		if len(list) > 1 {
			verb, object := c.name(a)
			yes = verb + " " + mrkdwn.CodeWithin(object, 60) + ": " + yes
		}
		lines = append(lines, yes)
	}
	switch {
	case len(lines) == 0:
		return ""
	case len(list) == 1:
		return "Read the request, and reply " + lines[0] + " in this thread."
	}
	if more > 0 {
		lines = append(lines, count(more)+" more wait until these are decided.")
	}
	return "Read the request, and reply in this thread.\n• " + strings.Join(lines, "\n• ")
}

// SmallHome is a home tab for where Slack takes nothing of the whole one.
func SmallHome() Page {
	return Page{Blocks: []slack.Block{slack.NewHeaderBlock(plain("Slack does not accept this tab as it is. Write “help” in a direct message.", headerMax))}}
}
