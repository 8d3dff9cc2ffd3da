package render

import (
	"maps"
	"slices"

	"github.com/aymanbagabas/go-udiff/lcs"

	"deckhand/internal/chat/view"
)

// What the tests look at directly.
var (
	Span        = span
	LineDiff    = lineDiff
	Differences = func(a, b []string) []lcs.Diff { return differences(a, b, diffPasses) }
)

// ToolNames are the tools of which something is known.
func ToolNames() []string { return slices.Collect(maps.Keys(view.Tools)) }
