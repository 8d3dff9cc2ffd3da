package render

import (
	"cmp"

	"deckhand/internal/store/approvals"
)

// statusWord is how an approval ended, in a word.
func statusWord(a approvals.Approval) string {
	switch question := a.Kind == approvals.Question; {
	case question && a.Status == approvals.Allowed:
		return "Answered"
	case question && a.Status == approvals.Denied:
		return "Skipped"
	case a.Status == approvals.Allowed && (a.DecidedVia == "rule" || a.DecidedVia == "grant"):
		return "Allowed"
	}
	return cmp.Or(endings[a.Status].word, string(a.Status))
}

// statusSign is the emoji for a status.
func statusSign(s approvals.Status) string { return cmp.Or(endings[s].sign, "❔") }

var endings = map[approvals.Status]struct{ sign, word string }{
	approvals.Allowed: {"✅", "Approved"}, approvals.Denied: {"🚫", "Denied"}, approvals.Expired: {"⌛", "Expired"},
	approvals.Cancelled: {"⏹️", "Cancelled"}, approvals.Interrupted: {"🔌", "Interrupted"}, approvals.Pending: {"✋", "Pending"},
}
