package render_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/slackui/render"
)

func TestLineDiff(t *testing.T) {
	t.Parallel()
	lines := func(s string) string { return strings.ReplaceAll(s, " ", "\n") }
	for in, want := range map[[2]string]string{
		{"a b c", "a x c"}: "  a\n- b\n+ x\n  c",
		{"", "a b"}:        "+ a\n+ b",
		{"a b", ""}:        "- a\n- b",
		{"a", "a"}:         "",
		{"1 2 3 4 5 6 7 8 9", "1 2 3 4 x 6 7 8 9"}: "⋯\n  3\n  4\n- 5\n+ x\n  6\n  7\n⋯",
		{"a b c d", "b c d e"}:                     "- a\n  b\n  c\n  d\n+ e",
	} {
		got, _, _ := render.LineDiff(lines(in[0]), lines(in[1]))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
	big := strings.Repeat("line\n", 5000)
	if _, removed, added := render.LineDiff(big, strings.Repeat("other\n", 5000)); removed != 5000 || added != 5000 {
		t.Errorf("a large diff has -%d +%d", removed, added)
	}
}

// A change of a large file shows what changes, and not the file.
func TestLineDiffOfMuchText(t *testing.T) {
	t.Parallel()
	before := make([]string, 40_000)
	for i := range before {
		before[i] = fmt.Sprint("line ", i)
	}
	after := slices.Clone(before)
	for i := 0; i < len(after); i += 80 {
		after[i] = "changed"
	}
	if _, removed, added := render.LineDiff(strings.Join(before, "\n"), strings.Join(after, "\n")); removed != 500 || added != 500 {
		t.Errorf("500 changed lines are shown as -%d +%d", removed, added)
	}
}

// FuzzLineDiff: what is removed and added leads from the one text to the other, and
// the signs in front say as much.
func FuzzLineDiff(f *testing.F) {
	f.Add("a\nb\nc", "a\nx\nc")
	f.Add(strings.Repeat("a\nb\n", 200), strings.Repeat("b\nc\na\n", 150))
	f.Add(strings.Repeat("1\n2\n3\n4\n5\n", 100), strings.Repeat("5\n3\n1\n", 170))
	f.Fuzz(func(t *testing.T, before, after string) {
		a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
		var got []string
		at := 0
		for _, d := range render.Differences(a, b) {
			got = append(append(got, a[at:d.Start]...), b[d.ReplStart:d.ReplEnd]...)
			at = d.End
		}
		if diff := cmp.Diff(b, append(got, a[at:]...)); diff != "" {
			t.Errorf("%q to %q: %s", before, after, diff)
		}
		diff, removed, added := render.LineDiff(before, after)
		signs := map[string]int{}
		for line := range strings.SplitSeq(diff, "\n") {
			signs[line[:min(2, len(line))]]++
		}
		if signs["- "] != removed || signs["+ "] != added {
			t.Errorf("-%d +%d, but %v", removed, added, signs)
		}
	})
}
