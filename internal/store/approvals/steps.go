package approvals

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"deckhand/internal/store/pg"
)

// Step is a tool use in a turn: its input, its decision, and its result in the audit.
type Step struct {
	SessionID string
	ToolUseID string
	ToolName  string
	Input     json.RawMessage // that ran, or would have, including people's changes
	Status    Status
	Reason    string    // the decider's
	DecidedAt time.Time // zero while pending
	// ResultAt is when its result came, or zero. Failed is its outcome, and SHA256, in hex, the result's checksum.
	ResultAt time.Time
	Failed   bool
	SHA256   string
}

// Steps are a page of a turn's tool uses, in the order of asking.
type Steps struct {
	Running bool // the turn goes on
	Total   int  // uses of tools in the turn
	First   int  // tool uses before the page
	List    []Step
}

// TurnSteps lists the turn's tool uses from the n-th on, counted from 0, without those of excluded tools; a
// negative n means the last page. Beyond the end the list is empty.
func (s *Store) TurnSteps(ctx context.Context, turnID int64, n, limit int, without []string) (Steps, error) {
	out := Steps{First: n}
	err := s.db.QueryRow(ctx, `
		SELECT r.state = 'running', (SELECT count(*) FROM approvals a WHERE a.turn_id = r.id AND a.tool_name <> ALL ($2))
		FROM turns r WHERE r.id = $1`, turnID, without).Scan(&out.Running, &out.Total)
	if err != nil {
		return Steps{}, fmt.Errorf("count the steps of turn %d: %w", turnID, pg.NotFound(err))
	}
	if n < 0 {
		out.First = max(0, out.Total-1) / limit * limit
	}
	out.List, err = pg.Collect[Step](s.db.Query(ctx, `
		SELECT a.session_id::text AS session_id, a.tool_use_id, a.tool_name,
			CASE WHEN a.edits > 0 THEN a.edited_input ELSE a.input END AS input, a.reason, a.status,
			COALESCE(a.decided_at, '0001-01-01T00:00:00Z') AS decided_at, COALESCE(o.at, '0001-01-01T00:00:00Z') AS result_at, COALESCE((o.details::json ->> 'error')::boolean, false) AS failed, COALESCE(o.details::json ->> 'sha256', '') AS sha256
		FROM approvals a
		LEFT JOIN LATERAL (
			SELECT o.at, o.details FROM audit o
			WHERE o.kind = 'tool_result' AND o.details::json ->> 'tool_use' = a.tool_use_id AND o.thread_id = a.thread_id
			ORDER BY o.seq LIMIT 1) o ON true
		WHERE a.turn_id = $1 AND a.tool_name <> ALL ($2)
		ORDER BY a.created_at, a.id OFFSET $3 LIMIT $4`, turnID, without, out.First, limit))
	return out, pg.Wrap(err, "list the steps of turn %d", turnID)
}
