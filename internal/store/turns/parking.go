package turns

import (
	"context"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
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

// ParkTurn parks a running turn that waits for the given approvals: from the commit on no decision about it is
// delivered, and nobody continues it, until one of its approvals is decided or expires, or the turn ends. ok is
// false, and nothing has changed, when one of the approvals has already ended.
func (s *Store) ParkTurn(ctx context.Context, l threads.Lease, turnID int64, waitsFor []string) (ok bool, err error) {
	err = threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
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
	return ok, pg.Wrap(err, "put turn %d aside", turnID)
}
