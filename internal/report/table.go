package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"deckhand/internal/money"
	"deckhand/internal/store/ledger"
)

const (
	tableWidth = 100 // columns of a terminal
	tableLines = 30
	tableDays  = 92
	labelMin   = 16
	labelMax   = 44
)

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
		b.WriteString("\n" + breakdown(a, names) + "\n")
	}
	if len(a.Threads) > 0 && a.By != ledger.ByThread {
		b.WriteString("\n" + expensiveThreads(a, names) + "\n")
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

func breakdown(a Answer, names Names) string {
	most := tableLines
	if a.By == ledger.ByDay || a.By == ledger.ByMonth {
		most = tableDays
	}
	lines, others, more := a.Top(most)
	labels := a.Labels(a.By, lines, names)
	if more > 0 {
		lines, labels = append(slices.Clip(lines), others), append(labels, "and "+Plural(int64(more), "other", "others"))
	}
	lines, labels = append(slices.Clip(lines), a.Total), append(labels, "Total")

	cols := []column{{upperFirst(string(a.By)), labels}}
	add := func(head string, cell func(Line) string) {
		c := column{head: head}
		for _, l := range lines {
			c.cells = append(c.cells, cell(l))
		}
		cols = append(cols, c)
	}
	add("Turns", func(l Line) string { return Count(l.Turns) })
	add("In", func(l Line) string { return Tokens(l.Input) })
	add("Out", func(l Line) string { return Tokens(l.Output) })
	add("Cached", func(l Line) string { return Tokens(l.CacheRead + l.CacheWrite5m + l.CacheWrite1h) })
	add("Cost", Line.Amount)
	alignPoints(cols[len(cols)-1].cells)
	if a.HasContract() {
		add("Contract", func(l Line) string { return money.USD(l.ContractMicroUSD) })
		alignPoints(cols[len(cols)-1].cells)
	}
	add("Share", Line.ShareText)
	if hasBefore(a.By) {
		add("Change", Line.ChangeText)
	}
	return renderColumns(cols, true)
}

func expensiveThreads(a Answer, names Names) string {
	cols := []column{{"Most expensive threads", a.Labels(ledger.ByThread, a.Threads, names)}, {head: "Turns"}, {head: "Cost"}, {head: "Share"}}
	for _, l := range a.Threads {
		for i, text := range []string{Count(l.Turns), l.Amount(), l.ShareText()} {
			cols[i+1].cells = append(cols[i+1].cells, text)
		}
	}
	alignPoints(cols[2].cells)
	return renderColumns(cols, false)
}

// column is one of a table's. The first holds names, the others numbers.
type column struct {
	head  string
	cells []string
}

// renderColumns renders a table, as wide as a terminal at most: names are cut. If it
// has a total, that is its last row.
func renderColumns(cols []column, total bool) string {
	left := tableWidth
	heads := make([]string, len(cols))
	for i, c := range cols {
		heads[i] = c.head
		if i > 0 {
			widest := text.StringWidth(c.head)
			for _, cell := range c.cells {
				widest = max(widest, text.StringWidth(cell))
			}
			left -= widest + 2
		}
	}
	t := newTable(1, heads...)
	most := max(labelMin, min(labelMax, left))
	rows := len(cols[0].cells)
	for i := range rows {
		row := table.Row{fit(cols[0].cells[i], most)}
		for _, c := range cols[1:] {
			row = append(row, c.cells[i])
		}
		if total && i == rows-1 {
			t.AppendFooter(row)
		} else {
			t.AppendRow(row)
		}
	}
	return t.Render()
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
	return fit("By "+s.Unit+", "+shortSpan(first.first, last.end)+": "+b.String()+"  most "+money.USD(most)+" ("+s.Points[at].Label+")", tableWidth)
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
