package agent

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/place"
	"deckhand/internal/gateway"
	"deckhand/internal/store"
)

// withSpares are the limits of a stage with a warm spare.
func withSpares(n int) Limits {
	l := staged
	l.Spares = n
	return l
}

// mention has a person write to a new thread, as the Slack side does.
func (s *stage) mention(ts string) {
	s.claims = true
	s.prompt(ts)
}

// warm waits until the spare for the next thread is there, and returns its process.
func (s *stage) warm(t *testing.T) *playedProcess {
	t.Helper()
	time.Sleep(2 * spareAgain)
	synctest.Wait()
	if n := s.sup.Spares(); n != 1 {
		t.Fatalf("%d spares are ready", n)
	}
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	return s.machine.processes[len(s.machine.processes)-1]
}

// finish ends the turn that runs in a thread.
func (s *stage) finish(ts string) {
	s.process(ts).result(claude.Result{NumTurns: 1})
	synctest.Wait()
}

// setBase has new threads start from something else.
func (m *playedMachine) setBase(base string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base = base
}

// setLooked has somebody be told whenever it is asked what new threads start from.
func (m *playedMachine) setLooked(tell func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looked = tell
}

func (m *playedMachine) setSetup(done place.Prepared) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setup = done
}

// started is how many processes were started.
func (s *stage) started() int {
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	return len(s.machine.processes)
}

// endsWhole ends the stage, with nothing left of any spare.
func (s *stage) endsWhole(t *testing.T) {
	t.Helper()
	for _, broken := range s.close() {
		t.Error(broken)
	}
	if n := len(s.machine.reserved); n != 0 {
		t.Errorf("what was made for %d threads is left", n)
	}
	for _, p := range s.machine.processes {
		if !p.over() {
			t.Errorf("%s still runs", p.name)
		}
	}
}

// TestAThreadBeginsWithASpare: its process was started before, under its number and its
// session, and costs nothing until then; two that begin at once do not share it.
func TestAThreadBeginsWithASpare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(withSpares(1))
		s.prompt(here)
		s.finish(here)
		p := s.warm(t)
		if n := len(s.store.Turns()); n != 1 || s.started() != 2 {
			t.Errorf("%d turns, %d processes", n, s.started())
		}
		_, err := p.calls.Begin(t.Context(), gateway.Call{ID: uuid.New(), Model: "m"})
		if refused, ok := errors.AsType[*gateway.Refusal](err); !ok || refused.Status != 403 {
			t.Errorf("a spare's call of the model: %v", err)
		}
		first, second := s.sup.ClaimSpare("T1", "C1", "web"), s.sup.ClaimSpare("T1", "C1", "web")
		if first.ThreadID == 0 || second.ThreadID != 0 {
			t.Errorf("two that asked at once got %v and %v", first, second)
		}
		s.sup.ReturnSpare(first)
		for _, of := range [][3]string{{"T2", "C1", "web"}, {"T1", "C2", "web"}, {"T1", "C1", "other"}} {
			if got := s.sup.ClaimSpare(of[0], of[1], of[2]); got.ThreadID != 0 {
				t.Errorf("%v got the spare of another place", of)
			}
		}
		s.mention(there)
		if got := s.process(there); got != p || s.started() != 2 {
			t.Errorf("the thread has %v of %d processes, and not its spare", got, s.started())
		}
		if state := s.state(there); state != "running" {
			t.Errorf("it is %s", state)
		}
		if row := s.row(there); row.SessionID != p.session || row.WorkspaceReplica != "A" || row.Workspace != "/ws" {
			t.Errorf("the thread is %+v", row)
		}
		s.endsWhole(t)
	})
}

// visitor wants a slot, and no more.
type visitor struct{}

func (visitor) MakeRoom() {}

// TestASpareThatDoesNotFit is thrown away, and its thread begins as any other.
func TestASpareThatDoesNotFit(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(s *stage, p *playedProcess){
		"the project has moved on": func(s *stage, _ *playedProcess) { s.machine.setBase("tomorrow") },
		"it dies as it is taken":   func(_ *stage, p *playedProcess) { p.Kill() },
		"it dies a moment later":   func(s *stage, p *playedProcess) { s.machine.setLooked(p.Kill) },
		"it died":                  func(_ *stage, p *playedProcess) { p.Kill(); synctest.Wait() },
		"it is too old":            func(*stage, *playedProcess) { time.Sleep(staged.IdleTimeout); synctest.Wait() },
		"it gives way when it is had": func(s *stage, _ *playedProcess) {
			waits, over := context.WithCancel(context.Background())
			over() // at once: the spare was told to go by then
			if err := s.sup.place.Slots.Acquire(waits, visitor{}, func(int) {}); !errors.Is(err, context.Canceled) {
				panic(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(withSpares(1))
				s.prompt(here)
				s.finish(here)
				p := s.warm(t)
				spoil(s, p)
				s.mention(there)
				if got := s.process(there); got == nil || got == p {
					t.Errorf("the thread has %v", got)
				}
				if state := s.state(there); state != "running" {
					t.Errorf("it is %s", state)
				}
				s.endsWhole(t)
			})
		})
	}
}

// TestASparesSetup: the thread is told of it when it begins, and the audit at once.
func TestASparesSetup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(withSpares(1))
		s.prompt(here)
		s.finish(here)
		s.heard()
		s.machine.setSetup(place.Prepared{Told: "It is set up.", Entries: []store.AuditEntry{{Kind: store.AuditSetup, TeamID: "T1"}}})
		s.warm(t)
		if said := s.heard()["people"]; len(said) != 0 {
			t.Errorf("people were told %q", said)
		}
		s.machine.setSetup(place.Prepared{})
		s.mention(there)
		if said := s.heard()["people"]; !slices.Contains(said, "“It is set up.”") {
			t.Errorf("people were told %q", said)
		}
		s.endsWhole(t)
	})
}

// TestASpareThatNobodyTakes: a number that no thread came with, or whose thread never
// asked for its process.
func TestASpareThatNobodyTakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(withSpares(1))
		s.prompt(here)
		s.finish(here)
		s.warm(t)
		claimed := s.sup.ClaimSpare("T1", "C1", "web")
		time.Sleep(spareClaim)
		synctest.Wait()
		if s.machine.reserved[claimed.ThreadID] || s.sup.spares.has(claimed.ThreadID) {
			t.Error("it is still there")
		}
		s.warm(t) // another, since the channel is still in use
		s.endsWhole(t)
	})
}

// TestASpareGivesWay: to a thread that needs its slot, ready or not, and to one that
// needs its start.
func TestASpareGivesWay(t *testing.T) {
	t.Parallel()
	t.Run("slot", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newStage(withSpares(1)) // two slots
			s.prompt(here)
			p := s.warm(t)
			s.prompt(there) // without the spare's number
			if state := s.state(there); state != "running" || !p.over() {
				t.Errorf("the thread is %s", state)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := s.sup.Spares(); n != 0 {
				t.Errorf("%d spares beside as many sessions as may be", n)
			}
			s.endsWhole(t)
		})
	})
	t.Run("start", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			limits := withSpares(1)
			limits.Starts, limits.MaxLive = 1, 4
			s := newStage(limits)
			s.prompt(here)
			s.finish(here)
			s.machine.hold()
			time.Sleep(spareAgain)
			synctest.Wait()
			if len(s.sup.spares.all) != 1 {
				t.Fatal("no spare is being started")
			}
			s.prompt(there)
			s.machine.release()
			synctest.Wait()
			if state := s.state(there); state != "running" {
				t.Errorf("the thread is %s", state)
			}
			s.finish(there)
			s.warm(t)
			s.endsWhole(t)
		})
	})
}

// TestSparesOfManyPlaces: where there are as many as there may be, a channel in which a
// thread began later has its own instead.
func TestSparesOfManyPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := withSpares(1)
		limits.MaxLive = 4
		s := newStage(limits)
		s.prompt(here)
		s.finish(here)
		s.warm(t)
		s.sup.spares.want(store.Thread{TeamID: "T1", ChannelID: "C2", Project: "web"})
		time.Sleep(3 * spareAgain)
		synctest.Wait()
		if s.sup.ClaimSpare("T1", "C1", "web").ThreadID != 0 || s.sup.ClaimSpare("T1", "C2", "web").ThreadID == 0 {
			t.Error("the spare is not for where the last thread began")
		}
		s.endsWhole(t)
	})
}

// TestWithoutSparesNothingIsMade.
func TestWithoutSparesNothingIsMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		s.prompt(here)
		s.finish(here)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := s.started(); n != 1 {
			t.Errorf("%d processes", n)
		}
		if _, err := s.store.NextThread(context.Background()); err != nil {
			t.Error(err)
		}
		s.endsWhole(t)
	})
}
