package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Step is a use of a tool in a turn: what was asked for, how that was decided, and what the
// audit tells of its result.
type Step struct {
	SessionID string
	ToolUseID string
	ToolName  string
	Input     json.RawMessage // that ran, or would have: as people have changed it, if they did
	Status    ApprovalStatus
	Reason    string    // the decider's
	DecidedAt time.Time // zero while pending
	// ResultAt is when its result was heard of, zero if it was not. Then Failed says how it
	// ended, and SHA256, in hex, what it was.
	ResultAt time.Time
	Failed   bool
	SHA256   string
}

// Steps are some of a turn's uses of tools, in the order in which they were asked for.
type Steps struct {
	Running bool // the turn goes on
	Total   int  // uses of tools in the turn
	First   int  // of them that come before the list
	List    []Step
}

// TurnSteps lists the turn's uses of tools from the n-th on, which counts from 0, but for
// those of tools that are left out; of less than 0 the last page of so many. It lists none
// beyond the end.
func (s *Store) TurnSteps(ctx context.Context, turnID int64, n, limit int, without []string) (Steps, error) {
	out := Steps{First: n}
	err := s.pool.QueryRow(ctx, `
		SELECT r.state = 'running', (SELECT count(*) FROM approvals a WHERE a.turn_id = r.id AND a.tool_name <> ALL ($2))
		FROM turns r WHERE r.id = $1`, turnID, without).Scan(&out.Running, &out.Total)
	if err != nil {
		return Steps{}, fmt.Errorf("count the steps of turn %d: %w", turnID, notFound(err))
	}
	if n < 0 {
		out.First = max(0, out.Total-1) / limit * limit
	}
	out.List, err = collect[Step](s.pool.Query(ctx, `
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
	if err != nil {
		return Steps{}, fmt.Errorf("list the steps of turn %d: %w", turnID, err)
	}
	return out, nil
}
