package render

import "deckhand/internal/store"

// statusWord is how an approval ended, in a word.
func statusWord(a store.Approval) string {
	switch a.Status {
	case store.ApprovalAllowed:
		switch {
		case a.Kind == store.ApprovalQuestion:
			return "Answered"
		case a.DecidedVia == "rule" || a.DecidedVia == "grant":
			return "Allowed"
		}
		return "Approved"
	case store.ApprovalDenied:
		if a.Kind == store.ApprovalQuestion {
			return "Skipped"
		}
		return "Denied"
	case store.ApprovalExpired:
		return "Expired"
	case store.ApprovalCancelled:
		return "Cancelled"
	case store.ApprovalInterrupted:
		return "Interrupted"
	case store.ApprovalPending:
		return "Pending"
	}
	return string(a.Status)
}

// statusSign is the emoji for a status.
func statusSign(s store.ApprovalStatus) string {
	switch s {
	case store.ApprovalAllowed:
		return "✅"
	case store.ApprovalDenied:
		return "🚫"
	case store.ApprovalExpired:
		return "⌛"
	case store.ApprovalCancelled:
		return "⏹️"
	case store.ApprovalInterrupted:
		return "🔌"
	case store.ApprovalPending:
		return "✋"
	}
	return "❔"
}
