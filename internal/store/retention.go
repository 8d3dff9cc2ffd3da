package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// unheld is true of a thread t that no live replica holds.
const unheld = `(t.lease_owner IS NULL OR NOT EXISTS (SELECT FROM replicas r WHERE r.id = t.lease_owner AND r.alive))`

// ForgetTranscripts deletes the transcript copies, answers and diffs of some threads in which nobody has written since. It
// returns their number; zero means that all is done.
func (s *Store) ForgetTranscripts(ctx context.Context, since time.Time) (threads int, err error) {
	err = s.pool.QueryRow(ctx, `
		WITH old AS (
			SELECT t.id FROM threads t
			WHERE t.active_at < $1 AND `+unheld+`
			  AND (EXISTS (SELECT FROM transcripts c WHERE c.thread_id = t.id)
			    OR EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND (r.answer <> '' OR r.diff IS NOT NULL)))
			ORDER BY t.active_at LIMIT 100 FOR NO KEY UPDATE OF t SKIP LOCKED),
		copies AS (DELETE FROM transcripts c USING old WHERE c.thread_id = old.id),
		answers AS (UPDATE turns r SET answer = '', diff = NULL FROM old WHERE r.thread_id = old.id AND (r.answer <> '' OR r.diff IS NOT NULL))
		SELECT count(*)::int FROM old`, since).Scan(&threads)
	return threads, wrap(err, "delete old transcripts")
}

// OldWork lists threads with kept work in which nobody has written since, those first that were checked longest
// ago.
func (s *Store) OldWork(ctx context.Context, since time.Time, limit int) ([]int64, error) {
	ids, err := collectColumn[int64](s.pool.Query(ctx, `
		SELECT t.id FROM work w JOIN threads t ON t.id = w.thread_id
		WHERE t.active_at < $1 AND `+unheld+` AND NOT `+parked+`
		ORDER BY w.looked_at NULLS FIRST, t.active_at LIMIT $2`, since, limit))
	return ids, wrap(err, "look for old work")
}

// ForgetWork deletes the kept work of the lease's thread.
func (s *Store) ForgetWork(ctx context.Context, l Lease) error {
	err := s.fencedTx(ctx, l, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM work WHERE thread_id = $1`, l.ThreadID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM work_packs WHERE thread_id = $1`, l.ThreadID)
		return err
	})
	return wrap(err, "delete the work of thread %d", l.ThreadID)
}

// LeaveWork records that old work of the lease's thread stays, and queues the sentence about it, unless that is
// empty or was sent before.
func (s *Store) LeaveWork(ctx context.Context, l Lease, sentence string) (said []OutboxRow, err error) {
	err = s.fencedTx(ctx, l, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE work SET looked_at = now() WHERE thread_id = $1`, l.ThreadID); err != nil || sentence == "" {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE work SET told = true WHERE thread_id = $1 AND NOT told`, l.ThreadID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		said, err = s.addOutboxRows(ctx, tx, l.ThreadID, newOutboxRow{kind: OutboxSaid, body: sentence})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("leave the work of thread %d: %w", l.ThreadID, err)
	}
	return said, nil
}

// SweepPacks deletes pieces of unfinished packs, which no work names, of some unheld threads. It returns their
// number; zero means that all is done.
func (s *Store) SweepPacks(ctx context.Context) (threads int, err error) {
	const unnamed = `NOT EXISTS (SELECT FROM work w WHERE w.thread_id = p.thread_id AND p.pack = ANY (w.packs))`
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		ids, err := collectColumn[int64](tx.Query(ctx, `
			SELECT t.id FROM threads t
			WHERE `+unheld+` AND EXISTS (SELECT FROM work_packs p WHERE p.thread_id = t.id AND `+unnamed+`)
			LIMIT 100 FOR NO KEY UPDATE OF t SKIP LOCKED`))
		if threads = len(ids); err != nil || threads == 0 {
			return err
		}
		// A new statement sees what was committed while waiting for the locks.
		_, err = tx.Exec(ctx, `DELETE FROM work_packs p WHERE p.thread_id = ANY ($1) AND `+unnamed, ids)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("delete pieces of packs that nobody needs: %w", err)
	}
	return threads, nil
}
