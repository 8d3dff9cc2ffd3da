package render

import (
	"cmp"

	"deckhand/internal/store/approvals"
)

// statusWord is how an approval ended, in a word.
func statusWord(a approvals.Approval) string {
	switch a.Status {
	case approvals.Allowed:
		switch {
		case a.Kind == approvals.Question:
			return "Answered"
		case a.DecidedVia == "rule" || a.DecidedVia == "grant":
			return "Allowed"
		}
		return "Approved"
	case approvals.Denied:
		if a.Kind == approvals.Question {
			return "Skipped"
		}
		return "Denied"
	case approvals.Expired:
		return "Expired"
	case approvals.Cancelled:
		return "Cancelled"
	case approvals.Interrupted:
		return "Interrupted"
	case approvals.Pending:
		return "Pending"
	}
	return string(a.Status)
}

// statusSign is the emoji for a status.
func statusSign(s approvals.Status) string { return cmp.Or(statusSigns[s], "❔") }

var statusSigns = map[approvals.Status]string{
	approvals.Allowed: "✅", approvals.Denied: "🚫", approvals.Expired: "⌛", approvals.Cancelled: "⏹️", approvals.Interrupted: "🔌", approvals.Pending: "✋",
}
