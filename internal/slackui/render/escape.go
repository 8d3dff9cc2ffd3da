package render

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// zwsp is put between two characters that would mean something to Slack together.
const zwsp = "\u200b"

// backtickLike stands for a backtick inside inline code, which mrkdwn cannot escape.
const backtickLike = "ˋ"

var mrkdwnEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// escape makes text safe for mrkdwn: no mention, link or entity survives, nor a
// bare @channel, which some of Slack's parsing modes turn into a mention.
func escape(s string) string {
	return mrkdwnEscaper.Replace(muteBare(printable(s)))
}

// code shows s as inline code in mrkdwn: one line, nothing in it is markup.
func code(s string) string {
	s = strings.Join(strings.Fields(visibleText(s)), " ")
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(mrkdwnEscaper.Replace(s), "`", backtickLike) + "`"
}

// escapeWithin is escape on one line, with everything made visible, for at most n
// units of s and half as much again for entities.
func escapeWithin(s string, n int) string {
	return escapeLines(oneLine(s), n)
}

// escapeLines is escapeWithin for a text of several lines.
func escapeLines(s string, n int) string {
	if len(s) > 8*n { // making things visible only adds to a text
		s = prefix(s, 2*n)
	}
	s = visibleText(s)
	most := n + n/2
	for {
		s = clip(s, n)
		out := escape(s)
		if width(out) <= most || n <= 8 {
			return out
		}
		n /= 2
	}
}

// codeWithin is code in at most n units and a half as much again for entities.
func codeWithin(s string, n int) string {
	s = clip(s, n)
	out := code(s)
	for width(out) > n+n/2 && n > 8 {
		n /= 2
		s = clip(s, n)
		out = code(s)
	}
	return out
}

// mention is a live mention of a user, for ids that come from Slack itself.
// Anything that is not an id is shown as text.
func mention(user string) string {
	if !isSlackID(user) {
		return escape(user)
	}
	return "<@" + user + ">"
}

func isSlackID(s string) bool {
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

// printable normalises line ends and shows control characters and broken UTF-8
// for what they are: Slack drops some of them, and what is dropped could join
// what we took apart.
func printable(s string) string {
	clean := true
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == 0xc2 {
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
		case unicode.IsControl(r):
			writeCodePoint(&b, r)
		default:
			b.WriteRune(r) // U+FFFD for bytes that are no UTF-8
		}
	}
	return b.String()
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

// bareMentions are the words that mean everybody when an @ stands before them.
var bareMentions = []string{"channel", "here", "everyone", "group"}

// bareMentionAt reports whether s[i], an @, begins a mention of everybody: a word
// of its own, not part of an address (ops@here) or of a package's name (@here/maps).
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

// muteBare takes bare @channel and its like apart.
func muteBare(s string) string {
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

// width is the number of UTF-16 units in s: never less than the characters that
// Slack counts.
func width(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		// Every byte that begins a rune counts once, one that begins a rune
		// outside the basic plane twice.
		switch c := s[i]; {
		case c < 0x80 || c >= 0xc0 && c < 0xf0:
			n++
		case c >= 0xf0:
			n += 2
		}
	}
	return n
}

// prefix returns the longest prefix of s of at most n units that does not end
// inside a character as people see it, as far as that is cheap to tell.
func prefix(s string, n int) string {
	if len(s) <= n {
		return s
	}
	end, units := 0, 0
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		u := 1
		if r > 0xffff {
			u = 2
		}
		if units+u > n {
			break
		}
		units += u
		end += size
	}
	if end == len(s) {
		return s
	}
	// Step back while what follows belongs to what precedes.
	for back, tries := end, 0; back > 0 && tries < 12; tries++ {
		next, _ := utf8.DecodeRuneInString(s[back:])
		prev, size := utf8.DecodeLastRuneInString(s[:back])
		if !joins(prev, next) {
			return s[:back]
		}
		back -= size
	}
	return s[:end]
}

// joins reports whether next is drawn as part of the character that prev ends.
func joins(prev, next rune) bool {
	return next == 0x200d || prev == 0x200d || // emoji joined by ZWJ
		next >= 0x1f3fb && next <= 0x1f3ff || // skin tones
		prev >= 0x1f1e6 && prev <= 0x1f1ff && next >= 0x1f1e6 && next <= 0x1f1ff || // flags
		unicode.In(next, unicode.Mn, unicode.Me, unicode.Mc, unicode.Variation_Selector)
}

// runes is the number of characters in s, as we tell it to people.
func runes(s string) int { return utf8.RuneCountInString(s) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// joinNonEmpty joins what is not empty.
func joinNonEmpty(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

func escapeAll(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = escape(s)
	}
	return out
}

// clip cuts s to at most n units and says so with an ellipsis.
func clip(s string, n int) string {
	if width(s) <= n {
		return s
	}
	return prefix(s, n-1) + "…"
}

// clipEscaped cuts text that is mrkdwn-escaped already, not inside an entity or a
// link.
func clipEscaped(s string, n int) string {
	if width(s) <= n {
		return s
	}
	s = prefix(s, n-1)
	for _, pair := range [...][2]byte{{'&', ';'}, {'<', '>'}} {
		if i := strings.LastIndexByte(s, pair[0]); i >= 0 && strings.IndexByte(s[i:], pair[1]) < 0 {
			s = s[:i]
		}
	}
	return s + "…"
}

// mrkdwn is a text object whose markup is ours. Verbatim keeps Slack from finding
// links and mentions that we did not write.
func mrkdwn(s string) *slack.TextBlockObject {
	return &slack.TextBlockObject{Type: slack.MarkdownType, Text: s, Verbatim: true}
}

// plain is a text object without markup.
func plain(s string, most int) *slack.TextBlockObject {
	return &slack.TextBlockObject{Type: slack.PlainTextType, Text: clip(muteBare(printable(s)), most)}
}

func section(blockID, text string) *slack.SectionBlock {
	b := slack.NewSectionBlock(mrkdwn(clipEscaped(text, sectionMax)), nil, nil)
	b.BlockID = blockID
	return b
}

func contextBlock(blockID, text string) *slack.ContextBlock {
	return slack.NewContextBlock(blockID, mrkdwn(clipEscaped(text, contextMax)))
}
