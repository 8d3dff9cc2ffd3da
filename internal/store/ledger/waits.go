package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// BudgetWait is a prompt that waits or waited for a budget.
type BudgetWait struct {
	InboxID int64
	threads.ThreadKey
	Notice BudgetNotice `db:"-"` // of the budget, with the decision
	// Waits is true while the prompt has no turn and was not dropped; Begun once it has one.
	Waits, Begun bool
	Since        time.Time
	OutboxID     int64 // the last outbox row about it, or 0
}

// WaitForBudget makes a prompt sleep until somebody decides about the budget's notice or its period ends. seen is
// the number of decisions when the budget was read: if there are others by now, it gives [pg.ErrEnded] and nothing
// sleeps. The thread gets an [outbox.Wait]. A prompt that has a turn by now, or
// was dropped, gives [pg.ErrNotFound].
func (s *Store) WaitForBudget(ctx context.Context, l threads.Lease, inboxID int64, n BudgetNotice, seen int) error {
	err := threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		if err := lockBudget(ctx, tx, n.BudgetWindow); err != nil {
			return err
		}
		sql, args := budgetQuery([]BudgetWindow{n.BudgetWindow}, uuid.Nil)
		state, err := pg.CollectOne[BudgetState](tx.Query(ctx, sql, args...))
		if err != nil {
			return err
		}
		if state.Decisions != seen {
			return pg.ErrEnded
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO budget_waits (inbox_id, thread_id, notice_id, until)
			SELECT id, thread_id, $3, $4 FROM inbox WHERE id = $1 AND thread_id = $2 AND state = 'accepted'
			ON CONFLICT (inbox_id) DO UPDATE SET notice_id = excluded.notice_id, until = excluded.until, asleep = true`,
			inboxID, l.ThreadID, n.ID, n.To)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return pg.ErrNotFound
		}
		_, err = outbox.Add(ctx, tx, l.ThreadID, outbox.NewRow{Kind: outbox.Wait, Inbox: inboxID})
		return err
	})
	return pg.Wrap(err, "wait for a budget")
}

// wakeWaits wakes every prompt that waits for the budget.
func wakeWaits(ctx context.Context, tx pg.Tx, w BudgetWindow) error {
	threads, err := pg.CollectColumn[int64](tx.Query(ctx, `
		UPDATE budget_waits b SET asleep = false
		FROM budget_notices n, inbox i
		WHERE n.id = b.notice_id AND n.team_id = $1 AND n.scope = $2 AND n.key = $3 AND n.period = $4
		  AND i.id = b.inbox_id AND i.state = 'accepted' AND b.asleep
		RETURNING b.thread_id`, w.TeamID, w.Scope, w.Key, w.Period))
	if err != nil {
		return err
	}
	for _, id := range threads {
		if err := pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticePrompt, ThreadID: id}); err != nil {
			return err
		}
	}
	return nil
}

// WakeWaits wakes every prompt that waits for a budget, for example because the budgets may have changed.
func (s *Store) WakeWaits(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `
		UPDATE budget_waits b SET asleep = false FROM inbox i
		WHERE i.id = b.inbox_id AND i.state = 'accepted' AND b.asleep`)
	return pg.Wrap(err, "wake what waits for budgets")
}

// BudgetWaitByPrompt returns a prompt's wait for a budget, current or past, or [pg.ErrNotFound].
func (s *Store) BudgetWaitByPrompt(ctx context.Context, inboxID int64) (BudgetWait, error) {
	type row struct {
		BudgetWait
		NoticeID string
	}
	r, err := pg.CollectOne[row](s.db.Query(ctx, `
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
