package turns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// StoppedTurn returns the thread's last turn if a budget stopped it, or 0.
func (s *Store) StoppedTurn(ctx context.Context, threadID int64) (turnID int64, err error) {
	err = s.db.QueryRow(ctx, `
		SELECT COALESCE((SELECT CASE WHEN over_budget THEN id END FROM turns WHERE thread_id = $1 ORDER BY id DESC LIMIT 1), 0)`,
		threadID).Scan(&turnID)
	return turnID, pg.Wrap(err, "read the last turn of thread %d", threadID)
}

// Turn is a row of the turns.
type Turn struct {
	ID          int64
	ThreadID    int64
	SessionID   string
	Epoch       int
	RequestedBy string
	State       string
	Problem     string
	Attempt     int     // from 1; each process that continues it adds one
	Rests       int     // how many earlier attempts ended by parking, see [Store.ParkTurn]
	Parking     Parking // of this attempt
	StartedAt   time.Time
}

const turnColumns = `r.id, r.thread_id, r.session_id::text AS session_id, r.epoch, r.requested_by, r.state, r.problem, r.attempt,
	r.rests, r.started_at, ` + parkingOf + ` AS parking`

// BeginTurn opens a turn for the thread's oldest prompt without one, in the given session and epoch. ok is false
// when there is no such prompt.
func (s *Store) BeginTurn(ctx context.Context, l threads.Lease, sessionID string, epoch int) (t Turn, p inbox.Prompt, ok bool, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var team string
		var next, b pgx.Batch
		threads.QueueHold(&next, l, &team)
		next.Queue(`
			SELECT `+inbox.PromptColumns+` FROM inbox i
			WHERE thread_id = $1 AND state = 'accepted' AND rewind IS NULL ORDER BY `+inbox.NextFirst+` LIMIT 1 FOR UPDATE OF i`, l.ThreadID).Query(func(rows pgx.Rows) (err error) {
			p, err = pg.CollectOne[inbox.Prompt](rows, nil)
			return err
		})
		if err = tx.Send(ctx, &next); errors.Is(err, pg.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		ok = true
		t, err = insertTurn(ctx, tx, l, sessionID, epoch, p.UserID, nil)
		if err != nil {
			return err
		}
		if p.Waited {
			if _, err := outbox.Add(ctx, tx, l.ThreadID, outbox.NewRow{Kind: outbox.Wait, Inbox: p.InboxID}); err != nil {
				return err
			}
		}
		b.Queue(`UPDATE inbox SET state = 'running', turn_id = $2, marked = false WHERE id = $1`, p.InboxID, t.ID)
		return audit.AppendAfter(ctx, tx, &b, startedEntry(team, t, p.UUID))
	})
	if err != nil {
		return Turn{}, inbox.Prompt{}, false, fmt.Errorf("begin a turn of thread %d: %w", l.ThreadID, err)
	}
	return t, p, ok, nil
}

func startedEntry(team string, t Turn, promptUUID string) audit.Entry {
	return audit.Entry{
		Kind: audit.TurnStarted, TeamID: team, Actor: t.RequestedBy, ThreadID: t.ThreadID, TurnID: t.ID,
		Details: map[string]any{"session": t.SessionID, "epoch": t.Epoch, "attempt": t.Attempt, "prompt": promptUUID},
	}
}

// SumCalls adds to a batch, behind the statement that ends a turn, that the turn's booked calls are summed up. Its row
// is locked, so that every call is either in this sum or gets an audit entry when it is booked.
func SumCalls(b *pgx.Batch, threadID, turnID int64, microUSD *int64) {
	b.Queue(`
		SELECT COALESCE(ledger_sum(micro_usd), 0) FROM ledger
		WHERE thread_id = $1 AND turn_id = $2 AND (kind = 'call' OR corrects IS NOT NULL)`, threadID, turnID).QueryRow(func(row pgx.Row) error {
		return row.Scan(microUSD)
	})
}

// EndedEntry is the audit entry of a turn's end; microUSD is that of [SumCalls].
func EndedEntry(team string, threadID, turnID int64, state, problem string, microUSD int64) audit.Entry {
	return audit.Entry{
		Kind: audit.TurnEnded, TeamID: team, ThreadID: threadID, TurnID: turnID,
		Details: map[string]any{"state": state, "problem": problem, "micro_usd": microUSD},
	}
}

// insertTurn also marks the session as started: from here on a prompt may be in its transcript.
func insertTurn(ctx context.Context, tx pg.Tx, l threads.Lease, sessionID string, epoch int, requestedBy string, continues *Turn) (Turn, error) {
	var continuesID *int64
	attempt, rests := 1, 0
	if continues != nil {
		continuesID, attempt, rests = &continues.ID, continues.Attempt+1, continues.Rests
		if continues.Parking != "" {
			rests++
		}
	}
	return pg.CollectOne[Turn](tx.Query(ctx, `
		WITH started AS (UPDATE sessions SET started = true WHERE id = $2 AND NOT started)
		INSERT INTO turns AS r (thread_id, session_id, epoch, lease_epoch, requested_by, continues, attempt, rests)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		RETURNING `+turnColumns, l.ThreadID, sessionID, epoch, l.Epoch, requestedBy, continuesID, attempt, rests))
}

// RunningTurn returns the turn that an earlier process of the thread left running, with its prompt, or
// [pg.ErrNotFound].
func (s *Store) RunningTurn(ctx context.Context, threadID int64) (Turn, inbox.Prompt, error) {
	t, err := pg.CollectOne[Turn](s.db.Query(ctx, `
		SELECT `+turnColumns+` FROM turns r WHERE thread_id = $1 AND state = 'running'`, threadID))
	if err != nil {
		return Turn{}, inbox.Prompt{}, fmt.Errorf("read the running turn of thread %d: %w", threadID, err)
	}
	p, err := pg.CollectOne[inbox.Prompt](s.db.Query(ctx, `
		SELECT `+inbox.PromptColumns+` FROM inbox i WHERE turn_id = $1 ORDER BY ts, id LIMIT 1`, t.ID))
	if err != nil {
		return Turn{}, inbox.Prompt{}, fmt.Errorf("read the prompt of turn %d: %w", t.ID, err)
	}
	return t, p, nil
}

// ContinueTurn ends as interrupted a turn that a dead process left running, or that was parked, and opens the next
// attempt for its prompt. Unanswered approvals move along, to be bound when the new process asks the same again.
func (s *Store) ContinueTurn(ctx context.Context, l threads.Lease, old Turn, sessionID string, epoch int) (Turn, error) {
	why := "its process ended"
	if old.Parking != "" {
		why = "it was parked while people decided"
	}
	var t Turn
	err := s.db.InTx(ctx, func(tx pg.Tx) error {
		team, err := threads.Hold(ctx, tx, l)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE turns SET state = 'interrupted', problem = $2, ended_at = now()
			WHERE id = $1 AND state = 'running'`, old.ID, why); err != nil {
			return err
		}
		if t, err = insertTurn(ctx, tx, l, sessionID, epoch, old.RequestedBy, &old); err != nil {
			return err
		}
		var prompt string
		var spent int64
		var b pgx.Batch
		b.Queue(`
			UPDATE inbox SET turn_id = $2, marked = false WHERE turn_id = $1 AND state = 'running' RETURNING prompt_uuid::text`, old.ID, t.ID).QueryRow(func(row pgx.Row) error {
			return row.Scan(&prompt)
		})
		b.Queue(`
			UPDATE approvals SET turn_id = $2, request_id = ''
			WHERE turn_id = $1 AND delivered_at IS NULL AND status IN ('pending', 'allowed', 'denied')`, old.ID, t.ID)
		outbox.CloseCards(s.db, &b, old.ID, 0)
		SumCalls(&b, l.ThreadID, old.ID, &spent)
		if err := tx.Send(ctx, &b); err != nil {
			return err
		}
		return audit.Append(ctx, tx, EndedEntry(team, l.ThreadID, old.ID, "interrupted", why, spent), startedEntry(team, t, prompt))
	})
	if err != nil {
		return Turn{}, fmt.Errorf("continue turn %d: %w", old.ID, err)
	}
	return t, nil
}

// SaveDiff keeps what the commits of an ended turn would bring to the forge. Its thread may be held by nobody any
// more, so no lease is asked for.
func (s *Store) SaveDiff(ctx context.Context, turnID int64, p *forges.Push) error {
	_, err := s.db.Exec(ctx, `UPDATE turns SET diff = $2 WHERE id = $1`, turnID, p)
	return pg.Wrap(err, "save the diff of turn %d", turnID)
}

// Diff returns what SaveDiff kept, or [pg.ErrNotFound].
func (s *Store) Diff(ctx context.Context, turnID int64) (p *forges.Push, err error) {
	err = s.db.QueryRow(ctx, `SELECT diff FROM turns WHERE id = $1 AND diff IS NOT NULL`, turnID).Scan(&p)
	return p, pg.Wrap(pg.NotFound(err), "read the diff of turn %d", turnID)
}
