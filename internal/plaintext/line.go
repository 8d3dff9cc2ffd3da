package plaintext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Zwsp separates two characters that together would mean something to Slack.
const Zwsp = "\u200b"

// IsAlnum reports whether a byte is a digit or a Latin letter.
func IsAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// IsWord is IsAlnum, or the underscore.
func IsWord(c byte) bool { return IsAlnum(c) || c == '_' }

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

// BareMentionAt reports whether the @ at s[i] begins a mention of everybody: a separate word, not part of an
// address (ops@here) or of a package's name (@here/maps).
func BareMentionAt(s string, i int) bool {
	if i > 0 && IsWord(s[i-1]) {
		return false
	}
	rest := s[i+1:]
	for _, w := range bareMentions {
		if len(rest) >= len(w) && strings.EqualFold(rest[:len(w)], w) {
			return len(rest) == len(w) || !IsWord(rest[len(w)]) && rest[len(w)] != '/'
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
		if s[i] == '@' && BareMentionAt(s, i) {
			b.WriteString(s[last : i+1])
			b.WriteString(Zwsp)
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
