package agent

import (
	"context"
	"io"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store"
	"deckhand/internal/transcript"
	"deckhand/internal/upkeep"
)

// Books are what the agent remembers: what it needs of [*store.Store], which tells what
// each method does. Methods that take a lease fail with [store.ErrFenced], or do
// nothing where they say so, once another replica holds the thread.
type Books interface {
	leases
	prompts
	outbox
	sessions
	transcriptBook
	turns
	approvals
	calls
	budgetBooks
	auditBook
	notices
}

// leases say which replicas live, and which of them runs a thread.
type leases interface {
	BeginLife(ctx context.Context, r store.Replica) (store.Life, error)
	Beat(ctx context.Context, l store.Life, load store.Load) (held []store.Lease, peers []store.Peer, err error)
	Living(ctx context.Context) ([]store.Peer, error)
	Bury(ctx context.Context, p store.Peer) (dead bool, err error)
	EndLife(ctx context.Context, l store.Life) error
	AcquireLease(ctx context.Context, threadID int64, l store.Life, eager bool) (store.Thread, bool, error)
	ReleaseLease(ctx context.Context, l store.Lease, wake bool) error
	Unattended(ctx context.Context, owner string, held []int64) ([]int64, error)
}

// prompts wait for a turn.
type prompts interface {
	NextThread(ctx context.Context) (int64, error)
	NextPrompt(ctx context.Context, threadID int64) (store.Prompt, error)
	PutOffPrompt(ctx context.Context, l store.Lease, inboxID int64, after time.Duration, why string) error
	DropPrompt(ctx context.Context, l store.Lease, inboxID int64, d store.Drop) ([]store.Word, error)
	DropPrompts(ctx context.Context, l store.Lease, d store.Drop) ([]store.Prompt, []store.Word, error)
}

// outbox keeps what people must see until they have.
type outbox interface {
	Say(ctx context.Context, l store.Lease, sentence string) (store.Word, error)
	LeaveTurn(ctx context.Context, l store.Lease, turnID int64, sentence string) (store.Word, error)
}

// sessions are a thread's conversations and where it works.
type sessions interface {
	SetWorkspace(ctx context.Context, l store.Lease, dir string) error
	NewSession(ctx context.Context, l store.Lease, id, parentID string) error
	StartAnew(ctx context.Context, l store.Lease, id, lost string) error
	SessionHistory(ctx context.Context, sessionID string, limit int) ([]store.Exchange, error)
	SessionStarted(ctx context.Context, id string) (bool, error)
	SessionSpoke(ctx context.Context, id string) (bool, error)
	MarkStarted(ctx context.Context, id string) error
	BeginEpoch(ctx context.Context, l store.Lease, sessionID, cliVersion string, baseline int64) (int, error)
}

// transcriptBook holds copies of the files of sessions.
type transcriptBook interface {
	transcript.Books
	ReadTranscript(ctx context.Context, t store.Transcript, out io.Writer) error
	ForgetTranscripts(ctx context.Context, since time.Time) (threads int, err error)
	Schedule(ctx context.Context, jobs ...store.Job) error
}

// turns begin and end with their prompts.
type turns interface {
	BeginTurn(ctx context.Context, l store.Lease, sessionID string, epoch int) (store.Turn, store.Prompt, bool, error)
	RunningTurn(ctx context.Context, threadID int64) (store.Turn, store.Prompt, error)
	ContinueTurn(ctx context.Context, l store.Lease, old store.Turn, sessionID string, epoch int) (store.Turn, error)
	FinishTurn(ctx context.Context, l store.Lease, f store.FinishedTurn) ([]store.Approval, []store.Word, error)
	RestTurn(ctx context.Context, l store.Lease, turnID int64, waitsFor []string) (ok bool, err error)
	Unanswered(ctx context.Context, turnID int64) ([]store.Approval, error)
	WroteBelow(ctx context.Context, k store.ThreadKey, turnID int64, from, to time.Time) (bool, error)
}

// approvals are asked, decided, delivered, and end.
type approvals interface {
	Ask(ctx context.Context, l store.Lease, a store.Approval) (store.Approval, error)
	Decide(ctx context.Context, d store.Decision) (store.Approval, error)
	Deliver(ctx context.Context, l store.Lease, id string) (store.Approval, error)
	CancelApproval(ctx context.Context, l store.Lease, id string) (store.Approval, bool, error)
	ExpireApproval(ctx context.Context, id string) (store.Approval, bool, error)
	ApprovalByID(ctx context.Context, id string) (store.Approval, error)
	LiveGrants(ctx context.Context, l store.Lease, sessionID string, tools []string, inputSHA256 [32]byte) ([]store.LiveGrant, error)
}

// calls are the calls of the model, from before they leave until they are booked, and
// what the CLI says of them.
type calls interface {
	BeginCall(ctx context.Context, c store.OpenCall, budgets ...store.CallBudget) error
	RecentOutput(ctx context.Context, teamID, project, model string) (longest int64, calls int, err error)
	SeenCall(ctx context.Context, id uuid.UUID, u store.CallUsage) error
	EndCalls(ctx context.Context, calls []store.EndedCall) error
	EndLostCalls(ctx context.Context) (n int, err error)
	AddWitness(ctx context.Context, l store.Lease, w store.Witness) error
}

// budgetBooks are what was spent, by everybody, and what people were told of it.
type budgetBooks interface {
	TimeZone() *time.Location
	BudgetStates(ctx context.Context, windows []store.BudgetWindow) ([]store.BudgetState, error)
	NoticeBudget(ctx context.Context, n store.BudgetNotice) (noted store.BudgetNotice, fresh bool, err error)
	WaitForBudget(ctx context.Context, l store.Lease, inboxID int64, n store.BudgetNotice, seen int) error
	WakeWaits(ctx context.Context) error
	StoppedTurn(ctx context.Context, threadID int64) (int64, error)
}

// auditBook is what nobody can change afterwards.
type auditBook interface {
	Audit(ctx context.Context, entries ...store.AuditEntry) error
}

// notices wake other replicas.
type notices interface {
	Listen(ctx context.Context, ready func(), fn func(store.Notice))
	Notify(ctx context.Context, n store.Notice) error
	Listening() upkeep.State
}
