package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"deckhand/internal/store"
)

const (
	tableWidth = 100 // columns of a terminal
	tableLines = 30
	tableDays  = 92
	labelMin   = 16
	labelMax   = 44
)

// column is one of a table's: numbers stand right, at their decimal points.
type column struct {
	head  string
	cells []string
	money bool
	left  bool
}

// Table writes an answer for a terminal, at most 100 columns wide.
func Table(w io.Writer, a Answer, names Names) error {
	var b strings.Builder
	b.WriteString(fit(a.Title(names), tableWidth) + "\n")
	for _, line := range a.Summary() {
		b.WriteString(fit(line, tableWidth) + "\n")
	}
	if a.Empty() {
		return write(w, b.String())
	}
	if line := sparkline(a.Series); line != "" {
		b.WriteString("\n" + line + "\n")
	}
	if len(a.Lines) > 0 {
		b.WriteByte('\n')
		writeColumns(&b, breakdown(a, names), true)
	}
	if len(a.Threads) > 0 && a.By != store.ByThread {
		b.WriteString("\n")
		threads := []column{{head: "Dearest threads", left: true}, {head: "Turns"}, {head: "Cost", money: true}, {head: "Share"}}
		labels := a.Labels(store.ByThread, a.Threads, names)
		for i, l := range a.Threads {
			addRow(threads, labels[i], count(l.Turns), l.Amount(), l.ShareText())
		}
		writeColumns(&b, threads, false)
	}
	for i, note := range a.Notes() {
		if i == 0 {
			b.WriteByte('\n')
		}
		b.WriteString(note + "\n")
	}
	return write(w, b.String())
}

func write(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func breakdown(a Answer, names Names) []column {
	most := tableLines
	if a.By == store.ByDay || a.By == store.ByMonth {
		most = tableDays
	}
	lines, others, more := a.Top(most)
	cols := []column{
		{head: heading(a.By), left: true},
		{head: "Turns"},
		{head: "In"},
		{head: "Out"},
		{head: "Cached"},
		{head: "Cost", money: true},
	}
	contract, compared := a.HasContract(), hasBefore(a.By)
	if contract {
		cols = append(cols, column{head: "Contract", money: true})
	}
	cols = append(cols, column{head: "Share"})
	if compared {
		cols = append(cols, column{head: "Change"})
	}
	row := func(label string, l Line) {
		cells := []string{label, count(l.Turns), tokens(l.Input), tokens(l.Output), tokens(l.CacheRead + l.CacheWrite5m + l.CacheWrite1h), l.Amount()}
		if contract {
			cells = append(cells, Money(l.ContractMicroUSD))
		}
		cells = append(cells, l.ShareText())
		if compared {
			cells = append(cells, l.ChangeText())
		}
		addRow(cols, cells...)
	}
	labels := a.Labels(a.By, lines, names)
	for i, l := range lines {
		row(labels[i], l)
	}
	if more > 0 {
		row("and "+plural(int64(more), "other", "others"), others)
	}
	row("Total", a.Total)
	return cols
}

func heading(by store.CostGroup) string {
	return upperFirst(string(by))
}

func addRow(cols []column, cells ...string) {
	for i := range cols {
		cols[i].cells = append(cols[i].cells, cells[i])
	}
}

// writeColumns writes a table; if it has a total, that is its last row.
func writeColumns(b *strings.Builder, cols []column, total bool) {
	widths := make([]int, len(cols))
	left := tableWidth
	for i := range cols {
		if cols[i].money {
			alignPoints(cols[i].cells)
		}
		if i == 0 {
			continue
		}
		widths[i] = cells(cols[i].head)
		for _, c := range cols[i].cells {
			widths[i] = max(widths[i], cells(c))
		}
		left -= widths[i] + 2
	}
	widths[0] = cells(cols[0].head)
	for _, c := range cols[0].cells {
		widths[0] = max(widths[0], cells(c))
	}
	widths[0] = min(widths[0], max(labelMin, min(labelMax, left)))
	rule := len(cols)*2 - 2
	for _, n := range widths {
		rule += n
	}
	put := func(cell func(column) string) {
		var row strings.Builder
		for i, c := range cols {
			text := fit(cell(c), widths[i])
			pad := strings.Repeat(" ", max(0, widths[i]-cells(text)))
			switch {
			case c.left:
				row.WriteString(text + pad)
			default:
				row.WriteString("  " + pad + text)
			}
		}
		b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	put(func(c column) string { return c.head })
	b.WriteString(strings.Repeat("─", rule) + "\n")
	rows := len(cols[0].cells)
	for i := range rows {
		if total && i == rows-1 {
			b.WriteString(strings.Repeat("─", rule) + "\n")
		}
		put(func(c column) string { return c.cells[i] })
	}
}

// alignPoints pads amounts so that their decimal points stand in one line.
func alignPoints(amounts []string) {
	most := 0
	decimals := func(s string) int { return len(s) - 1 - strings.LastIndexByte(s, '.') }
	for _, s := range amounts {
		most = max(most, decimals(s))
	}
	for i, s := range amounts {
		amounts[i] = s + strings.Repeat(" ", most-decimals(s))
	}
}

// cells is how many columns of a terminal a text takes: two for wide letters, none
// for what is put on top of others.
func cells(s string) int {
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	switch {
	case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Me, r), unicode.Is(unicode.Cf, r):
		return 0
	case r >= 0x1f300 && r <= 0x1faff: // emoji
		return 2
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}

// fit cuts a text to so many columns, with an ellipsis in place of what is missing.
func fit(s string, most int) string {
	if cells(s) <= most {
		return s
	}
	n := 0
	for i, r := range s {
		if n+runeCells(r) > most-1 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
		n += runeCells(r)
	}
	return s
}

var blocks = []rune("▁▂▃▄▅▆▇█")

// sparkline draws spend over time in one line, if there is a time to speak of.
func sparkline(s Series) string {
	most, at := int64(0), 0
	for i, p := range s.Points {
		if p.MicroUSD > most {
			most, at = p.MicroUSD, i
		}
	}
	if len(s.Points) < 3 || most == 0 {
		return ""
	}
	var b strings.Builder
	for _, p := range s.Points {
		switch {
		case p.MicroUSD <= 0:
			b.WriteRune('·')
		default:
			b.WriteRune(blocks[(p.MicroUSD*int64(len(blocks)-1)+most/2)/most])
		}
	}
	first, last := s.Points[0], s.Points[len(s.Points)-1]
	return fit("By "+s.Unit+", "+shortSpan(first.first, last.end)+": "+b.String()+"  most "+Money(most)+" ("+s.Points[at].Label+")", tableWidth)
}
