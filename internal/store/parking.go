package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Parking says whether a running turn was parked while people decide.
type Parking string

// The states of parking. A turn that was never parked has none.
const (
	Parked   Parking = "asleep" // it has no process, and nobody continues it
	Unparked Parking = "woken"  // somebody has decided, or time has run out
)

// parkingOf is the parking state of a turn r.
const parkingOf = `COALESCE((SELECT CASE WHEN s.asleep THEN 'asleep' ELSE 'woken' END FROM turn_rests s WHERE s.turn_id = r.id), '')`

// parked is true of a thread t whose turn is parked.
const parked = `EXISTS (SELECT FROM turns r JOIN turn_rests s ON s.turn_id = r.id
	WHERE r.thread_id = t.id AND r.state = 'running' AND s.asleep)`

// ParkTurn parks a running turn that waits for the given approvals: from the commit on no decision about it is
// delivered, and nobody continues it, until one of its approvals is decided or expires, or the turn ends. ok is
// false, and nothing has changed, when one of the approvals has already ended.
func (s *Store) ParkTurn(ctx context.Context, l Lease, turnID int64, waitsFor []string) (ok bool, err error) {
	err = s.fencedTx(ctx, l, func(tx pgx.Tx) error {
		// A decision locks its approval first: either it has committed and is seen here, or it comes later and sees
		// the parked turn.
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

// wakeTurn unparks the turn of an approval that has ended.
func wakeTurn(b *pgx.Batch, a Approval) {
	b.Queue(`
		WITH woken AS (UPDATE turn_rests SET asleep = false WHERE turn_id = $3 AND asleep RETURNING turn_id)
		SELECT pg_notify($1, $2) FROM woken`, channel, Notice{Kind: NoticePrompt, ThreadID: a.ThreadID}.body(), a.TurnID)
}

// Unanswered lists the approvals of a parked turn whose answer its process did not get, whether pending, decided or
// expired; the oldest first.
func (s *Store) Unanswered(ctx context.Context, turnID int64) ([]Approval, error) {
	out, err := collect[Approval](s.pool.Query(ctx, `
		SELECT `+approvalColumns+` FROM approvals a JOIN threads t ON t.id = a.thread_id JOIN turn_rests s ON s.turn_id = a.turn_id
		WHERE a.turn_id = $1 AND a.delivered_at IS NULL
		  AND (a.status IN ('pending', 'allowed', 'denied') OR a.status = 'expired' AND a.decided_at >= s.since)
		ORDER BY a.created_at, a.id`, turnID))
	return out, wrap(err, "read what turn %d was not answered", turnID)
}
