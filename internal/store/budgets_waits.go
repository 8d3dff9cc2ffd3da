package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// BudgetWait is a prompt that waits for a budget, or has.
type BudgetWait struct {
	InboxID int64
	Thread  ThreadKey
	Notice  BudgetNotice // what is decided about, and how it was
	// Waits is true while the prompt has no turn and was not dropped; Begun once it
	// has one.
	Waits, Begun bool
	MessageTS    string // of the sentence in its thread; empty while there is none
	Since        time.Time
	Word         int64 // the last [WordWait] about it that is in the outbox, or 0
}

// WaitForBudget has a prompt sleep until somebody decides about the notice of the
// budget or until its period is over. seen is how many decisions there were when the
// budget was looked at: when there are others by now, it gives [ErrEnded] and nothing
// sleeps. Its thread is to be told (see [WordWait]), unless the notice stands there. A prompt that has a turn by now, or was dropped, gives [ErrNotFound].
func (s *Store) WaitForBudget(ctx context.Context, l Lease, inboxID int64, n BudgetNotice, seen int) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := hold(ctx, tx, l); err != nil {
			return err
		}
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
		if waited || n.ThreadID != l.ThreadID { // else the notice's own card stands here
			_, err = s.addWords(ctx, tx, l.ThreadID, newWord{kind: WordWait, inbox: inboxID})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for a budget: %w", err)
	}
	return nil
}

// wakeWaits has every prompt that waits for the budget looked at again.
func wakeWaits(ctx context.Context, tx pgx.Tx, w BudgetWindow) error {
	rows, err := tx.Query(ctx, `
		UPDATE budget_waits b SET asleep = false
		FROM budget_notices n, inbox i
		WHERE n.id = b.notice_id AND n.team_id = $1 AND n.scope = $2 AND n.key = $3 AND n.period = $4
		  AND i.id = b.inbox_id AND i.state = 'accepted' AND b.asleep
		RETURNING b.thread_id`, w.TeamID, w.Scope, w.Key, w.Period)
	if err != nil {
		return err
	}
	threads, err := pgx.CollectRows(rows, pgx.RowTo[int64])
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

// WakeWaits has every prompt that waits for a budget looked at again, as when the
// budgets may be others.
func (s *Store) WakeWaits(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, `
		UPDATE budget_waits b SET asleep = false FROM inbox i
		WHERE i.id = b.inbox_id AND i.state = 'accepted' AND b.asleep`); err != nil {
		return fmt.Errorf("wake what waits for budgets: %w", err)
	}
	return nil
}

// StoppedTurn returns the thread's last turn if a budget stopped it, or 0.
func (s *Store) StoppedTurn(ctx context.Context, threadID int64) (turnID int64, err error) {
	if err := s.pool.QueryRow(ctx, `
		SELECT COALESCE((SELECT CASE WHEN over_budget THEN id END FROM turns WHERE thread_id = $1 ORDER BY id DESC LIMIT 1), 0)`,
		threadID).Scan(&turnID); err != nil {
		return 0, fmt.Errorf("read the last turn of thread %d: %w", threadID, err)
	}
	return turnID, nil
}

// asleep is true of a thread t whose next prompt sleeps until a budget changes, or until
// its start is tried again.
const asleep = `(EXISTS (SELECT FROM budget_waits b JOIN inbox w ON w.id = b.inbox_id
	WHERE b.thread_id = t.id AND b.asleep AND b.until > now() AND w.state = 'accepted') OR ` + putOff + `)`

type waitRow struct {
	InboxID             int64
	ChannelID, ThreadTS string
	State               string
	Begun               bool
	MessageTS           string
	NoticeID            string
	Since               time.Time
	Word                int64
}

// BudgetWaitByPrompt returns how a prompt waits for a budget, or has, or [ErrNotFound].
func (s *Store) BudgetWaitByPrompt(ctx context.Context, inboxID int64) (BudgetWait, error) {
	r, err := collectOne[waitRow](s.pool.Query(ctx, `
		SELECT b.inbox_id, t.channel_id, t.thread_ts, i.state, i.turn_id IS NOT NULL AS begun, b.message_ts, b.notice_id, b.created_at AS since,
			COALESCE((SELECT max(o.id) FROM outbox o WHERE o.inbox_id = b.inbox_id AND o.kind = 'wait'), 0) AS word
		FROM budget_waits b JOIN inbox i ON i.id = b.inbox_id JOIN threads t ON t.id = b.thread_id
		WHERE b.inbox_id = $1`, inboxID))
	if err != nil {
		return BudgetWait{}, fmt.Errorf("read what prompt %d waits for: %w", inboxID, err)
	}
	n, err := s.BudgetNoticeByID(ctx, r.NoticeID)
	if err != nil {
		return BudgetWait{}, err
	}
	return BudgetWait{
		InboxID: r.InboxID, Thread: ThreadKey{TeamID: n.TeamID, ChannelID: r.ChannelID, ThreadTS: r.ThreadTS}, Notice: n,
		Waits: r.State == "accepted", Begun: r.Begun, MessageTS: r.MessageTS, Since: r.Since, Word: r.Word,
	}, nil
}

// SaveWaitMessage records the message that says what a prompt waits for.
func (s *Store) SaveWaitMessage(ctx context.Context, inboxID int64, ts string) error {
	if _, err := s.pool.Exec(ctx, `UPDATE budget_waits SET message_ts = $2 WHERE inbox_id = $1`, inboxID, ts); err != nil {
		return fmt.Errorf("record what prompt %d waits for: %w", inboxID, err)
	}
	return nil
}

// SaveBudgetMessage records where a notice was posted.
func (s *Store) SaveBudgetMessage(ctx context.Context, noticeID string, m PostedMessage) error {
	if _, err := s.pool.Exec(ctx, `
		INSERT INTO budget_messages (notice_id, channel_id, ts) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, noticeID, m.ChannelID, m.TS); err != nil {
		return fmt.Errorf("record a budget's message: %w", err)
	}
	return nil
}

// BudgetMessages returns where a notice was posted.
func (s *Store) BudgetMessages(ctx context.Context, noticeID string) ([]PostedMessage, error) {
	out, err := collect[PostedMessage](s.pool.Query(ctx, `
		SELECT channel_id, ts, 0 AS page FROM budget_messages WHERE notice_id = $1 ORDER BY channel_id, ts`, noticeID))
	if err != nil {
		return nil, fmt.Errorf("read a budget's messages: %w", err)
	}
	return out, nil
}
