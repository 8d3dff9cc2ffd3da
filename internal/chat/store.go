package chat

import (
	"context"
	"encoding/json"
	"time"

	"deckhand/internal/store"
	"deckhand/internal/transcript"
)

// Store are what the app reads and writes of the database: what it needs of
// [*store.Store], which tells what each method does.
type Store interface {
	inbox
	threads
	feedback
	steps
	approvals
	grants
	screens
	outgoing
	queues
	scans
	budgets
	TimeZone() *time.Location
	Connection(ctx context.Context, team, user, host string) (store.Connection, error)
	PullByID(ctx context.Context, id int64) (store.Pull, error)
	Bindings(ctx context.Context, team string) ([]store.Binding, error)
	Bind(ctx context.Context, team string, b store.Binding) (was string, err error)
	Audit(ctx context.Context, entries ...store.AuditEntry) error
	Notify(ctx context.Context, n store.Notice) error
}

// inbox keeps what Slack was told that we have.
type inbox interface {
	Receive(ctx context.Context, e store.Envelope) (id int64, fresh bool, err error)
	Due(ctx context.Context, holder string, limit int) ([]store.Envelope, error)
	LetGo(ctx context.Context, prefix, but string) error
	PutOff(ctx context.Context, id int64, after time.Duration, why string, counted, mark bool) error
	FinishTelling(ctx context.Context, id int64, outcome string, tell ...store.Whisper) ([]store.OutboxRow, error)
	AcceptPrompt(ctx context.Context, p store.NewPrompt) (t store.Thread, ok bool, err error)
	GiveToModel(ctx context.Context, p store.Post, project string) (ok bool, err error)
	Edit(ctx context.Context, p store.Post, change func(old json.RawMessage) (json.RawMessage, bool, error)) (ok bool, err error)
	WorkedOn(ctx context.Context, p store.Post) (payload json.RawMessage, err error)
	Delete(ctx context.Context, p store.Post) (ok bool, rows []store.OutboxRow, err error)
}

// threads are sessions by where they are in Slack.
type threads interface {
	ThreadByKey(ctx context.Context, k store.ThreadKey) (store.Thread, error)
	Concerns(ctx context.Context, k store.ThreadKey, ts string) (served, begins bool, err error)
	ThreadOfTurn(ctx context.Context, turnID int64) (store.Thread, error)
	ThreadOfRunningTurn(ctx context.Context, turnID int64) (store.Thread, error)
	Steering(ctx context.Context, threadID int64) (store.Steering, error)
	Steer(ctx context.Context, threadID int64, c store.Steer) ([]store.OutboxRow, error)
	DecideTrust(ctx context.Context, threadID int64, project, kind string, sha256 []byte, status store.TrustStatus, by, sentence string) ([]store.OutboxRow, error)
	Fork(ctx context.Context, f store.Fork) (store.Thread, error)
	WorkSaved(ctx context.Context, threadID int64) (saved bool, err error)
	LastPrompt(ctx context.Context, threadID int64) (store.LastPrompt, error)
	ThreadSessions(ctx context.Context, threadID int64, limit int) ([]store.PastSession, error)
	RecentThreads(ctx context.Context, f store.ThreadFilter) ([]store.RecentThread, error)
	ThreadPlaces(ctx context.Context, teamID, owner string, since time.Time) ([]store.ThreadPlace, error)
}

// feedback is what people think of answers.
type feedback interface {
	SaveFeedback(ctx context.Context, f store.Feedback) (changed bool, err error)
	FeedbackReport(ctx context.Context, teamID string, since, until time.Time, most int) (store.FeedbackReport, error)
}

// steps are what turns did, and the copies of conversations, in which results are.
type steps interface {
	Diff(ctx context.Context, turnID int64) (*store.Push, error)
	TurnSteps(ctx context.Context, turnID int64, n, limit int, without []string) (store.Steps, error)
	transcript.Copies
}

// approvals are read only: the agent asks and decides.
type approvals interface {
	ApprovalByID(ctx context.Context, id string) (store.Approval, error)
	CardApprovals(ctx context.Context, cardID string) ([]store.Approval, error)
	PendingApprovals(ctx context.Context, k store.ThreadKey) ([]store.Approval, error)
	TeamPending(ctx context.Context, teamID string, limit int) ([]store.Approval, error)
	ApprovalsReport(ctx context.Context, teamID string, since, until time.Time) (store.ApprovalsReport, error)
}

// grants are standing permissions.
type grants interface {
	Grants(ctx context.Context, f store.GrantFilter, limit int) ([]store.Grant, error)
	RevokeGrant(ctx context.Context, teamID string, id int64, by string) (g store.Grant, ok bool, err error)
}

// screens remember what was posted, so that another process can edit it.
type screens interface {
	SavePosts(ctx context.Context, posts ...store.PostedMessage) error
	Posts(ctx context.Context, kind store.PostKind, subject string) ([]store.PostedMessage, error)
	TurnPosts(ctx context.Context, turnID int64) ([]store.PostedMessage, error)
	ForgetPost(ctx context.Context, p store.PostedMessage, replica string) error
	StalePlaces(ctx context.Context, teamID string) ([]store.Thread, error)
}

// outgoing is what people must see and may not have seen.
type outgoing interface {
	ClaimOutbox(ctx context.Context, teamID string, limit int) ([]store.OutboxRow, error)
	HoldOutbox(ctx context.Context, ids []int64) error
	PutBackOutbox(ctx context.Context, ids []int64) error
	EndOutbox(ctx context.Context, ids []int64, shown []store.Shown) error
	ReleaseOutbox(ctx context.Context) error
	PostWaits(ctx context.Context, inboxID int64) (store.PostState, error)
	ShowWaits(ctx context.Context, p store.Post) error
}

// queues are what waits in threads.
type queues interface {
	Queue(ctx context.Context, threadID int64) (store.Queue, error)
	SendNow(ctx context.Context, inboxID int64, by string) (ok bool, err error)
	DropWaiting(ctx context.Context, inboxID int64, by, mark string) (ok bool, rows []store.OutboxRow, err error)
	StandQueue(ctx context.Context, threadID int64) (store.OutboxRow, error)
}

// scans are for what people posted and Slack did not deliver.
type scans interface {
	MoveCursor(ctx context.Context, teamID string, deaf time.Duration) (since time.Time, err error)
	TakeScan(ctx context.Context, teamID string, hold time.Duration) (l store.Scan, ok bool, err error)
	HoldScan(ctx context.Context, l store.Scan, hold time.Duration) error
	EndScan(ctx context.Context, l store.Scan) error
	ServedThreads(ctx context.Context, teamID string, since time.Time, limit int) ([]store.ThreadKey, error)
	OpenedAt(ctx context.Context, k store.ThreadKey) (ts string, err error)
	LastPost(ctx context.Context, k store.ThreadKey, before string) (ts string, err error)
	WaitingPosts(ctx context.Context, teamID string, limit int) ([]store.Envelope, error)
}

// budgets are decided about by admins.
type budgets interface {
	BudgetStates(ctx context.Context, windows []store.BudgetWindow) ([]store.BudgetState, error)
	BudgetNoticeStands(ctx context.Context, id string) (bool, error)
	BudgetNoticeByID(ctx context.Context, id string) (store.BudgetNotice, error)
	DecideBudget(ctx context.Context, id string, d store.BudgetDecision, by string) (store.BudgetNotice, error)
	BudgetWaitByPrompt(ctx context.Context, inboxID int64) (store.BudgetWait, error)
}
