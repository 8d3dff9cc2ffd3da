package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/forges"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Kind is what the CLI asks for.
type Kind string

// The kinds of approvals.
const (
	Tool     Kind = "tool"     // may this tool run with this input
	Question Kind = "question" // AskUserQuestion: the answer goes into the input
	Plan     Kind = "plan"     // ExitPlanMode: is this plan good
)

// Status says whether an approval is open, and if not how it ended.
type Status string

// An approval is pending, then permanently one of the others.
const (
	Pending     Status = "pending"
	Allowed     Status = "allowed"
	Denied      Status = "denied"
	Expired     Status = "expired"     // nobody decided in time
	Cancelled   Status = "cancelled"   // the turn was stopped
	Interrupted Status = "interrupted" // its process ended and it was not asked again
)

// Approval is a request to use a tool. Input holds the CLI's bytes, which the card shows and an allow sends back;
// InputSHA256 binds the decision to them.
type Approval struct {
	ID          string // unguessable; the only thing a button carries
	Input       json.RawMessage
	InputSHA256 Sum `db:"input_sha256"`
	Origin
	Request
	Terms  // how it is decided, by the policy when it was asked
	Edited // what runs instead, if people changed it
	Outcome
	Card
}

// Origin is where a request comes from.
type Origin struct {
	ThreadID int64
	threads.ThreadKey
	Project     string
	Title       string // of the thread, for people who may read it; may be empty
	Words       string // what RequestedBy wrote, in a message or a form, see [threads.Words]; empty if they pressed a button, or nobody wrote
	Workspace   string
	SessionID   string
	TurnID      int64
	RequestedBy string // the Slack user whose prompt led here
}

// Request is what was asked, besides the input, and what is known of it.
type Request struct {
	Kind           Kind
	RequestID      string // the CLI's; empty once the process that asked is gone
	ToolUseID      string
	ToolName       string
	Dir            string          // where the call would run; empty: the workspace
	Before         *Before         // the same request before a restart; or nil
	Touches        json.RawMessage // what it would touch, as far as known; or nil
	Push           *forges.Push    // what a git push would bring; nil for other calls
	Risks          []string
	DecisionReason string      // the CLI's own, for the card
	ToolSHA256     Sum         `db:"tool_sha256"` // of what the model was told of an MCP server's tool; else zero
	ToolChange     *ToolChange // that this is not what was allowed before; or nil
	Said           string      // the model's last text before the call; may be empty
	CreatedAt      time.Time
	ExpiresAt      time.Time
}

// Outcome is what people have said, and how it ended.
type Outcome struct {
	Status     Status
	DecidedBy  string // a Slack user id, or "rule"
	DecidedVia string // button, command, modal, rule, grant
	GrantID    int64  // the grant that allowed it, made by DecidedBy; or 0
	Reason     string // the decider's
	Answer     json.RawMessage
	DecidedAt  time.Time // zero while pending
	Delivered  bool      // the CLI has its answer
	Votes      []Vote    // for the current input, in order
}

// Card is where it is shown, and by whom.
type Card struct {
	// CardID is the approval whose message also shows this one: itself, or an earlier request of the same turn.
	CardID    string
	MessageTS string // the card's, or empty
	TurnEnded bool   // its turn asks for nothing more
	HeldBy    string // the replica that holds the thread's lease, or empty
	OutboxID  int64  // the last outbox row about its card, or 0
}

// Terms are how an approval is decided.
type Terms struct {
	Rule    string // the policy rule that asked, or decided, in words
	Because string // the rule's own reason, or what kept another from applying
	// Approvers are the Slack users and user groups who may decide; empty means
	// those with the approver's role.
	Approvers []string
	// Quorum is how many people must allow it. One denial denies.
	Quorum int
	// RequesterMay: the person whose prompt led here may decide.
	RequesterMay bool
	OnTimeout    TimeoutAction
	// Dangerous: allowing takes a second confirmation.
	Dangerous bool
	// Grantable: a grant may cover the like from now on.
	Grantable bool
	// Fixed: whoever decides may not change the input.
	Fixed bool
}

// Edited is an input as people have changed it before it ran.
type Edited struct {
	Times  int             `db:"edits"` // how often it was changed; if 0, the rest is empty
	Input  json.RawMessage `db:"edited_input"`
	SHA256 Sum             `db:"edited_sha256"`
	By     string          `db:"edited_by"` // the Slack user who changed it last
}

// Sum is a SHA-256 sum; zero for NULL.
type Sum [sha256.Size]byte

// ScanBytes implements [pgtype.BytesScanner].
func (s *Sum) ScanBytes(b []byte) error {
	*s = Sum{}
	copy(s[:], b)
	return nil
}

// ToRun is the input that an allow runs: the original, or as people have changed it.
func (a Approval) ToRun() json.RawMessage {
	if a.Edited.Times > 0 {
		return a.Edited.Input
	}
	return a.Input
}

// TimeoutAction is what happens when nobody decides in time.
type TimeoutAction string

// The actions. Neither counts as a person's denial, and the thread is notified.
const (
	TimeoutPause TimeoutAction = "pause" // the turn is interrupted
	TimeoutDeny  TimeoutAction = "deny"  // the tool does not run, and the turn goes on
)

// Vote is one person's answer to an approval.
type Vote struct {
	UserID string    `json:"user_id"`
	Allow  bool      `json:"allow"`
	Via    string    `json:"via"`
	At     time.Time `json:"at"`
}

const (
	approvalColumns = approvalsFirst + beforeColumn + approvalsLast
	// hastyColumns only say whether there may be an [Approval].Before.
	hastyColumns = approvalsFirst + mayBeBefore + approvalsLast
)

// A statement that waited for the one that moved the approval to another turn does not see that turn, which has
// just begun.
const approvalsFirst = `a.id, a.thread_id, t.team_id, t.channel_id, t.thread_ts, t.project, t.title,
	COALESCE((SELECT ` + threads.Words + ` FROM inbox i WHERE i.turn_id = a.turn_id AND i.kind IN ('message', 'view') ORDER BY i.ts LIMIT 1), '') AS words, t.workspace,
	a.session_id::text AS session_id, a.turn_id, a.kind, a.request_id, a.tool_use_id, a.tool_name, a.input, a.input_sha256,
	a.requested_by, a.rule, a.because, a.approvers, a.quorum, a.requester_may, a.on_timeout, a.dangerous, a.grantable,
	a.risks, a.decision_reason, a.said, a.tool_sha256, a.tool_change, a.card_id, a.status, a.decided_by, a.decided_via, COALESCE(a.grant_id, 0) AS grant_id,
	a.reason, NULLIF(a.answer, '') AS answer, a.created_at, a.expires_at,
	COALESCE(a.decided_at, '0001-01-01T00:00:00Z') AS decided_at, a.delivered_at IS NOT NULL AS delivered,
	COALESCE((SELECT p.ts FROM posts p WHERE p.kind = 'card' AND p.subject = a.card_id AND p.part = 0 AND p.audience = ''), '') AS message_ts,
	COALESCE((SELECT r.state <> 'running' FROM turns r WHERE r.id = a.turn_id), false) AS turn_ended,
	COALESCE(t.lease_owner, '') AS held_by,
	COALESCE((SELECT max(o.id) FROM outbox o WHERE o.card_id = a.card_id), 0) AS outbox_id,
	a.dir, a.fixed, NULLIF(a.touches, '') AS touches, a.push, a.edits, NULLIF(a.edited_input, '') AS edited_input, a.edited_sha256, a.edited_by, `

const approvalsLast = `,
	COALESCE((SELECT json_agg(v ORDER BY v.at) FROM votes v WHERE v.approval_id = a.id AND v.edit = a.edits), '[]') AS votes`

// ApprovalByID returns the approval, or [pg.ErrNotFound].
func (s *Store) ApprovalByID(ctx context.Context, id string) (Approval, error) {
	const from = ` FROM approvals a JOIN threads t ON t.id = a.thread_id WHERE a.id = $1`
	a, err := pg.CollectOne[Approval](s.db.Query(ctx, `SELECT `+hastyColumns+from, id))
	if err == nil && a.Before != nil { // loaded separately, since few turns have one
		a, err = pg.CollectOne[Approval](s.db.Query(ctx, `SELECT `+approvalColumns+from, id))
	}
	return a, pg.Wrap(err, "read approval")
}

// PendingApprovals lists the open approvals of a Slack thread, oldest first.
func (s *Store) PendingApprovals(ctx context.Context, k threads.ThreadKey) ([]Approval, error) {
	out, err := pg.Collect[Approval](s.db.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE t.team_id = $1 AND t.channel_id = $2 AND t.thread_ts = $3 AND a.status = 'pending'
		ORDER BY a.created_at, a.id`, k.TeamID, k.ChannelID, k.ThreadTS))
	return out, pg.Wrap(err, "read pending approvals")
}

// TeamPending lists the open approvals of a team, oldest first, at most limit.
func (s *Store) TeamPending(ctx context.Context, teamID string, limit int) ([]Approval, error) {
	out, err := pg.Collect[Approval](s.db.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE t.team_id = $1 AND a.status = 'pending' AND a.expires_at > now()
		ORDER BY a.created_at, a.id LIMIT $2`, teamID, limit))
	return out, pg.Wrap(err, "read a team's pending approvals")
}

// CardApprovals lists the approvals on a card, in the order of asking.
func (s *Store) CardApprovals(ctx context.Context, cardID string) ([]Approval, error) {
	out, err := pg.Collect[Approval](s.db.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE a.card_id = $1 ORDER BY a.created_at, a.id`, cardID))
	return out, pg.Wrap(err, "read a card's approvals")
}

// queueCardRow adds to a batch that an approval's card is to be shown again.
func queueCardRow(db *pg.DB, b *pgx.Batch, a *Approval) {
	outbox.AddTo(db, b, a.ThreadID, func(w outbox.Row) { a.OutboxID = w.ID }, outbox.NewRow{Kind: outbox.Card, Card: a.CardID})
}

func addCardRow(ctx context.Context, tx pg.Tx, a *Approval) error {
	var b pgx.Batch
	queueCardRow(tx.DB, &b, a)
	return tx.Send(ctx, &b)
}

// Unanswered lists the approvals of a turn whose answer its process did not get, whether pending, decided or
// expired; the oldest first.
func (s *Store) Unanswered(ctx context.Context, turnID int64) ([]Approval, error) {
	out, err := pg.Collect[Approval](s.db.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id LEFT JOIN turn_rests s ON s.turn_id = a.turn_id
		WHERE a.turn_id = $1 AND a.delivered_at IS NULL
		  AND (a.status IN ('pending', 'allowed', 'denied') OR a.status = 'expired' AND a.decided_at >= s.since)
		ORDER BY a.created_at, a.id`, turnID))
	return out, pg.Wrap(err, "read what turn %d was not answered", turnID)
}

// CallAllowed returns the approval of a tool use whose turn runs, or [pg.ErrNotFound] if there is
// none that allows it.
func (s *Store) CallAllowed(ctx context.Context, threadID int64, toolUseID string) (Approval, error) {
	a, err := pg.CollectOne[Approval](s.db.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id JOIN turns r ON r.id = a.turn_id
		WHERE a.thread_id = $1 AND a.tool_use_id = $2 AND a.status = 'allowed' AND a.delivered_at IS NOT NULL AND r.state = 'running'
		ORDER BY a.created_at DESC LIMIT 1`, threadID, toolUseID))
	return a, pg.Wrap(err, "read the decision about a call")
}
