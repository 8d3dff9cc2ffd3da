package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
)

// ToolCall is a tool call with its causes and outcome.
type ToolCall struct {
	AskedAt     time.Time `json:"asked_at"`
	TeamID      string    `json:"team_id"`
	ChannelID   string    `json:"channel_id"`
	ThreadTS    string    `json:"thread_ts"`
	Project     string    `json:"project"`
	SessionID   string    `json:"session_id"`
	TurnID      int64     `json:"turn_id"`
	RequestedBy string    `json:"requested_by"`
	Prompt      string    `json:"prompt"`

	ApprovalID  string `json:"approval_id"`
	ToolUseID   string `json:"tool_use_id"`
	ToolName    string `json:"tool"`
	Input       string `json:"input"`
	InputSHA256 string `json:"input_sha256"`
	Rule        string `json:"rule"`
	// What ran instead, if an approver changed the input.
	EditedInput  string `json:"edited_input"`
	EditedSHA256 string `json:"edited_sha256"`
	EditedBy     string `json:"edited_by"`

	Status      string          `json:"status"`
	DecidedBy   string          `json:"decided_by"`
	DecidedVia  string          `json:"decided_via"`
	DecidedAt   *time.Time      `json:"decided_at"`
	WaitSeconds float64         `json:"wait_seconds"`
	Votes       json.RawMessage `json:"votes"`
	Reason      string          `json:"reason"`
	GrantID     int64           `json:"grant_id"`
	GrantRule   string          `json:"grant_rule"`

	// The result is empty for a call that did not run, or whose process died.
	ResultAt     *time.Time `json:"result_at"`
	ResultError  *bool      `json:"result_error"`
	ResultBytes  *int64     `json:"result_bytes"`
	ResultSHA256 string     `json:"result_sha256"`
	Commit       string     `json:"commit"` // of the workspace after the result, if it is a new one

	// The pull request that the call opened, pushed to or merged. PullHead is its commit, by
	// which the call is found that made it.
	PullURL     string `json:"pull_url"`
	PullNumber  int64  `json:"pull_number"`
	PullAct     string `json:"pull_act"`
	PullHead    string `json:"pull_head"`
	MergeCommit string `json:"merge_commit"`

	TurnState        string `json:"turn_state"`
	TurnCostMicroUSD int64  `json:"turn_cost_micro_usd"` // of the whole turn
}

// Filter chooses what is exported. Zero values choose everything.
type Filter struct {
	Since, Until time.Time // [Since, Until)
	Project      string
}

// ExportCalls passes tool calls to each, in the order of asking.
func (s *Store) ExportCalls(ctx context.Context, f Filter, each func(ToolCall) error) error {
	rows, err := s.db.Query(ctx, `
		SELECT a.created_at AS asked_at, t.team_id, t.channel_id, t.thread_ts, t.project, a.session_id::text AS session_id, a.turn_id, a.requested_by,
			COALESCE((SELECT i.prompt FROM inbox i WHERE i.prompt_uuid = (
				SELECT (s.details::json ->> 'prompt')::uuid FROM audit s WHERE s.turn_id = a.turn_id AND s.kind = 'turn_started' ORDER BY s.seq LIMIT 1)), '') AS prompt,
			a.id AS approval_id, a.tool_use_id, a.tool_name, a.input, encode(a.input_sha256, 'hex') AS input_sha256, a.rule,
			a.edited_input, COALESCE(encode(a.edited_sha256, 'hex'), '') AS edited_sha256, a.edited_by,
			a.status, a.decided_by, a.decided_via, a.decided_at,
			COALESCE(extract(epoch FROM a.decided_at - a.created_at), 0)::float8 AS wait_seconds,
			COALESCE((SELECT json_agg(v ORDER BY v.at) FROM votes v WHERE v.approval_id = a.id), '[]') AS votes,
			a.reason, COALESCE(a.grant_id, 0) AS grant_id, COALESCE(g.pattern, '') AS grant_rule,
			o.at AS result_at, (o.details::json ->> 'error')::boolean AS result_error, (o.details::json ->> 'bytes')::bigint AS result_bytes,
			COALESCE(o.details::json ->> 'sha256', '') AS result_sha256, COALESCE(o.details::json ->> 'commit', '') AS commit,
			COALESCE(p.details ->> 'url', '') AS pull_url, COALESCE((p.details ->> 'number')::bigint, 0) AS pull_number, COALESCE(p.details ->> 'act', '') AS pull_act,
			COALESCE(p.details ->> 'head', '') AS pull_head, COALESCE(p.details ->> 'commit', '') AS merge_commit,
			r.state AS turn_state, r.cost_micro_usd AS turn_cost_micro_usd
		FROM approvals a
		JOIN threads t ON t.id = a.thread_id
		JOIN turns r ON r.id = a.turn_id
		LEFT JOIN grants g ON g.id = a.grant_id
		LEFT JOIN LATERAL (
			SELECT o.at, o.details FROM audit o
			WHERE o.kind = 'tool_result' AND o.details::json ->> 'tool_use' = a.tool_use_id AND o.thread_id = a.thread_id
			ORDER BY o.seq LIMIT 1) o ON true
		LEFT JOIN LATERAL (
			SELECT p.details::json AS details FROM audit p
			WHERE p.kind = 'pull' AND p.thread_id = a.thread_id AND p.approval_id = a.id
			ORDER BY p.seq LIMIT 1) p ON true
		WHERE ($1::timestamptz IS NULL OR a.created_at >= $1) AND ($2::timestamptz IS NULL OR a.created_at < $2) AND ($3 = '' OR t.project = $3)
		ORDER BY a.created_at, a.id`, pg.Instant(f.Since), pg.Instant(f.Until), f.Project)
	return stream(rows, err, "export tool calls", each)
}

// ExportAudit passes the audit's rows to each; anybody can recompute the chain from them.
func (s *Store) ExportAudit(ctx context.Context, f Filter, each func(Row) error) error {
	rows, err := s.db.Query(ctx, `
		SELECT seq, at, kind, team_id, actor, thread_id, turn_id, approval_id, details, prev_hash, hash
		FROM audit x
		WHERE ($1::timestamptz IS NULL OR at >= $1) AND ($2::timestamptz IS NULL OR at < $2)
		  AND ($3 = '' OR EXISTS (SELECT FROM threads t WHERE t.id = x.thread_id AND t.project = $3))
		ORDER BY seq`, pg.Instant(f.Since), pg.Instant(f.Until), f.Project)
	return stream(rows, err, "export the audit", each)
}

// RecordedCall is a tool call as the policy saw it, and its verdict.
type RecordedCall struct {
	At        time.Time
	ToolName  string
	Input     json.RawMessage
	Workspace string
	Project   string
	ChannelID string
	Verdict   string // allow, deny or ask
	Rule      string
}

// RecordedCalls passes the tool calls since a time to each, oldest first.
func (s *Store) RecordedCalls(ctx context.Context, since time.Time, each func(RecordedCall) error) error {
	rows, err := s.db.Query(ctx, `
		SELECT a.created_at AS at, a.tool_name, a.input::json AS input, t.workspace, t.project, t.channel_id,
			CASE WHEN a.decided_via <> 'rule' THEN 'ask' WHEN a.status = 'allowed' THEN 'allow' ELSE 'deny' END AS verdict, a.rule
		FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE a.created_at >= $1 ORDER BY a.created_at, a.id`, since)
	return stream(rows, err, "read recorded tool calls", each)
}

func stream[T any](rows pgx.Rows, err error, what string, each func(T) error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer rows.Close()
	for rows.Next() {
		v, err := pgx.RowToStructByName[T](rows)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return pg.Wrap(rows.Err(), "%s", what)
}
