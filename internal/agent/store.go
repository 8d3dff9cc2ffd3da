package agent

import (
	"context"
	"io"
	"time"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/place"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/store/turns"
	"deckhand/internal/transcript"
	"deckhand/internal/upkeep"
)

// Store is what the agent remembers: what it needs of [*store.Store], which tells what
// each method does. Methods that take a lease fail with [threads.ErrFenced], or do
// nothing where they say so, once another replica holds the thread.
type Store interface {
	// Which replicas live, and which of them runs a thread.
	Register(ctx context.Context, r threads.Replica) (threads.Registration, error)
	Heartbeat(ctx context.Context, l threads.Registration, load threads.Load) (held []threads.Lease, peers []threads.Peer, err error)
	Living(ctx context.Context) ([]threads.Peer, error)
	MarkDead(ctx context.Context, p threads.Peer) (dead bool, err error)
	Unregister(ctx context.Context, l threads.Registration) error
	AcquireLease(ctx context.Context, threadID int64, l threads.Registration, eager bool) (threads.Thread, bool, error)
	ReleaseLease(ctx context.Context, l threads.Lease, wake bool) error
	Unattended(ctx context.Context, owner string, held []int64) ([]int64, error)

	// Prompts wait for a turn.
	NextPrompt(ctx context.Context, threadID int64) (inbox.Prompt, error)
	PutOffPrompt(ctx context.Context, l threads.Lease, inboxID int64, after time.Duration, why string) error
	DropPrompts(ctx context.Context, l threads.Lease, d inbox.Drop) ([]inbox.Prompt, []outbox.Row, error)

	// The outbox keeps what people must see until they have.
	Say(ctx context.Context, l threads.Lease, sentence, adminsOf string) (outbox.Row, error)
	LeaveTurn(ctx context.Context, l threads.Lease, turnID int64, sentence string) (outbox.Row, error)

	// Sessions are a thread's conversations and where it works.
	SetWorkspace(ctx context.Context, l threads.Lease, dir string) error
	SetBranch(ctx context.Context, l threads.Lease, branch string) error
	NewSession(ctx context.Context, l threads.Lease, id, parentID string) error
	StartAnew(ctx context.Context, l threads.Lease, id, lost string) error
	SessionHistory(ctx context.Context, sessionID string, limit int) ([]turns.Exchange, error)
	SessionStarted(ctx context.Context, id string) (bool, error)
	SessionSpoke(ctx context.Context, id string) (bool, error)
	MarkStarted(ctx context.Context, id string) error
	BeginEpoch(ctx context.Context, l threads.Lease, sessionID, cliVersion string, baseline int64) (int, error)
	Steering(ctx context.Context, threadID int64) (inbox.Steering, error)
	History(ctx context.Context, threadID int64) (store.History, error)
	PromptsAfter(ctx context.Context, sessionID string, turn int64) (ids map[string]bool, spoke bool, err error)
	MoveRewind(ctx context.Context, l threads.Lease, inboxID int64, begun bool) error
	FinishRewind(ctx context.Context, l threads.Lease, r store.Rewound) (sessionID string, rows []outbox.Row, err error)
	NoteServers(ctx context.Context, l threads.Lease, seen []inbox.MCPServer, again []string, sentences ...string) ([]outbox.Row, error)

	// Transcripts are copies of the files of sessions.
	transcript.Store
	ReadTranscript(ctx context.Context, t transcripts.Transcript, out io.Writer) error
	ForgetTranscripts(ctx context.Context, since time.Time) (threads int, err error)
	Schedule(ctx context.Context, jobs ...pg.Job) error

	// Turns begin and end with their prompts.
	BeginTurn(ctx context.Context, l threads.Lease, sessionID string, epoch int) (turns.Turn, inbox.Prompt, bool, error)
	RunningTurn(ctx context.Context, threadID int64) (turns.Turn, inbox.Prompt, error)
	ContinueTurn(ctx context.Context, l threads.Lease, old turns.Turn, sessionID string, epoch int) (turns.Turn, error)
	FinishTurn(ctx context.Context, l threads.Lease, f store.FinishedTurn) ([]approvals.Approval, []outbox.Row, error)
	SaveDiff(ctx context.Context, turnID int64, p *forges.Push) error
	ParkTurn(ctx context.Context, l threads.Lease, turnID int64, waitsFor []string) (ok bool, err error)
	Unanswered(ctx context.Context, turnID int64) ([]approvals.Approval, error)
	WroteBelow(ctx context.Context, k threads.ThreadKey, turnID int64, from, to time.Time) (bool, error)

	// Approvals are asked, decided, delivered, and end.
	ask.Store
	Decide(ctx context.Context, d approvals.Decision) (approvals.Approval, error)
	ExpireApproval(ctx context.Context, id string) (approvals.Approval, bool, error)

	// Calls of the model that a dead process has left, and what the CLI says of all.
	EndLostCalls(ctx context.Context) (n int, err error)
	AddCLITotals(ctx context.Context, l threads.Lease, w ledger.CLITotal) error

	// Prompts wait for a budget.
	WakeWaits(ctx context.Context) error
	StoppedTurn(ctx context.Context, threadID int64) (int64, error)

	// Notices wake other replicas.
	Listen(ctx context.Context, ready func(), fn func(pg.Notice))
	Notify(ctx context.Context, n pg.Notice) error
	Listening() upkeep.State

	spend.Store
	auditStore
}

// auditStore is what nobody can change afterwards.
type auditStore interface {
	Audit(ctx context.Context, entries ...audit.Entry) error
}

// Works keep what threads have made where every machine finds it: [*store.Store], which
// tells what each method does.
type Works interface {
	place.Works
	OldWork(ctx context.Context, since time.Time, limit int) ([]int64, error)
	ForgetWork(ctx context.Context, l threads.Lease) error
	LeaveWork(ctx context.Context, l threads.Lease, sentence string) ([]outbox.Row, error)
	SweepPacks(ctx context.Context) (threads int, err error)
	RestingThreads(ctx context.Context, ids []int64) (since map[int64]time.Time, err error)
}
