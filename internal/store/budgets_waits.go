package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// BudgetWait is a prompt that waits or waited for a budget.
type BudgetWait struct {
	InboxID int64
	ThreadKey
	Notice BudgetNotice `db:"-"` // of the budget, with the decision
	// Waits is true while the prompt has no turn and was not dropped; Begun once it has one.
	Waits, Begun bool
	Since        time.Time
	OutboxID     int64 // the last outbox row about it, or 0
}

// WaitForBudget makes a prompt sleep until somebody decides about the budget's notice or its period ends. seen is
// the number of decisions when the budget was read: if there are others by now, it gives [ErrEnded] and nothing
// sleeps. The thread gets an [OutboxWait], unless the notice is shown there. A prompt that has a turn by now, or
// was dropped, gives [ErrNotFound].
func (s *Store) WaitForBudget(ctx context.Context, l Lease, inboxID int64, n BudgetNotice, seen int) error {
	err := s.fencedTx(ctx, l, func(tx pgx.Tx) error {
		if err := lockBudget(ctx, tx, n.BudgetWindow); err != nil {
			return err
		}
		sql, args := budgetQuery([]BudgetWindow{n.BudgetWindow}, uuid.Nil)
		state, err := collectOne[BudgetState](tx.Query(ctx, sql, args...))
		if err != nil {
			return err
		}
		if state.Decisions != seen {
			return ErrEnded
		}
		var waited bool
		if err := tx.QueryRow(ctx, `
			INSERT INTO budget_waits (inbox_id, thread_id, notice_id, until)
			SELECT id, thread_id, $3, $4 FROM inbox WHERE id = $1 AND thread_id = $2 AND state = 'accepted'
			ON CONFLICT (inbox_id) DO UPDATE SET notice_id = excluded.notice_id, until = excluded.until, asleep = true
			RETURNING xmax <> 0`,
			inboxID, l.ThreadID, n.ID, n.To).Scan(&waited); err != nil {
			return notFound(err)
		}
		if waited || n.ThreadID != l.ThreadID { // else the notice's own card is there
			_, err = s.addOutboxRows(ctx, tx, l.ThreadID, newOutboxRow{kind: OutboxWait, inbox: inboxID})
		}
		return err
	})
	return wrap(err, "wait for a budget")
}

// wakeWaits wakes every prompt that waits for the budget.
func wakeWaits(ctx context.Context, tx pgx.Tx, w BudgetWindow) error {
	threads, err := collectColumn[int64](tx.Query(ctx, `
		UPDATE budget_waits b SET asleep = false
		FROM budget_notices n, inbox i
		WHERE n.id = b.notice_id AND n.team_id = $1 AND n.scope = $2 AND n.key = $3 AND n.period = $4
		  AND i.id = b.inbox_id AND i.state = 'accepted' AND b.asleep
		RETURNING b.thread_id`, w.TeamID, w.Scope, w.Key, w.Period))
	if err != nil {
		return err
	}
	for _, id := range threads {
		if err := notify(ctx, tx, Notice{Kind: NoticePrompt, ThreadID: id}); err != nil {
			return err
		}
	}
	return nil
}

// WakeWaits wakes every prompt that waits for a budget, for example because the budgets may have changed.
func (s *Store) WakeWaits(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE budget_waits b SET asleep = false FROM inbox i
		WHERE i.id = b.inbox_id AND i.state = 'accepted' AND b.asleep`)
	return wrap(err, "wake what waits for budgets")
}

// StoppedTurn returns the thread's last turn if a budget stopped it, or 0.
func (s *Store) StoppedTurn(ctx context.Context, threadID int64) (turnID int64, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT COALESCE((SELECT CASE WHEN over_budget THEN id END FROM turns WHERE thread_id = $1 ORDER BY id DESC LIMIT 1), 0)`,
		threadID).Scan(&turnID)
	return turnID, wrap(err, "read the last turn of thread %d", threadID)
}

// asleep is true of a thread t whose next prompt waits for a budget, or for the next attempt to start it.
const asleep = `(EXISTS (SELECT FROM budget_waits b JOIN inbox w ON w.id = b.inbox_id
	WHERE b.thread_id = t.id AND b.asleep AND b.until > now() AND w.state = 'accepted') OR ` + putOff + `)`

// BudgetWaitByPrompt returns a prompt's wait for a budget, current or past, or [ErrNotFound].
func (s *Store) BudgetWaitByPrompt(ctx context.Context, inboxID int64) (BudgetWait, error) {
	type row struct {
		BudgetWait
		NoticeID string
	}
	r, err := collectOne[row](s.pool.Query(ctx, `
		SELECT b.inbox_id, t.team_id, t.channel_id, t.thread_ts, i.state = 'accepted' AS waits, i.turn_id IS NOT NULL AS begun, b.notice_id, b.created_at AS since,
			COALESCE((SELECT max(o.id) FROM outbox o WHERE o.inbox_id = b.inbox_id AND o.kind = 'wait'), 0) AS outbox_id
		FROM budget_waits b JOIN inbox i ON i.id = b.inbox_id JOIN threads t ON t.id = b.thread_id
		WHERE b.inbox_id = $1`, inboxID))
	if err != nil {
		return BudgetWait{}, fmt.Errorf("read what prompt %d waits for: %w", inboxID, err)
	}
	r.Notice, err = s.BudgetNoticeByID(ctx, r.NoticeID)
	return r.BudgetWait, err
}
