package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/turns"
)

// TestARequestTellsWhatBecameOfItsLike: what was allowed and handed to a process that died is
// told with the request that comes again, as far as it is known; what never ran is not.
func TestARequestTellsWhatBecameOfItsLike(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, _ := b.begin(t)
	n := 0
	asks := func(turn turns.Turn, command string) approvals.Approval {
		t.Helper()
		n++
		a, err := b.Ask(t.Context(), b.lease, approvals.Approval{
			ID: uuid.NewString(), Input: json.RawMessage(command), Terms: approvals.Terms{RequesterMay: true},
			Origin: approvals.Origin{SessionID: b.session, TurnID: turn.ID, RequestedBy: turn.RequestedBy},
			Request: approvals.Request{
				Kind:      approvals.Tool,
				RequestID: uuid.NewString(), ToolUseID: fmt.Sprint("toolu_", n), ToolName: "Bash", ExpiresAt: time.Now().Add(time.Hour),
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	decides := func(a approvals.Approval, status approvals.Status, edit *approvals.Edit) {
		t.Helper()
		if _, err := b.Decide(t.Context(), approvals.Decision{ApprovalID: a.ID, Status: status, By: "U9", Via: "button", DeliverOn: "replica-1", Edit: edit}); err != nil {
			t.Fatal(err)
		}
	}
	ends := func(turn turns.Turn, a approvals.Approval, failed bool) {
		t.Helper()
		if err := b.Audit(t.Context(), audit.Entry{Kind: audit.ToolResult, TeamID: "T1", ThreadID: b.thread.ID, TurnID: turn.ID, Details: map[string]any{
			"tool_use": a.ToolUseID, "error": failed,
		}}); err != nil {
			t.Fatal(err)
		}
	}
	goesOn := func() turns.Turn {
		t.Helper()
		old, _, err := b.RunningTurn(t.Context(), b.thread.ID)
		if err != nil {
			t.Fatal(err)
		}
		b.newEpoch(t, 0)
		next, err := b.ContinueTurn(t.Context(), b.lease, old, b.session, b.epoch)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	tells := func(what string, a approvals.Approval, known, failed, changed bool) {
		t.Helper()
		if a.Before == nil {
			t.Errorf("%s: nothing is told", what)
			return
		}
		if (a.Before.Ended != nil) != known || a.Before.Failed != failed || a.Before.Changed != changed || time.Since(a.Before.Approved) > time.Minute {
			t.Errorf("%s: %+v", what, *a.Before)
		}
		if again, err := b.ApprovalByID(t.Context(), a.ID); err != nil || again.Before == nil || again.Before.Failed != failed {
			t.Errorf("%s, read again: %v, %v", what, again.Before, err)
		}
	}
	tellsNot := func(what string, a approvals.Approval) {
		t.Helper()
		if a.Before != nil {
			t.Errorf("%s: %+v", what, *a.Before)
		}
	}

	ran, failed, cut, changed := asks(turn, `{"command":"ran"}`), asks(turn, `{"command":"failed"}`), asks(turn, `{"command":"cut"}`), asks(turn, `{"command":"asked"}`)
	denied, waits := asks(turn, `{"command":"denied"}`), asks(turn, `{"command":"waits"}`)
	for _, a := range []approvals.Approval{ran, failed, cut} {
		tellsNot("a turn that nothing interrupted", a)
		decides(a, approvals.Allowed, nil)
	}
	decides(changed, approvals.Allowed, &approvals.Edit{Input: json.RawMessage(`{"command":"changed"}`)})
	decides(denied, approvals.Denied, nil)
	ends(turn, ran, false)
	ends(turn, failed, true)
	tellsNot("asked again in the same process", asks(turn, `{"command":"ran"}`))

	next := goesOn()
	ends(next, cut, true) // what the next process makes of it is no result
	tells("what ran", asks(next, `{"command":"ran"}`), true, false, false)
	tells("what failed", asks(next, `{"command":"failed"}`), true, true, false)
	tells("what was changed", asks(next, `{"command":"asked"}`), false, false, true)
	tells("what it was changed to", asks(next, `{"command":"changed"}`), false, false, false)
	again := asks(next, `{"command":"cut"}`)
	tells("what was cut", again, false, false, false)
	tellsNot("what was denied", asks(next, `{"command":"denied"}`))
	tellsNot("another command", asks(next, `{"command":"ran "}`))
	if bound := asks(next, `{"command":"waits"}`); bound.ID != waits.ID {
		t.Error("what nobody was told the answer of is asked anew")
	} else {
		tellsNot("what was never handed over", bound)
	}

	decides(again, approvals.Allowed, nil)
	ends(next, again, false)
	next = goesOn()
	tells("what ran first two attempts ago", asks(next, `{"command":"ran"}`), true, false, false)
	tells("the last of two", asks(next, `{"command":"cut"}`), true, false, false)
	b.finish(t, next)

	b.prompt(t, "U1", "again")
	other, _ := b.begin(t)
	tellsNot("another prompt's", asks(other, `{"command":"ran"}`))
	ran = asks(other, `{"command":"once"}`)
	decides(ran, approvals.Allowed, nil)
	ends(other, ran, false)
	if ok, err := b.ParkTurn(t.Context(), b.lease, other.ID, []string{asks(other, `{"command":"rests"}`).ID}); err != nil || !ok {
		t.Fatalf("the turn does not rest: %v, %v", ok, err)
	}
	tellsNot("what ran before the turn was parked", asks(goesOn(), `{"command":"once"}`))
}
