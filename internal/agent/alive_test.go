package agent

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/claude"
)

// A turn of which nothing is heard says so, once, and goes on; one that is heard of says
// nothing.
func TestASilentTurnSaysSoOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := staged
		limits.Quiet = 5 * time.Minute
		s := newStage(limits)
		s.prompt(here)
		told := 0
		said := func() int {
			for _, line := range s.heard()["people"] {
				if strings.Contains(line, "Nothing was heard from the model for 5m0s") {
					told++
				}
			}
			return told
		}
		for range 3 { // it speaks now and then
			time.Sleep(4 * time.Minute)
			s.process(here).emit(&claude.System{Meta: claude.Meta{Type: "system", Subtype: "status"}})
			synctest.Wait()
		}
		if said() != 0 {
			t.Error("a turn that is heard of is told of as silent")
		}
		heard := time.Now()
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if q := s.people.silent(); q == nil || q.Of != "the model" || !q.Since.Equal(heard) {
			t.Errorf("after a while it is shown as %+v", q)
		}
		if said() != 0 {
			t.Error("it was told too early")
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if n := said(); n != 1 {
			t.Errorf("it was told %d times", n)
		}
		s.process(here).result(claude.Result{NumTurns: 1})
		synctest.Wait()
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}

// A turn that waits for a person shows since when, and is not told of.
func TestATurnThatWaitsForPeopleShowsSinceWhen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := staged
		limits.Quiet = 5 * time.Minute
		s := newStage(limits)
		s.prompt(here)
		s.process(here).request("ask", toolWrite)
		synctest.Wait()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if q := s.people.silent(); q == nil || q.Of != "" || time.Since(q.Since) < 19*time.Minute {
			t.Errorf("it is shown as %+v", q)
		}
		if slices.ContainsFunc(s.heard()["people"], func(said string) bool { return strings.Contains(said, "Nothing was heard") }) {
			t.Error("people are told that nothing is heard of them")
		}
		s.decide(s.pending(here), "allowed")
		synctest.Wait()
		s.process(here).result(claude.Result{NumTurns: 1})
		synctest.Wait()
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}
