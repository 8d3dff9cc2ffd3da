package render_test

import (
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
