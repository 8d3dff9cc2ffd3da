package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ApprovalKind is what the CLI asks for.
type ApprovalKind string

// The kinds of approvals.
const (
	ApprovalTool     ApprovalKind = "tool"     // may this tool run with this input
	ApprovalQuestion ApprovalKind = "question" // AskUserQuestion: the answer goes into the input
	ApprovalPlan     ApprovalKind = "plan"     // ExitPlanMode: is this plan good
)

// ApprovalStatus says whether an approval is open and how it ended.
type ApprovalStatus string

// An approval is pending, then exactly one of the others, for good.
const (
	ApprovalPending     ApprovalStatus = "pending"
	ApprovalAllowed     ApprovalStatus = "allowed"
	ApprovalDenied      ApprovalStatus = "denied"
	ApprovalExpired     ApprovalStatus = "expired"     // nobody decided in time
	ApprovalCancelled   ApprovalStatus = "cancelled"   // the turn was stopped
	ApprovalInterrupted ApprovalStatus = "interrupted" // its process ended and it was not asked again
)

// Approval is a request to use a tool. Input holds the bytes that the CLI sent,
// that the card shows and that an allow sends back; InputSHA256 binds the
// decision to them.
type Approval struct {
	ID             string // unguessable; the only thing a button carries
	ThreadID       int64
	Thread         ThreadKey
	Project        string
	Title          string // of the thread, for people who may read it; may be empty
	Workspace      string
	SessionID      string
	TurnID         int64
	Kind           ApprovalKind
	RequestID      string // the CLI's; empty while the process that asked is gone
	ToolUseID      string
	ToolName       string
	Input          json.RawMessage
	InputSHA256    [sha256.Size]byte
	Dir            string          // where the call would run; empty: the workspace
	Edited         Edited          // what runs instead, if people changed it
	Before         *Before         // the same request of before a restart, if there was one; or nil
	Touches        json.RawMessage // what it would touch, as far as is known; or nil
	RequestedBy    string          // the Slack user whose prompt led here
	Terms          Terms           // how it is decided, as the policy had it when it was asked
	Risks          []string
	DecisionReason string // the CLI's own, for the card
	// CardID is the approval whose message shows this one too: its own id, or that
	// of an earlier request of the same turn.
	CardID     string
	Status     ApprovalStatus
	DecidedBy  string // a Slack user id, or "rule"
	DecidedVia string // button, command, modal, rule, grant
	GrantID    int64  // the grant that allowed it, whose maker is DecidedBy; or 0
	Reason     string // the decider's
	Answer     json.RawMessage
	CreatedAt  time.Time
	ExpiresAt  time.Time
	DecidedAt  time.Time // zero while pending
	Delivered  bool      // the CLI has been told
	MessageTS  string    // the card's, or empty
	Votes      []Vote    // for the input as it stands, in the order they came
	TurnEnded  bool      // its turn asks for nothing more
	Word       int64     // the last [WordCard] about its card that is in the outbox, or 0
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

// Edited is an input as people have changed it, before it ran.
type Edited struct {
	Times  int // how often it was changed; 0: never, and the rest is empty
	Input  json.RawMessage
	SHA256 [sha256.Size]byte
	By     string // who changed it last, a Slack user
}

// ToRun is the input that an allow lets run: as it was asked for, or as people have
// changed it.
func (a Approval) ToRun() json.RawMessage {
	if a.Edited.Times > 0 {
		return a.Edited.Input
	}
	return a.Input
}

// TimeoutAction is what happens when nobody decided in time.
type TimeoutAction string

// The actions. Neither is a denial by a person, and the thread is told.
const (
	TimeoutPause TimeoutAction = "pause" // the turn is interrupted
	TimeoutDeny  TimeoutAction = "deny"  // the tool does not run, and the turn goes on
)

// Vote is what one person said to an approval.
type Vote struct {
	UserID string    `json:"user_id"`
	Allow  bool      `json:"allow"`
	Via    string    `json:"via"`
	At     time.Time `json:"at"`
}

type approvalRow struct {
	ID, TeamID, ChannelID, ThreadTS, Project, Title, Workspace, SessionID, RequestID, ToolUseID, ToolName string
	ThreadID, TurnID                                                                                      int64
	Kind                                                                                                  ApprovalKind
	Input, RequestedBy, Rule, Because, DecisionReason, CardID                                             string
	Approvers, Risks                                                                                      []string
	Quorum                                                                                                int
	RequesterMay, Dangerous, Grantable, TurnEnded                                                         bool
	OnTimeout                                                                                             TimeoutAction
	GrantID                                                                                               int64
	Votes                                                                                                 []Vote
	Fixed                                                                                                 bool
	Dir, Touches, EditedInput, EditedBy                                                                   string
	Before                                                                                                *Before
	Edits                                                                                                 int
	EditedSHA256                                                                                          []byte `db:"edited_sha256"`
	InputSHA256                                                                                           []byte `db:"input_sha256"`
	Status                                                                                                ApprovalStatus
	DecidedBy, DecidedVia, Reason, Answer                                                                 string
	CreatedAt, ExpiresAt                                                                                  time.Time
	DecidedAt                                                                                             *time.Time
	Delivered                                                                                             bool
	MessageTS                                                                                             string
	Word                                                                                                  int64
}

const (
	approvalColumns = approvalsFirst + beforeColumn + approvalsLast
	// hastyColumns say in place of [Approval].Before whether there may be one.
	hastyColumns = approvalsFirst + mayBeBefore + approvalsLast
)

const approvalsFirst = `a.id, a.thread_id, t.team_id, t.channel_id, t.thread_ts, t.project, t.title, t.workspace,
	a.session_id::text AS session_id, a.turn_id, a.kind, a.request_id, a.tool_use_id, a.tool_name, a.input, a.input_sha256,
	a.requested_by, a.rule, a.because, a.approvers, a.quorum, a.requester_may, a.on_timeout, a.dangerous, a.grantable,
	a.risks, a.decision_reason, a.card_id, a.status, a.decided_by, a.decided_via, COALESCE(a.grant_id, 0) AS grant_id,
	a.reason, a.answer, a.created_at, a.expires_at, a.decided_at, a.delivered_at IS NOT NULL AS delivered,
	COALESCE((SELECT m.ts FROM messages m WHERE m.approval_id = a.card_id AND m.page = 0), '') AS message_ts,
	(SELECT r.state <> 'running' FROM turns r WHERE r.id = a.turn_id) AS turn_ended,
	COALESCE((SELECT max(o.id) FROM outbox o WHERE o.card_id = a.card_id), 0) AS word,
	a.dir, a.fixed, a.touches, a.edits, a.edited_input, a.edited_sha256, a.edited_by, `

const approvalsLast = `,
	COALESCE((SELECT json_agg(v ORDER BY v.at) FROM votes v WHERE v.approval_id = a.id AND v.edit = a.edits), '[]') AS votes`

func (r approvalRow) approval() Approval {
	a := Approval{
		ID: r.ID, ThreadID: r.ThreadID,
		Thread:  ThreadKey{TeamID: r.TeamID, ChannelID: r.ChannelID, ThreadTS: r.ThreadTS},
		Project: r.Project, Title: r.Title, Workspace: r.Workspace, SessionID: r.SessionID, TurnID: r.TurnID,
		Kind: r.Kind, RequestID: r.RequestID, ToolUseID: r.ToolUseID, ToolName: r.ToolName,
		Input: json.RawMessage(r.Input), InputSHA256: [sha256.Size]byte(r.InputSHA256),
		RequestedBy: r.RequestedBy, Risks: r.Risks, DecisionReason: r.DecisionReason, CardID: r.CardID,
		Terms: Terms{
			Rule: r.Rule, Because: r.Because, Approvers: r.Approvers, Quorum: r.Quorum, RequesterMay: r.RequesterMay,
			OnTimeout: r.OnTimeout, Dangerous: r.Dangerous, Grantable: r.Grantable, Fixed: r.Fixed,
		},
		Dir: r.Dir, Before: r.Before,
		GrantID: r.GrantID, Votes: r.Votes, TurnEnded: r.TurnEnded,
		Status: r.Status, DecidedBy: r.DecidedBy, DecidedVia: r.DecidedVia, Reason: r.Reason,
		CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, Delivered: r.Delivered, MessageTS: r.MessageTS, Word: r.Word,
	}
	if r.Edits > 0 {
		a.Edited = Edited{Times: r.Edits, Input: json.RawMessage(r.EditedInput), SHA256: [sha256.Size]byte(r.EditedSHA256), By: r.EditedBy}
	}
	if r.Touches != "" {
		a.Touches = json.RawMessage(r.Touches)
	}
	if r.Answer != "" {
		a.Answer = json.RawMessage(r.Answer)
	}
	if r.DecidedAt != nil {
		a.DecidedAt = *r.DecidedAt
	}
	return a
}

func collectApprovals(rows pgx.Rows, err error) ([]Approval, error) {
	got, err := collect[approvalRow](rows, err)
	if err != nil {
		return nil, err
	}
	out := make([]Approval, len(got))
	for i, r := range got {
		out[i] = r.approval()
	}
	return out, nil
}

func collectApproval(rows pgx.Rows, err error) (Approval, error) {
	r, err := collectOne[approvalRow](rows, err)
	if err != nil {
		return Approval{}, err
	}
	return r.approval(), nil
}

// ApprovalByID returns the approval, or [ErrNotFound].
func (s *Store) ApprovalByID(ctx context.Context, id string) (Approval, error) {
	const from = ` FROM approvals a JOIN threads t ON t.id = a.thread_id WHERE a.id = $1`
	a, err := collectApproval(s.pool.Query(ctx, `SELECT `+hastyColumns+from, id))
	if err == nil && a.Before != nil { // what few turns have is not made ready for all
		a, err = collectApproval(s.pool.Query(ctx, `SELECT `+approvalColumns+from, id))
	}
	if err != nil {
		return Approval{}, fmt.Errorf("read approval: %w", err)
	}
	return a, nil
}

// PendingApprovals lists the open approvals of a Slack thread, oldest first.
func (s *Store) PendingApprovals(ctx context.Context, k ThreadKey) ([]Approval, error) {
	out, err := collectApprovals(s.pool.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE t.team_id = $1 AND t.channel_id = $2 AND t.thread_ts = $3 AND a.status = 'pending'
		ORDER BY a.created_at, a.id`, k.TeamID, k.ChannelID, k.ThreadTS))
	if err != nil {
		return nil, fmt.Errorf("read pending approvals: %w", err)
	}
	return out, nil
}

// TeamPending lists the open approvals of a team, oldest first, at most limit.
func (s *Store) TeamPending(ctx context.Context, teamID string, limit int) ([]Approval, error) {
	out, err := collectApprovals(s.pool.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE t.team_id = $1 AND a.status = 'pending' AND a.expires_at > now()
		ORDER BY a.created_at, a.id LIMIT $2`, teamID, limit))
	if err != nil {
		return nil, fmt.Errorf("read a team's pending approvals: %w", err)
	}
	return out, nil
}

// CardApprovals lists the approvals that a card shows, in the order they were
// asked.
func (s *Store) CardApprovals(ctx context.Context, cardID string) ([]Approval, error) {
	out, err := collectApprovals(s.pool.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE a.card_id = $1 ORDER BY a.created_at, a.id`, cardID))
	if err != nil {
		return nil, fmt.Errorf("read a card's approvals: %w", err)
	}
	return out, nil
}
