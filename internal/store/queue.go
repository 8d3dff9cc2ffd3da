package store

import (
	"context"
	"encoding/json"
	"fmt"
)

// Queue is what waits in a thread.
type Queue struct {
	Thread    ThreadKey
	Project   string
	MessageTS string         // of the message that says so; empty while there is none
	Running   bool           // a turn runs
	Prompts   []QueuedPrompt // those without a turn, the next one first
}

// QueuedPrompt is a prompt that has no turn yet, with what Slack sent.
type QueuedPrompt struct {
	Prompt
	Kind    EnvelopeKind
	Payload json.RawMessage
}

type queuedRow struct {
	promptRow
	Kind    EnvelopeKind
	Payload json.RawMessage
}

// queueMost bounds the prompts that are read of one thread's queue.
const queueMost = 100

// Queue returns what waits in a thread, or [ErrNotFound].
func (s *Store) Queue(ctx context.Context, threadID int64) (Queue, error) {
	type row struct {
		TeamID, ChannelID, ThreadTS, Project, QueueTS string
		Running                                       bool
	}
	t, err := collectOne[row](s.pool.Query(ctx, `
		SELECT t.team_id, t.channel_id, t.thread_ts, t.project, t.queue_ts,
			EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running') AS running
		FROM threads t WHERE t.id = $1`, threadID))
	if err != nil {
		return Queue{}, fmt.Errorf("read the queue of thread %d: %w", threadID, err)
	}
	rows, err := collect[queuedRow](s.pool.Query(ctx, `
		SELECT `+promptColumns+`, i.kind, i.payload FROM inbox i WHERE i.thread_id = $1 AND i.state = 'accepted'
		ORDER BY `+nextFirst+` LIMIT $2`, threadID, queueMost))
	if err != nil {
		return Queue{}, fmt.Errorf("read the queue of thread %d: %w", threadID, err)
	}
	q := Queue{
		Thread: ThreadKey{TeamID: t.TeamID, ChannelID: t.ChannelID, ThreadTS: t.ThreadTS}, Project: t.Project, MessageTS: t.QueueTS, Running: t.Running,
		Prompts: make([]QueuedPrompt, len(rows)),
	}
	for i, r := range rows {
		q.Prompts[i] = QueuedPrompt{Prompt: r.prompt(), Kind: r.Kind, Payload: r.Payload}
	}
	return q, nil
}

// SaveQueueMessage records the message that says what waits in a thread; an empty ts
// says that there is none any more.
func (s *Store) SaveQueueMessage(ctx context.Context, threadID int64, ts string) error {
	if _, err := s.pool.Exec(ctx, `UPDATE threads SET queue_ts = $2 WHERE id = $1`, threadID, ts); err != nil {
		return fmt.Errorf("record the queue's message of thread %d: %w", threadID, err)
	}
	return nil
}
