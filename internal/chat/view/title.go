package view

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"deckhand/internal/plaintext"
)

// titleMax is how long a title is, in units. Slack cuts those of agents' sessions at 200,
// and a line on a phone at about 60.
const titleMax = 60

// Title is what a task is called: the first words of the prompt that opened it, on one
// line, without markup, mentions and secrets. It is plain text of at most 60 units, and
// has to be escaped as any. A prompt without words has none.
func Title(prompt string, redact func(string) string) string {
	if redact != nil {
		prompt = redact(prompt)
	}
	prompt = titleTokens.ReplaceAllStringFunc(plaintext.Prefix(prompt, 4000), func(token string) string {
		target, label, _ := strings.Cut(strings.Trim(token, "<>"), "|")
		switch {
		case target[0] == '@' || target[0] == '!':
			return ""
		case target[0] == '#' && label != "":
			return "#" + label
		case label != "":
			return label
		}
		return strings.TrimLeft(target, "#")
	})
	var words []string
	for line := range strings.Lines(prompt) {
		line = strings.TrimLeft(strings.TrimSpace(line), "#>*-•|` \t")
		words = append(words, strings.Fields(strings.NewReplacer("```", " ", "**", "", "`", "").Replace(line))...)
	}
	return cutWords(plaintext.Visible(strings.Join(words, " ")), titleMax)
}

// Slug is what a task's branch is called: a few words of its title in lower case, of ASCII
// letters and digits. There is none where the title has no such words.
func Slug(title string) string {
	slug := ""
	for i, word := range strings.FieldsFunc(strings.ToLower(strings.ReplaceAll(title, "'", "")), func(r rune) bool { return !isSlug(r) && r < utf8.RuneSelf }) {
		switch {
		case i == slugWords:
			return slug
		case strings.ContainsFunc(word, func(r rune) bool { return !isSlug(r) }) || len(word) > slugWord:
			continue // a part of a word would be another one
		case slug != "":
			slug += "-"
		}
		slug += word
	}
	return slug
}

// Six words of at most 16 bytes make a branch that fits wherever it is shown.
const (
	slugWords = 6
	slugWord  = 16
)

func isSlug(r rune) bool { return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' }

// titleTokens are Slack's own tokens in what people write.
var titleTokens = regexp.MustCompile(`<[@#!][^<>]+>|<(?:https?|mailto):[^<>]+>`)

// cutWords cuts a line to at most n units, after a word if there is a blank in its second
// half, and says so with an ellipsis.
func cutWords(s string, n int) string {
	if plaintext.Width(s) <= n {
		return s
	}
	s = plaintext.Prefix(s, n-1)
	if i := strings.LastIndexByte(s, ' '); i > len(s)/2 {
		s = s[:i]
	}
	return strings.TrimRight(s, " ,;:.-–—") + "…"
}
