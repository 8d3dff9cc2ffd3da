package render

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"deckhand/internal/plaintext"
	"deckhand/internal/slackui/render/mrkdwn"
)

// markup is a text object whose markup is ours. Verbatim keeps Slack from finding
// links and mentions that we did not write.
func markup(s string) *slack.TextBlockObject {
	return &slack.TextBlockObject{Type: slack.MarkdownType, Text: s, Verbatim: true}
}

// plain is a text object without markup.
func plain(s string, most int) *slack.TextBlockObject {
	return &slack.TextBlockObject{Type: slack.PlainTextType, Text: plaintext.Clip(plaintext.Mute(plaintext.Printable(s)), most)}
}

func section(blockID, text string) *slack.SectionBlock {
	b := slack.NewSectionBlock(markup(mrkdwn.ClipEscaped(text, sectionMax)), nil, nil)
	b.BlockID = blockID
	return b
}

func contextBlock(blockID, text string) *slack.ContextBlock {
	return slack.NewContextBlock(blockID, markup(mrkdwn.ClipEscaped(text, contextMax)))
}

// runes is the number of characters in s, as we tell it to people.
func runes(s string) int { return utf8.RuneCountInString(s) }

// joinNonEmpty joins what is not empty.
func joinNonEmpty(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

func escapeAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = mrkdwn.Escape(s)
	}
	return out
}
