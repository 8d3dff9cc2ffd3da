package render

// What the tests look at directly.
var (
	Tokens   = tokens
	Span     = span
	LineDiff = lineDiff
)
