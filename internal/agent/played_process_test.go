package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/egress"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
)

func (*playedProcess) Visits() []egress.Visit { return nil }

// playedProcess is a CLI that says what the test has it say. It counts what it is
// answered.
type playedProcess struct {
	stage   *stage
	machine *playedMachine
	calls   gateway.Meter
	name    string
	thread  int64

	mu          sync.Mutex
	session     string
	prompt      string         // the last one
	content     []claude.Block // of the prompt
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

func (p *playedProcess) SessionID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// prompted reports whether it has worked on anything.
func (p *playedProcess) prompted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prompt != ""
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
	switch kind {
	case "hook":
		p.put(&claude.HookCallback{RequestID: id, Event: "PreToolUse", ToolName: tool, ToolInput: input, ToolUseID: use, Cwd: "/ws"})
	case "ask":
		p.put(&claude.CanUseTool{RequestID: id, ToolName: tool, Input: input, ToolUseID: use})
	}
	return id
}

// has tells what came of a tool use: the event of a hook.
func (p *playedProcess) has(event, use string) {
	id := p.request("post", "")
	p.emit(&claude.HookCallback{RequestID: id, Event: event, ToolUseID: use})
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
		r.Running = claude.Usage{TotalMicroUSD: p.running, Models: map[string]int64{"claude-opus-5-5": p.running}}
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
func (p *playedProcess) Left() [][]string        { return nil }
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

func (p *playedProcess) Prompt(id string, content ...claude.Block) error {
	if err := p.gone(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn {
		p.stage.breach("%s got a prompt while a turn runs", p.name)
	}
	p.turn, p.prompt, p.content = true, id, content
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

func (p *playedProcess) SetEffort(_ context.Context, level string) error {
	p.told("effort %s", level)
	return p.gone()
}

func (p *playedProcess) SetPermissionMode(_ context.Context, mode string) error {
	p.told("mode %s", mode)
	return p.gone()
}

func (p *playedProcess) MCPStatus(context.Context) ([]claude.MCPServer, error) { return nil, p.gone() }
func (p *playedProcess) MCPReconnect(context.Context, string) error            { return p.gone() }
func (p *playedProcess) MCPToggle(context.Context, string, bool) error         { return p.gone() }

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
	for _, a := range p.stage.store.Approvals() {
		if a.RequestID == id && a.Status == approvals.Allowed && a.Delivered && sha256.Sum256(a.ToRun()) == sum && a.ThreadID == p.thread {
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

func (p *playedProcess) AnswerHook(id string, specific map[string]any) error {
	if _, err := p.answer(id, "post"); err != nil {
		return err
	}
	told, _ := specific["additionalContext"].(string)
	p.told("post: %s", told)
	return nil
}

func (p *playedProcess) Allow(id string, input json.RawMessage) error {
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

func (p *playedProcess) AllowPush(toolUseID string, pass gitway.Pass) {
	p.told("push %s, force %t", toolUseID, pass.Force)
}

func (p *playedProcess) Outgoing(context.Context, string, policy.Push) *forges.Push { return nil }
func (p *playedProcess) Offered(string) []gateway.Tool                              { return nil }
func (p *playedProcess) AllowCall(string, string, json.RawMessage)                  {}
func (p *playedProcess) EndUse(string)                                              {}
func (p *playedProcess) OnGit(func(gitway.Event))                                   {}

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
