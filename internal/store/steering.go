package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Steering is how people want a thread's work done. What is empty is as its project has it.
type Steering struct {
	Model, Effort, Mode string
}

// Steering reads how people want the thread's next turn done.
func (s *Store) Steering(ctx context.Context, threadID int64) (Steering, error) {
	out, err := collectOne[Steering](s.pool.Query(ctx, `SELECT model, effort, mode FROM threads WHERE id = $1`, threadID))
	return out, wrap(err, "read how people want thread %d", threadID)
}

// The kinds of steering.
const (
	SteerModel  = "model"
	SteerEffort = "effort"
	SteerMode   = "mode"
)

// Steer is one choice of a person's, which holds from the thread's next turn on.
type Steer struct {
	What, Value string // a kind and its value; empty for as the project has it
	By          string // Slack user
	Sentence    string // tells the thread
}

// Steer notes a choice and has the thread told. The last one that is committed holds.
func (s *Store) Steer(ctx context.Context, threadID int64, c Steer) (rows []OutboxRow, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		rows, err = s.steer(ctx, tx, threadID, c, false)
		return err
	})
	return rows, wrap(err, "steer thread %d", threadID)
}

// steer is [Store.Steer]; free says that nobody is about to send the rows.
func (s *Store) steer(ctx context.Context, tx pgx.Tx, threadID int64, c Steer, free bool) ([]OutboxRow, error) {
	if c.What != SteerModel && c.What != SteerEffort && c.What != SteerMode {
		return nil, fmt.Errorf("steer a thread's %q", c.What)
	}
	var team, before string
	// The name is one of three of ours.
	if err := tx.QueryRow(ctx, `
		WITH was AS (SELECT `+c.What+` AS before FROM threads WHERE id = $1 FOR NO KEY UPDATE)
		UPDATE threads t SET `+c.What+` = $2 FROM was WHERE t.id = $1 RETURNING t.team_id, was.before`, threadID, c.Value).Scan(&team, &before); err != nil {
		return nil, err
	}
	rows, err := s.addOutboxRows(ctx, tx, threadID, newOutboxRow{kind: OutboxSaid, body: c.Sentence, free: free})
	if err != nil {
		return nil, err
	}
	return rows, audit(ctx, tx, AuditEntry{
		Kind: AuditSteered, TeamID: team, Actor: c.By, ThreadID: threadID, Details: map[string]any{"what": c.What, "value": c.Value, "before": before},
	})
}

// planAccepted ends plan mode in a thread whose plan somebody has just accepted: it was
// wanted for that.
func planAccepted(ctx context.Context, tx pgx.Tx, a Approval) error {
	if a.Kind != ApprovalPlan || a.Status != ApprovalAllowed {
		return nil
	}
	_, err := tx.Exec(ctx, `UPDATE threads SET mode = '' WHERE id = $1 AND mode = 'plan'`, a.ThreadID)
	return err
}

// LastPrompt is what was last given to the thread's session as work, and is no command of
// Claude Code's; [ErrNotFound] if nothing was. Running says that it has not come to its end.
func (s *Store) LastPrompt(ctx context.Context, threadID int64) (LastPrompt, error) {
	p, err := collectOne[LastPrompt](s.pool.Query(ctx, `
		SELECT i.prompt AS text, NULLIF(i.files, '[]') AS files, i.state <> 'done' AS running FROM inbox i
		WHERE i.thread_id = $1 AND i.prompt_uuid IS NOT NULL AND i.prompt NOT LIKE '/%'
		ORDER BY i.ts DESC, i.id DESC LIMIT 1`, threadID))
	return p, wrap(err, "read the last prompt of thread %d", threadID)
}

// LastPrompt is a prompt that may be given again.
type LastPrompt struct {
	Text    string
	Files   []PromptFile
	Running bool
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
	out, err := collect[PastSession](s.pool.Query(ctx, `
		SELECT s.id::text AS id, s.created_at AS started_at, COALESCE(r.last_at, s.created_at) AS last_at, COALESCE(r.turns, 0)::int AS turns,
			COALESCE((SELECT ledger_sum(l.micro_usd) FROM ledger l WHERE l.thread_id = s.thread_id AND l.session_id = s.id), 0)::bigint AS cost_micro_usd,
			s.id = t.session_id AS now
		FROM sessions s JOIN threads t ON t.id = s.thread_id
			LEFT JOIN LATERAL (SELECT count(*) FILTER (WHERE continues IS NULL) AS turns, max(started_at) AS last_at FROM turns WHERE session_id = s.id) r ON true
		WHERE s.thread_id = $1 ORDER BY s.created_at DESC, s.id LIMIT $2`, threadID, limit))
	return out, wrap(err, "list the sessions of thread %d", threadID)
}
