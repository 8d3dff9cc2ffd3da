package ask

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent/memstore"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/spend"
	"deckhand/internal/gateway"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// TestTheWebIsSearchedWhileASearchRuns: a command that runs cannot have the provider search.
func TestTheWebIsSearchedWhileASearchRuns(t *testing.T) {
	t.Parallel()
	m := spend.New(spend.Config{Store: new(memstore.Store)}).NewMeter(spend.Session{Log: zap.NewNop(), OnHeld: func() {}, OnStray: func(threads.ThreadKey) {}})
	m.BeginTurn(turns.Turn{ID: 1, RequestedBy: "U1"})
	d := New(Options{Searches: m, Process: pushless{}, Span: t.Context()})
	searches := func(when string, want bool) {
		t.Helper()
		_, err := m.Begin(t.Context(), gateway.Call{ID: uuid.New(), Model: "claude-opus-5-5", Search: true})
		if _, refused := errors.AsType[*gateway.Refusal](err); refused == want {
			t.Errorf("%s: %v", when, err)
		}
	}
	d.begins("1", policy.Call{Tool: "Bash", Input: json.RawMessage(`{"command":"curl x"}`)}, nil)
	searches("while a command runs", false)
	d.begins("2", policy.Call{Tool: "WebSearch", Input: json.RawMessage(`{"query":"x"}`)}, nil)
	searches("while a search runs", true)
	d.Ended("2")
	searches("after it", false)
}

// TestAGrantIsForAKnownText: no permission is offered for a tool of which it is not known what the model is told, as it
// would never cover anything.
func TestAGrantIsForAKnownText(t *testing.T) {
	t.Parallel()
	d := New(Options{Span: t.Context()})
	d.told["mcp__x__known"], d.told["mcp__x__several"] = toldTool{sum: approvals.Sum{1}}, toldTool{}
	for tool, want := range map[string]bool{"Bash": true, "mcp__x__untold": true, "mcp__x__known": true, "mcp__x__several": false} {
		a := d.request("r", "u", policy.Call{Tool: tool, Input: json.RawMessage(`{}`)}, policy.Decision{Verdict: policy.Ask, Grantable: true})
		if a.Terms.Grantable != want {
			t.Errorf("that %s can be allowed for later is %t", tool, a.Terms.Grantable)
		}
	}
}

// pushless is a process that has no way to a forge.
type pushless struct{ Process }

func (pushless) EndUse(string)                             {}
func (pushless) AllowCall(string, string, json.RawMessage) {}
