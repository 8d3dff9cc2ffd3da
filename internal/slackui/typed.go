package slackui

import (
	"context"
	"regexp"
	"strings"

	"deckhand/internal/plaintext"
)

// slackEscaper does what Slack does to text that people type, but for what it makes links of.
var slackEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

var slackUnescaper = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// Said implements [chat.Screen]: people and channels stay as Slack marks them.
func (a *record) Said(text string) string {
	return strings.TrimSpace(strings.ReplaceAll(slackUnescaper.Replace(strings.ReplaceAll(text, a.mention(), "")), "\x00", ""))
}

// Mentions implements [chat.Screen].
func (a *record) Mentions(text string) bool { return strings.Contains(text, a.mention()) }

// ToOthers implements [chat.Screen]: people talk to each other in our threads too.
func (a *record) ToOthers(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "<@")
}

// slackMark is what Slack makes of a link, a person, a channel or a group: <target|label>.
var slackMark = regexp.MustCompile(`<([^<>|\s][^<>|]*)(?:\|([^<>]*))?>`)

// Typed implements [chat.Screen]: links, channels and groups as
// they were written, and people by their names.
func (a *record) Typed(ctx context.Context, text string) string {
	return unmarked(text, func(user string) string { return plaintext.OneLine(a.people.Name(ctx, user)) })
}

// Unmarked implements [chat.Screen].
func (a *record) Unmarked(text string) string { return unmarked(text, nil) }

// mention is how people write to us in text that Slack delivers.
func (a *record) mention() string { return "<@" + a.self.UserID + ">" }

// unmarked is text as Slack delivers it without Slack's marks. A `<` that somebody has typed is
// escaped there, so that what looks like a mark is one.
func unmarked(text string, name func(user string) string) string {
	var b strings.Builder
	end := 0
	for _, at := range slackMark.FindAllStringSubmatchIndex(text, -1) {
		target, label := text[at[2]:at[3]], ""
		if at[4] >= 0 {
			label = text[at[4]:at[5]]
		}
		b.WriteString(slackUnescaper.Replace(text[end:at[0]]))
		switch mark, rest := target[0], slackUnescaper.Replace(target[1:]); {
		case mark == '@' && name != nil:
			b.WriteString("@" + name(rest))
		case mark == '@', mark == '#' && label == "":
			b.WriteString(text[at[0]:at[1]])
		case mark == '#':
			b.WriteString("#" + slackUnescaper.Replace(label))
		case mark == '!' && label != "": // a group or a date, with what stands for it
			b.WriteString(slackUnescaper.Replace(label))
		case mark == '!':
			b.WriteString("@" + rest)
		default:
			b.WriteString(linkTyped(slackUnescaper.Replace(target), slackUnescaper.Replace(label)))
		}
		end = at[1]
	}
	b.WriteString(slackUnescaper.Replace(text[end:]))
	return strings.TrimSpace(strings.ReplaceAll(b.String(), "\x00", ""))
}

// linkTyped is a link as it was typed: Slack makes example.com one to http://example.com, and
// an address of mail one to mailto:. Other labels hide where a link leads.
func linkTyped(target, label string) string {
	bare := target
	for _, scheme := range []string{"https://", "http://", "mailto:", "tel:"} {
		bare = strings.TrimPrefix(bare, scheme)
	}
	switch {
	case label == "":
		return target
	case strings.TrimSuffix(bare, "/") == strings.TrimSuffix(label, "/"), label == target:
		return label
	}
	return label + " (" + target + ")"
}
