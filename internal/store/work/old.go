package work

import (
	"context"
	"fmt"
	"time"

	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// OldWork lists threads with kept work in which nobody has written since, those first that were checked longest
// ago.
func (s *Store) OldWork(ctx context.Context, since time.Time, limit int) ([]int64, error) {
	ids, err := pg.CollectColumn[int64](s.db.Query(ctx, `
		SELECT t.id FROM work w JOIN threads t ON t.id = w.thread_id
		WHERE t.active_at < $1 AND `+threads.Unheld+` AND NOT `+threads.Parked+`
		GROUP BY t.id ORDER BY min(w.looked_at) NULLS FIRST, t.active_at LIMIT $2`, since, limit))
	return ids, pg.Wrap(err, "look for old work")
}

// ForgetWork deletes the kept work of the lease's thread.
func (s *Store) ForgetWork(ctx context.Context, l threads.Lease) error {
	err := threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM work WHERE thread_id = $1`, l.ThreadID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM work_packs WHERE thread_id = $1`, l.ThreadID)
		return err
	})
	return pg.Wrap(err, "delete the work of thread %d", l.ThreadID)
}

// LeaveWork records that old work of the lease's thread stays, and queues the sentence about it, unless that is
// empty or was sent before.
func (s *Store) LeaveWork(ctx context.Context, l threads.Lease, sentence string) (said []outbox.Row, err error) {
	err = threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE work SET looked_at = now() WHERE thread_id = $1`, l.ThreadID); err != nil || sentence == "" {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE work SET told = true WHERE thread_id = $1 AND NOT told`, l.ThreadID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		said, err = outbox.Add(ctx, tx, l.ThreadID, outbox.NewRow{Kind: outbox.Said, Body: sentence})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("leave the work of thread %d: %w", l.ThreadID, err)
	}
	return said, nil
}

// unnamed says of pieces p that no work names their pack.
const unnamed = `NOT EXISTS (SELECT FROM work w WHERE w.thread_id = p.thread_id AND p.pack = ANY (w.packs))`

// SweepPacks deletes pieces of unfinished packs, which no work names, of some unheld threads. It returns their
// number; zero means that all is done.
func (s *Store) SweepPacks(ctx context.Context) (found int, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		ids, err := pg.CollectColumn[int64](tx.Query(ctx, `
			SELECT t.id FROM threads t
			WHERE `+threads.Unheld+` AND EXISTS (SELECT FROM work_packs p WHERE p.thread_id = t.id AND `+unnamed+`)
			LIMIT 100 FOR NO KEY UPDATE OF t SKIP LOCKED`))
		if found = len(ids); err != nil || found == 0 {
			return err
		}
		// A new statement sees what was committed while waiting for the locks.
		_, err = tx.Exec(ctx, `DELETE FROM work_packs p WHERE p.thread_id = ANY ($1) AND `+unnamed, ids)
		return err
	})
	return found, pg.Wrap(err, "delete pieces of packs that nobody needs")
}
