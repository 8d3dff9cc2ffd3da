package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
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
	Workspace      string
	SessionID      string
	TurnID         int64
	Kind           ApprovalKind
	RequestID      string // the CLI's; empty while the process that asked is gone
	ToolUseID      string
	ToolName       string
	Input          json.RawMessage
	InputSHA256    [sha256.Size]byte
	RequestedBy    string // the Slack user whose prompt led here
	Rule           string // the policy rule that asked, or decided
	DecisionReason string // the CLI's own, for the card
	Status         ApprovalStatus
	DecidedBy      string // a Slack user id, or "rule"
	DecidedVia     string // button, command, modal, rule, timeout
	Reason         string // the decider's
	Answer         json.RawMessage
	CreatedAt      time.Time
	ExpiresAt      time.Time
	DecidedAt      time.Time // zero while pending
	Delivered      bool      // the CLI has been told
	MessageTS      string    // the card's, or empty
}

type approvalRow struct {
	ID, TeamID, ChannelID, ThreadTS, Project, Workspace, SessionID, RequestID, ToolUseID, ToolName string
	ThreadID, TurnID                                                                               int64
	Kind                                                                                           ApprovalKind
	Input, RequestedBy, Rule, DecisionReason                                                       string
	InputSHA256                                                                                    []byte `db:"input_sha256"`
	Status                                                                                         ApprovalStatus
	DecidedBy, DecidedVia, Reason, Answer                                                          string
	CreatedAt, ExpiresAt                                                                           time.Time
	DecidedAt                                                                                      *time.Time
	Delivered                                                                                      bool
	MessageTS                                                                                      string
}

const approvalColumns = `a.id, a.thread_id, t.team_id, t.channel_id, t.thread_ts, t.project, t.workspace,
	a.session_id::text AS session_id, a.turn_id, a.kind, a.request_id, a.tool_use_id, a.tool_name, a.input, a.input_sha256,
	a.requested_by, a.rule, a.decision_reason, a.status, a.decided_by, a.decided_via, a.reason, a.answer,
	a.created_at, a.expires_at, a.decided_at, a.delivered_at IS NOT NULL AS delivered,
	COALESCE((SELECT m.ts FROM messages m WHERE m.approval_id = a.id AND m.page = 0), '') AS message_ts`

func (r approvalRow) approval() Approval {
	a := Approval{
		ID: r.ID, ThreadID: r.ThreadID,
		Thread:  ThreadKey{TeamID: r.TeamID, ChannelID: r.ChannelID, ThreadTS: r.ThreadTS},
		Project: r.Project, Workspace: r.Workspace, SessionID: r.SessionID, TurnID: r.TurnID,
		Kind: r.Kind, RequestID: r.RequestID, ToolUseID: r.ToolUseID, ToolName: r.ToolName,
		Input: json.RawMessage(r.Input), InputSHA256: [sha256.Size]byte(r.InputSHA256),
		RequestedBy: r.RequestedBy, Rule: r.Rule, DecisionReason: r.DecisionReason,
		Status: r.Status, DecidedBy: r.DecidedBy, DecidedVia: r.DecidedVia, Reason: r.Reason,
		CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, Delivered: r.Delivered, MessageTS: r.MessageTS,
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
	a, err := collectApproval(s.pool.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id WHERE a.id = $1`, id))
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

// Ask records a request to use a tool. If the process that this turn continues
// asked for the same tool with the same input and was never answered, the new
// request is bound to that approval, card and decision included (see
// [Store.ContinueTurn]); the approval that is returned may then have ended already. From a, Ask reads ID, SessionID,
// TurnID, Kind, RequestID, ToolUseID, ToolName, Input, RequestedBy, Rule,
// DecisionReason, ExpiresAt, and for a decision by rule Status, DecidedBy,
// DecidedVia and Reason.
func (s *Store) Ask(ctx context.Context, l Lease, a Approval) (Approval, error) {
	sum := sha256.Sum256(a.Input)
	if a.Status == "" {
		a.Status = ApprovalPending
	}
	var out Approval
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if err := hold(ctx, tx, l); err != nil {
			return err
		}
		if a.Status == ApprovalPending {
			bound, err := collectApproval(tx.Query(ctx, `
				WITH a AS (
					UPDATE approvals SET request_id = $4, tool_use_id = $5, session_id = $6
					WHERE id = (
						SELECT id FROM approvals
						WHERE turn_id = $7 AND request_id = '' AND tool_name = $2 AND input_sha256 = $3
						  AND thread_id = $1 AND delivered_at IS NULL AND status IN ('pending', 'allowed', 'denied')
						ORDER BY created_at LIMIT 1)
					RETURNING *)
				SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`,
				l.ThreadID, a.ToolName, sum[:], a.RequestID, a.ToolUseID, a.SessionID, a.TurnID))
			if !errors.Is(err, ErrNotFound) {
				out = bound
				return err
			}
		}
		var err error
		out, err = collectApproval(tx.Query(ctx, `
			WITH a AS (
				INSERT INTO approvals (id, thread_id, session_id, turn_id, kind, request_id, tool_use_id, tool_name,
					input, input_sha256, requested_by, rule, decision_reason, expires_at,
					status, decided_by, decided_via, reason, decided_at, delivered_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
					CASE WHEN $15 = 'pending' THEN NULL ELSE now() END,
					CASE WHEN $15 = 'pending' THEN NULL ELSE now() END)
				RETURNING *)
			SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`,
			a.ID, l.ThreadID, a.SessionID, a.TurnID, a.Kind, a.RequestID, a.ToolUseID, a.ToolName,
			string(a.Input), sum[:], a.RequestedBy, a.Rule, a.DecisionReason, a.ExpiresAt,
			a.Status, a.DecidedBy, a.DecidedVia, a.Reason))
		return err
	})
	if err != nil {
		return Approval{}, fmt.Errorf("record the request for %s: %w", a.ToolName, err)
	}
	return out, nil
}

// Decision is a person's answer to an approval.
type Decision struct {
	ApprovalID string
	Status     ApprovalStatus // allowed or denied
	By         string         // Slack user id; authorised by the caller
	Via        string         // button, modal or command
	Reason     string
	// Answer is the input to run instead, for a question; nil for anything else.
	Answer json.RawMessage
	// DeliverOn, when it is not empty, names the replica that will answer the CLI
	// right after the commit: if it holds the thread's lease, the decision counts
	// as delivered (see Deliver).
	DeliverOn string
}

// Decide ends a pending approval. The first decision wins: a later one gets the
// approval as it stands and [ErrEnded]. Unless it is delivered with the commit,
// the replica that runs the thread is notified.
func (s *Store) Decide(ctx context.Context, d Decision) (Approval, error) {
	var out Approval
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		var err error
		out, err = collectApproval(tx.Query(ctx, `
			WITH a AS (
				UPDATE approvals
				SET status = $2, decided_by = $3, decided_via = $4, reason = $5, answer = $6, decided_at = now(),
					delivered_at = CASE WHEN EXISTS (
						SELECT FROM threads h WHERE h.id = thread_id AND h.lease_owner = $7 AND h.lease_until > now()
					) THEN now() END
				WHERE id = $1 AND status = 'pending' AND expires_at > now()
				RETURNING *)
			SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`,
			d.ApprovalID, d.Status, d.By, d.Via, d.Reason, string(d.Answer), d.DeliverOn))
		if err != nil || out.Delivered {
			return err
		}
		return notify(ctx, tx, Notice{Kind: NoticeApproval, ThreadID: out.ThreadID, ID: out.ID})
	})
	if errors.Is(err, ErrNotFound) {
		out, err = s.ApprovalByID(ctx, d.ApprovalID)
		if err != nil {
			return Approval{}, err
		}
		return out, ErrEnded
	}
	if err != nil {
		return Approval{}, fmt.Errorf("decide approval: %w", err)
	}
	return out, nil
}

// Deliver claims the right to answer the CLI for a decided approval: it succeeds
// once. Call it before writing the answer: a crash in between then leads to a new
// question, never to a second run.
func (s *Store) Deliver(ctx context.Context, l Lease, id string) (Approval, error) {
	a, err := collectApproval(s.pool.Query(ctx, `
		WITH a AS (
			UPDATE approvals SET delivered_at = now()
			WHERE id = $4 AND thread_id = $1 AND status IN ('allowed', 'denied') AND delivered_at IS NULL
			  AND EXISTS (SELECT FROM threads WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3)
			RETURNING *)
		SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`,
		l.ThreadID, l.Owner, l.Epoch, id))
	if err != nil {
		return Approval{}, fmt.Errorf("deliver approval: %w", err)
	}
	return a, nil
}

// EndApproval ends one pending approval without a decision: expired, cancelled
// or interrupted. ok is false when it had ended already.
func (s *Store) EndApproval(ctx context.Context, l Lease, id string, status ApprovalStatus) (a Approval, ok bool, err error) {
	a, err = collectApproval(s.pool.Query(ctx, `
		WITH a AS (
			UPDATE approvals SET status = $5, decided_at = now()
			WHERE id = $4 AND thread_id = $1 AND status = 'pending'
			  AND EXISTS (SELECT FROM threads WHERE id = $1 AND lease_owner = $2 AND lease_epoch = $3)
			RETURNING *)
		SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`,
		l.ThreadID, l.Owner, l.Epoch, id, status))
	if errors.Is(err, ErrNotFound) {
		return Approval{}, false, nil
	}
	if err != nil {
		return Approval{}, false, fmt.Errorf("end approval as %s: %w", status, err)
	}
	return a, true, nil
}

// endApprovals ends what is still pending of a turn: as status, and those that a
// continued turn did not ask for again as interrupted.
func endApprovals(ctx context.Context, tx pgx.Tx, turnID int64, status ApprovalStatus) ([]Approval, error) {
	if status == "" {
		status = ApprovalCancelled
	}
	return collectApprovals(tx.Query(ctx, `
		WITH a AS (
			UPDATE approvals
			SET status = CASE WHEN request_id = '' THEN 'interrupted' ELSE $2 END, decided_at = now()
			WHERE turn_id = $1 AND status = 'pending'
			RETURNING *)
		SELECT `+approvalColumns+` FROM a JOIN threads t ON t.id = a.thread_id`, turnID, status))
}
