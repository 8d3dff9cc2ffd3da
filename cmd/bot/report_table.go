package main

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// textTable is a table for a terminal. Its first left columns stand left, numbers
// right.
type textTable struct {
	head  []string
	left  int
	rows  [][]string
	total []string // below a rule; nil for none
}

func (t textTable) write(w io.Writer) error {
	all := append([][]string{t.head}, t.rows...)
	if t.total != nil {
		all = append(all, t.total)
	}
	widths := make([]int, len(t.head))
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	length := 2 * (len(widths) - 1)
	for _, n := range widths {
		length += n
	}
	var b strings.Builder
	put := func(row []string) {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < t.left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	rule := strings.Repeat("─", length) + "\n"
	put(t.head)
	b.WriteString(rule)
	for _, row := range t.rows {
		put(row)
	}
	if t.total != nil {
		b.WriteString(rule)
		put(t.total)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// oneLine makes foreign text safe to print, and not too long.
func oneLine(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return s
}
