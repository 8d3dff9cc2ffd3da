package mrkdwn

import (
	"strings"
	"unicode/utf8"

	"deckhand/internal/plaintext"
)

// Ranks of places to cut a text; higher is better.
const (
	cutLine      = iota + 1 // inside a code block or a table
	cutOutside              // at the end of a line of prose
	cutParagraph            // at a blank line
)

// Place is a cut: At bytes from the beginning, with what closes its head and opens its tail.
type Place struct {
	At                 int
	Closing, Reopening string
}

// Cut cuts s, which is cleaned markdown, so that head has at most room units; see PlaceToCut. Nothing of s is lost.
func Cut(s string, room int) (head, tail string) {
	c := PlaceToCut(s, room)
	return s[:c.At] + c.Closing, c.Reopening + s[c.At:]
}

// PlaceToCut finds where to cut s so that its head has at most room units: at the end of a paragraph in the second
// half, else at a line's end, else between words or characters, but never after a heading or a line that ends with
// a colon. A cut code block is closed in the head and reopened in the tail; a table repeats its header.
//
// The cut depends only on the first room units. room must be at least 1,000. A shorter s may be cut at its end.
func PlaceToCut(s string, room int) Place {
	const closing = containerMax + fenceMax + 2 // kept for closing a fence
	limit := len(plaintext.Prefix(s, room-closing))
	var (
		fence       = fencesOf(s[:limit])
		table       tableState
		best        struct{ at, rank int }
		bestFence   fenceState
		bestTable   string
		half, least = limit / 2, limit / 4
		leading     bool // the last line introduces the next one
	)
	for at := 0; at < limit; {
		line := s[at:limit]
		i := strings.IndexByte(line, '\n')
		if i < 0 {
			break
		}
		line = line[:i+1]
		at += len(line)
		inCode := fence.line(line)
		header := ""
		if inCode {
			table = tableState{}
		} else {
			header = table.line(line)
		}
		rank := cutOutside
		switch {
		case fence.mark != 0 || !inCode && strings.Contains(line, "|"):
			rank = cutLine
		case strings.TrimSpace(line) == "" && !leading:
			rank = cutParagraph
		}
		if text := strings.TrimSpace(line); text != "" {
			leading = !inCode && leads(text)
		}
		switch {
		case at < least, leading: // what it introduces stays with it
		case best.at < half && at >= half, rank >= best.rank: // the second half is preferred
			best.at, best.rank = at, rank
			bestFence, bestTable = fence, header
		}
	}
	switch {
	case best.at == 0:
		return cutLongLine(s, limit)
	case bestFence.mark != 0:
		return Place{best.at, bestFence.closer(), bestFence.reopener()}
	case len(bestTable) < best.at/2:
		return Place{best.at, "", bestTable}
	}
	return Place{At: best.at}
}

// cutLongLine cuts within a line: after a space near the limit if there is one.
func cutLongLine(s string, limit int) Place {
	fence := fenceAfter(s[:limit])
	at := limit
	if i := strings.LastIndexAny(s[:limit], " \t\n"); i > limit/2 {
		at = i + 1
	}
	for at > 1 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	if fence.mark != 0 {
		return Place{at, "\n" + fence.closer(), fence.reopener()}
	}
	return Place{At: at}
}

// containerMax bounds the repeated quote and list markers in front of a fence.
const containerMax = 24

// closer is the line that closes the fence, in its quotes and list items.
func (f *fenceState) closer() string {
	container, body := f.split()
	var b strings.Builder
	for _, c := range []byte(container) { // a list marker would begin another item
		switch c {
		case '>':
			b.WriteByte(c)
		case '\t':
			b.WriteString("    ")
		default:
			b.WriteByte(' ')
		}
	}
	if b.Len() > containerMax {
		b.Reset()
	}
	return b.String() + body[:f.length] + "\n"
}

// reopener is the line that reopens the code block on a further page. Its fence keeps its length: the code may
// contain a shorter one. Indentation of a list item, which does not continue there, is dropped.
func (f *fenceState) reopener() string {
	container, body := f.split()
	if len(f.opener) > 60 {
		body = body[:f.length]
	}
	if len(container) > containerMax || strings.TrimSpace(container) == "" {
		container = ""
	}
	return container + body + "\n"
}

// split splits the opening line before its fence, without its line end.
func (f *fenceState) split() (container, body string) {
	return f.opener[:f.begin], f.opener[f.begin:]
}

// tableState tracks tables over lines.
type tableState struct {
	last   string // the line before, outside a table
	header string // the first two lines of the table that we are in
}

// line takes the next line and returns the header of its table, or "".
func (t *tableState) line(line string) string {
	switch {
	case t.header != "":
		if !strings.Contains(line, "|") {
			t.header, t.last = "", line
		}
	case t.last != "" && isDelimiterRow(line) && strings.Contains(t.last, "|"):
		t.header, t.last = t.last+line, ""
		if len(t.header) > 1000 {
			t.header = "" // too much to repeat
		}
	default:
		t.last = line
	}
	return t.header
}

// isDelimiterRow reports whether line is a table's delimiter row.
func isDelimiterRow(line string) bool {
	line = strings.TrimSpace(line)
	return strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, "|-: \t") == ""
}

// Headings are the # headings of a markdown text, in order, without markup.
func Headings(markdown string) []string {
	var out []string
	fence := fencesOf(markdown)
	for line := range strings.Lines(markdown) {
		if fence.line(line) {
			continue
		}
		text := strings.TrimLeft(line, "#")
		if level := len(line) - len(text); level < 1 || level > 6 || !strings.HasPrefix(text, " ") {
			continue
		}
		if text = plaintext.OneLine(strings.NewReplacer("*", "", "`", "").Replace(strings.TrimRight(text, "# \n"))); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// Tail returns the end of s, at most room units, from a paragraph or a line on, with its code block reopened.
func Tail(s string, room int) string {
	if plaintext.Width(s) <= room {
		return s
	}
	// A unit has at most three bytes (a pair four).
	at := len(s)
	for units := 0; at > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:at])
		units++
		if r > 0xffff {
			units++
		}
		if units > room-80 {
			break
		}
		at -= size
	}
	at = plaintext.CharacterEnd(s, at)
	end := at
	if i := strings.Index(s[at:], "\n\n"); i >= 0 && i < (len(s)-at)/2 {
		end = at + i + 2
	} else if i := strings.IndexByte(s[at:], '\n'); i >= 0 && i < (len(s)-at)/2 {
		end = at + i + 1
	}
	if fence := fenceAfter(s[:end]); fence.mark != 0 {
		return fence.reopener() + s[end:]
	}
	return s[end:]
}

// InFence reports whether cleaned markdown ends inside a code block.
func InFence(s string) bool { return fenceAfter(s).mark != 0 }

// fenceAfter is the state after the last line of a text.
func fenceAfter(s string) fenceState {
	fence := fencesOf(s)
	for line := range strings.Lines(s) {
		fence.line(line)
	}
	return fence
}

// Last returns the last paragraph or list of s, at most room units, with the heading or line that introduces it. It
// is empty if that is too long, is code, or is in a table.
func Last(s string, room int) string {
	end := strings.TrimRight(s, " \t\n")
	from := -1
	for at := len(end); at > 0; {
		above := strings.TrimRight(end[:at], " \t\n")
		begin := strings.LastIndex(above, "\n\n") + 2
		if begin == 1 {
			break // s may begin in the middle of something
		}
		part := above[begin:]
		if plaintext.Width(s[begin:]) > room {
			break
		}
		if from >= 0 && !leads(part) {
			break
		}
		if strings.ContainsAny(part[:1], " \t|>") || strings.Contains(part, "```") || strings.Contains(part, "~~~") {
			break
		}
		from, at = begin, begin
	}
	if from < 0 || InFence(s[:from]) || leads(strings.TrimSpace(s[from:])) {
		return ""
	}
	return s[from:]
}

// leads reports whether a paragraph introduces what follows.
func leads(part string) bool {
	return !strings.Contains(part, "\n") && (strings.HasPrefix(part, "#") || strings.HasSuffix(part, ":"))
}
