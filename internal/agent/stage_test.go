package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/agent/memstore"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
	"deckhand/internal/workspace"
)

// stage is a real supervisor with everything around it played, in a bubble of
// testing/synctest: the store in memory, a machine and processes that do what the test
// says, and people who note what they see. Whatever happens on it is held to the laws;
// see broken.
type stage struct {
	store   *memstore.Store
	machine *playedMachine
	people  *audience
	who     *authority
	sup     *Supervisor
	works   Works // nil: none is kept
	servers map[string]place.MCPServer
	way     Store  // the supervisor's to the database
	begin   func() // a supervisor
	shut    context.CancelFunc
	ran     chan error
	threads map[string]threads.Thread // by their ts
	prompts int
	// files are what people attach, and attached what comes with every prompt.
	files    Files
	attached []inbox.PromptFile
	words    string // of every prompt, if not "go"
	left     []*leftCall
	at       string // the state that the test has led to
	// sentence is what people are told of the exit that the event is.
	sentence string

	mu     sync.Mutex
	said   map[string][]string // what was told, by whom to whom: people, budgets, p1 …
	names  map[string]string   // of random ids, in the order of their appearance
	counts map[string]int
	broken []string // laws that did not hold
}

const (
	toolRead  = "mcp__dev__read"  // a rule allows it
	toolDrop  = "mcp__dev__drop"  // a rule denies it
	toolWrite = "mcp__dev__write" // a person is asked
	toolWait  = "mcp__dev__wait"  // a person is asked; silence is a denial
	toolBuild = "mcp__dev__build" // a person is asked, and U2 allowed it for good where grants are
)

// The hosts that connections want to reach, of which the same holds.
const (
	hostRead  = "read.example"
	hostDrop  = "drop.example"
	hostWrite = "write.example"
	hostWait  = "wait.example"
	hostBuild = "build.example"
)

// ofHost is the pattern of a host.
func ofHost(host string) string { return policy.NetworkTool + "(domain:" + host + ")" }

// staged are the times and limits of a stage.
var staged = Limits{Quiet: 1000 * time.Hour, IdleTimeout: 30 * time.Minute, ParkAfter: 2 * approvalTime, MaxLive: 2, Starts: 2, LeaseTTL: 24 * time.Second, Poll: 10 * time.Second, StopTimeout: 10 * time.Second}

// approvalTime is how long people have to decide.
const approvalTime = time.Hour

// newStage begins in a bubble. The caller ends it with close.
func newStage(limits Limits, list ...spend.Budget) *stage {
	s := &stage{store: new(memstore.Store), threads: map[string]threads.Thread{}, said: map[string][]string{}, names: map[string]string{}, counts: map[string]int{}}
	s.way, s.machine = s.store, &playedMachine{stage: s}
	s.people = &audience{stage: s, turns: map[int64]string{}, unfinished: map[int64]bool{}, cards: map[string]approvals.Status{}, prompts: map[int64]PromptMark{}, spoken: map[threads.ThreadKey]bool{}, places: map[threads.ThreadKey]bool{}}
	s.who = &authority{may: map[string]bool{"U2": true}}
	pattern := func(text string) []policy.Pattern {
		p, err := policy.ParsePattern(text)
		if err != nil {
			panic(err) // the patterns are constant
		}
		return []policy.Pattern{p}
	}
	rules := &policy.Policy{Rules: []policy.Rule{
		{Verdict: policy.Allow, Patterns: pattern(toolRead)},
		{Verdict: policy.Deny, Patterns: pattern(toolDrop)},
		{Verdict: policy.Ask, Patterns: pattern(toolWrite)},
		{Verdict: policy.Ask, Patterns: pattern(toolBuild)},
		{Verdict: policy.Ask, Patterns: pattern(toolWait), OnTimeout: policy.DenyOnTimeout},
		{Verdict: policy.Allow, Patterns: pattern(ofHost(hostRead))},
		{Verdict: policy.Deny, Patterns: pattern(ofHost(hostDrop))},
		{Verdict: policy.Ask, Patterns: pattern(ofHost(hostWait)), OnTimeout: policy.DenyOnTimeout},
	}, Default: policy.Terms{Timeout: approvalTime, Quorum: 1, OnTimeout: policy.Pause}}
	s.begin = func() {
		limits := limits.withDefaults()
		s.sup = newSupervisor(nil, &dependencies{
			store: s.way, front: s.people, authoriser: s.who, policy: rules,
			projects: map[string]place.Project{"web": {Name: "web", MCPServers: s.servers}},
			accounts: spend.New(spend.Config{Store: s.way, Budgets: list, Front: s.people}),
			works:    s.works,
			people:   connectedPeople{},
			replica:  "A", cliVersion: "2.1.329", log: zap.NewNop(),
			place: place.Place{Machine: s.machine, Slots: place.NewSlots(limits.MaxLive), Starts: &place.Starts{AtOnce: limits.Starts}}, files: s.files,
		}, &bounds{limits: limits, workspaces: workspace.Limits{MaxAge: 24 * time.Hour}})
		ctx, cancel := context.WithCancel(context.Background())
		s.shut, s.ran = cancel, make(chan error, 1)
		go func() { s.ran <- s.sup.Run(ctx) }()
		synctest.Wait()
	}
	s.begin()
	return s
}

// restart ends the supervisor in good order and begins another.
func (s *stage) restart() {
	s.end()
	s.begin()
}

func (s *stage) end() {
	s.shut()
	if err := <-s.ran; err != nil {
		s.breach("the supervisor ended with %v", err)
	}
	synctest.Wait()
	if n := s.sup.place.Slots.Used(); n != 0 {
		s.breach("%d slots are left in use", n)
	}
	s.sup.waiting.Range(func(id, _ any) bool {
		s.breach("approval %s is still waited for", s.name("a", id.(string)))
		return true
	})
}

// close ends the supervisor, lets go of whatever is held, and returns the laws that did
// not hold.
func (s *stage) close() []string {
	s.readOn()
	s.shut()
	s.machine.letGo()
	s.who.hold(false)
	s.end()
	s.checkEnd()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.broken)
	return slices.Compact(s.broken)
}

func (s *stage) breach(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = append(s.broken, fmt.Sprintf(format, args...))
}

func (s *stage) say(to, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said[to] = append(s.said[to], fmt.Sprintf(format, args...))
}

// heard takes what was told since the last call.
func (s *stage) heard() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.said
	s.said = map[string][]string{}
	return out
}

// name stands for a random id.
func (s *stage) name(kind, id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names[id] == "" {
		s.counts[kind]++
		s.names[id] = fmt.Sprint(kind, s.counts[kind])
	}
	return s.names[id]
}

// prompt has a person write to a thread, and waits for what comes of it.
func (s *stage) prompt(ts string) {
	s.accept(ts)
	synctest.Wait()
}

func (s *stage) accept(ts string) { s.acceptOf("U1", ts) }

// acceptOf is accept of a person's.
func (s *stage) acceptOf(user, ts string) {
	s.prompts++
	key := threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: ts}
	n := fmt.Sprintf("%04d", s.prompts)
	id, _, err := s.store.Receive(context.Background(), inbox.Envelope{EventID: n, Kind: inbox.Message, TeamID: "T1", ChannelID: "C1", ThreadTS: ts, TS: n, UserID: user})
	if err == nil {
		s.threads[ts], _, err = s.store.AcceptPrompt(context.Background(), inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: user, UUID: uuid.NewString(), Text: cmp.Or(s.words, "go"), Files: s.attached})
	}
	if err != nil {
		s.breach("a prompt was not accepted: %v", err)
	}
}

// worker is the thread's, or nil.
func (s *stage) worker(ts string) *worker {
	s.sup.mu.Lock()
	defer s.sup.mu.Unlock()
	return s.sup.workers[s.threads[ts].ID]
}

// process is the thread's, or nil while none lives.
func (s *stage) process(ts string) *playedProcess {
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	for _, p := range slices.Backward(s.machine.processes) {
		if p.thread == s.threads[ts].ID && !p.over() {
			return p
		}
	}
	return nil
}

// state is the thread's worker's. Call it while everybody waits for something, and have
// the next thing that they hear come from the caller.
func (s *stage) state(ts string) string {
	w := s.worker(ts)
	if w == nil {
		for _, r := range s.store.Turns() {
			if r.ThreadID == s.threads[ts].ID && !r.Ended && r.Parking == turns.Parked {
				return "parked"
			}
		}
		if t := s.row(ts); t.LeaseOwner != "" && t.LeaseOwner != "A" {
			return "gone"
		}
		return "cold"
	}
	p := s.process(ts)
	switch {
	case p != nil && p.leaving():
		return "hibernating"
	case w.session == nil && s.sup.place.Slots.Has(w):
		return "starting"
	case w.session == nil:
		return "waiting"
	case w.turn == nil:
		return "ready"
	case w.turn.stopping():
		return "stopping"
	case w.turn.desk.Checking():
		return "checking"
	case len(w.turn.desk.Open()) > 0:
		return "awaiting"
	}
	return "running"
}

func (s *stage) row(ts string) threads.Thread {
	for _, t := range s.store.Threads() {
		if t.ThreadTS == ts {
			return t
		}
	}
	return threads.Thread{}
}

// pending is the open approval of the thread that was asked first, or "".
func (s *stage) pending(ts string) string {
	for _, a := range s.store.Approvals() {
		if a.ThreadID == s.threads[ts].ID && a.Status == approvals.Pending {
			return a.ID
		}
	}
	return ""
}

// decide has U2 press a button.
func (s *stage) decide(id string, status approvals.Status) {
	s.decided(s.sup.Decide(context.Background(), approvals.Decision{ApprovalID: id, Status: status, By: "U2", Via: "button"}))
	synctest.Wait()
}

// decided shows what came of a press of a button, as whoever took it does: resolve
// first, render second.
func (s *stage) decided(a approvals.Approval, err error) {
	if err == nil || errors.Is(err, pg.ErrEnded) {
		s.people.ShowApproval(a)
	}
}

// expire lets the approval's time run out.
func (s *stage) expire(id string) {
	time.Sleep(approvalTime + time.Second)
	a, ok, err := s.store.ExpireApproval(context.Background(), id)
	if err != nil {
		s.breach("an approval did not expire: %v", err)
	}
	if ok {
		s.people.ShowApproval(a)
	}
	synctest.Wait()
}

// isElsewhere reports whether another replica holds the thread.
func (s *stage) isElsewhere(threadID int64) bool {
	return slices.ContainsFunc(s.store.Threads(), func(t threads.Thread) bool {
		return t.ID == threadID && t.LeaseOwner != "" && t.LeaseOwner != "A"
	})
}

// checkQuiet holds what is while nobody is held up to the laws.
func (s *stage) checkQuiet() {
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	open := map[string]bool{}
	for _, a := range s.store.Approvals() {
		if a.Status == approvals.Pending {
			open[a.RequestID], open[string(a.Input)+fmt.Sprint(a.ThreadID)] = true, true
		}
	}
	live := 0
	for _, p := range s.machine.processes {
		if p.over() {
			continue
		}
		live++
		p.mu.Lock()
		for id, kind := range p.pending {
			if kind == "hook" || !open[id] {
				s.broken = append(s.broken, fmt.Sprintf("%s waits for an answer to a %s that nobody will give", p.name, kind))
			}
		}
		for _, c := range p.connections {
			if c.waits() && !open[string(policy.NetworkInput(c.host, 443))+fmt.Sprint(p.thread)] {
				s.broken = append(s.broken, fmt.Sprintf("%s waits for %s, about which nobody is asked", p.name, c.host))
			}
		}
		p.mu.Unlock()
	}
	if used := s.sup.place.Slots.Used(); used > s.sup.limits.MaxLive || live > used {
		s.broken = append(s.broken, fmt.Sprintf("%d processes in %d slots of %d", live, used, s.sup.limits.MaxLive))
	}
}

// checkEnd holds the end of a stage to the laws.
func (s *stage) checkEnd() {
	lost := map[int64]bool{} // threads that another replica took
	for _, t := range s.store.Threads() {
		lost[t.ID] = s.isElsewhere(t.ID)
	}
	open := map[int64]bool{}
	for _, t := range s.store.Turns() {
		open[t.ID] = !t.Ended
		shown := s.people.turns[t.ID]
		if shown != "" && shown != "over" && !(shown == parked && !t.Ended) && !lost[t.ThreadID] {
			s.breach("turn %d is left as %q in front of people", t.ID, shown)
		}
	}
	for _, a := range s.store.Approvals() {
		if a.Status == approvals.Pending && !open[a.TurnID] {
			s.breach("approval %s is open and its turn has ended", s.name("a", a.ID))
		}
		if shown, ok := s.people.cards[a.ID]; ok && shown == approvals.Pending && a.Status != approvals.Pending && !lost[a.ThreadID] {
			s.breach("the card of %s shows buttons, and it is %s", s.name("a", a.ID), a.Status)
		}
	}
	for _, p := range s.store.Prompts() {
		if p.State == "done" && s.people.prompts[p.InboxID] == PromptRunning && !lost[p.ThreadID] || p.State == "done" && s.people.prompts[p.InboxID] == "" {
			s.breach("prompt %d ended (%s) and its author was not told", p.InboxID, p.Outcome)
		}
		if p.State == "done" && p.TurnID == 0 && p.ThreadID != 0 && !s.people.spoken[p.ThreadKey] {
			s.breach("prompt %d was dropped (%s) without a sentence", p.InboxID, p.Outcome)
		}
		if p.State == "running" && !open[p.TurnID] {
			s.breach("prompt %d runs in a turn that has ended", p.InboxID)
		}
	}
	waits := map[int64]bool{}
	for _, p := range s.store.Prompts() {
		waits[p.ThreadID] = waits[p.ThreadID] || p.State != "done"
	}
	for _, t := range s.store.Threads() {
		if s.people.places[t.Key()] && !waits[t.ID] && !lost[t.ID] {
			s.breach("thread %d is said to wait for a session", t.ID)
		}
	}
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	for _, p := range s.machine.processes {
		if !p.over() {
			s.breach("%s was left behind", p.name)
		}
	}
}

// told is everything that was told, by whom, for golden files.
func told(heard map[string][]string) string {
	var out strings.Builder
	for _, to := range slices.Sorted(maps.Keys(heard)) {
		fmt.Fprintf(&out, "  %-7s %s\n", to, strings.Join(heard[to], "\n          "))
	}
	return out.String()
}
