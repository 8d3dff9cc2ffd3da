package mrkdwn

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// zwsp separates two characters that together would mean something to Slack.
const zwsp = "\u200b"

// backtickLike replaces backticks inside inline code, which mrkdwn cannot escape.
const backtickLike = "ˋ"

var mrkdwnEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Escape makes text safe for mrkdwn: no mention, link or entity survives, nor a
// bare @channel, which some of Slack's parsing modes turn into a mention.
func Escape(s string) string {
	return mrkdwnEscaper.Replace(Mute(Printable(s)))
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
	s = strings.Join(strings.Fields(Visible(s)), " ")
	if s == "" {
		return ""
	}
	return apart("`" + strings.ReplaceAll(mrkdwnEscaper.Replace(s), "`", backtickLike) + "`")
}

// EscapeWithin is Escape on one line, with everything visible, for at most n units of s, plus half as many for
// entities.
func EscapeWithin(s string, n int) string {
	return EscapeLines(OneLine(s), n)
}

// EscapeLines is EscapeWithin for a text of several lines.
func EscapeLines(s string, n int) string {
	if len(s) > 8*n { // making things visible only lengthens a text
		s = Prefix(s, 2*n)
	}
	s = Visible(s)
	most := n + n/2
	for {
		s = Clip(s, n)
		out := Escape(s)
		if Width(out) <= most || n <= 8 {
			return out
		}
		n /= 2
	}
}

// CodeWithin is Code in at most n units, plus half as many for entities.
func CodeWithin(s string, n int) string {
	s = Clip(s, n)
	out := Code(s)
	for Width(out) > n+n/2 && n > 8 {
		n /= 2
		s = Clip(s, n)
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
		if !isAlnum(s[i]) {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isWord(c byte) bool { return isAlnum(c) || c == '_' }

// Printable normalises line ends and makes control characters, direction changes and broken UTF-8 visible: Slack
// drops some of them, which could join what we separated, and a text must not reorder its surroundings. Arabic and
// Hebrew need none of these.
func Printable(s string) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == 0xc2 || c == 0xe2 && turns(s[i:]) {
			clean = false
			break
		}
	}
	if clean && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i, r := range s {
		switch {
		case r == '\r':
			if !strings.HasPrefix(s[i+1:], "\n") {
				b.WriteByte('\n')
			}
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case unicode.IsControl(r), r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			writeCodePoint(&b, r)
		default:
			b.WriteRune(r) // U+FFFD for invalid UTF-8
		}
	}
	return b.String()
}

// turns reports whether s begins with a directional embedding, override or isolate: U+202A to U+202E, U+2066 to
// U+2069.
func turns(s string) bool {
	return len(s) >= 3 && (s[1] == 0x80 && s[2] >= 0xaa && s[2] <= 0xae || s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9)
}

func writeCodePoint(b *strings.Builder, r rune) {
	b.WriteString("⟨U+")
	hex := strings.ToUpper(strconv.FormatInt(int64(r), 16))
	for n := len(hex); n < 4; n++ {
		b.WriteByte('0')
	}
	b.WriteString(hex)
	b.WriteString("⟩")
}

// bareMentions are the words that, after an @, mention everybody.
var bareMentions = []string{"channel", "here", "everyone", "group"}

// bareMentionAt reports whether the @ at s[i] begins a mention of everybody: a separate word, not part of an
// address (ops@here) or of a package's name (@here/maps).
func bareMentionAt(s string, i int) bool {
	if i > 0 && isWord(s[i-1]) {
		return false
	}
	rest := s[i+1:]
	for _, w := range bareMentions {
		if len(rest) >= len(w) && strings.EqualFold(rest[:len(w)], w) {
			return len(rest) == len(w) || !isWord(rest[len(w)]) && rest[len(w)] != '/'
		}
	}
	return false
}

// Mute breaks bare @channel and its like.
func Mute(s string) string {
	i := strings.IndexByte(s, '@')
	if i < 0 {
		return s
	}
	var b strings.Builder
	last := 0
	for ; i < len(s); i++ {
		if s[i] == '@' && bareMentionAt(s, i) {
			b.WriteString(s[last : i+1])
			b.WriteString(zwsp)
			last = i + 1
		}
	}
	if last == 0 {
		return s
	}
	b.WriteString(s[last:])
	return b.String()
}

// OneLine puts s on one line, with single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
