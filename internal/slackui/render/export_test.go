package render

// What the tests look at directly.
var (
	Tokens        = tokens
	Span          = span
	CleanMarkdown = cleanMarkdown
	CutMarkdown   = cutMarkdown
	LineDiff      = lineDiff
	Visible       = visibleText
)

// Deceits returns the warnings for a text.
func Deceits(s string) []string {
	_, d := visible(s)
	return d.warnings()
}
