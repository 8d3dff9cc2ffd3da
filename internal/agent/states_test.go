package agent

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/ledger"
)

var update = flag.Bool("update", false, "write testdata/states.golden and the table in doc.go anew")

// The thread that a table is about, and another one that takes its slot.
const (
	here  = "1.1"
	there = "2.1"
)

// states are those of a worker, with the way into each.
var states = []struct {
	name string
	into func(s *stage)
}{
	{"cold", func(s *stage) {
		turnOver(s)
		time.Sleep(staged.IdleTimeout + time.Second)
		synctest.Wait()
	}},
	{"waiting", func(s *stage) {
		s.oneSlot()
		s.prompt(there)
		s.prompt(here)
	}},
	{"starting", func(s *stage) {
		s.machine.hold()
		s.prompt(here)
	}},
	{"ready", turnOver},
	{"running", func(s *stage) { s.prompt(here) }},
	{"awaiting", func(s *stage) { awaiting(s, toolWrite) }},
	{"checking", func(s *stage) {
		s.who.hold(true)
		s.store.Grant("T1", "web", toolBuild, toolBuild, "U2")
		s.store.Grant("T1", "web", toolBuild, toolBuild, "U2") // twice, and one look-up all the same
		s.prompt(here)
		s.process(here).request("hook", toolBuild)
	}},
	{"stopping", func(s *stage) { // while an approval waits, and a prompt
		s.machine.deaf = true
		awaiting(s, toolWrite)
		stop(s)
		s.prompt(here)
	}},
	{"parked", func(s *stage) { // an approval waits, and sleeps
		awaiting(s, toolWrite)
		s.sup.send(s.threads[here].ID, message{kind: messageHibernate})
	}},
	{"hibernating", func(s *stage) {
		s.machine.holdStop = true
		turnOver(s)
		time.Sleep(staged.IdleTimeout + time.Second)
	}},
}

func turnOver(s *stage) {
	s.prompt(here)
	s.process(here).result(claude.Result{NumTurns: 1})
	synctest.Wait()
}

func awaiting(s *stage, tool string) {
	s.prompt(here)
	p := s.process(here)
	p.request("hook", tool)
	synctest.Wait()
	p.request("ask", tool)
	synctest.Wait()
}

func stop(s *stage) {
	if _, err := s.sup.Stop(context.Background(), s.row(here), "U1"); err != nil {
		s.breach("stop: %v", err)
	}
	synctest.Wait()
}

// events are what can happen. One that cannot happen in a state reports false.
var events = []event{
	{"hook: allow", hook(toolRead)},
	{"hook: deny", hook(toolDrop)},
	{"hook: ask", hook(toolWrite)},
	{"hook: granted", hookGranted},
	{"can_use_tool", onProcess(func(_ *stage, p *playedProcess) { p.request("ask", toolWrite) })},
	{"can_use_tool: deny", onProcess(func(_ *stage, p *playedProcess) { p.request("ask", toolDrop) })},
	{"allowed", decided(approvals.Allowed)},
	{"denied", decided(approvals.Denied)},
	{"allowed elsewhere", func(s *stage) bool {
		id := s.pending(here)
		if id == "" {
			return false
		}
		s.decided(s.store.Decide(context.Background(), approvals.Decision{ApprovalID: id, Status: approvals.Allowed, By: "U3", Via: "button"}))
		return true
	}},
	{"expired", func(s *stage) bool {
		id := s.pending(here)
		if id == "" {
			return false
		}
		s.expire(id)
		return true
	}},
	{"cancelled: hook", func(s *stage) bool { p := s.process(here); return p != nil && p.withdraw("hook") }},
	{"cancelled: ask", func(s *stage) bool { p := s.process(here); return p != nil && p.withdraw("ask") }},
	{"looked up: yes", func(s *stage) bool { return lookedUp(s, true) }},
	{"looked up: no", func(s *stage) bool { return lookedUp(s, false) }},
	{"looked up: late", func(s *stage) bool {
		if s.at != "checking" {
			return false
		}
		time.Sleep(ask.CheckLimit + time.Second)
		return true
	}},
	{"grant revoked", func(s *stage) bool {
		if s.at != "checking" {
			return false
		}
		for id := range int64(2) {
			if _, _, err := s.store.RevokeGrant(context.Background(), "T1", id+1, "U2"); err != nil {
				s.breach("revoke: %v", err)
			}
		}
		return lookedUp(s, true)
	}},
	{"host: allow", connect(hostRead)},
	{"host: deny", connect(hostDrop)},
	{"host: ask", connect(hostWrite)},
	{"host: granted", func(s *stage) bool {
		s.store.Grant("T1", "web", policy.NetworkTool, ofHost(hostBuild), "U2")
		return connect(hostBuild)(s)
	}},
	{"prompt", func(s *stage) bool { s.prompt(here); return true }},
	{"prompt, no slot", func(s *stage) bool {
		if s.at != "cold" {
			return false
		}
		s.oneSlot()
		s.prompt(there)
		s.prompt(here)
		return true
	}},
	{"prompt, nothing left", promptOverBudget},
	{"prompt, admins asked", promptOverBudget},
	{"admins asked, stop", func(s *stage) bool {
		if !promptOverBudget(s) {
			return false
		}
		stop(s)
		return true
	}},
	{"admins asked, raised", func(s *stage) bool {
		if !promptOverBudget(s) {
			return false
		}
		s.sleeps()
		s.store.RaiseBudgets(1 << 40)
		return true
	}},
	{"admins asked, left", func(s *stage) bool {
		if !promptOverBudget(s) {
			return false
		}
		s.store.LeaveBudgets()
		return true
	}},
	{"admins asked, a day", func(s *stage) bool {
		if !promptOverBudget(s) {
			return false
		}
		time.Sleep(24 * time.Hour)
		return true
	}},
	{"admins asked, restart", func(s *stage) bool {
		if !promptOverBudget(s) {
			return false
		}
		s.restart()
		s.sleeps()
		return true
	}},
	{"admins asked, unbegun", onProcess(func(s *stage, p *playedProcess) {
		s.store.Spend(s.threads[here].ID, 10_000_000)
		p.spend()
		synctest.Wait()
		s.store.RaiseBudgets(1 << 40)
	})},
	{"wake", func(s *stage) bool { s.sup.Wake(s.threads[here].ID); return true }},
	{"stop", func(s *stage) bool { stop(s); return true }},
	{"over budget", onProcess(func(_ *stage, p *playedProcess) {
		for range 3 { // the second is the last that is admitted
			p.spend()
			synctest.Wait()
		}
	})},
	{"result", onProcess(func(_ *stage, p *playedProcess) { p.result(claude.Result{NumTurns: 2}) })},
	{"result: failed", onProcess(func(_ *stage, p *playedProcess) {
		p.result(claude.Result{IsError: true, Errors: []string{"it broke"}})
	})},
	{"silence", onProcess(func(_ *stage, p *playedProcess) { p.emit(&claude.Silence{}) })},
	{"StopTimeout", func(s *stage) bool {
		if s.at != "stopping" {
			return false
		}
		time.Sleep(staged.StopTimeout + time.Second)
		return true
	}},
	{"a slot is free", func(s *stage) bool {
		p := s.process(there)
		if p == nil {
			return false
		}
		p.result(claude.Result{})
		return true
	}},
	{"started", func(s *stage) bool {
		if s.at != "starting" {
			return false
		}
		s.machine.release()
		return true
	}},
	{"no answer in time", func(s *stage) bool { return unanswered(s) }},
	{"no answer, stop", func(s *stage) bool {
		if !unanswered(s) {
			return false
		}
		stop(s)
		return true
	}},
	{"no answer, tried again", func(s *stage) bool {
		if !unanswered(s) {
			return false
		}
		time.Sleep(2 * startPause)
		return true
	}},
	{"no answer for long", func(s *stage) bool {
		if !unanswered(s) {
			return false
		}
		for range 60 {
			s.machine.failNext(claude.ErrNoAnswer)
		}
		time.Sleep(startLimit + 2*startPauseMost)
		return true
	}},
	{"no workspace", func(s *stage) bool {
		if s.at != "waiting" {
			return false
		}
		s.machine.noFolder = errors.New("the folder does not exist")
		s.process(there).result(claude.Result{})
		return true
	}},
	{"hibernate asked", func(s *stage) bool {
		return s.sup.send(s.threads[here].ID, message{kind: messageHibernate})
	}},
	{"idle", func(s *stage) bool {
		if s.at != "ready" {
			return false
		}
		time.Sleep(staged.IdleTimeout + time.Second)
		return true
	}},
	{"hibernated", func(s *stage) bool {
		if s.at != "hibernating" {
			return false
		}
		s.machine.release()
		return true
	}},
	{"database away", func(s *stage) bool {
		p := s.process(here)
		s.store.Break(errors.New("no database"))
		s.sup.Wake(s.threads[here].ID)
		synctest.Wait()
		if p != nil && !p.leaving() {
			p.request("hook", toolRead)
		}
		time.Sleep(interruptLimit + time.Second) // a CLI that is deaf takes it all
		s.store.Break(nil)
		time.Sleep(staged.Poll)
		return true
	}},
	{"lease lost", func(s *stage) bool {
		s.machine.loss(s.threads[here].ID, true)
		s.store.Steal(s.threads[here].ID, "B")
		time.Sleep(staged.LeaseTTL/heartbeats + time.Second) // that is when it is noticed
		return true
	}},
	{"shutdown", func(s *stage) bool {
		s.shut()
		time.Sleep(interruptLimit + time.Second)
		return true
	}},
}

type event struct {
	name string
	// happen reports false when it cannot.
	happen func(s *stage) bool
}

func init() {
	for _, reason := range []claude.ExitReason{
		claude.ExitClean, claude.ExitNotLoggedIn, claude.ExitUnknownSession, claude.ExitIDInUse, claude.ExitBadFlag, claude.ExitBadInput,
		claude.ExitTurnFailed, claude.ExitLineTooLong, claude.ExitUnreadable, claude.ExitKilled, claude.ExitCrashed,
	} {
		events = append(events, event{"exit: " + string(reason), func(s *stage) bool {
			exit := &claude.ExitError{Reason: reason}
			s.sentence = exit.Sentence()
			switch p := s.process(here); {
			case p != nil:
				p.die(reason)
			case s.at == "starting":
				s.machine.failNext(exit)
				s.machine.release()
			default:
				return false
			}
			return true
		}})
	}
}

// unanswered has the start not be answered in time.
func unanswered(s *stage) bool {
	if s.at != "starting" {
		return false
	}
	s.machine.failNext(claude.ErrNoAnswer)
	s.machine.release()
	synctest.Wait()
	return true
}

func onProcess(do func(s *stage, p *playedProcess)) func(s *stage) bool {
	return func(s *stage) bool {
		p := s.process(here)
		if p == nil || p.leaving() {
			return false
		}
		do(s, p)
		return true
	}
}

func hook(tool string) func(s *stage) bool {
	return onProcess(func(_ *stage, p *playedProcess) { p.request("hook", tool) })
}

func connect(host string) func(s *stage) bool {
	return onProcess(func(_ *stage, p *playedProcess) { p.connect(host) })
}

func hookGranted(s *stage) bool {
	s.store.Grant("T1", "web", toolBuild, toolBuild, "U2")
	return hook(toolBuild)(s)
}

func decided(status approvals.Status) func(s *stage) bool {
	return func(s *stage) bool {
		id := s.pending(here)
		if id == "" {
			return false
		}
		s.decide(id, status)
		return true
	}
}

func lookedUp(s *stage, yes bool) bool {
	if s.at != "checking" {
		return false
	}
	s.who.mu.Lock()
	s.who.may["U2"] = yes
	s.who.mu.Unlock()
	s.who.hold(false)
	synctest.Wait()
	if n := s.who.lookup["U2"]; n != 1 {
		s.breach("one person was looked up %d times", n)
	}
	return true
}

// enter is a stage on which the thread is in a state. ask: admins are asked when the
// thread's budget is used up.
func enter(state string, into func(s *stage), ask bool) *stage {
	s := newStage(staged, spend.Budget{Scope: ledger.BudgetThread, Period: ledger.BudgetDaily, LimitMicroUSD: 5_000_000, Ask: ask})
	s.at = state
	into(s)
	synctest.Wait()
	return s
}

func (s *stage) oneSlot() { s.sup.place.Slots.Most = 1 }

// promptOverBudget has a person write to a thread whose budget is used up.
func promptOverBudget(s *stage) bool {
	if s.at != "cold" && s.at != "ready" {
		return false
	}
	s.store.Spend(s.threads[here].ID, 10_000_000)
	s.prompt(here)
	return true
}

// sleeps holds that a prompt that waits for a budget costs a row: no process, no slot,
// and nobody takes the lease again and again.
func (s *stage) sleeps() {
	before := s.row(here).LeaseEpoch
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	if after := s.row(here); after.LeaseEpoch != before || after.LeaseOwner != "" || s.process(here) != nil || s.worker(here) != nil {
		s.breach("a prompt that waits for a budget is looked at: %+v", after)
	}
}

// TestStates holds what happens in every state of a worker at every event: what people
// see, what the CLI is told, what the database holds, and the state that follows; and that
// the laws hold in each. The table of states in doc.go is what it proves.
func TestStates(t *testing.T) {
	t.Parallel()
	next := map[[2]string]string{} // by state and event
	var golden strings.Builder
	for _, state := range states {
		// Events of which the same comes stand together.
		var happened []string
		alike := map[string][]string{}
		t.Run(state.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := enter(state.name, state.into, false)
				if got := s.state(here); got != state.name {
					t.Errorf("the way in leads to %s", got)
				}
				s.close()
			})
		})
		for _, e := range events {
			t.Run(state.name+"/"+e.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := enter(state.name, state.into, strings.HasPrefix(e.name, "prompt, admins") || strings.HasPrefix(e.name, "admins"))
					s.heard()
					before := s.bookLines()
					if e.happen(s) {
						synctest.Wait()
						follows := s.state(here)
						next[[2]string{state.name, e.name}] = follows
						what := "  → " + follows + "\n" + told(s.heard()) + changes(before, s.bookLines())
						if s.sentence != "" {
							what = strings.ReplaceAll(what, s.sentence, "(the sentence for this kind of exit)")
						}
						if alike[what] == nil {
							happened = append(happened, what)
						}
						alike[what] = append(alike[what], e.name)
					}
					for _, broken := range s.close() {
						t.Error(broken)
					}
				})
			})
		}
		for _, what := range happened {
			fmt.Fprintf(&golden, "%s: %s\n%s", state.name, strings.Join(alike[what], " | "), what)
		}
	}
	compare(t, "testdata/states.golden", golden.String())
	compareDoc(t, next)
}

// bookLines is what the database holds of the thread, a line for each row.
func (s *stage) bookLines() map[string]string {
	out := map[string]string{}
	th := s.row(here)
	out["lease"] = cmp.Or(th.LeaseOwner, "free")
	for _, p := range s.store.Prompts() {
		if p.ThreadID == th.ID {
			out[fmt.Sprintf("prompt %d", p.InboxID)] = strings.TrimSpace(p.State + " " + p.Outcome)
		}
	}
	for _, r := range s.store.Turns() {
		if r.ThreadID == th.ID {
			out[fmt.Sprintf("turn %d", r.ID)] = fmt.Sprintf("%s, attempt %d, session %s/%d, %d µ$", r.State, r.Attempt, s.name("s", r.SessionID), r.Epoch, r.CostMicroUSD)
		}
	}
	for _, a := range s.store.Approvals() {
		if a.ThreadID == th.ID {
			by := ""
			if a.DecidedBy != "" {
				by = " by " + a.DecidedBy + " via " + a.DecidedVia
			}
			out["approval "+s.name("a", a.ID)] = fmt.Sprintf("%s %s%s, delivered %t", a.ToolName, a.Status, by, a.Delivered)
		}
	}
	return out
}

func changes(before, after map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if before[key] != after[key] {
			out = append(out, key+": "+after[key])
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "  books   " + strings.Join(out, "\n          ") + "\n"
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", file, diff)
	}
}

// compareDoc holds the table in doc.go to what was proved.
func compareDoc(t *testing.T, next map[[2]string]string) {
	t.Helper()
	var table strings.Builder
	row := func(first string, cells []string) {
		line := fmt.Sprintf("%-22s", first)
		for _, c := range cells {
			line += fmt.Sprintf("%-9s", c)
		}
		table.WriteString("//\t" + strings.TrimRight(line, " ") + "\n")
	}
	short := strings.NewReplacer("running", "run", "stopping", "stop", "hibernating", "hibern", "ing", "")
	name := short.Replace
	var head []string
	for _, s := range states {
		head = append(head, name(s.name))
	}
	row("", head)
	exits := map[string]bool{}
	for _, e := range events {
		var cells []string
		for _, s := range states {
			to, ok := next[[2]string{s.name, e.name}]
			switch {
			case !ok:
				to = "·"
			case to == s.name:
				to = "="
			default:
				to = name(to)
			}
			cells = append(cells, to)
		}
		key := strings.Join(cells, " ")
		if strings.Trim(key, "· ") == "" {
			t.Errorf("%s never happens", e.name)
		}
		label, isExit := e.name, strings.HasPrefix(e.name, "exit: ")
		if isExit && exits[key] {
			continue // a row for each kind of exit that differs
		}
		if exits[key] = isExit; isExit && e.name == "exit: clean" {
			label = "exit"
		}
		row(label, cells)
	}
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "// Every state and every event:\n//\n", "//\n// = stays,"
	head0, rest, ok1 := strings.Cut(string(src), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("doc.go has no table of states")
	}
	if *update && old != table.String() {
		if err := os.WriteFile("doc.go", []byte(head0+begin+table.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		old = table.String()
	}
	if diff := gocmp.Diff(table.String(), old); diff != "" {
		t.Errorf("the table in doc.go (-want +got; -update writes it anew):\n%s", diff)
	}
}

// Nothing but a turn that is done is marked as done.
func TestMarks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		turn  turn
		state TurnState
		want  PromptMark
	}{
		{turn{}, TurnDone, PromptDone},
		{turn{stoppedBy: "U0ADA"}, TurnDone, PromptDone}, // too late
		{turn{}, TurnFailed, PromptFailed},
		{turn{stoppedBy: "U0ADA", overBudget: &spend.Status{}}, TurnInterrupted, PromptStopped},
		{turn{overBudget: &spend.Status{}}, TurnInterrupted, PromptOverBudget},
		{turn{}, TurnInterrupted, PromptPaused},
	} {
		if got := tt.turn.mark(tt.state); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.state, got, tt.want)
		}
	}
}
