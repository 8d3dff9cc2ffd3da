package ask

import (
	"crypto/rand"
	"strings"

	"deckhand/internal/agent/policy"
	"deckhand/internal/store/approvals"
)

// NewID is what a button carries: some 128 random bits, nothing else. Its first
// letters are the card's code, in which a digit tells it from a word.
func NewID() string {
	for {
		if id := rand.Text(); strings.ContainsAny(id[:5], "234567") {
			return id
		}
	}
}

// TermsOf are the terms by which a request is decided.
func TermsOf(d policy.Decision) approvals.Terms {
	because := d.Why
	if d.Terms.Because != "" {
		because = strings.TrimSpace(d.Terms.Because + " " + because)
	}
	return approvals.Terms{
		Rule: d.Rule, Because: because, Approvers: d.Terms.Approvers, Quorum: d.Terms.Quorum,
		RequesterMay: d.Terms.RequesterMayApprove, OnTimeout: approvals.TimeoutAction(d.Terms.OnTimeout),
		Dangerous: d.Terms.Dangerous, Grantable: d.Grantable, Fixed: d.Terms.Fixed,
	}
}

// KindOf is what a call of a tool asks for.
func KindOf(tool string) approvals.Kind {
	switch tool {
	case "AskUserQuestion":
		return approvals.Question
	case "ExitPlanMode":
		return approvals.Plan
	}
	return approvals.Tool
}
