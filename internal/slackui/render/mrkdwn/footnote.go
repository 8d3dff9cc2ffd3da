package mrkdwn

import (
	"strings"

	"deckhand/internal/plaintext"
)

// superscripts are the digits of a footnote's number.
const superscripts = "⁰¹²³⁴⁵⁶⁷⁸⁹"

// footnote reads a footnote's mark, [^1] or [^note], at the beginning of s, and returns its rendering and length,
// or 0. Slack has no footnotes: it would show the marks, and take a one-word note for a link's target. At a line's
// beginning, where the note itself stands, the colon is dropped.
func footnote(s string, begins bool) (shown string, size int) {
	if !strings.HasPrefix(s, "[^") {
		return "", 0
	}
	end := strings.IndexByte(s[:min(len(s), 40)], ']')
	if end < 3 {
		return "", 0
	}
	number := true
	var b strings.Builder
	for i := 2; i < end; i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			b.WriteString(string([]rune(superscripts)[c-'0']))
		case plaintext.IsWord(c) || c == '-':
			number = false
		default:
			return "", 0
		}
	}
	if shown = b.String(); !number {
		shown = "(" + strings.ReplaceAll(s[2:end], "_", `\_`) + ")"
		if !begins {
			shown = " " + shown
		}
	}
	size = end + 1
	if begins && strings.HasPrefix(s[size:], ":") {
		size++
	}
	return shown, size
}

// plainTags are HTML tags in models' texts, and their rendering. A space replaces a tag without one, so that words
// are not joined.
var plainTags = []struct{ tag, shown string }{
	{"<br>", " "}, {"<br/>", " "}, {"<br />", " "}, {"<details>", " "}, {"</details>", " "}, {"<summary>", " **"}, {"</summary>", "** "},
}

// plainTag reads one of them at the beginning of s, and returns its rendering and length, or 0.
func plainTag(s string) (shown string, size int) {
	for _, t := range plainTags {
		if len(s) >= len(t.tag) && strings.EqualFold(s[:len(t.tag)], t.tag) {
			return t.shown, len(t.tag)
		}
	}
	return "", 0
}
