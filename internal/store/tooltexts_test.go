package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// TestWhatIsNotKnownOfAToolIsNeverAllowed: it is a change even at first and beside what is known,
// is not kept when a person allows the call, and so is a change again. Of several texts that
// nobody has allowed, the change has all.
func TestWhatIsNotKnownOfAToolIsNeverAllowed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.URL(t), store.Options{})
	of := storetest.Asked(t, s, time.Hour)
	thread, err := s.ThreadByKey(t.Context(), of.ThreadKey)
	if err != nil {
		t.Fatal(err)
	}
	lease := threads.Lease{ThreadID: thread.ID, Owner: thread.LeaseOwner, Epoch: thread.LeaseEpoch}
	const tool = "mcp__shelf__look"
	told := func(texts ...approvals.ToolText) *approvals.ToolChange {
		t.Helper()
		change, err := s.KnowTool(t.Context(), lease, tool, texts)
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	allow := func(change *approvals.ToolChange) {
		t.Helper()
		id := uuid.NewString()
		if _, err := s.Ask(t.Context(), lease, approvals.Approval{
			ID: id, Input: json.RawMessage(`{}`), Terms: approvals.Terms{Rule: "default: ask"}, Origin: approvals.Origin{SessionID: of.SessionID, TurnID: of.TurnID, RequestedBy: "U1"},
			Request: approvals.Request{
				Kind: approvals.Tool, RequestID: id, ToolUseID: id, ToolName: tool, ExpiresAt: time.Now().Add(time.Hour),
				ToolSHA256: change.Now.SHA256, ToolChange: change,
			},
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Decide(t.Context(), approvals.Decision{ApprovalID: id, Status: approvals.Allowed, By: "U2", Via: "slack"}); err != nil {
			t.Fatal(err)
		}
	}
	unknown := approvals.ToolText{Description: "(It is not known.)"}
	text := func(n byte, says string) approvals.ToolText {
		return approvals.ToolText{SHA256: approvals.Sum{n}, Description: says, Schema: "{}"}
	}
	for range 2 {
		change := told(unknown)
		if change == nil || change.Now != unknown {
			t.Fatalf("what is not known counts as allowed: %+v", change)
		}
		allow(change)
	}
	if change := told(text(1, "Looks.")); change != nil {
		t.Fatalf("the first text that is known: %+v", change)
	}
	if change := told(text(1, "Looks."), unknown); change == nil || change.Now != unknown || change.Before.Description != "Looks." {
		t.Errorf("beside what is allowed: %+v", change)
	}
	for range 2 {
		change := told(text(1, "Looks."), text(2, "Looks twice."), text(3, "Looks thrice."))
		if change == nil || change.Now.SHA256 != (approvals.Sum{}) || !strings.Contains(change.Now.Description, "Looks twice.") || !strings.Contains(change.Now.Description, "Looks thrice.") {
			t.Fatalf("of several texts: %+v", change)
		}
		allow(change)
	}
	for range 2 {
		if change := told(text(2, "Looks twice.")); change != nil {
			allow(change)
		}
	}
	if change := told(text(1, "Looks."), text(2, "Looks twice.")); change != nil {
		t.Errorf("what was allowed: %+v", change)
	}
}

// TestWhatIsToldOfAToolIsAskedAgainAfterARestart: a request is bound to what people saw before only if the model is known
// to be told the same of its tool.
func TestWhatIsToldOfAToolIsAskedAgainAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old, _ := b.begin(t)
	known, several := approvals.Sum{1}, &approvals.ToolChange{Now: approvals.ToolText{Description: "in several ways"}}
	changed := &approvals.ToolChange{Now: approvals.ToolText{SHA256: known, Description: "Looks."}}
	ask := func(turn turns.Turn, tool string, sum approvals.Sum, change *approvals.ToolChange) string {
		t.Helper()
		a, err := b.Ask(t.Context(), b.lease, approvals.Approval{
			ID: uuid.NewString(), Input: json.RawMessage(`{}`), Terms: approvals.Terms{Rule: "default: ask"},
			Origin:  approvals.Origin{SessionID: b.session, TurnID: turn.ID, RequestedBy: turn.RequestedBy},
			Request: approvals.Request{Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: "toolu_1", ToolName: tool, ExpiresAt: time.Now().Add(time.Hour), ToolSHA256: sum, ToolChange: change},
		})
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	type told struct {
		sum    approvals.Sum
		change *approvals.ToolChange
	}
	tests := map[string]struct {
		before, after told
		bound         bool
	}{
		"nothing":                    {told{}, told{}, true},
		"one text":                   {told{known, nil}, told{known, nil}, true},
		"a changed text":             {told{known, changed}, told{known, changed}, true},
		"one that was allowed since": {told{known, changed}, told{known, nil}, true},
		"another text":               {told{known, nil}, told{approvals.Sum{2}, changed}, false},
		"several new texts":          {told{approvals.Sum{}, several}, told{approvals.Sum{}, several}, false},
		"nothing, then several":      {told{}, told{approvals.Sum{}, several}, false},
		"several, then nothing":      {told{approvals.Sum{}, several}, told{}, false},
	}
	asked := map[string]string{}
	for name, tt := range tests {
		asked[name] = ask(old, "mcp__shelf__"+name, tt.before.sum, tt.before.change)
	}
	b.take(t, b.thread.ID, "replica-1")
	running, _, err := b.RunningTurn(t.Context(), b.thread.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.newEpoch(t, 0)
	next, err := b.ContinueTurn(t.Context(), b.lease, running, b.session, b.epoch)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		if got := ask(next, "mcp__shelf__"+name, tt.after.sum, tt.after.change) == asked[name]; got != tt.bound {
			t.Errorf("%s: that it is bound is %t", name, got)
		}
	}
}
