package mrkdwn

import (
	"strings"

	"deckhand/internal/plaintext"
)

// backtickLike replaces backticks inside inline code, which mrkdwn cannot escape.
const backtickLike = "ˋ"

var mrkdwnEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Escape makes text safe for mrkdwn: no mention, link or entity survives, nor a
// bare @channel, which some of Slack's parsing modes turn into a mention.
func Escape(s string) string {
	return mrkdwnEscaper.Replace(plaintext.Mute(plaintext.Printable(s)))
}

// apart isolates a right-to-left text, so that it does not reorder our numbers and signs beside it. It contains no
// isolates itself.
func apart(s string) string {
	for _, r := range s {
		if r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfefc || r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff {
			return "\u2068" + s + "\u2069"
		}
	}
	return s
}

// Code shows s as inline code in mrkdwn: one line, nothing in it is markup.
func Code(s string) string {
	s = strings.Join(strings.Fields(plaintext.Visible(s)), " ")
	if s == "" {
		return ""
	}
	return apart("`" + strings.ReplaceAll(mrkdwnEscaper.Replace(s), "`", backtickLike) + "`")
}

// EscapeWithin is Escape on one line, with everything visible, for at most n units of s, plus half as many for
// entities.
func EscapeWithin(s string, n int) string {
	return EscapeLines(plaintext.OneLine(s), n)
}

// EscapeLines is EscapeWithin for a text of several lines.
func EscapeLines(s string, n int) string {
	if len(s) > 8*n { // making things visible only lengthens a text
		s = plaintext.Prefix(s, 2*n)
	}
	s = plaintext.Visible(s)
	most := n + n/2
	for {
		s = plaintext.Clip(s, n)
		out := Escape(s)
		if plaintext.Width(out) <= most || n <= 8 {
			return out
		}
		n /= 2
	}
}

// CodeWithin is Code in at most n units, plus half as many for entities.
func CodeWithin(s string, n int) string {
	s = plaintext.Clip(s, n)
	out := Code(s)
	for plaintext.Width(out) > n+n/2 && n > 8 {
		n /= 2
		s = plaintext.Clip(s, n)
		out = Code(s)
	}
	return out
}

// Mention is a live mention of a user, for ids that come from Slack itself. Anything else is shown as text.
func Mention(user string) string {
	if !IsID(user) {
		return Escape(user)
	}
	return "<@" + user + ">"
}

// IsID reports whether s has the shape of one of Slack's ids: U0123, C0123, S0123.
func IsID(s string) bool {
	if len(s) < 2 || len(s) > 32 || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	for i := range len(s) {
		if !plaintext.IsAlnum(s[i]) {
			return false
		}
	}
	return true
}

// ClipEscaped cuts escaped mrkdwn outside entities and links.
func ClipEscaped(s string, n int) string {
	if plaintext.Width(s) <= n {
		return s
	}
	s = plaintext.Prefix(s, n-1)
	for _, pair := range [...][2]byte{{'&', ';'}, {'<', '>'}} {
		if i := strings.LastIndexByte(s, pair[0]); i >= 0 && strings.IndexByte(s[i:], pair[1]) < 0 {
			s = s[:i]
		}
	}
	return s + "…"
}
