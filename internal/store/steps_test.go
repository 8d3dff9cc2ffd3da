package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
)

// TestStepsOfATurn: its uses of tools in their order, with what runs, how that was decided
// and what the audit tells of the result, a page at a time.
func TestStepsOfATurn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, _ := b.begin(t)
	use := func(tool, id string) approvals.Approval {
		t.Helper()
		a, err := b.Ask(t.Context(), b.lease, approvals.Approval{
			ID: uuid.NewString(), Input: json.RawMessage(`{"n":"` + id + `"}`), Terms: approvals.Terms{Rule: "default: ask"},
			Origin:  approvals.Origin{SessionID: b.session, TurnID: turn.ID, RequestedBy: "U1"},
			Request: approvals.Request{Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: id, ToolName: tool, ExpiresAt: time.Now().Add(time.Hour)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for i := range 12 {
		b.decide(t, use("Bash", fmt.Sprint("t", i)), approvals.Allowed)
		use("TodoWrite", fmt.Sprint("list", i))
	}
	result := func(thread int64, id, sum string, failed bool) audit.Entry {
		return audit.Entry{Kind: audit.ToolResult, ThreadID: thread, TurnID: turn.ID, Details: map[string]any{"tool_use": id, "error": failed, "sha256": sum}}
	}
	if err := b.Audit(t.Context(), result(b.thread.ID+1, "t10", "another thread's", true), result(b.thread.ID, "t10", "aa", true), result(b.thread.ID, "t10", "later", false)); err != nil {
		t.Fatal(err)
	}
	page := func(n, limit int) (got approvals.Steps, inputs string) {
		t.Helper()
		got, err := b.TurnSteps(t.Context(), turn.ID, n, limit, []string{"TodoWrite"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got.List {
			inputs += s.ToolUseID + " "
			if s.ToolName != "Bash" || s.SessionID != b.session || s.Status != approvals.Allowed || s.DecidedAt.IsZero() || string(s.Input) != `{"n":"`+s.ToolUseID+`"}` {
				t.Errorf("%+v", s)
			}
			if ended := s.ToolUseID == "t10"; ended == s.ResultAt.IsZero() || ended != s.Failed || (s.SHA256 == "aa") != ended {
				t.Errorf("%s: the result is %v %v %q", s.ToolUseID, s.ResultAt, s.Failed, s.SHA256)
			}
		}
		if !got.Running || got.Total != 12 {
			t.Errorf("%+v", got)
		}
		return got, strings.TrimSpace(inputs)
	}
	for _, c := range []struct {
		n, limit, first int
		want            string
	}{
		{-1, 10, 10, "t10 t11"}, {0, 3, 0, "t0 t1 t2"}, {10, 10, 10, "t10 t11"}, {11, 1, 11, "t11"}, {12, 10, 12, ""}, {-1, 6, 6, "t6 t7 t8 t9 t10 t11"},
	} {
		if got, ids := page(c.n, c.limit); got.First != c.first || ids != c.want {
			t.Errorf("from %d, %d of them: first %d, %q", c.n, c.limit, got.First, ids)
		}
	}
	if _, err := b.TurnSteps(t.Context(), turn.ID+1, -1, 10, nil); !errors.Is(err, pg.ErrNotFound) {
		t.Errorf("a turn that is none: %v", err)
	}
}
