package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/storetest"
)

// TestAnApprovalKeepsItsCommits: what people were shown of a push is read back as it was
// written, and nobody changes it.
func TestAnApprovalKeepsItsCommits(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	b := benchIn(t, storetest.Open(t, url, store.Options{}))
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background()) //nolint:errcheck // the test is over
	b.prompt(t, "U1", "go")
	earlier, _ := b.begin(t)
	for i, use := range []struct {
		tool, command string
		failed        bool
	}{{"Bash", "before the edit", false}, {"Edit", "", false}, {"Bash", "npm test", true}, {"Bash", "git add . && git commit -m x", false}} {
		b.used(t, earlier.ID, fmt.Sprint("u", i), use.tool, use.command, use.failed)
	}
	b.finish(t, earlier)
	b.prompt(t, "U1", "push it")
	turn, _ := b.begin(t)
	b.pay(t, "claude-sonnet-4-5", 1_500)
	b.pay(t, "claude-haiku-4-5", 40)
	push := &forges.Push{Repository: "forge/web", Refs: []forges.PushRef{{
		Name: "refs/heads/deckhand/x", Old: strings.Repeat("0", 40), New: strings.Repeat("a", 40), Commits: forges.PushCommits{Count: 1, Some: []forges.PushCommit{{ID: "a", Author: "Ada", Subject: "\"<x>\" \u202e"}}},
		Files: []forges.PushFile{{Path: "Makefile", Orders: true, Status: "M", Added: 1}}, Orders: 1, Diff: "+\x1bone\n",
	}}, Ran: []forges.PushRan{{Command: "make", Failed: true}}}
	a, err := b.Ask(t.Context(), b.lease, approvals.Approval{
		ID: uuid.NewString(), Input: json.RawMessage(`{"command":"git push"}`), Terms: approvals.Terms{Rule: "default: ask", RequesterMay: true},
		Origin:  approvals.Origin{SessionID: b.session, TurnID: turn.ID, RequestedBy: turn.RequestedBy},
		Request: approvals.Request{Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: "toolu_1", ToolName: "Bash", Push: push, ExpiresAt: time.Now().Add(time.Hour)},
	})
	if err != nil {
		t.Fatal(err)
	}
	read, err := b.ApprovalByID(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	push.Ran = []forges.PushRan{{Command: "npm test", Failed: true}, {Command: "make", Failed: true}} // in the turn before, and in this
	push.CostMicroUSD = 1_540                                                                         // what the thread had cost when it was asked
	b.pay(t, "claude-sonnet-4-5", 7)
	if diff := cmp.Diff(push, read.Push); diff != "" {
		t.Error(diff)
	}
	for _, change := range []string{`push = NULL`, `push = jsonb_set(push, '{refs,0,new}', '"b"')`} {
		if _, err := db.Exec(t.Context(), `UPDATE approvals SET `+change+` WHERE id = $1`, a.ID); err == nil || !strings.Contains(err.Error(), "may not be changed") {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// used records a tool use that a rule has allowed, and its result.
func (b *bench) used(t *testing.T, turnID int64, id, tool, command string, failed bool) {
	t.Helper()
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ask(t.Context(), b.lease, approvals.Approval{
		ID: uuid.NewString(), Input: input, Terms: approvals.Terms{Rule: "allow: " + tool},
		Origin:  approvals.Origin{SessionID: b.session, TurnID: turnID, RequestedBy: "U1"},
		Request: approvals.Request{Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: id, ToolName: tool, ExpiresAt: time.Now().Add(time.Hour)},
		Outcome: approvals.Outcome{Status: approvals.Allowed, DecidedBy: "rule", DecidedVia: "rule"},
	}); err != nil {
		t.Fatal(err)
	}
	if err := b.Audit(t.Context(), audit.Entry{Kind: audit.ToolResult, ThreadID: b.thread.ID, TurnID: turnID, Details: map[string]any{"tool_use": id, "error": failed}}); err != nil {
		t.Fatal(err)
	}
}
