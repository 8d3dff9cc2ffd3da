package chat

import (
	"context"
	"encoding/json"
	"time"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
	"deckhand/internal/transcript"
)

// Store are what the app reads and writes of the database: what it needs of
// [*store.Store], which tells what each method does.
type Store interface {
	inboxStore
	threadStore
	feedback
	steps
	approvalStore
	grants
	screens
	outgoing
	queues
	scans
	budgets
	TimeZone() *time.Location
	Connection(ctx context.Context, team, user, host string) (forges.Connection, error)
	PullByID(ctx context.Context, id int64) (forges.Pull, error)
	PullAt(ctx context.Context, threadID int64, repository string, number int) (forges.Pull, error)
	Bindings(ctx context.Context, team string) ([]threads.Binding, error)
	Bind(ctx context.Context, team string, b threads.Binding) (was string, err error)
	Audit(ctx context.Context, entries ...audit.Entry) error
	Notify(ctx context.Context, n pg.Notice) error
}

// inbox keeps what Slack was told that we have.
type inboxStore interface {
	Receive(ctx context.Context, e inbox.Envelope) (id int64, fresh bool, err error)
	Due(ctx context.Context, holder string, limit int) ([]inbox.Envelope, error)
	LetGo(ctx context.Context, prefix, but string) error
	PutOff(ctx context.Context, id int64, after time.Duration, why string, counted, mark bool) error
	FinishTelling(ctx context.Context, id int64, outcome string, tell ...inbox.Whisper) ([]outbox.Row, error)
	AcceptPrompt(ctx context.Context, p inbox.NewPrompt) (t threads.Thread, ok bool, err error)
	GiveToModel(ctx context.Context, p inbox.Post, project string) (ok bool, err error)
	Edit(ctx context.Context, p inbox.Post, change func(old json.RawMessage) (json.RawMessage, bool, error)) (ok bool, err error)
	WorkedOn(ctx context.Context, p inbox.Post) (payload json.RawMessage, err error)
	Delete(ctx context.Context, p inbox.Post) (ok bool, rows []outbox.Row, err error)
}

// threads are sessions by where they are in Slack.
type threadStore interface {
	ThreadByKey(ctx context.Context, k threads.ThreadKey) (threads.Thread, error)
	Concerns(ctx context.Context, k threads.ThreadKey, ts string) (served, begins bool, err error)
	ThreadOfTurn(ctx context.Context, turnID int64) (threads.Thread, error)
	ThreadOfRunningTurn(ctx context.Context, turnID int64) (threads.Thread, error)
	Steering(ctx context.Context, threadID int64) (inbox.Steering, error)
	Steer(ctx context.Context, threadID int64, c inbox.Steer) ([]outbox.Row, error)
	DecideTrust(ctx context.Context, threadID int64, project, kind string, sha256 []byte, status approvals.TrustStatus, by, sentence string) ([]outbox.Row, error)
	Fork(ctx context.Context, f store.Fork) (threads.Thread, error)
	History(ctx context.Context, threadID int64) (store.History, error)
	WorkSaved(ctx context.Context, threadID int64) (saved bool, err error)
	LastPrompt(ctx context.Context, threadID int64) (inbox.LastPrompt, error)
	ThreadSessions(ctx context.Context, threadID int64, limit int) ([]turns.PastSession, error)
	RecentThreads(ctx context.Context, f threads.Filter) ([]threads.Recent, error)
	ThreadPlaces(ctx context.Context, teamID, owner string, since time.Time) ([]threads.Place, error)
}

// feedback is what people think of answers.
type feedback interface {
	SaveFeedback(ctx context.Context, f turns.Feedback) (changed bool, err error)
	FeedbackReport(ctx context.Context, teamID string, since, until time.Time, most int) (turns.FeedbackReport, error)
}

// steps are what turns did, and the copies of conversations, in which results are.
type steps interface {
	Diff(ctx context.Context, turnID int64) (*forges.Push, error)
	TurnSteps(ctx context.Context, turnID int64, n, limit int, without []string) (approvals.Steps, error)
	transcript.Prompts
}

// approvals are read only: the agent asks and decides.
type approvalStore interface {
	ApprovalByID(ctx context.Context, id string) (approvals.Approval, error)
	CardApprovals(ctx context.Context, cardID string) ([]approvals.Approval, error)
	PendingApprovals(ctx context.Context, k threads.ThreadKey) ([]approvals.Approval, error)
	TeamPending(ctx context.Context, teamID string, limit int) ([]approvals.Approval, error)
	ApprovalsReport(ctx context.Context, teamID string, since, until time.Time) (approvals.Report, error)
}

// grants are standing permissions.
type grants interface {
	Grants(ctx context.Context, f approvals.GrantFilter, limit int) ([]approvals.Grant, error)
	RevokeGrant(ctx context.Context, teamID string, id int64, by string) (g approvals.Grant, ok bool, err error)
}

// screens remember what was posted, so that another process can edit it.
type screens interface {
	SavePosts(ctx context.Context, posts ...outbox.PostedMessage) error
	Posts(ctx context.Context, kind outbox.PostKind, subject string) ([]outbox.PostedMessage, error)
	TurnPosts(ctx context.Context, turnID int64) ([]outbox.PostedMessage, error)
	ForgetPost(ctx context.Context, p outbox.PostedMessage, replica string) error
	StalePlaces(ctx context.Context, teamID string) ([]threads.Thread, error)
}

// outgoing is what people must see and may not have seen.
type outgoing interface {
	ClaimOutbox(ctx context.Context, teamID string, limit int) ([]outbox.Row, error)
	HoldOutbox(ctx context.Context, ids []int64) error
	PutBackOutbox(ctx context.Context, ids []int64) error
	EndOutbox(ctx context.Context, ids []int64, shown []outbox.Shown) error
	ReleaseOutbox(ctx context.Context) error
	PostWaits(ctx context.Context, inboxID int64) (inbox.PostState, error)
	ShowWaits(ctx context.Context, p inbox.Post) error
}

// queues are what waits in threads.
type queues interface {
	Queue(ctx context.Context, threadID int64) (inbox.Queue, error)
	SendNow(ctx context.Context, inboxID int64, by string) (ok bool, err error)
	DropWaiting(ctx context.Context, inboxID int64, by, mark, said string) (ok bool, rows []outbox.Row, err error)
	StandQueue(ctx context.Context, threadID int64) (outbox.Row, error)
}

// scans are for what people posted and Slack did not deliver.
type scans interface {
	MoveCursor(ctx context.Context, teamID string, deaf time.Duration) (since time.Time, err error)
	TakeScan(ctx context.Context, teamID string, hold time.Duration) (l inbox.Scan, ok bool, err error)
	HoldScan(ctx context.Context, l inbox.Scan, hold time.Duration) error
	EndScan(ctx context.Context, l inbox.Scan) error
	ServedThreads(ctx context.Context, teamID string, since time.Time, limit int) ([]threads.ThreadKey, error)
	LastPost(ctx context.Context, k threads.ThreadKey, before string) (ts string, err error)
	WaitingPosts(ctx context.Context, teamID string, limit int) ([]inbox.Envelope, error)
}

// budgets are decided about by admins.
type budgets interface {
	Costs(ctx context.Context, q ledger.CostQuery) (ledger.CostReport, error)
	BudgetStates(ctx context.Context, windows []ledger.BudgetWindow) ([]ledger.BudgetState, error)
	BudgetNoticeStands(ctx context.Context, id string) (bool, error)
	BudgetNoticeByID(ctx context.Context, id string) (ledger.BudgetNotice, error)
	DecideBudget(ctx context.Context, id string, d ledger.BudgetDecision, by string) (ledger.BudgetNotice, error)
	BudgetWaitByPrompt(ctx context.Context, inboxID int64) (ledger.BudgetWait, error)
}
