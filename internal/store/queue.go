package store

import (
	"context"
	"encoding/json"
)

// Queue is a thread's queue of prompts.
type Queue struct {
	ThreadKey
	Project string
	Running bool           // a turn runs
	Prompts []QueuedPrompt `db:"-"` // those without a turn, the next one first
}

// QueuedPrompt is a prompt without a turn, with what Slack sent.
type QueuedPrompt struct {
	Prompt
	Kind    EnvelopeKind
	Payload json.RawMessage
}

// queueMost bounds the prompts read from one thread's queue.
const queueMost = 100

// Queue returns what waits in a thread, or [ErrNotFound].
func (s *Store) Queue(ctx context.Context, threadID int64) (Queue, error) {
	q, err := collectOne[Queue](s.pool.Query(ctx, `
		SELECT t.team_id, t.channel_id, t.thread_ts, t.project,
			EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running') AS running
		FROM threads t WHERE t.id = $1`, threadID))
	if err == nil {
		q.Prompts, err = collect[QueuedPrompt](s.pool.Query(ctx, `
			SELECT `+promptColumns+`, i.kind, i.payload FROM inbox i WHERE i.thread_id = $1 AND i.state = 'accepted'
			ORDER BY `+nextFirst+` LIMIT $2`, threadID, queueMost))
	}
	return q, wrap(err, "read the queue of thread %d", threadID)
}
