package render

import (
	"strings"
	"unicode"

	"github.com/slack-go/slack"

	"deckhand/internal/plaintext"
)

// cells are a row of a table. Slack refuses empty cells.
func cells(texts ...string) []slack.TableCell {
	out := make([]slack.TableCell, len(texts))
	for i, t := range texts {
		out[i] = slack.NewTableRawTextCell(cellText(t))
	}
	return out
}

// cellText is text for a cell, in one line. Spaces that do not break stay.
func cellText(s string) string {
	words := strings.FieldsFunc(plaintext.Mute(plaintext.Printable(s)), func(r rune) bool { return unicode.IsSpace(r) && r != '\u00a0' })
	if len(words) == 0 {
		return " "
	}
	return plaintext.Clip(strings.Join(words, " "), 200)
}

func boldCells(texts ...string) []slack.TableCell {
	out := make([]slack.TableCell, len(texts))
	for i, t := range texts {
		out[i] = slack.NewTableRichTextCell(slack.NewRichTextSection(
			slack.NewRichTextSectionTextElement(cellText(t), &slack.RichTextSectionTextStyle{Bold: true})))
	}
	return out
}
