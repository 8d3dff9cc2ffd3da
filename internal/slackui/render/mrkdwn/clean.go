package mrkdwn

import (
	"strings"
	"unicode/utf8"

	"deckhand/internal/plaintext"
)

// Lookahead is how many bytes after a place determine how Clean shows what precedes it.
const Lookahead = 600

// CodeBlock shows text as a CommonMark code block with a fence that nothing in it closes. Its result must still be
// cleaned.
func CodeBlock(text string) string {
	n := 3
	for i := 0; i < len(text); i++ {
		if text[i] == '`' {
			run := runLength(text[i:])
			n = max(n, run+1)
			i += run
		}
	}
	fence := strings.Repeat("`", n)
	return fence + "\n" + text + "\n" + fence
}

// Clean makes a model's or a tool's CommonMark safe for a markdown block: no mention is live, no link disguises its
// target, no image is fetched, and raw HTML is shown literally.
//
// Each line depends only on itself and the next Lookahead bytes, so that the rendering of a growing text changes
// only near its end.
func Clean(s string) string {
	s = shortFences(plaintext.Printable(s))
	if !strings.ContainsAny(s, "<&@![") {
		return s
	}
	var c cleaner
	c.out.Grow(len(s) + 64)
	fence := fencesOf(s)
	for len(s) > 0 {
		line := firstLine(s)
		s = s[len(line):]
		if inside := fence.line(line); inside {
			c.code(line)
			continue
		}
		if strings.TrimSpace(line) == "" {
			c.loose = false
		}
		c.table = strings.Contains(line, "|") && (c.table || delimits(line) || delimits(firstLine(s)))
		c.prose(line)
	}
	return c.out.String()
}

// fenceMax bounds a fence, so that it can be repeated when a text is split.
const fenceMax = 20

// shortFences shortens longer runs of fence characters.
func shortFences(s string) string {
	for _, mark := range [...]string{"`", "~"} {
		long := strings.Repeat(mark, fenceMax+1)
		if !strings.Contains(s, long) {
			continue
		}
		var b strings.Builder
		for {
			i := strings.Index(s, long)
			if i < 0 {
				break
			}
			b.WriteString(s[:i+fenceMax])
			s = s[i+runLength(s[i:]):]
		}
		b.WriteString(s)
		s = b.String()
	}
	return s
}

// firstLine is the first line of s, with its end.
func firstLine(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i+1]
	}
	return s
}

// delimits reports whether a line is a table's delimiter row, also inside quotes.
func delimits(line string) bool { return isDelimiterRow(strings.TrimLeft(line, "> \t")) }

// beginsFence reports whether a line begins with a fence, also inside quotes and list items.
func beginsFence(line string) bool {
	// Nearly all lines end here: a fence needs three of a kind.
	if !strings.Contains(line, "```") && !strings.Contains(line, "~~~") {
		return false
	}
	rest := strings.TrimLeft(line, " \t>")
	if marker := listMarker(rest); marker > 0 {
		rest = strings.TrimLeft(rest[marker:], " \t>")
	}
	return strings.HasPrefix(rest, "```") || strings.HasPrefix(rest, "~~~")
}

// listMarker returns the length of the list marker that s begins with, or 0.
func listMarker(s string) int {
	i := 0
	for i < len(s) && i < 9 && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	switch {
	case i >= len(s):
		return 0
	case i == 0 && (s[0] == '-' || s[0] == '*' || s[0] == '+'), i > 0 && (s[i] == '.' || s[i] == ')'):
		if i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == '\t') {
			return i + 2
		}
	}
	return 0
}

func runLength(s string) int {
	n := 0
	for n < len(s) && s[n] == s[0] {
		n++
	}
	return n
}

// cleaner writes cleaned text.
type cleaner struct {
	out   strings.Builder
	table bool // the line is in a table, whose cells end at a | even in code
	loose bool // an earlier line of the paragraph has opened code that this one may close
}

// code writes code: only exact mentions are broken, so that people copy what the model wrote.
func (c *cleaner) code(s string) {
	last := 0
	for i := strings.IndexAny(s, "<&"); i >= 0 && i < len(s); i++ {
		at := i + 1
		switch {
		case s[i] == '<' && (slackToken(s[i:]) || strings.HasPrefix(s[at:], `\`) || strings.HasPrefix(s[at:], "&")):
		case s[i] == '&' && entityOf(s[i:], "lt", "60", "x3c") > 0:
			// If the text is cut here, it is no code any more.
			at = i + entityOf(s[i:], "lt", "60", "x3c")
			if at >= len(s) || !strings.ContainsRune(`!@#&\`, rune(s[at])) {
				continue
			}
		default:
			continue
		}
		c.out.WriteString(s[last:at])
		c.out.WriteString(plaintext.Zwsp)
		last, i = at, at-1
	}
	c.out.WriteString(s[last:])
}

// slackToken reports whether s begins with one of Slack's tokens: <@U1>, <#C1>, <!here>, <!subteam^S1>, <!date^…>,
// <https://a|b>.
func slackToken(s string) bool {
	if len(s) < 3 {
		return false
	}
	switch s[1] {
	case '@', '#':
		i := 2
		for i < len(s) && plaintext.IsAlnum(s[i]) {
			i++
		}
		return i > 2 && (i == len(s) || s[i] == '>' || s[i] == '|' || s[i] == '^')
	case '!':
		for _, w := range [...]string{"channel", "here", "everyone", "group", "subteam", "date"} {
			if n := 2 + len(w); len(s) >= n && strings.EqualFold(s[2:n], w) {
				return true
			}
		}
		return false
	}
	// A link with its own label.
	body := s[1:min(len(s), Lookahead)]
	end := strings.IndexAny(body, "> \n<")
	if end < 0 {
		end = len(body)
	}
	return strings.IndexByte(body[:end], ':') > 0 && strings.IndexByte(body[:end], '|') > 0
}

// prose writes a line of CommonMark that is not inside a code block.
func (c *cleaner) prose(s string) {
	last, loose := 0, c.loose
	// put writes what precedes i, then text, and continues at i+skip.
	put := func(i int, text string, skip int) {
		c.out.WriteString(s[last:i])
		c.out.WriteString(text)
		last = i + skip
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) && s[i+1] != '<' && s[i+1] != '@' && s[i+1] != '&' && s[i+1] != '\n' && s[i+1] < utf8.RuneSelf {
				i++ // escaped
			} else if i+1 < len(s) && s[i+1] == '<' {
				i++
				put(i+1, plaintext.Zwsp, 0)
			}
		case '`':
			n := runLength(s[i:])
			if end := closingTicks(s[i+n:], n); end >= 0 && !loose && !(c.table && strings.Contains(s[i+n:i+n+end], "|")) {
				c.out.WriteString(s[last:i])
				last = i + n + end + n
				c.code(s[i:last])
				i = last - 1
			} else {
				c.loose = c.loose || end < 0
				i += n - 1
			}
		case '<':
			if n := autolink(s[i:]); n > 0 {
				i += n - 1
			} else if shown, n := plainTag(s[i:]); n > 0 {
				put(i, shown, n)
				i += n - 1
			} else if i+1 < len(s) {
				switch next := s[i+1]; {
				case plaintext.IsAlnum(next) && !slackToken(s[i:]), next == '/', next == '?':
					put(i, `\<`, 1) // shown literally, not as HTML
				case next != ' ' && next != '\n' && next != '=' && next != '-' && !(next >= '0' && next <= '9'):
					put(i+1, plaintext.Zwsp, 0)
				}
			} else {
				put(i, `\<`, 1)
			}
		case '&':
			if n := entityOf(s[i:], "lt", "60", "x3c"); n > 0 {
				i += n - 1
				put(i+1, plaintext.Zwsp, 0)
			} else if n := entityOf(s[i:], "commat", "64", "x40"); n > 0 {
				i += n - 1
				put(i+1, plaintext.Zwsp, 0)
			}
		case '@':
			if plaintext.BareMentionAt(s, i) || spelledOut(s[i+1:]) {
				put(i+1, plaintext.Zwsp, 0)
			}
		case '!':
			if i+1 < len(s) && s[i+1] == '[' {
				l, apart := parseLink(s[i+1:]), ""
				if i > 0 && s[i-1] == '!' { // it would turn the rest into an image
					apart = plaintext.Zwsp
				}
				switch {
				case l.size == 0:
					put(i+1, plaintext.Zwsp, 0) // perhaps an image by reference
				case !l.fake && l.text == "":
					put(i, apart+"[image]", 3)
				default:
					put(i, apart, 1)
				}
			}
		case '[':
			if shown, size := footnote(s[i:], strings.TrimSpace(s[:i]) == ""); size > 0 {
				put(i, shown, size)
				i += size - 1
				break
			}
			l := parseLink(s[i:])
			switch {
			case l.fake && l.size > 0:
				put(i, asCode(l.text)+" ("+asCode(l.target)+")", l.size)
				i += l.size - 1
			case l.fake:
				put(i, `\[`, 1)
			}
		}
	}
	c.out.WriteString(s[last:])
}

// asCode shows s as inline code in CommonMark.
func asCode(s string) string {
	var c cleaner
	c.code(strings.ReplaceAll(strings.TrimSpace(s), "`", backtickLike))
	if c.out.Len() == 0 {
		return ""
	}
	return "`" + c.out.String() + "`"
}

// closingTicks returns the index of a run of exactly n backticks in s, or -1.
func closingTicks(s string, n int) int {
	s = s[:min(len(s), Lookahead-100)]
	for i := 0; i < len(s); {
		j := strings.IndexByte(s[i:], '`')
		if j < 0 {
			return -1
		}
		i += j
		if run := runLength(s[i:]); run != n {
			i += run
			continue
		}
		return i
	}
	return -1
}

// autolink returns the length of the plain <https://…> that s begins with, or 0.
func autolink(s string) int {
	body := s[1:min(len(s), Lookahead-100)]
	if !strings.HasPrefix(body, "https://") && !strings.HasPrefix(body, "http://") && !strings.HasPrefix(body, "mailto:") {
		return 0
	}
	end := strings.IndexAny(body, ">< |\t\n")
	if end < 0 || body[end] != '>' {
		return 0
	}
	return end + 2
}

// spelledOut reports whether a word at the beginning of s continues in an entity: @h&#101;re.
func spelledOut(s string) bool {
	n := 0
	for n < len(s) && n < len("everyone") && plaintext.IsAlnum(s[n]) {
		n++
	}
	return n < len(s) && s[n] == '&'
}

// entityOf returns the length of the entity at the beginning of s if it has the given name, decimal number or,
// after an x, hexadecimal number; else 0.
func entityOf(s, name, decimal, hex string) int {
	head := strings.ToLower(s[:min(len(s), 12)])
	end := strings.IndexByte(head, ';')
	if end < 0 {
		return 0
	}
	said := strings.TrimPrefix(head[1:end], "#")
	if said != name {
		said = strings.TrimLeft(said, "0")
		if strings.HasPrefix(said, "x") {
			said = "x" + strings.TrimLeft(said[1:], "0")
		}
		if said != decimal && said != hex {
			return 0
		}
	}
	return end + 1
}
