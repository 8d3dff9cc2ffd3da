package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/approvals"
)

// TestADangerousAllowIsConfirmed, whichever way it comes, and gives no permission.
func TestADangerousAllowIsConfirmed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt(t, "U1", "go")
	turn, _ := b.begin(t)
	a, err := b.Ask(t.Context(), b.lease, approvals.Approval{
		ID: uuid.NewString(), Input: json.RawMessage(`{"command":"git push -f"}`), Terms: approvals.Terms{Rule: "default: ask", Dangerous: true, RequesterMay: true},
		Origin:  approvals.Origin{SessionID: b.session, TurnID: turn.ID, RequestedBy: turn.RequestedBy},
		Request: approvals.Request{Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: "toolu_1", ToolName: "Bash", ExpiresAt: time.Now().Add(time.Hour)},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := approvals.Decision{ApprovalID: a.ID, Status: approvals.Allowed, By: "U9", Via: "button"}
	if _, err := b.Decide(t.Context(), d); err == nil {
		t.Error("one step was enough")
	}
	d.Confirmed, d.Grants = true, []approvals.NewGrant{{Scope: approvals.GrantSession, Pattern: "Bash(git push *)", For: time.Hour}}
	if _, err := b.Decide(t.Context(), d); err == nil {
		t.Error("it was allowed for the session")
	}
	d.Grants = nil
	if got, err := b.Decide(t.Context(), d); err != nil || got.Status != approvals.Allowed {
		t.Errorf("confirmed, it is %s: %v", got.Status, err)
	}
}
