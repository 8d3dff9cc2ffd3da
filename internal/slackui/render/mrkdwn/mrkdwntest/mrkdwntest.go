// Package mrkdwntest holds text that is meant for Slack against the rules of package
// mrkdwn, for the tests of all who make such text.
package mrkdwntest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// Units is how many UTF-16 units s has, by the standard library's count.
func Units(s string) int { return len(utf16.Encode([]rune(s))) }

var (
	link          = regexp.MustCompile(`^<((?i:https?)://|mailto:)[^<>|\s]+(\|[^<>|]*)?>`)
	liveToken     = regexp.MustCompile(`(?i)<!(channel|here|everyone|group|subteam|date)|<[@#][A-Za-z0-9]+[>|^]|<[a-z][a-z0-9+.-]*:[^\s<>]*\|`)
	bareEverybody = regexp.MustCompile(`(?i)(^|[^\w])@(channel|here|everyone|group)($|[^\w/])`)
	image         = regexp.MustCompile(`!\[[^\]\n]*\]\(`)
)

// Foreign says which tokens of Slack's are in mrkdwn besides links and ours, each of
// which matches from a token's < on.
func Foreign(text string, ours ...*regexp.Regexp) (problems []string) {
	for i := range len(text) {
		if text[i] == '<' && !link.MatchString(text[i:]) && !slices.ContainsFunc(ours, func(r *regexp.Regexp) bool { return r.MatchString(text[i:]) }) {
			return append(problems, fmt.Sprintf("a token that is not ours: %.60q", text[i:]))
		}
	}
	if m := bareEverybody.FindString(text); m != "" && !strings.Contains(text, "`") {
		problems = append(problems, fmt.Sprintf("%q is not muted", m))
	}
	return problems
}

// Live says what in a markdown block is a live mention, or makes somebody's client
// fetch anything.
func Live(text string) (problems []string) {
	if m := liveToken.FindString(text); m != "" {
		problems = append(problems, fmt.Sprintf("live: %q", m))
	}
	if strings.Contains(text, "`") || strings.Contains(text, "~~~") || strings.Contains(text, `\`) {
		return problems // code may hold what prose may not; its own tests look at that
	}
	if m := bareEverybody.FindString(text); m != "" {
		problems = append(problems, fmt.Sprintf("%q is not muted", m))
	}
	if m := image.FindString(text); m != "" {
		problems = append(problems, fmt.Sprintf("an image: %q", m))
	}
	return problems
}

// Prose is at least n bytes of CommonMark as models write it: paragraphs, code, lists
// and tables.
func Prose(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "## Part %d\n\nHere is a paragraph with some words in it, so that it fills a line or two; it mentions `code%d` and **bold** things, ünïcödé and 漢字.\n\n", i, i)
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, "```go\nfunc f%d() {\n\treturn\n}\n```\n\n", i)
		case 1:
			b.WriteString("- one\n- two\n  - three\n\n")
		case 2:
			b.WriteString("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n")
		}
	}
	return b.String()
}
