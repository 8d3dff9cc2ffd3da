package mrkdwn

import (
	"strings"

	"deckhand/internal/plaintext"
)

// Limits of tables in a message: Slack allows 100 rows and 20 columns.
const (
	tableColumns = 20
	tableRows    = 100
	tableWidth   = 5000 // in all
	// How many rows of a larger or unfinished table are shown, and how much text.
	tableShown      = 20
	tableShownWidth = 2500
)

// BigTable is a CommonMark table that is too large for a message. Rows begins with the header, and all have its
// length; cells are trimmed but otherwise as written.
type BigTable struct{ Rows [][]string }

// Shorten reduces large tables of a markdown text to their first rows and columns, followed by note's text; note
// gets the number of rows and columns shown, and the table stays whole if it returns false. over says that the text
// is complete; otherwise a table that may continue is shown no further than it may be in the end, so that the
// result only grows. The text must not be cleaned yet.
func Shorten(s string, over bool, note func(t BigTable, rows, columns int) (string, bool)) string {
	if !strings.Contains(s, "|") || !strings.Contains(s, "-") {
		return s
	}
	var out strings.Builder
	fence := fencesOf(s)
	held := "" // perhaps a table's header
	for len(s) > 0 {
		line := firstLine(s)
		s = s[len(line):]
		code := fence.line(line)
		if !code && held != "" && isDelimiterRow(line) && len(tableCells(held)) == len(tableCells(line)) {
			t := readTable(held, line, s)
			s, held = s[len(t.below):], ""
			for row := range strings.Lines(t.below) {
				fence.line(row)
			}
			shown, holds := t.shown(s, !over && !strings.Contains(s, "\n"), note)
			out.WriteString(shown)
			if holds {
				return out.String()
			}
			continue
		}
		out.WriteString(held)
		if held = ""; !code && tableCells(line) != nil {
			held = line
			continue
		}
		out.WriteString(line)
	}
	out.WriteString(held)
	return out.String()
}

// table is a table in a text.
type table struct {
	head  string // its header and delimiter row
	below string // its rows
	rows  [][]string
}

// readTable reads the table with the given first two lines, whose rows begin rest.
func readTable(header, under, rest string) *table {
	t := &table{head: header + under, rows: [][]string{tableCells(header)}}
	for at := 0; ; {
		line := firstLine(rest[at:])
		if beginsFence(line) || !strings.Contains(line, "|") {
			t.below = rest[:at]
			return t
		}
		at += len(line)
		row := make([]string, len(t.rows[0]))
		copy(row, tableCells(strings.TrimLeft(line, " \t")))
		t.rows = append(t.rows, row)
	}
}

// shown is a table's rendering in front of next. holds reports that what follows must wait, since the table may
// continue.
func (t *table) shown(next string, open bool, note func(BigTable, int, int) (string, bool)) (text string, holds bool) {
	columns, rows := min(len(t.rows[0]), tableColumns), 0
	var b strings.Builder
	cut, below := columns < len(t.rows[0]), t.below
	if cut {
		t.line(&b, t.rows[0][:columns])
		b.WriteString("|" + strings.Repeat("---|", columns) + "\n")
	} else {
		b.WriteString(t.head)
	}
	for width := 0; rows < min(len(t.rows)-1, tableShown) && width < tableShownWidth; rows++ {
		before, line := b.Len(), firstLine(below)
		if below = below[len(line):]; cut {
			t.line(&b, t.rows[rows+1][:columns])
		} else {
			b.WriteString(line)
		}
		width += plaintext.Width(b.String()[before:])
	}
	whole := t.head + t.below
	switch {
	case !cut && rows == len(t.rows)-1: // all of it
		return whole, false
	case open:
		return b.String(), true
	case !cut && len(t.rows)-1 <= tableRows && plaintext.Width(whole) <= tableWidth:
		return whole, false
	}
	words, ok := note(BigTable{t.rows}, rows, columns)
	if !ok {
		return whole, false
	}
	b.WriteString("\n" + words + "\n")
	if strings.TrimSpace(firstLine(next)) != "" {
		b.WriteString("\n")
	}
	return b.String(), false
}

func (t *table) line(b *strings.Builder, cells []string) {
	for _, c := range cells {
		b.WriteString("| " + c + " ")
	}
	b.WriteString("|\n")
}

// tableCells are the trimmed cells of a table's line; nil if it does not stand by itself.
func tableCells(line string) (cells []string) {
	if !strings.Contains(line, "|") || strings.HasPrefix(line, "    ") || strings.HasPrefix(strings.TrimLeft(line, " "), ">") || strings.HasPrefix(line, "\t") {
		return nil
	}
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	from := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '|':
			cells = append(cells, strings.TrimSpace(line[from:i]))
			from = i + 1
		}
	}
	if last := strings.TrimSpace(line[from:]); last != "" || len(cells) == 0 {
		cells = append(cells, last)
	}
	return cells
}

var cellMarks = strings.NewReplacer(`\|`, "|", "<br>", "\n", "<br/>", "\n", "<br />", "\n", "**", "", "`", "")

// PlainCell is a table's cell without its markup.
func PlainCell(cell string) string { return strings.TrimSpace(cellMarks.Replace(cell)) }
