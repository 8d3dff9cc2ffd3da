package report

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// terminalTable is how every table of the terminal looks: a rule under its head and
// one above its total, two blanks between columns.
var terminalTable = table.Style{
	Name:    "report",
	Box:     table.BoxStyle{MiddleHorizontal: "─", MiddleSeparator: "──", MiddleVertical: "  "},
	Options: table.Options{SeparateColumns: true, SeparateHeader: true, SeparateFooter: true},
}

// newTable begins a table with this head. Its first left columns stand left, the
// others, which hold numbers, right. Names may be in letters of any width.
func newTable(left int, head ...string) table.Writer {
	t := table.NewWriter()
	t.SetStyle(terminalTable)
	t.SuppressTrailingSpaces()
	row := make(table.Row, len(head))
	columns := make([]table.ColumnConfig, len(head))
	for i := range columns {
		row[i] = head[i]
		columns[i].Number = i + 1
		if i >= left {
			columns[i].Align, columns[i].AlignHeader, columns[i].AlignFooter = text.AlignRight, text.AlignRight, text.AlignRight
		}
	}
	t.AppendHeader(row)
	t.SetColumnConfigs(columns)
	return t
}

// fit cuts a text to so many columns of a terminal, with an ellipsis in place of what
// is missing.
func fit(s string, most int) string { return text.Snip(s, most, "…") }
