package claude_test

import (
	"context"
	"sync"
	"testing"

	"deckhand/internal/agent/claude"
	"deckhand/internal/waittest"
)

// pool keeps sessions for rows that leave a CLI as they found it, so that it is started
// once for many of them: a start takes twenty times as long as a turn. The next row
// finds the model, the home and the working directory of the row before it, and its
// conversation.
type pool struct {
	t    *testing.T // what the sessions live as long as
	mu   sync.Mutex
	idle []*session
}

// share begins a session, or goes on with one of the pool's, all of which were set up in
// the same way. A row that fails keeps its session, and one that is waited for has the
// turns of the row before it ended first.
func share(t *testing.T, cli program, p *pool, with ...setup) *session {
	t.Helper()
	if p == nil {
		return begin(t, cli, with...)
	}
	s := p.take()
	fresh := s == nil
	if fresh {
		s = begin(p.t, cli, with...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
	s.t, s.ctx = t, ctx
	s.answersAll()
	t.Cleanup(func() {
		cancel()
		if !t.Failed() {
			p.give(s)
		}
	})
	if !fresh {
		s.model.SetFaults(nil)
		next := s.prompt("say: Next.")
		begun := false
		s.until("the end of the row before it", func(m claude.Message) bool {
			if m, ok := m.(*claude.CommandLifecycle); ok && m.PromptUUID == next && m.State == "started" {
				begun = true
			}
			_, ended := m.(*claude.Result)
			return ended && begun
		})
		s.turn, s.turns, s.log = claude.Output{}, nil, nil
	}
	return s
}

func (p *pool) take() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return nil
	}
	s := p.idle[len(p.idle)-1]
	p.idle = p.idle[:len(p.idle)-1]
	return s
}

func (p *pool) give(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}
