package render

import (
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"
)

const (
	// diffContext is how many unchanged lines are shown around a change.
	diffContext = 2
	// diffExact is how many changed lines package lcs finds exactly.
	diffExact = 100
	// diffPasses bounds how often what it did not find is looked at again.
	diffPasses = 100
)

// lineDiff shows what turns before into after: lines with "-", "+" or a blank in
// front, and "⋯" where unchanged lines are left out. It also counts both kinds.
func lineDiff(before, after string) (diff string, removed, added int) {
	a, b := splitLines(before), splitLines(after)
	var out strings.Builder
	lines := func(mark string, list []string) {
		for _, l := range list {
			out.WriteString(mark)
			out.WriteString(l)
			out.WriteByte('\n')
		}
	}
	shown := 0 // lines of a that are shown, or left out with a sign
	for _, d := range differences(a, b, diffPasses) {
		if out.Len() > 0 { // what follows the change before
			end := min(d.Start, shown+diffContext)
			lines("  ", a[shown:end])
			shown = end
		}
		if from := max(shown, d.Start-diffContext); from > shown {
			out.WriteString("⋯\n")
			shown = from
		}
		lines("  ", a[shown:d.Start])
		lines("- ", a[d.Start:d.End])
		lines("+ ", b[d.ReplStart:d.ReplEnd])
		shown = d.End
		removed, added = removed+d.End-d.Start, added+d.ReplEnd-d.ReplStart
	}
	if out.Len() > 0 {
		end := min(len(a), shown+diffContext)
		lines("  ", a[shown:end])
		if end < len(a) {
			out.WriteString("⋯\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n"), removed, added
}

// differences are those between a and b. A comparison that meets more changed lines
// than it looks for leaves what is in the middle as one difference, the longest by
// far, which is compared again as long as passes are left.
func differences(a, b []string, passes int) []lcs.Diff {
	list := lcs.DiffLines(a, b)
	changed, longest, at := 0, 0, 0
	for i, d := range list {
		n := d.End - d.Start + d.ReplEnd - d.ReplStart
		changed += n
		if n > longest {
			longest, at = n, i
		}
	}
	if changed <= diffExact || passes <= 1 || len(list) < 2 {
		return list
	}
	middle := list[at]
	inner := differences(a[middle.Start:middle.End], b[middle.ReplStart:middle.ReplEnd], passes-1)
	for i := range inner {
		inner[i].Start += middle.Start
		inner[i].End += middle.Start
		inner[i].ReplStart += middle.ReplStart
		inner[i].ReplEnd += middle.ReplStart
	}
	return slices.Replace(list, at, at+1, inner...)
}

// splitLines splits a text into lines; a text without any has none.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
