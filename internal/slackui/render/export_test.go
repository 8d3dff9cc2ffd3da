package render

import "github.com/aymanbagabas/go-udiff/lcs"

// What the tests look at directly.
var (
	Span        = span
	LineDiff    = lineDiff
	Differences = func(a, b []string) []lcs.Diff { return differences(a, b, diffPasses) }
)
