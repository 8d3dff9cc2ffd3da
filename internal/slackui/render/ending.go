package render

import (
	"strconv"
	"strings"

	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

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

// ending says in a sentence how the approval ended, and what the decider wrote.
func (c *card) ending() string {
	ran := " The tool did not run."
	switch c.a.Kind {
	case store.ApprovalQuestion:
		ran = " Nothing was answered."
	case store.ApprovalPlan:
		ran = " Work on it did not start."
	case store.ApprovalTool:
		if isHost(c.a) {
			ran = " The host was not reached."
		}
	}
	switch c.a.Status {
	case store.ApprovalExpired, store.ApprovalCancelled, store.ApprovalInterrupted:
	case store.ApprovalAllowed, store.ApprovalDenied, store.ApprovalPending:
		ran = ""
	}
	return statusSign(c.a.Status) + " " + c.outcome() + ran + c.reason()
}

// outcome says who ended the approval, when and how, in about 900 units at most.
func (c *card) outcome() string {
	a := c.a
	at := ""
	if !a.DecidedAt.IsZero() {
		at = " · " + clockTime(a.DecidedAt)
	}
	word := "*" + mrkdwn.EscapeWithin(statusWord(a), 40) + "*"
	switch a.Status {
	case store.ApprovalAllowed, store.ApprovalDenied:
		return word + c.changedBy(c.decider()) + at + c.left()
	case store.ApprovalExpired:
		then := "; the turn was paused."
		if a.Terms.OnTimeout == store.TimeoutDeny {
			then = ", which counts as not allowed here; nobody said no."
		}
		return word + at + ": nobody decided in time" + c.soFar() + then
	case store.ApprovalCancelled:
		if isHost(c.a) {
			return word + at + ": the turn ended."
		}
		return word + at + ": the turn was stopped."
	case store.ApprovalInterrupted:
		return word + at + ": the session ended before anybody decided."
	case store.ApprovalPending:
	}
	return word + at
}

// soFar says who had approved where that was not enough.
func (c *card) soFar() string {
	voted := allowers(c.a)
	if len(voted) == 0 || c.a.Terms.Quorum <= 1 {
		return ""
	}
	return " (" + strconv.Itoa(len(voted)) + " of " + strconv.Itoa(c.a.Terms.Quorum) + " had approved: " + mentions(voted, ", ") + ")"
}

// decider says who decided, and in which way if not with the card's own buttons.
func (c *card) decider() string {
	a := c.a
	switch {
	case a.DecidedVia == "grant":
		by := " by the rule that " + mentionAny(a.DecidedBy) + " made"
		if c.o.GrantMade != nil {
			if made := c.o.GrantMade(a); !made.IsZero() {
				by += " on " + dateOnly(made)
			}
		}
		return by
	case a.DecidedBy == "rule" || a.DecidedVia == "rule":
		by := " by a rule"
		if a.Terms.Rule != "" {
			by += " " + mrkdwn.CodeWithin(c.o.redact(a.Terms.Rule), 200)
		}
		return by
	case a.DecidedBy == "":
		return ""
	}
	by := " by " + mentionAny(a.DecidedBy)
	if voted := allowers(a); a.Status == store.ApprovalAllowed && a.Terms.Quorum > 1 && len(voted) > 0 {
		by = " by " + joinAnd(voted)
	}
	switch a.DecidedVia {
	case "command":
		by += " with a reply"
	case "files":
		by += ", with further edits of the file in this thread"
	case "modal":
		// What a tool call is allowed by are ConfirmModal and GrantModal.
		switch {
		case a.Status != store.ApprovalAllowed || a.Kind != store.ApprovalTool:
		case a.Terms.Dangerous:
			by += ", who confirmed it"
		default:
			by += ", with a rule for the like of it"
		}
	}
	if a.Status == store.ApprovalDenied {
		by += c.soFar()
	}
	return by
}

// reason quotes what the decider wrote.
func (c *card) reason() string {
	if c.a.Reason == "" {
		return ""
	}
	reason := mrkdwn.EscapeLines(strings.TrimSpace(c.o.redact(c.a.Reason)), 1300)
	return "\n> " + strings.ReplaceAll(reason, "\n", "\n> ")
}
