package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Rest says whether a running turn was put aside while people decide.
type Rest string

// The states of a turn's rest. A turn that was never put aside has none.
const (
	RestAsleep Rest = "asleep" // it has no process, and nobody takes it up
	RestWoken  Rest = "woken"  // somebody has decided, or time has run out
)

// restOf is the rest of a turn r.
const restOf = `COALESCE((SELECT CASE WHEN s.asleep THEN 'asleep' ELSE 'woken' END FROM turn_rests s WHERE s.turn_id = r.id), '')`

// resting is true of a thread t whose turn was put aside and sleeps.
const resting = `EXISTS (SELECT FROM turns r JOIN turn_rests s ON s.turn_id = r.id
	WHERE r.thread_id = t.id AND r.state = 'running' AND s.asleep)`

// RestTurn puts a running turn aside that waits for the given approvals: from the commit
// on no decision about it is delivered, and nobody takes its thread up for it, until one
// of its approvals ends by a decision or by its time, or the turn ends. ok is false, and
// nothing has changed, when one of the approvals has ended already.
func (s *Store) RestTurn(ctx context.Context, l Lease, turnID int64, waitsFor []string) (ok bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := hold(ctx, tx, l); err != nil {
			return err
		}
		// A decision locks its approval first: it has been committed and is seen here, or it
		// comes after this and sees the rest.
		var pending int
		err := tx.QueryRow(ctx, `
			SELECT count(*) FROM (
				SELECT FROM approvals WHERE id = ANY ($1) AND turn_id = $2 AND status = 'pending' ORDER BY id FOR UPDATE) a`,
			waitsFor, turnID).Scan(&pending)
		if err != nil || pending == 0 || pending < len(waitsFor) {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO turn_rests (turn_id) SELECT id FROM turns WHERE id = $1 AND thread_id = $2 AND state = 'running'
			ON CONFLICT (turn_id) DO UPDATE SET asleep = true, since = now()`, turnID, l.ThreadID)
		ok = err == nil && tag.RowsAffected() == 1
		return err
	})
	if err != nil {
		return false, fmt.Errorf("put turn %d aside: %w", turnID, err)
	}
	return ok, nil
}

// wakeTurn has the turn of an approval that has ended taken up, if it was put aside.
func wakeTurn(ctx context.Context, tx pgx.Tx, a Approval) error {
	tag, err := tx.Exec(ctx, `UPDATE turn_rests SET asleep = false WHERE turn_id = $1 AND asleep`, a.TurnID)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return notify(ctx, tx, Notice{Kind: NoticePrompt, ThreadID: a.ThreadID})
}

// Unanswered lists the approvals whose answer the process of a turn that was put aside
// was not given: those that wait, those that were decided, and those whose time has run
// out since; the oldest first.
func (s *Store) Unanswered(ctx context.Context, turnID int64) ([]Approval, error) {
	out, err := collectApprovals(s.pool.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id JOIN turn_rests s ON s.turn_id = a.turn_id
		WHERE a.turn_id = $1 AND a.delivered_at IS NULL
		  AND (a.status IN ('pending', 'allowed', 'denied') OR a.status = 'expired' AND a.decided_at >= s.since)
		ORDER BY a.created_at, a.id`, turnID))
	if err != nil {
		return nil, fmt.Errorf("read what turn %d was not answered: %w", turnID, err)
	}
	return out, nil
}

// SavePlace records the message that says where a thread stands in the queue for a
// session; an empty ts forgets it.
func (s *Store) SavePlace(ctx context.Context, k ThreadKey, ts string) error {
	var err error
	if ts == "" {
		_, err = s.pool.Exec(ctx, `
			DELETE FROM places p USING threads t
			WHERE t.id = p.thread_id AND t.team_id = $1 AND t.channel_id = $2 AND t.thread_ts = $3`, k.TeamID, k.ChannelID, k.ThreadTS)
	} else {
		_, err = s.pool.Exec(ctx, `
			INSERT INTO places (thread_id, message_ts)
			SELECT id, $4 FROM threads WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3
			ON CONFLICT (thread_id) DO UPDATE SET message_ts = excluded.message_ts`, k.TeamID, k.ChannelID, k.ThreadTS, ts)
	}
	if err != nil {
		return fmt.Errorf("record a place in the queue: %w", err)
	}
	return nil
}

// Place returns the message that says where a thread stands in the queue, or
// [ErrNotFound].
func (s *Store) Place(ctx context.Context, k ThreadKey) (ts string, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT p.message_ts FROM places p JOIN threads t ON t.id = p.thread_id
		WHERE t.team_id = $1 AND t.channel_id = $2 AND t.thread_ts = $3`, k.TeamID, k.ChannelID, k.ThreadTS).Scan(&ts)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read a place in the queue: %w", err)
	}
	return ts, nil
}

// StalePlaces are the threads of a team that are said to wait for a session, and that wait
// for nothing any more: what they waited with was taken back, and nobody holds them.
func (s *Store) StalePlaces(ctx context.Context, teamID string) ([]ThreadKey, error) {
	out, err := collect[ThreadKey](s.pool.Query(ctx, `
		SELECT t.team_id, t.channel_id, t.thread_ts FROM places p JOIN threads t ON t.id = p.thread_id
		WHERE t.team_id = $1 AND `+unheld+`
		  AND NOT EXISTS (SELECT FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running'))
		  AND NOT EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running')`, teamID))
	if err != nil {
		return nil, fmt.Errorf("look for places in the queue that nobody has: %w", err)
	}
	return out, nil
}
