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

// pushless is a process that has no way to a forge.
type pushless struct{ Process }

func (pushless) EndUse(string)                             {}
func (pushless) AllowCall(string, string, json.RawMessage) {}
