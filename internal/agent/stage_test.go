package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
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

	"deckhand/internal/agent/booktest"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/price"
	"deckhand/internal/store"
)

// stage is a real supervisor with everything around it played, in a bubble of
// testing/synctest: the books in memory, a machine and processes that do what the test
// says, and people who note what they see. Whatever happens on it is held to the laws;
// see broken.
type stage struct {
	books   *booktest.Books
	machine *playedMachine
	people  *audience
	who     *authority
	sup     *Supervisor
	begin   func() // a supervisor
	shut    context.CancelFunc
	ran     chan error
	threads map[string]store.Thread // by their ts
	prompts int
	left    []*leftCall
	at      string // the state that the test has led to
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
var staged = Limits{IdleTimeout: 30 * time.Minute, MaxLive: 2, LeaseTTL: 24 * time.Second, Poll: 10 * time.Second, StopTimeout: 10 * time.Second}

// approvalTime is how long people have to decide.
const approvalTime = time.Hour

// newStage begins in a bubble. The caller ends it with close.
func newStage(limits Limits, list ...Budget) *stage {
	s := &stage{books: new(booktest.Books), threads: map[string]store.Thread{}, said: map[string][]string{}, names: map[string]string{}, counts: map[string]int{}}
	s.machine = &playedMachine{stage: s}
	s.people = &audience{stage: s, turns: map[int64]string{}, unfinished: map[int64]bool{}, cards: map[string]store.ApprovalStatus{}, prompts: map[int64]PromptMark{}, spoken: map[store.ThreadKey]bool{}}
	s.who = &authority{may: map[string]bool{"U2": true}}
	pattern := func(p string) []policy.Pattern { return []policy.Pattern{policy.MustParsePattern(p)} }
	rules, err := policy.New([]policy.Rule{
		{Verdict: policy.Allow, Patterns: pattern(toolRead)},
		{Verdict: policy.Deny, Patterns: pattern(toolDrop)},
		{Verdict: policy.Ask, Patterns: pattern(toolWrite)},
		{Verdict: policy.Ask, Patterns: pattern(toolBuild)},
		{Verdict: policy.Ask, Patterns: pattern(toolWait), OnTimeout: policy.DenyOnTimeout},
		{Verdict: policy.Allow, Patterns: pattern(ofHost(hostRead))},
		{Verdict: policy.Deny, Patterns: pattern(ofHost(hostDrop))},
		{Verdict: policy.Ask, Patterns: pattern(ofHost(hostWait)), OnTimeout: policy.DenyOnTimeout},
	}, policy.Terms{Timeout: approvalTime, Quorum: 1, OnTimeout: policy.Pause})
	if err != nil {
		panic(err) // the rules are constant
	}
	s.begin = func() {
		limits := limits.withDefaults()
		s.sup = newSupervisor(nil, &shared{
			books: s.books, front: s.people, authoriser: s.who, machine: s.machine, policy: rules, limits: limits,
			projects: map[string]Project{"web": {Name: "web"}},
			budgets:  &budgets{list: list, books: s.books, front: s.people, log: zap.NewNop()},
			replica:  "A", cliVersion: pinnedCLI, log: zap.NewNop(), slots: newSlots(limits.MaxLive),
		})
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
	if n := s.sup.slots.used(); n != 0 {
		s.breach("%d slots are left in use", n)
	}
	s.sup.waiting.m.Range(func(id, _ any) bool {
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

func (s *stage) accept(ts string) {
	s.prompts++
	key := store.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: ts}
	n := fmt.Sprintf("%04d", s.prompts)
	id, _, err := s.books.Receive(context.Background(), store.Envelope{EventID: n, Kind: store.KindMessage, TeamID: "T1", ChannelID: "C1", ThreadTS: ts, TS: n, UserID: "U1"})
	if err == nil {
		s.threads[ts], _, err = s.books.AcceptPrompt(context.Background(), store.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go"})
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
		if t := s.row(ts); t.LeaseOwner != "" && t.LeaseOwner != "A" {
			return "gone"
		}
		return "cold"
	}
	p := s.process(ts)
	switch {
	case p != nil && p.leaving():
		return "hibernating"
	case w.session == nil && s.sup.slots.live[w]:
		return "starting"
	case w.session == nil:
		return "waiting"
	case w.turn == nil:
		return "ready"
	case w.turn.stopping():
		return "stopping"
	case len(w.session.checks) > 0:
		return "checking"
	case len(w.turn.asked) > 0:
		return "awaiting"
	}
	return "running"
}

func (s *stage) row(ts string) store.Thread {
	for _, t := range s.books.Threads() {
		if t.ThreadTS == ts {
			return t
		}
	}
	return store.Thread{}
}

// pending is the open approval of the thread that was asked first, or "".
func (s *stage) pending(ts string) string {
	for _, a := range s.books.Approvals() {
		if a.ThreadID == s.threads[ts].ID && a.Status == store.ApprovalPending {
			return a.ID
		}
	}
	return ""
}

// decide has U2 press a button.
func (s *stage) decide(id string, status store.ApprovalStatus) {
	s.decided(s.sup.Decide(context.Background(), store.Decision{ApprovalID: id, Status: status, By: "U2", Via: "button"}))
	synctest.Wait()
}

// decided shows what came of a press of a button, as whoever took it does: resolve
// first, render second.
func (s *stage) decided(a store.Approval, err error) {
	if err == nil || errors.Is(err, store.ErrEnded) {
		s.people.ShowApproval(a)
	}
}

// expire lets the approval's time run out.
func (s *stage) expire(id string) {
	time.Sleep(approvalTime + time.Second)
	a, ok, err := s.books.ExpireApproval(context.Background(), id)
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
	t := s.books.Threads()[threadID-1]
	return t.LeaseOwner != "" && t.LeaseOwner != "A" && t.LeaseUntil.After(time.Now())
}

// checkQuiet holds what is while nobody is held up to the laws.
func (s *stage) checkQuiet() {
	s.machine.mu.Lock()
	defer s.machine.mu.Unlock()
	open := map[string]bool{}
	for _, a := range s.books.Approvals() {
		if a.Status == store.ApprovalPending {
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
	if used := s.sup.slots.used(); used > s.sup.limits.MaxLive || live > used {
		s.broken = append(s.broken, fmt.Sprintf("%d processes in %d slots of %d", live, used, s.sup.limits.MaxLive))
	}
}

// checkEnd holds the end of a stage to the laws.
func (s *stage) checkEnd() {
	lost := map[int64]bool{} // threads that another replica took
	for _, t := range s.books.Threads() {
		lost[t.ID] = s.isElsewhere(t.ID)
	}
	open := map[int64]bool{}
	for _, t := range s.books.Turns() {
		open[t.ID] = !t.Ended
		shown := s.people.turns[t.ID]
		if shown != "" && shown != "over" && !lost[t.ThreadID] {
			s.breach("turn %d is left as %q in front of people", t.ID, shown)
		}
	}
	for _, a := range s.books.Approvals() {
		if a.Status == store.ApprovalPending && !open[a.TurnID] {
			s.breach("approval %s is open and its turn has ended", s.name("a", a.ID))
		}
		if shown, ok := s.people.cards[a.ID]; ok && shown == store.ApprovalPending && a.Status != store.ApprovalPending && !lost[a.ThreadID] {
			s.breach("the card of %s shows buttons, and it is %s", s.name("a", a.ID), a.Status)
		}
	}
	for _, p := range s.books.Prompts() {
		if p.State == "done" && s.people.prompts[p.InboxID] == PromptRunning && !lost[p.ThreadID] || p.State == "done" && s.people.prompts[p.InboxID] == "" {
			s.breach("prompt %d ended (%s) and its author was not told", p.InboxID, p.Outcome)
		}
		if p.State == "done" && p.TurnID == 0 && p.ThreadID != 0 && !s.people.spoken[p.Thread] {
			s.breach("prompt %d was dropped (%s) without a sentence", p.InboxID, p.Outcome)
		}
		if p.State == "running" && !open[p.TurnID] {
			s.breach("prompt %d runs in a turn that has ended", p.InboxID)
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

// audience notes what people see.
type audience struct {
	stage *stage

	mu    sync.Mutex
	turns map[int64]string // as they stand in front of people; "over" when nothing moves any more
	cards map[string]store.ApprovalStatus
	// unfinished are the turns of which people are to hear what they did cost.
	unfinished map[int64]bool
	prompts    map[int64]PromptMark
	spoken     map[store.ThreadKey]bool // threads in which a sentence was said
}

// allowed reports a breach if the thread is another replica's by now.
func (a *audience) allowed(key store.ThreadKey, what string) {
	for _, t := range a.stage.books.Threads() {
		if t.Key() == key && a.stage.isElsewhere(t.ID) && a.stage.machine.knowsLoss(t.ID) {
			a.stage.breach("%s after the lease was lost", what)
		}
	}
}

func (a *audience) ShowTurn(t TurnView) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed(t.Thread, "a turn was shown")
	if a.turns[t.ID] == "over" {
		if !a.unfinished[t.ID] {
			a.stage.breach("turn %d was shown after its end", t.ID)
		}
		a.unfinished[t.ID] = t.Unfinished
		a.stage.say("people", "turn %d costs %d", t.ID, t.CostMicroUSD)
		return
	}
	now := string(t.State)
	if t.Waiting > 0 {
		now += fmt.Sprintf(", waits for %d", t.Waiting)
	}
	if t.StoppedBy != "" {
		now += ", stopped by " + t.StoppedBy
	}
	for _, id := range slices.Sorted(maps.Keys(t.Granted)) {
		now += fmt.Sprintf(", %s under a permission of %s", id, t.Granted[id].By)
	}
	if a.turns[t.ID] == now {
		return
	}
	a.turns[t.ID] = now
	if t.State.Ended() {
		a.turns[t.ID], a.unfinished[t.ID] = "over", t.Unfinished
		if t.State == TurnFailed && t.Problem == "" {
			a.stage.breach("turn %d failed without a sentence", t.ID)
		}
		if t.Problem != "" {
			now += ": " + t.Problem
		}
		if t.Continue {
			now += " [Continue]"
		}
	}
	a.stage.say("people", "turn %d %s", t.ID, now)
}

func (a *audience) ShowApproval(ap store.Approval) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if was := a.cards[ap.ID]; was != "" && was != store.ApprovalPending && was != ap.Status {
		a.stage.breach("the card of %s ended as %s and then as %s", a.stage.name("a", ap.ID), was, ap.Status)
	}
	if a.cards[ap.ID] == ap.Status {
		return
	}
	a.cards[ap.ID] = ap.Status
	a.stage.say("people", "card %s %s", a.stage.name("a", ap.ID), ap.Status)
}

func (a *audience) CloseCards(ids []string) {
	for _, id := range ids {
		a.stage.say("people", "card %s closed", a.stage.name("a", id))
	}
}

func (a *audience) ShowBudget(b BudgetAlert) {
	a.stage.say("budgets", "%d %%", b.Share)
}

// ShowWait reads what there is to be shown, as the frontend does.
func (a *audience) ShowWait(inboxID int64) {
	for _, p := range a.stage.books.Prompts() {
		if p.InboxID == inboxID {
			a.mu.Lock()
			a.spoken[p.Thread] = true
			a.mu.Unlock()
			a.stage.say("budgets", "prompt %d: %s", inboxID, cmp.Or(p.Outcome, p.State))
		}
	}
}

func (a *audience) CloseOffer(turnID int64) {
	a.stage.say("budgets", "turn %d offers nothing any more", turnID)
}

func (a *audience) MarkPrompt(p store.Prompt, m PromptMark) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed(p.Thread, "a prompt was marked")
	if was := a.prompts[p.InboxID]; was != "" && was != PromptQueued && was != PromptRunning {
		a.stage.breach("prompt %d was marked %s after %s", p.InboxID, m, was)
	}
	a.prompts[p.InboxID] = m
	a.stage.say("people", "prompt %d %s", p.InboxID, m)
}

func (a *audience) Say(k store.ThreadKey, sentence string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed(k, "something was said")
	a.spoken[k] = true
	a.stage.say("people", "“%s”", sentence)
}

func (a *audience) Abandon(turnID int64, sentence string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns[turnID] = "over"
	a.stage.say("people", "turn %d left: %s", turnID, sentence)
}

func (a *audience) Leave(turnID int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.turns[turnID] = "over"
}

// authority answers who may decide, at once or when it is let go.
type authority struct {
	mu     sync.Mutex
	may    map[string]bool
	gate   chan struct{} // nil: it answers at once
	lookup map[string]int
}

func (w *authority) hold(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gate != nil {
		close(w.gate)
		w.gate = nil
	}
	if on {
		w.gate = make(chan struct{})
	}
}

// MayDecide implements [Authoriser].
func (w *authority) MayDecide(ctx context.Context, user string, _ store.Approval) bool {
	w.mu.Lock()
	gate := w.gate
	w.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lookup == nil {
		w.lookup = map[string]int{}
	}
	w.lookup[user]++
	return w.may[user]
}

// playedMachine starts processes, when it is let.
type playedMachine struct {
	stage *stage

	mu        sync.Mutex
	processes []*playedProcess
	gate      chan struct{} // nil: starts are not held
	fail      []error       // what becomes of the next starts; nil is a process
	noFolder  error
	holdStop  bool // processes take for ever to end in good order
	deaf      bool // they acknowledge an interrupt and go on
	lost      map[int64]bool
}

func (m *playedMachine) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gate = make(chan struct{})
}

// failNext has the next starts end like this.
func (m *playedMachine) failNext(errs ...error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = append(m.fail, errs...)
}

// release lets starts go on, and processes end.
func (m *playedMachine) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gate != nil {
		close(m.gate)
		m.gate = nil
	}
	m.holdStop = false
	for _, p := range m.processes {
		p.letStop()
	}
}

// letGo is release at the end: processes hear again, too.
func (m *playedMachine) letGo() {
	m.release()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deaf = false
}

// knowsLoss reports whether the worker has been told that the thread's lease is lost.
func (m *playedMachine) knowsLoss(threadID int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost[threadID]
}

func (m *playedMachine) loss(threadID int64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost == nil {
		m.lost = map[int64]bool{}
	}
	m.lost[threadID] = known
}

func (m *playedMachine) workspace(context.Context, store.Thread, Project) (string, []string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return "/ws", nil, m.noFolder
}

func (m *playedMachine) save(context.Context, store.Thread, Project) (string, error) { return "", nil }

func (m *playedMachine) publish(context.Context, store.Thread, Project) error { return nil }

func (m *playedMachine) head(context.Context, string) string { return "" }

func (m *playedMachine) start(ctx context.Context, t store.Thread, _ Project, resume bool, calls gateway.Meter, _ *zap.Logger) (process, error) {
	m.mu.Lock()
	gate := m.gate
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.fail) > 0 {
		err := m.fail[0]
		if m.fail = m.fail[1:]; err != nil {
			return nil, err
		}
	}
	for _, p := range m.processes {
		if p.session == t.SessionID && !p.over() {
			m.stage.breach("two processes on one session")
		}
	}
	if m.lost[t.ID] && m.stage.isElsewhere(t.ID) {
		m.stage.breach("a process was started after the lease was lost")
	}
	p := &playedProcess{
		stage: m.stage, machine: m, name: fmt.Sprint("p", len(m.processes)+1), calls: calls, thread: t.ID, session: t.SessionID,
		pending: map[string]string{}, wake: make(chan struct{}, 1), ended: make(chan struct{}), stop: make(chan struct{}),
	}
	if !m.holdStop {
		close(p.stop)
	}
	m.processes = append(m.processes, p)
	m.stage.say(p.name, "started, resume %t", resume)
	return p, nil
}

func (*playedProcess) visits() []egress.Visit { return nil }

// playedProcess is a CLI that says what the test has it say. It counts what it is
// answered.
type playedProcess struct {
	stage           *stage
	machine         *playedMachine
	calls           gateway.Meter
	name            string
	thread          int64
	session, prompt string

	mu          sync.Mutex
	asker       egress.Asker
	connections []*connection
	queue       []claude.Message
	wake        chan struct{}
	pending     map[string]string // requests that wait for an answer: their kind
	inputs      map[string]json.RawMessage
	requests    int
	resets      int
	running     int64 // the total, in micro-dollars
	turn        bool
	ending      bool // its result is on the way
	stopping    bool
	exit        *claude.ExitError
	ended       chan struct{} // closed at the end
	stop        chan struct{} // closed when it may end in good order
}

func (p *playedProcess) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// leaving reports whether it was asked to end and has not.
func (p *playedProcess) leaving() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping && p.exit == nil
}

func (p *playedProcess) letStop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
}

// emit has the process say something, unless it is gone.
func (p *playedProcess) emit(ms ...claude.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(ms...)
}

func (p *playedProcess) put(ms ...claude.Message) {
	if p.exit != nil {
		return
	}
	p.queue = append(p.queue, ms...)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// request has the process ask something and returns the request's id.
func (p *playedProcess) request(kind, tool string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests++
	id := fmt.Sprintf("%s.%s%d", p.name, kind, p.requests)
	input := json.RawMessage(fmt.Sprintf(`{"of":%q}`, tool))
	p.pending[id] = kind
	if p.inputs == nil {
		p.inputs = map[string]json.RawMessage{}
	}
	p.inputs[id] = input
	use := "use" + fmt.Sprint(p.requests)
	if kind == "hook" {
		p.put(&claude.HookCallback{RequestID: id, Event: "PreToolUse", ToolName: tool, ToolInput: input, ToolUseID: use, Cwd: "/ws"})
	} else {
		p.put(&claude.CanUseTool{RequestID: id, ToolName: tool, Input: input, ToolUseID: use})
	}
	return id
}

// withdraw cancels the request of the kind that waits longest, if one does.
func (p *playedProcess) withdraw(kind string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(p.pending)) {
		if p.pending[id] == kind {
			delete(p.pending, id)
			p.put(&claude.CancelRequest{RequestID: id})
			return true
		}
	}
	return false
}

// hangUp makes a call of the model and leaves it, so that it is read to its end.
func (p *playedProcess) hangUp() {
	if p.prompt == "" {
		return
	}
	go func() {
		l := leftCall{begun: make(chan struct{})}
		b, err := p.calls.Begin(context.Background(), gateway.Call{ID: uuid.New(), Model: "claude-opus-5-5", At: time.Now(), Cut: l.cut})
		if err != nil {
			return
		}
		b.Alone()
		l.booking = b
		close(l.begun)
		p.stage.mu.Lock()
		defer p.stage.mu.Unlock()
		p.stage.left = append(p.stage.left, &l)
	}()
}

// leftCall is a call that is read to its end for nobody.
type leftCall struct {
	begun   chan struct{} // closed when there is its booking
	booking gateway.Booking
	once    sync.Once
}

// cut ends it before it has told all.
func (l *leftCall) cut() {
	l.end(gateway.Answer{Status: 200, Usage: price.Usage{Input: 10}, Left: true})
}

func (l *leftCall) end(a gateway.Answer) {
	a.Ended = time.Now()
	go l.once.Do(func() {
		<-l.begun
		l.booking.End(a)
	})
}

// readOn ends the calls that were left.
func (s *stage) readOn() {
	s.mu.Lock()
	left := s.left
	s.left = nil
	s.mu.Unlock()
	for _, l := range left {
		l.end(gateway.Answer{Status: 200, Usage: price.Usage{Input: 1000}, Left: true, Complete: true})
	}
}

// spend has a call of the model cost three dollars, or end the turn if it is refused, as
// the CLI does.
func (p *playedProcess) spend() {
	go func() {
		err := p.call(3_000_000)
		no, refused := errors.AsType[*gateway.Refusal](err)
		p.mu.Lock()
		defer p.mu.Unlock()
		if refused && p.turn {
			p.end(claude.Result{IsError: true, APIErrorStatus: no.Status, Text: "API Error: " + no.Sentence})
		}
	}()
}

// call makes a call of the model, as its gateway tells it. A process that has worked on
// nothing has made none.
func (p *playedProcess) call(microUSD int64) error {
	if p.prompt == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	go func() { // the gateway's session ends with its process
		select {
		case <-p.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	b, err := p.calls.Begin(ctx, gateway.Call{ID: uuid.New(), Model: "claude-opus-5-5", At: time.Now()})
	if err == nil {
		b.End(gateway.Answer{Status: 200, Usage: price.Usage{Input: microUSD / 4}, Complete: true, Left: true, Ended: time.Now()})
	}
	return err
}

// result ends the turn.
func (p *playedProcess) result(r claude.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(r)
}

func (p *playedProcess) end(r claude.Result) {
	for _, id := range slices.Sorted(maps.Keys(p.pending)) {
		delete(p.pending, id)
		p.put(&claude.CancelRequest{RequestID: id})
	}
	if p.ending {
		return
	}
	p.ending = true
	go func() { // a call may be held
		_ = p.call(1000)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.running += 1000
		r.Running = claude.Usage{TotalMicroUSD: p.running, Models: map[string]claude.ModelUsage{"claude-opus-5-5": {Input: p.running, MicroUSD: p.running}}}
		p.turn, p.ending = false, false
		p.put(&r)
	}()
}

// die ends the process.
func (p *playedProcess) die(reason claude.ExitReason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit != nil {
		return
	}
	p.exit = &claude.ExitError{Reason: reason}
	close(p.ended)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *playedProcess) PID() int                { return 1 }
func (p *playedProcess) SessionID() string       { return p.session }
func (p *playedProcess) Done() <-chan struct{}   { return p.ended }
func (p *playedProcess) told(f string, a ...any) { p.stage.say(p.name, f, a...) }

func (p *playedProcess) Exit() *claude.ExitError {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

func (p *playedProcess) gone() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit != nil {
		return p.exit
	}
	return nil
}

func (p *playedProcess) Next(ctx context.Context) (claude.Message, error) {
	for {
		p.mu.Lock()
		if len(p.queue) > 0 {
			m := p.queue[0]
			p.queue = p.queue[1:]
			p.mu.Unlock()
			return m, nil
		}
		exit := p.exit
		p.mu.Unlock()
		if exit != nil {
			return nil, exit
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p *playedProcess) Prompt(id string, _ ...claude.Block) error {
	if err := p.gone(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn {
		p.stage.breach("%s got a prompt while a turn runs", p.name)
	}
	p.turn, p.prompt = true, id
	p.told("prompt")
	return nil
}

func (p *playedProcess) Interrupt(context.Context) error {
	if err := p.gone(); err != nil {
		return err
	}
	p.told("interrupt")
	p.machine.mu.Lock()
	deaf := p.machine.deaf
	p.machine.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn && !deaf {
		p.end(claude.Result{TerminalReason: "aborted_tools"})
	}
	return nil
}

func (p *playedProcess) SetModel(_ context.Context, model string) error {
	p.told("model %s", model)
	return p.gone()
}

// answer takes the answer to a request. It reports false when nobody waits for it.
func (p *playedProcess) answer(id, kind string) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit != nil {
		return nil, p.exit
	}
	if p.pending[id] != kind {
		return nil, fmt.Errorf("answer %s: %w", id, claude.ErrNotPending)
	}
	delete(p.pending, id)
	return p.inputs[id], nil
}

// run is the tool: it must not happen without a decision on exactly this input.
func (p *playedProcess) run(id string, input json.RawMessage) {
	sum := sha256.Sum256(input)
	for _, a := range p.stage.books.Approvals() {
		if a.RequestID == id && a.Status == store.ApprovalAllowed && a.Delivered && a.InputSHA256 == sum && a.ThreadID == p.thread {
			return
		}
	}
	p.stage.breach("%s ran a tool without a decision", p.name)
}

func (p *playedProcess) AnswerPreToolUse(id string, d claude.HookDecision, _ string) error {
	input, err := p.answer(id, "hook")
	if err != nil {
		return err
	}
	p.told("hook: %s", cmp.Or(string(d), "none"))
	if d == claude.HookAllow {
		p.run(id, input)
	}
	return nil
}

func (p *playedProcess) Allow(id string, input json.RawMessage, _ ...claude.PermissionUpdate) error {
	if _, err := p.answer(id, "ask"); err != nil {
		return err
	}
	p.told("allow")
	p.run(id, input)
	return nil
}

func (p *playedProcess) Deny(id, message string, interrupt bool) error {
	if _, err := p.answer(id, "ask"); err != nil {
		return err
	}
	p.told("deny, interrupt %t", interrupt)
	p.machine.mu.Lock()
	deaf := p.machine.deaf
	p.machine.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if interrupt && p.turn && !deaf {
		p.end(claude.Result{TerminalReason: "aborted_tools"})
	}
	return nil
}

func (p *playedProcess) Baseline(context.Context) (claude.Usage, error) {
	return claude.Usage{}, p.gone()
}

func (p *playedProcess) AllowPush(toolUseID string, force bool) {
	p.told("push %s, force %t", toolUseID, force)
}
func (p *playedProcess) EndPush(string)           {}
func (p *playedProcess) OnGit(func(gitway.Event)) {}

func (p *playedProcess) OnAsk(a egress.Asker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asker = a
}

// connection is one that waits for its host, as those of a gateway's session do.
type connection struct {
	host           string
	question       *egress.Question
	answered, left bool
}

func (c *connection) waits() bool { return !c.answered && !c.left }

// connect has a program want to reach a host, unless one waits for it already.
func (p *playedProcess) connect(host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit != nil || slices.ContainsFunc(p.connections, func(c *connection) bool { return c.host == host && c.waits() }) {
		return
	}
	c := &connection{host: host}
	c.question = egress.NewQuestion(host, 443, func(a egress.Answer) { p.answered(c, a) })
	p.connections = append(p.connections, c)
	p.asker.Ask(c.question)
}

// disconnect has the connection leave that waits longest, if one does.
func (p *playedProcess) disconnect() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.connections {
		if c.waits() {
			c.left = true
			p.asker.Left(c.question)
			return true
		}
	}
	return false
}

// answered is the gateway: no connection is made without a decision on exactly its host.
func (p *playedProcess) answered(c *connection, a egress.Answer) {
	p.mu.Lock()
	waits := c.waits() && p.exit == nil
	c.answered = true
	p.mu.Unlock()
	switch {
	case !waits:
		return
	case !a.Allow:
		p.told("%s refused: %s", c.host, a.Refusal)
		if a.Refusal == "" {
			p.stage.breach("%s was refused a host without a sentence", p.name)
		}
		return
	}
	p.told("%s reached", c.host)
	input := string(policy.NetworkInput(c.host, 443))
	if a.During == nil || a.During.Err() != nil || !slices.ContainsFunc(p.stage.books.Approvals(), func(r store.Approval) bool {
		return r.ToolName == policy.NetworkTool && r.Status == store.ApprovalAllowed && string(r.Input) == input && r.InputSHA256 == sha256.Sum256(r.Input) && r.ThreadID == p.thread && !r.TurnEnded
	}) {
		p.stage.breach("%s reached %s without a decision", p.name, c.host)
	}
}

func (p *playedProcess) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	if p.over() {
		return nil
	}
	select {
	case <-p.stop:
	case <-p.ended:
		return nil
	case <-ctx.Done():
		p.Kill()
		return context.Cause(ctx)
	}
	p.told("stopped")
	p.die(claude.ExitClean)
	return nil
}

func (p *playedProcess) Kill() {
	if p.gone() == nil {
		p.told("killed")
	}
	p.die(claude.ExitKilled)
}

// told is everything that was told, by whom, for golden files.
func told(heard map[string][]string) string {
	var out strings.Builder
	for _, to := range slices.Sorted(maps.Keys(heard)) {
		fmt.Fprintf(&out, "  %-7s %s\n", to, strings.Join(heard[to], "\n          "))
	}
	return out.String()
}
