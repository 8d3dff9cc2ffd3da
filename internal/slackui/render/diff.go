package render

import (
	"slices"
	"strings"
)

// diffMax bounds the lines of each side that are compared; longer texts are shown
// as removed and added as a whole.
const diffMax = 600

// diffContext is how many unchanged lines are shown around a change.
const diffContext = 2

// lineDiff shows what turns before into after: lines with "-", "+" or a blank in
// front, and "⋯" where unchanged lines are left out. It also counts both kinds.
func lineDiff(before, after string) (diff string, removed, added int) {
	a, b := splitLines(before), splitLines(after)
	// What is the same at both ends need not be compared.
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	ops := make([]diffLine, 0, len(a)+len(b)-head-tail)
	for _, l := range a[:head] {
		ops = append(ops, diffLine{' ', l})
	}
	ops = append(ops, compare(a[head:len(a)-tail], b[head:len(b)-tail])...)
	for _, l := range a[len(a)-tail:] {
		ops = append(ops, diffLine{' ', l})
	}

	shown := make([]bool, len(ops))
	for i, op := range ops {
		switch op.op {
		case '-':
			removed++
		case '+':
			added++
		default:
			continue
		}
		for j := max(0, i-diffContext); j <= min(len(ops)-1, i+diffContext); j++ {
			shown[j] = true
		}
	}
	var out strings.Builder
	gap := false
	for i, op := range ops {
		if !shown[i] {
			gap = true
			continue
		}
		if gap {
			out.WriteString("⋯\n")
			gap = false
		}
		out.WriteByte(op.op)
		out.WriteByte(' ')
		out.WriteString(op.text)
		out.WriteByte('\n')
	}
	if gap && out.Len() > 0 {
		out.WriteString("⋯\n")
	}
	return strings.TrimSuffix(out.String(), "\n"), removed, added
}

type diffLine struct {
	op   byte // ' ', '-' or '+'
	text string
}

// compare returns the steps of a longest common subsequence of a and b.
func compare(a, b []string) []diffLine {
	out := make([]diffLine, 0, len(a)+len(b))
	if len(a) > diffMax || len(b) > diffMax {
		for _, l := range a {
			out = append(out, diffLine{'-', l})
		}
		for _, l := range b {
			out = append(out, diffLine{'+', l})
		}
		return out
	}
	// common[i*w+j] is the length of the longest common subsequence of a[i:], b[j:].
	w := len(b) + 1
	common := make([]int32, (len(a)+1)*w)
	for i, la := range slices.Backward(a) {
		for j, lb := range slices.Backward(b) {
			if la == lb {
				common[i*w+j] = common[(i+1)*w+j+1] + 1
			} else {
				common[i*w+j] = max(common[(i+1)*w+j], common[i*w+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, diffLine{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[(i+1)*w+j] >= common[i*w+j+1]:
			out = append(out, diffLine{'-', a[i]})
			i++
		default:
			out = append(out, diffLine{'+', b[j]})
			j++
		}
	}
	return out
}

// splitLines splits a text into lines; a text without any has none.
func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
