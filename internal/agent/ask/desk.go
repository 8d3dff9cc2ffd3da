package ask

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/gateway"
	"deckhand/internal/gateway/gitway"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

const (
	// Stopped is what the model is told of a call in a turn that is being stopped.
	Stopped = "The turn is being stopped."
	// Over is what it is told of one that waits when its turn has ended.
	Over = "The turn is over."
)

// Store keeps what is asked and decided: [*store.Store], which tells what each method does.
type Store interface {
	Ask(ctx context.Context, l threads.Lease, a approvals.Approval) (approvals.Approval, error)
	Deliver(ctx context.Context, l threads.Lease, id string) (approvals.Approval, error)
	CancelApproval(ctx context.Context, l threads.Lease, id string) (approvals.Approval, bool, error)
	ApprovalByID(ctx context.Context, id string) (approvals.Approval, error)
	KnowTool(ctx context.Context, l threads.Lease, tool string, told []approvals.ToolText) (*approvals.ToolChange, error)
	LiveGrants(ctx context.Context, l threads.Lease, sessionID string, tools []string, inputSHA256 [32]byte) ([]approvals.LiveGrant, error)
}

// Worker is the worker of the desk's thread. It holds the lease, and runs the turn.
type Worker interface {
	Lease() threads.Lease
	// Stopping reports whether the turn has been told to end: nothing more is run or asked in it.
	Stopping() bool
	// Show shows people the turn as it stands now.
	Show()
	// Say says a sentence in the thread, for good.
	Say(ctx context.Context, sentence string)
	// Expire ends the turn, since nobody has decided in time. The CLI is asked to end it, unless
	// it is told with its answer.
	Expire(ctx context.Context, told bool)
	// Later has fn run on the worker's loop.
	Later(fn func(context.Context) error)
	// Beside runs fn beside the loop. The session's process waits for it when it is stopped.
	Beside(fn func())
}

// Process is the CLI that asks; see package claude for what each method does.
type Process interface {
	AnswerPreToolUse(requestID string, d claude.HookDecision, reason string) error
	AnswerHook(requestID string, specific map[string]any) error
	Allow(requestID string, input json.RawMessage) error
	Deny(requestID, message string, interrupt bool) error
	AllowPush(toolUseID string, p gitway.Pass)
	AllowCall(toolUseID, tool string, input json.RawMessage)
	EndUse(toolUseID string)
	Offered(tool string) []gateway.Tool
	Outgoing(ctx context.Context, dir string, p policy.Push) *forges.Push
}

// Options are what a desk has to know of its turn. All are required but Pulls.
type Options struct {
	Store  Store
	Worker Worker
	Front  interface {
		ShowApproval(a approvals.Approval)
		// Hides reports whether people are not shown a text whole, as it has what looks like a secret.
		Hides(text string) bool
	}
	// Authoriser reports whether a person is entitled to decide about an approval now. It may
	// have to ask the chat, for as long as ctx lasts.
	Authoriser interface {
		MayDecide(ctx context.Context, userID string, a approvals.Approval) bool
	}
	Policy   *policy.Policy
	Process  Process
	Searches interface {
		BeginSearch(toolUseID string)
		EndSearch(toolUseID string)
	}
	// Pulls look at pull requests; nil where sessions open none.
	Pulls interface {
		Source(c policy.Call, branch string) (leaves policy.Push, folder string, looked bool)
		Look(ctx context.Context, threadID int64, requester string, c policy.Call, push *forges.Push) (*forges.Push, error)
	}
	// Waiting has the ids of the approvals that this process's CLIs wait for, of all threads.
	Waiting *sync.Map
	Thread  threads.Thread
	Turn    turns.Turn
	// SessionID is the turn's, Folder where it works, Home where the CLI keeps its session.
	SessionID, Folder, Home string
	// Repositories are as [policy.Call] has them.
	Repositories []string
	ReachesForge bool
	Content      *claude.Output  // what the turn has said, the worker's
	Span         context.Context //nolint:containedctx // ends with the turn, and ends the connections that were allowed in it
	Log          *zap.Logger
}

// Desk decides about the tool calls of one turn, and about the hosts that its programs want to
// reach: by rule, by grant, or by people. It has no goroutine: its methods belong to the loop of
// the turn's worker.
type Desk struct {
	Options
	asked     map[string]approvals.Approval // approvals that the CLI waits for, by our id
	cwd       map[string]string             // where a tool call runs, by its id
	granted   map[string]Grant              // the calls that a grant allowed, by their ids
	changed   map[string]string             // what the model is told of a call that ran as people changed it, by its id
	ofAgents  map[string]bool               // requests of subagents, by id
	told      map[string]toldTool           // what the model is told of MCP servers' tools, by their names
	checks    map[string]*check             // calls that wait for what a look-up says, by request id
	cards     []Card
	carded    int // how many items there were when the last request was put on one
	running   Running
	hosts     *Hosts
	steps     int
	contained int
	gone      bool // the process has ended
}

// New is the desk of a turn that begins.
func New(o Options) *Desk {
	return &Desk{
		Options: o, asked: map[string]approvals.Approval{}, cwd: map[string]string{}, granted: map[string]Grant{}, changed: map[string]string{},
		ofAgents: map[string]bool{}, checks: map[string]*check{}, told: map[string]toldTool{}, hosts: NewHosts(o.Span, o.Thread.Project),
	}
}

// Grant says who gave the standing permission that a tool call ran under.
type Grant struct {
	By string // Slack user
	At time.Time
}

// Open are the approvals that the CLI waits for.
func (d *Desk) Open() []approvals.Approval {
	open := make([]approvals.Approval, 0, len(d.asked))
	for _, a := range d.asked {
		open = append(open, a)
	}
	slices.SortFunc(open, func(a, b approvals.Approval) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return open
}

// Cards are those on which the turn has asked for something, in the order in which they were
// posted.
func (d *Desk) Cards() []Card { return slices.Clone(d.cards) }

// Granted are the calls that somebody's grant allowed, by their ids.
func (d *Desk) Granted() map[string]Grant { return maps.Clone(d.granted) }

// Steps is about how many tool uses and hosts was decided or is to be, but for those that keep
// the list of work; contained of them ran unasked, since they stayed inside the sandbox.
func (d *Desk) Steps() (all, contained int) { return d.steps, d.contained }

// Checking reports whether a call waits for a look-up.
func (d *Desk) Checking() bool { return len(d.checks) > 0 }

// Rests reports whether nothing of the turn goes on while people decide, and whether a subagent
// asks, whose work is lost with the process.
func (d *Desk) Rests() (rests, agent bool) {
	calls, hosts := 0, 0
	for id, a := range d.asked {
		switch about := d.hosts.Of(id); {
		case about == nil:
			calls++
		case about.question != nil:
			hosts++
		}
		agent = agent || d.ofAgents[a.RequestID]
	}
	// With a host, it is its connection that waits.
	return len(d.checks) == 0 && (len(d.running) == 0 && calls > 0 || len(d.running) == 1 && hosts > 0), agent
}

// call is a tool call as the policy sees it. cwd is where a command runs; empty
// means where the session works.
func (d *Desk) call(tool string, input json.RawMessage, cwd string) policy.Call {
	return policy.Call{
		Tool: tool, Input: input, Workspace: d.Thread.Workspace, Dir: cmp.Or(cwd, d.Folder), Project: d.Thread.Project, Channel: d.Thread.ChannelID, Repositories: d.Repositories,
		Home: d.Home, Changed: d.told[tool].change != nil,
	}
}

// decide is what the policy says of a call. A fault in reading it is logged, with the call:
// it is asked, and somebody has to mend what failed.
func (d *Desk) decide(c policy.Call) policy.Decision {
	out := d.Policy.Decide(c)
	if out.Fault != "" {
		d.Log.Error("the policy failed while reading a call, which is asked: please report it", zap.String("tool", c.Tool), zap.ByteString("input", c.Input), zap.String("fault", out.Fault))
	}
	return out
}

// request is a new approval of the turn, as the policy wants it.
func (d *Desk) request(requestID, toolUseID string, c policy.Call, by policy.Decision) approvals.Approval {
	kind := KindOf(c.Tool)
	if kind == approvals.Question {
		// It is put to the person who asked; whoever may give work may answer.
		by.Terms = policy.Terms{Quorum: 1, RequesterMayApprove: true, Timeout: by.Terms.Timeout, OnTimeout: by.Terms.OnTimeout, Because: by.Terms.Because}
	}
	told, looked := d.told[c.Tool]
	if looked && told.sum == (approvals.Sum{}) {
		by.Grantable = false // a grant is for a known text
	}
	return approvals.Approval{
		Request: approvals.Request{
			ToolSHA256: told.sum, ToolChange: told.change,
			Kind:      kind,
			RequestID: requestID, ToolUseID: toolUseID, ToolName: c.Tool, Dir: c.Dir, ExpiresAt: time.Now().Add(by.Terms.Timeout),
		},
		ID: NewID(), Input: c.Input, Terms: TermsOf(by),
		Origin: approvals.Origin{SessionID: d.SessionID, TurnID: d.Turn.ID, RequestedBy: d.Turn.RequestedBy},
	}
}

// record writes a request of the turn to the database, which may hold a decision about it
// already.
func (d *Desk) record(ctx context.Context, a approvals.Approval) (approvals.Approval, error) {
	out, err := d.Store.Ask(ctx, d.Worker.Lease(), a)
	if err == nil && !claude.ToolKeepsList(a.ToolName) {
		d.steps++
	}
	return out, err
}

// begins notes that a call may run now, and opens the way to the forge for one that was
// allowed as a push, to the commits that were approved, or to any; to the provider's web
// search for one that was allowed as a search; and to an MCP server for one of its tools.
func (d *Desk) begins(toolUseID string, c policy.Call, approved *forges.Push) {
	if pass, push := PassOf(c, approved); push {
		d.Process.AllowPush(toolUseID, pass)
	}
	if c.Tool == "WebSearch" {
		d.Searches.BeginSearch(toolUseID)
	}
	d.Process.AllowCall(toolUseID, c.Tool, c.Input)
	d.running.Begin(toolUseID, c)
}

// Ended notes that a call has its result.
func (d *Desk) Ended(toolUseID string) {
	d.Process.EndUse(toolUseID)
	d.Searches.EndSearch(toolUseID)
	d.running.End(toolUseID)
}

// Refuse answers the calls that wait for a look-up, and the connections that wait for a
// decision: their turn ends.
func (d *Desk) Refuse(why string) {
	d.hosts.Refuse(why)
	for id, c := range d.checks {
		d.drop(id)
		switch {
		case c.asks != nil:
			_ = d.reply(d.Process.Deny(id, why, true))
		case c.host == nil:
			_ = d.reply(d.Process.AnswerPreToolUse(id, claude.HookDeny, why))
		}
	}
}

// RefuseAsked answers what the CLI still waits for when its turn ends, such as a background
// agent: nobody can decide about it any more.
func (d *Desk) RefuseAsked() {
	for id, a := range d.asked {
		if !d.gone && d.hosts.Of(id) == nil {
			_ = d.reply(d.Process.Deny(a.RequestID, Over, false))
		}
	}
}

// Forget has decisions about what the turn has asked be for no process any more.
func (d *Desk) Forget() {
	for id := range d.asked {
		d.Waiting.Delete(id)
	}
}

// Gone notes that the process has ended: nobody waits for an answer any more.
func (d *Desk) Gone() {
	d.gone = true
	for id := range d.checks {
		d.drop(id)
	}
}

// drop forgets a call that waits for a look-up, if there is one.
func (d *Desk) drop(requestID string) {
	if c, ok := d.checks[requestID]; ok {
		c.cancel()
		delete(d.checks, requestID)
	}
}

// reply drops the error of a write to a process that has ended: its end tells of it.
func (d *Desk) reply(err error) error {
	if err != nil {
		d.Log.Warn("answer the CLI", zap.Error(err))
	}
	return nil
}

// matches reports whether an approval is about what was asked, to the byte.
func (d *Desk) matches(a, requested approvals.Approval) bool {
	sum := sha256.Sum256(requested.Input)
	if sum == a.InputSHA256 && sum == sha256.Sum256(a.Input) {
		return true
	}
	d.Log.Error("an approval does not match its request", zap.String("approval", a.ID))
	return false
}
