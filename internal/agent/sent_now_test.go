package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store/turns"
)

// TestAPromptIsSentNow: what runs is stopped for it, whether it works, sleeps or was left
// by a replica that died; it is the next one, and the others stay in their order.
func TestAPromptIsSentNow(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(s *stage){
		"while a turn works": func(s *stage) { s.prompt(here) },
		"while a turn waits for people": func(s *stage) {
			awaiting(s, toolWrite)
		},
		"while a turn sleeps": func(s *stage) {
			awaiting(s, toolWrite)
			s.sup.send(s.threads[here].ID, message{kind: messageHibernate})
			synctest.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(staged)
				begin(s)
				time.Sleep(time.Second)
				s.prompt(here)
				s.prompt(here)
				if ok, err := s.store.SendNow(context.Background(), 3, "U2"); err != nil || !ok {
					t.Fatal(ok, err)
				}
				s.sup.Wake(s.threads[here].ID)
				synctest.Wait()
				time.Sleep(staged.StopTimeout)
				synctest.Wait()
				states := func() (out [3]string) {
					for i, p := range s.store.Prompts() {
						out[i] = p.State
					}
					return out
				}
				if got := states(); got != [3]string{"done", "accepted", "running"} {
					t.Errorf("the prompts are %v", got)
				}
				if ok, _ := s.store.SendNow(context.Background(), 3, "U2"); ok {
					t.Error("what runs was sent")
				}
				s.process(here).result(claude.Result{NumTurns: 1})
				synctest.Wait()
				if got := states(); got != [3]string{"done", "running", "done"} {
					t.Errorf("at the end the prompts are %v", got)
				}
				if all := s.store.Turns(); all[0].State != string(TurnInterrupted) || all[0].Problem != "" && all[0].Parking != turns.Parked {
					t.Errorf("the turn that ran: %+v", all[0])
				}
				for _, broken := range s.close() {
					t.Error(broken)
				}
			})
		})
	}
}
