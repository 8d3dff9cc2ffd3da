package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
)

// Asked is an approval that waits in a running turn of a thread of its own, and
// expires after some time.
func Asked(tb testing.TB, s *store.Store, expires time.Duration) approvals.Approval {
	tb.Helper()
	ctx, name, session := tb.Context(), uuid.NewString(), uuid.NewString()
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	key := threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: name}
	id, _, err := s.Receive(ctx, inbox.Envelope{
		EventID: name, Kind: inbox.Message, TeamID: "T1", ChannelID: "C1", ThreadTS: name, TS: name, UserID: "U1", Payload: json.RawMessage(`{}`),
	})
	must(err)
	thread, _, err := s.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go"})
	must(err)
	thread, _, err = Acquire(ctx, s, thread.ID, "replica-1")
	must(err)
	lease := threads.Lease{ThreadID: thread.ID, Owner: "replica-1", Epoch: thread.LeaseEpoch}
	must(s.NewSession(ctx, lease, session, ""))
	epoch, err := s.BeginEpoch(ctx, lease, session, "2.1.329", 0)
	must(err)
	turn, _, _, err := s.BeginTurn(ctx, lease, session, epoch)
	must(err)
	a, err := s.Ask(ctx, lease, approvals.Approval{
		ID: uuid.NewString(), Input: json.RawMessage(`{"command":"ls"}`), Terms: approvals.Terms{Rule: "default: ask"},
		Origin:  approvals.Origin{SessionID: session, TurnID: turn.ID, RequestedBy: "U1"},
		Request: approvals.Request{Kind: approvals.Tool, RequestID: "r", ToolUseID: "t", ToolName: "Bash", ExpiresAt: time.Now().Add(expires)},
	})
	must(err)
	return a
}
