package approvals

import (
	"time"
)

// Before is the outcome of the last earlier request in the turn for the same tool with the same input that was
// allowed in a process that died.
type Before struct {
	Approved time.Time  `json:"approved"`
	Ended    *time.Time `json:"ended"`   // when its result came; nil: it may not have run to its end
	Failed   bool       `json:"failed"`  // the result was an error
	Changed  bool       `json:"changed"` // another input ran than the one that is asked about now
}

// beforeColumn is Before of approval a in JSON, or NULL. For a turn that continues no other it costs one read of
// the turn. What ran in an attempt that was parked ended there.
const beforeColumn = `CASE WHEN (SELECT r.continues FROM turns r WHERE r.id = a.turn_id) IS NOT NULL THEN (
		WITH RECURSIVE past AS (
			SELECT r.continues AS id FROM turns r WHERE r.id = a.turn_id
			UNION ALL
			SELECT r.continues FROM past p JOIN turns r ON r.id = p.id WHERE r.continues IS NOT NULL)
		SELECT json_build_object('approved', e.decided_at, 'ended', o.at, 'failed', COALESCE(o.failed, false),
			'changed', COALESCE(e.edited_sha256, e.input_sha256) <> a.input_sha256)
		FROM past p JOIN approvals e ON e.turn_id = p.id
		LEFT JOIN LATERAL (
			SELECT o.at, (o.details::json ->> 'error')::boolean AS failed FROM audit o
			WHERE o.kind = 'tool_result' AND o.details::json ->> 'tool_use' = e.tool_use_id AND o.turn_id = e.turn_id
			ORDER BY o.seq DESC LIMIT 1) o ON true
		WHERE e.tool_name = a.tool_name AND a.input_sha256 IN (e.input_sha256, e.edited_sha256)
		  AND e.status = 'allowed' AND e.delivered_at IS NOT NULL AND e.thread_id = a.thread_id
		  AND NOT EXISTS (SELECT FROM turn_rests s WHERE s.turn_id = e.turn_id)
		ORDER BY e.turn_id DESC, e.decided_at DESC LIMIT 1) END AS before`

// mayBeBefore is not NULL where beforeColumn may not be, and is cheap to plan.
const mayBeBefore = `(SELECT '{}'::json FROM turns r WHERE r.id = a.turn_id AND r.continues IS NOT NULL) AS before`
