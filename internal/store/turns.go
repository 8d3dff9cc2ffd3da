package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

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
func (s *Store) BeginTurn(ctx context.Context, l Lease, sessionID string, epoch int) (t Turn, p Prompt, ok bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		team, err := hold(ctx, tx, l)
		if err != nil {
			return err
		}
		p, err = collectOne[Prompt](tx.Query(ctx, `
			SELECT `+promptColumns+` FROM inbox i
			WHERE thread_id = $1 AND state = 'accepted' ORDER BY `+nextFirst+` LIMIT 1 FOR UPDATE OF i`, l.ThreadID))
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		ok = true
		t, err = insertTurn(ctx, tx, l, sessionID, epoch, p.UserID, nil)
		if err != nil {
			return err
		}
		if p.Waited {
			if _, err := s.addOutboxRows(ctx, tx, l.ThreadID, newOutboxRow{kind: OutboxWait, inbox: p.InboxID}); err != nil {
				return err
			}
		}
		var b pgx.Batch
		b.Queue(`UPDATE inbox SET state = 'running', turn_id = $2, marked = false WHERE id = $1`, p.InboxID, t.ID)
		return auditAfter(ctx, tx, &b, startedEntry(team, t, p.UUID))
	})
	if err != nil {
		return Turn{}, Prompt{}, false, fmt.Errorf("begin a turn of thread %d: %w", l.ThreadID, err)
	}
	return t, p, ok, nil
}

func startedEntry(team string, t Turn, promptUUID string) AuditEntry {
	return AuditEntry{
		Kind: AuditTurnStarted, TeamID: team, Actor: t.RequestedBy, ThreadID: t.ThreadID, TurnID: t.ID,
		Details: map[string]any{"session": t.SessionID, "epoch": t.Epoch, "attempt": t.Attempt, "prompt": promptUUID},
	}
}

// turnEndedEntry is the audit entry of a turn's end and its cost by then: the booked calls. The turn's row is
// locked, so that every call is either in this sum or gets an entry when it is booked.
func turnEndedEntry(ctx context.Context, tx pgx.Tx, team string, l Lease, turnID int64, state, problem string) (AuditEntry, error) {
	var calls int64
	if err := tx.QueryRow(ctx, `
		SELECT COALESCE(ledger_sum(micro_usd), 0) FROM ledger
		WHERE thread_id = $1 AND turn_id = $2 AND (kind = 'call' OR corrects IS NOT NULL)`, l.ThreadID, turnID).Scan(&calls); err != nil {
		return AuditEntry{}, fmt.Errorf("sum the calls of turn %d: %w", turnID, err)
	}
	return AuditEntry{
		Kind: AuditTurnEnded, TeamID: team, ThreadID: l.ThreadID, TurnID: turnID,
		Details: map[string]any{"state": state, "problem": problem, "micro_usd": calls},
	}, nil
}

// insertTurn also marks the session as started: from here on a prompt may be in its transcript.
func insertTurn(ctx context.Context, tx pgx.Tx, l Lease, sessionID string, epoch int, requestedBy string, continues *Turn) (Turn, error) {
	var continuesID *int64
	attempt, rests := 1, 0
	if continues != nil {
		continuesID, attempt, rests = &continues.ID, continues.Attempt+1, continues.Rests
		if continues.Parking != "" {
			rests++
		}
	}
	return collectOne[Turn](tx.Query(ctx, `
		WITH started AS (UPDATE sessions SET started = true WHERE id = $2 AND NOT started)
		INSERT INTO turns AS r (thread_id, session_id, epoch, lease_epoch, requested_by, continues, attempt, rests)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		RETURNING `+turnColumns, l.ThreadID, sessionID, epoch, l.Epoch, requestedBy, continuesID, attempt, rests))
}

// RunningTurn returns the turn that an earlier process of the thread left running, with its prompt, or
// [ErrNotFound].
func (s *Store) RunningTurn(ctx context.Context, threadID int64) (Turn, Prompt, error) {
	t, err := collectOne[Turn](s.pool.Query(ctx, `
		SELECT `+turnColumns+` FROM turns r WHERE thread_id = $1 AND state = 'running'`, threadID))
	if err != nil {
		return Turn{}, Prompt{}, fmt.Errorf("read the running turn of thread %d: %w", threadID, err)
	}
	p, err := collectOne[Prompt](s.pool.Query(ctx, `
		SELECT `+promptColumns+` FROM inbox i WHERE turn_id = $1 ORDER BY ts, id LIMIT 1`, t.ID))
	if err != nil {
		return Turn{}, Prompt{}, fmt.Errorf("read the prompt of turn %d: %w", t.ID, err)
	}
	return t, p, nil
}

// ContinueTurn ends as interrupted a turn that a dead process left running, or that was parked, and opens the next
// attempt for its prompt. Unanswered approvals move along, to be bound when the new process asks the same again.
func (s *Store) ContinueTurn(ctx context.Context, l Lease, old Turn, sessionID string, epoch int) (Turn, error) {
	why := "its process ended"
	if old.Parking != "" {
		why = "it was parked while people decided"
	}
	var t Turn
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		team, err := hold(ctx, tx, l)
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
		if err = tx.QueryRow(ctx, `
			UPDATE inbox SET turn_id = $2, marked = false WHERE turn_id = $1 AND state = 'running' RETURNING prompt_uuid::text`, old.ID, t.ID).Scan(&prompt); err != nil {
			return err
		}
		if _, err = tx.Exec(ctx, `
			UPDATE approvals SET turn_id = $2, request_id = ''
			WHERE turn_id = $1 AND delivered_at IS NULL AND status IN ('pending', 'allowed', 'denied')`, old.ID, t.ID); err != nil {
			return err
		}
		if err := s.closeCards(ctx, tx, old.ID, 0); err != nil {
			return err
		}
		end, err := turnEndedEntry(ctx, tx, team, l, old.ID, "interrupted", why)
		if err != nil {
			return err
		}
		return audit(ctx, tx, end, startedEntry(team, t, prompt))
	})
	if err != nil {
		return Turn{}, fmt.Errorf("continue turn %d: %w", old.ID, err)
	}
	return t, nil
}

// FinishedTurn is the end of a turn.
type FinishedTurn struct {
	ID         int64
	State      string // done, interrupted or failed
	Problem    string // a sentence for people, or empty
	AgentTurns int
	// CLITotals are the CLI's running totals since they were last read: one per epoch of the turn, in order. None
	// if the process had gone.
	CLITotals []CLITotal
	// OverBudget: a budget stopped it, so that somebody may continue it later.
	OverBudget bool
	// Approvals is the final status of approvals that are still pending.
	Approvals ApprovalStatus
	// View is the turn's final view for an [OutboxTurn]; empty if its content is unknown: then people get Problem
	// as [OutboxGivenUp].
	View []byte
	// Mark is how its prompt is marked, for an [OutboxMark]; empty for no mark.
	Mark string
	// Answer is the beginning of the last text.
	Answer string
	// Transcripts are the parts that are not copied yet. One that does not continue its copy is skipped without an
	// error.
	Transcripts []TranscriptPart
}

// FinishTurn ends the turn, records the CLI's totals, finishes its prompts and ends its open approvals, all or
// nothing. It returns those approvals, for their cards, and the outbox rows: the turn, then its prompts' marks.
func (s *Store) FinishTurn(ctx context.Context, l Lease, f FinishedTurn) (ended []Approval, rows []OutboxRow, err error) {
	transcripts := packTranscripts(f.Transcripts)
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		team, err := hold(ctx, tx, l)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			UPDATE turns SET state = $2, problem = $3, agent_turns = $4, over_budget = $5, answer = $6, ended_at = now()
			WHERE id = $1 AND state = 'running'`, f.ID, f.State, f.Problem, f.AgentTurns, f.OverBudget, f.Answer)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("turn %d has ended already: %w", f.ID, ErrFenced)
		}
		if _, err := saveTranscripts(ctx, tx, l, transcripts); err != nil {
			return err
		}
		finished, err := collectColumn[int64](tx.Query(ctx, `
			UPDATE inbox SET state = 'done', outcome = $2, done_at = now()
			WHERE turn_id = $1 AND state = 'running' RETURNING id`, f.ID, f.State))
		if err != nil {
			return err
		}
		if rows, err = s.addOutboxRows(ctx, tx, l.ThreadID, f.outboxRows(finished)...); err != nil {
			return err
		}
		if ended, err = endApprovals(ctx, tx, f.ID, f.Approvals); err != nil {
			return err
		}
		if err := s.closeCards(ctx, tx, f.ID, OutboxHold); err != nil {
			return err
		}
		var entries []AuditEntry
		for _, a := range ended {
			entries = append(entries, endedEntry(a))
		}
		// Last, because concurrent turns share rows of the roll-ups, locked from here on.
		if err := s.insertEnd(ctx, tx, f.ID, f.CLITotals, true); err != nil {
			return err
		}
		end, err := turnEndedEntry(ctx, tx, team, l, f.ID, f.State, f.Problem)
		if err != nil {
			return err
		}
		return audit(ctx, tx, append(entries, end)...)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("finish turn %d: %w", f.ID, err)
	}
	return ended, rows, nil
}

// outboxRows are the rows for the turn and the prompts that it finished.
func (f FinishedTurn) outboxRows(prompts []int64) []newOutboxRow {
	out := []newOutboxRow{{kind: OutboxTurn, turn: f.ID, body: string(f.View)}}
	if len(f.View) == 0 {
		out[0].kind, out[0].body = OutboxGivenUp, f.Problem
	}
	if f.Mark == "" {
		return out
	}
	for _, id := range prompts {
		out = append(out, newOutboxRow{kind: OutboxMark, inbox: id, body: f.Mark})
	}
	return out
}

// SaveDiff keeps what the commits of an ended turn would bring to the forge. Its thread may be held by nobody any
// more, so no lease is asked for.
func (s *Store) SaveDiff(ctx context.Context, turnID int64, p *Push) error {
	_, err := s.pool.Exec(ctx, `UPDATE turns SET diff = $2 WHERE id = $1`, turnID, p)
	return wrap(err, "save the diff of turn %d", turnID)
}

// Diff returns what SaveDiff kept, or [ErrNotFound].
func (s *Store) Diff(ctx context.Context, turnID int64) (p *Push, err error) {
	err = s.pool.QueryRow(ctx, `SELECT diff FROM turns WHERE id = $1 AND diff IS NOT NULL`, turnID).Scan(&p)
	return p, wrap(notFound(err), "read the diff of turn %d", turnID)
}
