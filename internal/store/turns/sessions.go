package turns

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// NewSession makes id the thread's session. parentID names the session that it
// follows or was forked from, or is empty. Of that one the steps can still be looked at.
func (s *Store) NewSession(ctx context.Context, l threads.Lease, id, parentID string) error {
	return s.newSession(ctx, l, id, parentID, false)
}

// StartAnew replaces a session that cannot be resumed by id. [Store.SessionHistory] returns what was said in the
// old one.
func (s *Store) StartAnew(ctx context.Context, l threads.Lease, id, lost string) error {
	return s.newSession(ctx, l, id, lost, true)
}

func (s *Store) newSession(ctx context.Context, l threads.Lease, id, parentID string, recalls bool) error {
	err := threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `
			INSERT INTO sessions (id, thread_id, parent_id, recalls) VALUES ($1, $2, NULLIF($3, '')::uuid, $4)`,
			id, l.ThreadID, parentID, recalls); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE threads SET session_id = $2 WHERE id = $1`, l.ThreadID, id)
		return err
	})
	return pg.Wrap(err, "record session %s", id)
}

// SessionStarted reports whether a prompt was ever written to the session, so that its next process must resume it.
func (s *Store) SessionStarted(ctx context.Context, id string) (bool, error) {
	var started bool
	err := s.db.QueryRow(ctx, `SELECT started FROM sessions WHERE id = $1`, id).Scan(&started)
	return started, pg.Wrap(err, "read session %s", id)
}

// SessionSpoke reports whether the session has content that a later process could miss: a turn that ended by
// itself.
func (s *Store) SessionSpoke(ctx context.Context, id string) (bool, error) {
	var spoke bool
	err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM turns WHERE session_id = $1 AND agent_turns > 0)`, id).Scan(&spoke)
	return spoke, pg.Wrap(err, "look what was said in session %s", id)
}

// MarkStarted records that the session has a transcript, begun by a /clear in a running process.
func (s *Store) MarkStarted(ctx context.Context, id string) error {
	_, err := s.db.Exec(ctx, `UPDATE sessions SET started = true WHERE id = $1`, id)
	return pg.Wrap(err, "mark session %s as started", id)
}

// BeginEpoch records a process of the session that starts from a running total of baseline micro-USD, and returns
// the epoch's number, from 1.
func (s *Store) BeginEpoch(ctx context.Context, l threads.Lease, sessionID, cliVersion string, baseline int64) (int, error) {
	var epoch int
	err := threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		return tx.QueryRow(ctx, `
			INSERT INTO epochs (session_id, epoch, cli_version, baseline_micro_usd)
			SELECT $1, COALESCE(max(epoch), 0) + 1, $2, $3 FROM epochs WHERE session_id = $1
			RETURNING epoch`, sessionID, cliVersion, baseline).Scan(&epoch)
	})
	if err != nil {
		return 0, fmt.Errorf("begin an epoch of session %s: %w", sessionID, err)
	}
	return epoch, nil
}

// AttemptUUID is the id under which the CLI is given a prompt. Every attempt at it has
// an id of its own, since the CLI takes no message twice; it follows from the turn's
// row, so that whoever goes on with the turn finds the attempt in the transcript.
func AttemptUUID(promptUUID string, attempt int) string {
	id, err := uuid.Parse(promptUUID)
	if attempt <= 1 || err != nil {
		return promptUUID
	}
	return uuid.NewSHA1(id, []byte("attempt "+strconv.Itoa(attempt))).String()
}

// PromptsAfter are the ids under which the CLI was given the session's prompts after a turn. spoke reports whether it has
// answered one of them that is no command of its own.
func (s *Store) PromptsAfter(ctx context.Context, sessionID string, turn int64) (ids map[string]bool, spoke bool, err error) {
	type given struct {
		UUID    string
		Attempt int
		Spoke   bool
	}
	list, err := pg.Collect[given](s.db.Query(ctx, `
		SELECT i.prompt_uuid::text AS uuid, r.attempt, r.agent_turns > 0 AND i.prompt NOT LIKE '/%' AS spoke
		FROM turns r JOIN inbox i ON i.turn_id = r.id WHERE r.session_id = $1 AND r.id > $2`, sessionID, turn))
	ids = map[string]bool{}
	for _, p := range list {
		spoke = spoke || p.Spoke
		for n := 1; n <= p.Attempt; n++ {
			ids[AttemptUUID(p.UUID, n)] = true
		}
	}
	return ids, spoke, pg.Wrap(err, "read the prompts of session %s", sessionID)
}

// Exchange is a prompt of a thread and its answer.
type Exchange struct {
	UserID    string
	Prompt    string // its first 4,000 characters
	Answer    string // the last text; empty if unknown
	State     string // how its turn ended: done, interrupted or failed
	StartedAt time.Time
}

// SessionHistory returns the last turns of the unresumable sessions that this one replaced (see [Store.StartAnew]),
// at most so many, oldest first. Other sessions have none.
func (s *Store) SessionHistory(ctx context.Context, sessionID string, limit int) ([]Exchange, error) {
	out, err := pg.Collect[Exchange](s.db.Query(ctx, `
		WITH RECURSIVE lost AS (
			SELECT p.id, p.parent_id, p.recalls FROM sessions s JOIN sessions p ON p.id = s.parent_id WHERE s.id = $1 AND s.recalls
			UNION ALL
			SELECT p.id, p.parent_id, p.recalls FROM lost l JOIN sessions p ON p.id = l.parent_id WHERE l.recalls),
		last AS (
			SELECT r.id, i.user_id, left(i.prompt, 4000) AS prompt, r.answer, r.state, r.started_at
			FROM lost JOIN turns r ON r.session_id = lost.id JOIN inbox i ON i.turn_id = r.id
			WHERE r.state <> 'running'
			ORDER BY r.id DESC LIMIT $2)
		SELECT user_id, prompt, answer, state, started_at FROM last ORDER BY id`, sessionID, limit))
	return out, pg.Wrap(err, "look for what was said before session %s", sessionID)
}

// PastSession is a session that a thread had, or has.
type PastSession struct {
	ID           string
	StartedAt    time.Time
	LastAt       time.Time // of its last turn; else when it was started
	Turns        int
	CostMicroUSD int64
	Now          bool // it is the thread's present one
}

// ThreadSessions lists the thread's sessions, the newest first, at most so many.
func (s *Store) ThreadSessions(ctx context.Context, threadID int64, limit int) ([]PastSession, error) {
	out, err := pg.Collect[PastSession](s.db.Query(ctx, `
		SELECT s.id::text AS id, s.created_at AS started_at, COALESCE(r.last_at, s.created_at) AS last_at, COALESCE(r.turns, 0)::int AS turns,
			COALESCE((SELECT ledger_sum(l.micro_usd) FROM ledger l WHERE l.thread_id = s.thread_id AND l.session_id = s.id), 0)::bigint AS cost_micro_usd,
			s.id = t.session_id AS now
		FROM sessions s JOIN threads t ON t.id = s.thread_id
			LEFT JOIN LATERAL (SELECT count(*) FILTER (WHERE continues IS NULL) AS turns, max(started_at) AS last_at FROM turns WHERE session_id = s.id) r ON true
		WHERE s.thread_id = $1 ORDER BY s.created_at DESC, s.id LIMIT $2`, threadID, limit))
	return out, pg.Wrap(err, "list the sessions of thread %d", threadID)
}
