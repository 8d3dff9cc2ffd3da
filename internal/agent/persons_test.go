package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
)

// connectedPeople are accounts of whoever is asked about.
type connectedPeople struct{ Accounts }

func (connectedPeople) Connected(context.Context, string, string, string) error { return nil }
func (connectedPeople) Token(_ context.Context, _, user, _ string) (string, error) {
	return "token-of-" + user, nil
}

// TestATokenIsForATurn: the token of whoever is worked for is to be had from the start of their
// turn's process to the turn's end, however it ends.
func TestATokenIsForATurn(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *stage){
		"done":        func(s *stage) { s.process(here).result(claude.Result{NumTurns: 1}) },
		"stopped":     func(s *stage) { s.sup.send(s.threads[here].ID, message{kind: messageStop, id: "U2"}) },
		"it has died": func(s *stage) { s.process(here).die(claude.ExitCrashed) },
		"the end":     func(s *stage) { s.restart() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newPersonalStage()
				s.machine.hold()
				s.prompt(here)
				s.tokenIs(t, "at the start", true)
				s.machine.release()
				synctest.Wait()
				s.tokenIs(t, "in the turn", true)
				began := s.machine.tried["notes"].Acts
				end(s)
				synctest.Wait()
				if name == "the end" { // the turn goes on in another process
					s.process(here).result(claude.Result{NumTurns: 1})
					synctest.Wait()
				}
				s.tokenIs(t, "after it", false)
				if token, err := began.Token(t.Context()); err == nil {
					t.Errorf("after it the first process gets %q", token)
				}
				for _, broken := range s.close() {
					t.Error(broken)
				}
			})
		})
	}
	t.Run("not started", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newPersonalStage()
			s.machine.failNext(claude.ErrNoAnswer)
			s.prompt(here)
			s.tokenIs(t, "after a start that failed", false)
			time.Sleep(startPauseMost)
			synctest.Wait()
			s.tokenIs(t, "after the next", true)
			for _, broken := range s.close() {
				t.Error(broken)
			}
		})
	})
}

// newPersonalStage is a stage whose project has a server that acts as whoever asks.
func newPersonalStage() *stage {
	s := newStage(staged)
	s.servers = map[string]place.MCPServer{"notes": {URL: "https://notes.example/mcp", Person: "notes.example"}}
	s.restart()
	return s
}

// tokenIs holds whether the last process that was started can have a token.
func (s *stage) tokenIs(t *testing.T, when string, want bool) {
	t.Helper()
	s.machine.mu.Lock()
	tried := s.machine.tried
	s.machine.mu.Unlock()
	if tried["notes"].Acts == nil {
		t.Fatalf("%s: no process was started for a person: %v", when, tried)
	}
	token, err := tried["notes"].Acts.Token(t.Context())
	if got := err == nil; got != want || got && token == "" {
		t.Errorf("%s: %q, %v", when, token, err)
	}
}
