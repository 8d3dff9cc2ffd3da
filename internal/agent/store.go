package agent

import (
	"context"
	"io"
	"time"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store"
	"deckhand/internal/transcript"
	"deckhand/internal/upkeep"
)

// Store is what the agent remembers: what it needs of [*store.Store], which tells what
// each method does. Methods that take a lease fail with [store.ErrFenced], or do
// nothing where they say so, once another replica holds the thread.
type Store interface {
	leases
	prompts
	outbox
	sessions
	transcriptStore
	turns
	approvals
	spend.Store
	calls
	budgetWaits
	auditStore
	notices
}

// leases say which replicas live, and which of them runs a thread.
type leases interface {
	Register(ctx context.Context, r store.Replica) (store.Registration, error)
	Heartbeat(ctx context.Context, l store.Registration, load store.Load) (held []store.Lease, peers []store.Peer, err error)
	Living(ctx context.Context) ([]store.Peer, error)
	MarkDead(ctx context.Context, p store.Peer) (dead bool, err error)
	Unregister(ctx context.Context, l store.Registration) error
	AcquireLease(ctx context.Context, threadID int64, l store.Registration, eager bool) (store.Thread, bool, error)
	ReleaseLease(ctx context.Context, l store.Lease, wake bool) error
	Unattended(ctx context.Context, owner string, held []int64) ([]int64, error)
}

// prompts wait for a turn.
type prompts interface {
	NextPrompt(ctx context.Context, threadID int64) (store.Prompt, error)
	PutOffPrompt(ctx context.Context, l store.Lease, inboxID int64, after time.Duration, why string) error
	DropPrompts(ctx context.Context, l store.Lease, d store.Drop) ([]store.Prompt, []store.OutboxRow, error)
}

// outbox keeps what people must see until they have.
type outbox interface {
	Say(ctx context.Context, l store.Lease, sentence string) (store.OutboxRow, error)
	LeaveTurn(ctx context.Context, l store.Lease, turnID int64, sentence string) (store.OutboxRow, error)
}

// sessions are a thread's conversations and where it works.
type sessions interface {
	SetWorkspace(ctx context.Context, l store.Lease, dir string) error
	SetBranch(ctx context.Context, l store.Lease, branch string) error
	NewSession(ctx context.Context, l store.Lease, id, parentID string) error
	StartAnew(ctx context.Context, l store.Lease, id, lost string) error
	SessionHistory(ctx context.Context, sessionID string, limit int) ([]store.Exchange, error)
	SessionStarted(ctx context.Context, id string) (bool, error)
	SessionSpoke(ctx context.Context, id string) (bool, error)
	MarkStarted(ctx context.Context, id string) error
	BeginEpoch(ctx context.Context, l store.Lease, sessionID, cliVersion string, baseline int64) (int, error)
	Steering(ctx context.Context, threadID int64) (store.Steering, error)
	NoteServers(ctx context.Context, l store.Lease, seen []store.MCPServer, again []string, sentences ...string) ([]store.OutboxRow, error)
}

// transcriptStore holds copies of the files of sessions.
type transcriptStore interface {
	transcript.Store
	ReadTranscript(ctx context.Context, t store.Transcript, out io.Writer) error
	ForgetTranscripts(ctx context.Context, since time.Time) (threads int, err error)
	Schedule(ctx context.Context, jobs ...store.Job) error
}

// turns begin and end with their prompts.
type turns interface {
	BeginTurn(ctx context.Context, l store.Lease, sessionID string, epoch int) (store.Turn, store.Prompt, bool, error)
	RunningTurn(ctx context.Context, threadID int64) (store.Turn, store.Prompt, error)
	ContinueTurn(ctx context.Context, l store.Lease, old store.Turn, sessionID string, epoch int) (store.Turn, error)
	FinishTurn(ctx context.Context, l store.Lease, f store.FinishedTurn) ([]store.Approval, []store.OutboxRow, error)
	SaveDiff(ctx context.Context, turnID int64, p *store.Push) error
	ParkTurn(ctx context.Context, l store.Lease, turnID int64, waitsFor []string) (ok bool, err error)
	Unanswered(ctx context.Context, turnID int64) ([]store.Approval, error)
	WroteBelow(ctx context.Context, k store.ThreadKey, turnID int64, from, to time.Time) (bool, error)
}

// approvals are asked, decided, delivered, and end.
type approvals interface {
	ask.Store
	Decide(ctx context.Context, d store.Decision) (store.Approval, error)
	ExpireApproval(ctx context.Context, id string) (store.Approval, bool, error)
}

// calls are the calls of the model that a dead process has left, and what the CLI says of all.
type calls interface {
	EndLostCalls(ctx context.Context) (n int, err error)
	AddCLITotals(ctx context.Context, l store.Lease, w store.CLITotal) error
}

// budgetWaits are prompts that wait for a budget.
type budgetWaits interface {
	WakeWaits(ctx context.Context) error
	StoppedTurn(ctx context.Context, threadID int64) (int64, error)
}

// auditStore is what nobody can change afterwards.
type auditStore interface {
	Audit(ctx context.Context, entries ...store.AuditEntry) error
}

// notices wake other replicas.
type notices interface {
	Listen(ctx context.Context, ready func(), fn func(store.Notice))
	Notify(ctx context.Context, n store.Notice) error
	Listening() upkeep.State
}

// Works keep what threads have made where every machine finds it: [*store.Store], which
// tells what each method does.
type Works interface {
	place.Works
	OldWork(ctx context.Context, since time.Time, limit int) ([]int64, error)
	ForgetWork(ctx context.Context, l store.Lease) error
	LeaveWork(ctx context.Context, l store.Lease, sentence string) ([]store.OutboxRow, error)
	SweepPacks(ctx context.Context) (threads int, err error)
	RestingThreads(ctx context.Context, ids []int64) (since map[int64]time.Time, err error)
}
