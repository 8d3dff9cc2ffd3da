package inbox

import (
	"context"
	"encoding/json"
	"errors"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// NextPrompt returns the prompt of the thread's next turn, or a rewind, one that has begun first; or [pg.ErrNotFound].
func (s *Store) NextPrompt(ctx context.Context, threadID int64) (Prompt, error) {
	p, err := pg.CollectOne[Prompt](s.db.Query(ctx, `
		SELECT `+PromptColumns+` FROM inbox i WHERE thread_id = $1 AND (state = 'accepted' OR state = 'running' AND rewind IS NOT NULL)
		ORDER BY state = 'running' DESC, `+NextFirst+` LIMIT 1`, threadID))
	if errors.Is(err, pg.ErrNotFound) {
		return Prompt{}, err
	}
	return p, pg.Wrap(err, "look for prompts of thread %d", threadID)
}

// Queue is a thread's queue of prompts.
type Queue struct {
	threads.ThreadKey
	Running bool           // a turn runs
	Prompts []QueuedPrompt `db:"-"` // those without a turn, the next one first
}

// QueuedPrompt is a prompt without a turn, with what Slack sent.
type QueuedPrompt struct {
	Prompt
	Kind    Kind
	Payload json.RawMessage
}

// queueMost bounds the prompts read from one thread's queue.
const queueMost = 100

// Queue returns what waits in a thread, or [pg.ErrNotFound].
func (s *Store) Queue(ctx context.Context, threadID int64) (Queue, error) {
	q, err := pg.CollectOne[Queue](s.db.Query(ctx, `
		SELECT t.team_id, t.channel_id, t.thread_ts,
			EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running') AS running
		FROM threads t WHERE t.id = $1`, threadID))
	if err == nil {
		q.Prompts, err = pg.Collect[QueuedPrompt](s.db.Query(ctx, `
			SELECT `+PromptColumns+`, i.kind, i.payload FROM inbox i WHERE i.thread_id = $1 AND i.state = 'accepted'
			ORDER BY `+NextFirst+` LIMIT $2`, threadID, queueMost))
	}
	return q, pg.Wrap(err, "read the queue of thread %d", threadID)
}

// LastPrompt is what was last given to the thread's session as work, and is no command of
// Claude Code's; [pg.ErrNotFound] if nothing was. Running says that it has not come to its end.
func (s *Store) LastPrompt(ctx context.Context, threadID int64) (LastPrompt, error) {
	p, err := pg.CollectOne[LastPrompt](s.db.Query(ctx, `
		SELECT i.prompt AS text, NULLIF(i.files, '[]') AS files, i.state <> 'done' AS running FROM inbox i
		WHERE i.thread_id = $1 AND i.prompt_uuid IS NOT NULL AND i.prompt NOT LIKE '/%'
		ORDER BY i.ts DESC, i.id DESC LIMIT 1`, threadID))
	return p, pg.Wrap(err, "read the last prompt of thread %d", threadID)
}

// LastPrompt is a prompt that may be given again.
type LastPrompt struct {
	Text    string
	Files   []PromptFile
	Running bool
}
