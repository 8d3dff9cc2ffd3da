package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/ledger"
)

// happening is one thing that happens in a random sequence.
type happening struct {
	What   string
	Thread string
	N      int
	Settle bool // everybody has reacted before the next happening
}

// happenings are what a happening can be, with how it is done. One that cannot happen is
// left out.
var happenings = map[string]func(s *stage, st happening){
	"prompt": func(s *stage, st happening) { s.accept(st.Thread) },
	"result": func(s *stage, st happening) {
		if p := s.inTurn(st.Thread); p != nil && p.waits() == 0 {
			p.result(claude.Result{NumTurns: 1})
		}
	},
	"failure": func(s *stage, st happening) {
		if p := s.inTurn(st.Thread); p != nil && p.waits() == 0 {
			p.result(claude.Result{IsError: true})
		}
	},
	"hook": func(s *stage, st happening) {
		if p := s.inTurn(st.Thread); p != nil {
			p.request("hook", []string{toolRead, toolDrop, toolWrite, toolBuild, toolWait}[st.N%5])
		}
	},
	"ask": func(s *stage, st happening) {
		if p := s.inTurn(st.Thread); p != nil {
			p.request("ask", []string{toolWrite, toolDrop, toolBuild, toolWait}[st.N%4])
		}
	},
	"connect": func(s *stage, st happening) {
		if p := s.process(st.Thread); p != nil && p.adopted() {
			p.connect([]string{hostRead, hostDrop, hostWrite, hostBuild, hostWait}[st.N%5])
		}
	},
	"disconnect": func(s *stage, st happening) {
		if p := s.process(st.Thread); p != nil && p.adopted() {
			p.disconnect()
		}
	},
	"grant host": func(s *stage, _ happening) { s.store.Grant("T1", "web", policy.NetworkTool, ofHost(hostBuild), "U2") },
	"decide": func(s *stage, st happening) {
		if id := s.open(st.N); id != "" {
			d := approvals.Decision{ApprovalID: id, Status: approvals.Allowed, By: "U2", Via: "button"}
			if st.N%3 == 0 {
				d.Status = approvals.Denied
			}
			s.decided(s.sup.Decide(context.Background(), d))
		}
	},
	"decide elsewhere": func(s *stage, st happening) {
		if id := s.open(st.N); id != "" {
			s.decided(s.store.Decide(context.Background(), approvals.Decision{ApprovalID: id, Status: approvals.Allowed, By: "U2"}))
		}
	},
	"expire": func(s *stage, st happening) {
		id := s.open(st.N)
		time.Sleep(approvalTime)
		if a, ok, _ := s.store.ExpireApproval(context.Background(), id); ok {
			s.people.ShowApproval(a)
		}
	},
	"withdraw": func(s *stage, st happening) {
		if p := s.process(st.Thread); p != nil {
			p.withdraw([]string{"hook", "ask"}[st.N%2])
		}
	},
	"grant": func(s *stage, _ happening) { s.store.Grant("T1", "web", toolBuild, toolBuild, "U2") },
	"revoke": func(s *stage, st happening) {
		_, _, _ = s.store.RevokeGrant(context.Background(), "T1", int64(st.N%3+1), "U2")
	},
	"hold look-ups":  func(s *stage, _ happening) { s.who.hold(true) },
	"answer look-up": func(s *stage, _ happening) { s.who.hold(false) },
	"stop": func(s *stage, st happening) {
		if t := s.row(st.Thread); t.ID != 0 {
			_, _ = s.sup.Stop(context.Background(), t, "U1")
		}
	},
	"spend": func(s *stage, st happening) {
		if p := s.inTurn(st.Thread); p != nil {
			p.spend()
		}
	},
	"silence": func(s *stage, st happening) {
		if p := s.inTurn(st.Thread); p != nil {
			p.emit(&claude.Silence{})
		}
	},
	"hang up": func(s *stage, st happening) {
		if p := s.process(st.Thread); p != nil {
			p.hangUp()
		}
	},
	"read on": func(s *stage, _ happening) { s.readOn() },
	"reset": func(s *stage, st happening) {
		if p := s.inTurn(st.Thread); p != nil {
			p.clear()
		}
	},
	"exit": func(s *stage, st happening) {
		if p := s.process(st.Thread); p != nil {
			p.die([]claude.ExitReason{claude.ExitCrashed, claude.ExitClean, claude.ExitKilled, claude.ExitUnknownSession}[st.N%4])
		}
	},
	"hold starts": func(s *stage, _ happening) { s.machine.release(); s.machine.hold() },
	"fail start": func(s *stage, st happening) {
		s.machine.failNext([]error{
			&claude.ExitError{Reason: claude.ExitUnknownSession}, &claude.ExitError{Reason: claude.ExitIDInUse}, &claude.ExitError{Reason: claude.ExitCrashed},
			errors.New("no such program"), claude.ErrNoAnswer, &claude.ExitError{Reason: claude.ExitKilled},
		}[st.N%6])
	},
	"hold ends": func(s *stage, _ happening) { s.machine.setHoldStop() },
	"release":   func(s *stage, _ happening) { s.machine.release() },
	"deaf":      func(s *stage, st happening) { s.machine.setDeaf(st.N%2 == 0) },
	"hibernate": func(s *stage, st happening) { s.sup.send(s.row(st.Thread).ID, message{kind: messageHibernate}) },
	"wait": func(_ *stage, st happening) {
		time.Sleep([]time.Duration{time.Second, 6 * time.Second, 11 * time.Second, staged.IdleTimeout}[st.N%4])
	},
	"database away": func(s *stage, st happening) {
		s.store.Break(errors.New("no database"))
		time.Sleep(time.Duration(st.N) * time.Second)
		synctest.Wait()
		s.store.Break(nil)
	},
	"lease lost": func(s *stage, st happening) {
		if t := s.row(st.Thread); t.ID != 0 {
			s.machine.loss(t.ID, false) // the worker does not know yet
			s.store.Steal(t.ID, "B")
			time.Sleep(staged.LeaseTTL/heartbeats + time.Second)
			synctest.Wait()
			s.machine.loss(t.ID, true)
			time.AfterFunc(2*time.Minute, func() { s.store.Return("B") })
		}
	},
	"restart": func(s *stage, _ happening) { s.machine.release(); s.who.hold(false); s.restart() },
}

// kinds are what is drawn: what makes the others possible many times.
var kinds = slices.Concat(
	slices.Repeat([]string{"prompt", "hook", "ask"}, 8), slices.Repeat([]string{"connect"}, 6), slices.Repeat([]string{"decide", "result"}, 4), slices.Repeat([]string{"wait", "stop", "hold look-ups"}, 2),
	[]string{
		"answer look-up", "failure", "decide elsewhere", "expire", "withdraw", "disconnect", "grant", "grant host", "revoke", "spend", "silence", "reset", "exit", "hold starts", "fail start",
		"hang up", "hang up", "read on", "hold ends", "release", "deaf", "hibernate", "database away", "lease lost", "restart",
	},
)

// TestSequences holds whatever happens, in any order, to the laws: no tool runs without a
// committed decision on its input, every request of a living process is answered once,
// every approval and every prompt ends and people are told, nothing is shown once the
// lease is known to be lost, slots are neither too many nor leaked, and no process and
// no goroutine is left.
func TestSequences(t *testing.T) {
	t.Parallel()
	for kind := range happenings {
		if !slices.Contains(kinds, kind) {
			t.Fatalf("%s is never drawn", kind)
		}
	}
	threads := []string{here, here, here, there, there, "3.1"}
	rapid.Check(t, func(rt *rapid.T) {
		sequence := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) happening {
			// rapid prefers small numbers, which would be a few kinds again and again.
			draw := func(n int, what string) int {
				return int(rapid.Uint64().Draw(rt, what) * 0x9e3779b97f4a7c15 >> 33 % uint64(n))
			}
			return happening{What: kinds[draw(len(kinds), "what")], Thread: threads[draw(len(threads), "thread")], N: draw(15, "n"), Settle: draw(4, "settle") > 0}
		}), 10, 60).Draw(rt, "sequence")
		limits := staged
		limits.MaxLive = rapid.IntRange(1, 2).Draw(rt, "slots")
		limits.Starts = rapid.IntRange(1, 2).Draw(rt, "starts at once")
		limits.ParkAfter = rapid.SampledFrom([]time.Duration{8 * time.Second, staged.ParkAfter}).Draw(rt, "parked after")
		ask := rapid.Bool().Draw(rt, "admins are asked")
		var broken []string
		synctest.Test(t, func(*testing.T) { broken = play(limits, ask, sequence) })
		for _, b := range broken {
			rt.Error(b)
		}
	})
}

// play plays the sequence, has everything come to an end, and returns the laws that were
// broken.
func play(limits Limits, ask bool, sequence []happening) []string {
	s := newStage(limits, spend.Budget{Scope: ledger.BudgetThread, Period: ledger.BudgetDaily, LimitMicroUSD: 5_000_000, Ask: ask})
	s.store.Grant("T1", "web", toolBuild, toolBuild, "U2")
	for _, st := range sequence {
		happenings[st.What](s, st)
		if st.Settle {
			synctest.Wait()
		}
	}
	// Nothing is held any more.
	s.readOn()
	s.machine.letGo()
	s.who.hold(false)
	s.store.RaiseBudgets(1 << 40)
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	s.checkQuiet()
	// Whoever works comes to an end.
	for range 60 {
		s.store.RaiseBudgets(1 << 40) // what a turn has cost may be known only now
		for _, th := range s.store.Threads() {
			s.expireOverdue()
			for id := s.openIn(th.ID); id != ""; id = s.openIn(th.ID) {
				s.decide(id, approvals.Allowed)
			}
			if p := s.inTurn(th.ThreadTS); p != nil {
				p.result(claude.Result{})
			}
		}
		synctest.Wait()
		time.Sleep(11 * time.Second)
		synctest.Wait()
	}
	s.checkQuiet()
	for _, p := range s.store.Prompts() {
		if p.State != "done" {
			s.breach("prompt %d never ended: it is %s, and its thread %s", p.InboxID, p.State, s.standing(p.ThreadTS))
		}
	}
	return s.close()
}

// standing is where a thread's worker and its process stand.
func (s *stage) standing(ts string) string {
	out := s.state(ts)
	if w := s.worker(ts); w != nil {
		out += fmt.Sprintf(" (slot %t, %d letters)", s.sup.place.Slots.Has(w), len(w.box.messages))
	}
	if p := s.process(ts); p != nil {
		out += fmt.Sprintf(" with %s (in a turn %t, %d requests wait)", p.name, p.works(), p.waits())
	}
	return out
}

// inTurn is the thread's process if it works on a prompt.
func (s *stage) inTurn(ts string) *playedProcess {
	t := s.row(ts)
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	for _, p := range s.machine.processes {
		if p.thread == t.ID && p.works() {
			return p
		}
	}
	return nil
}

// open is one of the approvals that wait, or "".
func (s *stage) open(n int) string {
	var ids []string
	for _, a := range s.store.Approvals() {
		if a.Status == approvals.Pending {
			ids = append(ids, a.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[n%len(ids)]
}

// expireOverdue does the jobs that are due.
func (s *stage) expireOverdue() {
	for _, a := range s.store.Approvals() {
		if a.Status == approvals.Pending && !a.ExpiresAt.After(time.Now()) {
			if a, ok, _ := s.store.ExpireApproval(context.Background(), a.ID); ok {
				s.people.ShowApproval(a)
			}
		}
	}
	synctest.Wait()
}

func (s *stage) openIn(threadID int64) string {
	for _, a := range s.store.Approvals() {
		if a.Status == approvals.Pending && a.ThreadID == threadID && a.ExpiresAt.After(time.Now()) {
			return a.ID
		}
	}
	return ""
}

func (p *playedProcess) works() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn && p.exit == nil
}

// adopted reports whether its worker is asked about hosts.
func (p *playedProcess) adopted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asker != nil
}

func (p *playedProcess) waits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pending)
}

// clear begins another session, as /clear does.
func (p *playedProcess) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resets++
	p.session = fmt.Sprintf("%s-%d", p.name, p.resets)
	p.running = 0
	p.put(&claude.ConversationReset{})
}

func (m *playedMachine) setHoldStop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holdStop = true
}

func (m *playedMachine) setDeaf(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deaf = on
}
