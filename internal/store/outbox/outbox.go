package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Row is something that people must see: it is written in the transaction that causes it, and stays until
// Slack has it. Its writer sends it at once; if that process dies, another one does (see [Store.ClaimOutbox]). So
// it is sent at least once.
type Row struct {
	ID                int64
	Kind              Kind
	threads.ThreadKey // for a whisper the thread's ts may be empty
	// ThreadID is 0 for a whisper and for a post.
	ThreadID int64
	// Its subject; the kind determines which of these are set.
	TurnID   int64
	CardID   string // see [approvals.Approval.CardID]
	InboxID  int64  // of the prompt
	NoticeID string // of a budget
	TS       string // of the post in the envelope InboxID
	UserID   string // the recipient of a whisper
	// Body is what the kind needs; see [Kind].
	Body      string
	Buttons   []Button // below a sentence that is said
	AdminsOf  string   // the project whose admins a sentence that is said calls; empty for nobody
	CreatedAt time.Time
	// Again says that it may have been sent already.
	Again bool
}

// Button is a command that people can give by a button.
type Button struct {
	Label string `json:"label"`
	Say   string `json:"say"`
}

// Kind says what to show.
type Kind string

// The kinds of outbox rows. Those of a card, a wait and a budget are rendered from the database's state when they
// are sent.
const (
	Turn    Kind = "turn"     // how a turn ended: Body is its view, as the agent encodes it
	Left    Kind = "left"     // a turn continues elsewhere: Body is a sentence for its old message, or to be posted
	GivenUp Kind = "given up" // a turn does not continue; Body is as for Left
	Card    Kind = "card"     // a card of approvals has changed
	Wait    Kind = "wait"     // what a prompt waits for, or no longer
	Budget  Kind = "budget"   // a budget's notice, or how it was decided
	Mark    Kind = "mark"     // a prompt is marked: Body says how
	Said    Kind = "said"     // Body is a sentence in a thread
	Whisper Kind = "whisper"  // Body is a sentence for one person
	Waits   Kind = "waits"    // a post waits, or no longer: see [inbox.Store.PostWaits]
	Queue   Kind = "queue"    // a message shows the thread's queue, while it exists
)

// InOrder reports whether rows of the kind are sent in order within a thread. The others edit existing messages.
func (k Kind) InOrder() bool {
	switch k {
	case Turn, Left, GivenUp, Mark, Said:
		return true
	case Card, Wait, Budget, Whisper, Waits, Queue:
	}
	return false
}

// Hold is how long a row belongs to its process, unless that renews it ([Store.HoldOutbox]).
const Hold = 15 * time.Second

// Columns are those of a [Row], from [Tables].
const Columns = `o.id, o.kind, o.team_id, COALESCE(t.channel_id, NULLIF(o.channel_id, ''), i.channel_id, '') AS channel_id, COALESCE(t.thread_ts, o.thread_ts) AS thread_ts,
	COALESCE(o.thread_id, 0) AS thread_id, COALESCE(o.turn_id, 0) AS turn_id, COALESCE(o.card_id, '') AS card_id, COALESCE(o.inbox_id, 0) AS inbox_id,
	COALESCE(o.notice_id, '') AS notice_id, COALESCE(i.ts, '') AS ts, o.user_id, o.body, o.buttons, o.admins_of, o.created_at, o.tries > 0 AS again`

// Tables follow the rows o of the outbox. PostgreSQL overestimates a claim's rows: without the limit it would read all threads.
const Tables = ` o LEFT JOIN LATERAL (SELECT * FROM threads WHERE id = o.thread_id LIMIT 1) t ON true LEFT JOIN inbox i ON i.id = o.inbox_id`

// NewRow is an outbox row of a thread to be written.
type NewRow struct {
	Kind         Kind
	Turn, Inbox  int64
	Card, Notice string
	Body         string
	Buttons      []Button
	AdminsOf     string
	Free         bool // any process may send it
}

// Add writes rows of a thread into the outbox in one round trip. This process is to send them.
func Add(ctx context.Context, tx pg.Tx, threadID int64, rows ...NewRow) ([]Row, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	var out []Row
	var b pgx.Batch
	AddTo(tx.DB, &b, threadID, func(w Row) { out = append(out, w) }, rows...)
	if err := tx.Send(ctx, &b); err != nil {
		return nil, fmt.Errorf("write into the outbox: %w", err)
	}
	return out, nil
}

// AddTo adds them to a batch, and has written called with each.
func AddTo(db *pg.DB, b *pgx.Batch, threadID int64, written func(Row), rows ...NewRow) {
	for _, w := range rows {
		hold := Hold
		if w.Free {
			hold = 0
		}
		b.Queue(`
			WITH o AS (
				INSERT INTO outbox (kind, team_id, thread_id, turn_id, card_id, inbox_id, notice_id, body, replica, process, held_until, buttons, admins_of)
				SELECT $2, team_id, id, NULLIF($3::bigint, 0), NULLIF($4, ''), NULLIF($5::bigint, 0), NULLIF($6, ''), $7, $8, $9, now() + $10, COALESCE($11::jsonb, '[]'), $12
				FROM threads WHERE id = $1
				RETURNING *)
			SELECT `+Columns+` FROM`+Tables,
			threadID, w.Kind, w.Turn, w.Card, w.Inbox, w.Notice, w.Body, db.Replica, db.Process, hold, w.Buttons, w.AdminsOf,
		).Query(func(rows pgx.Rows) error {
			got, err := pg.CollectOne[Row](rows, nil)
			written(got)
			return err
		})
	}
}

// CloseCards adds to a batch that a turn's cards are queued to be shown once more after its end. This process holds them for some time.
func CloseCards(db *pg.DB, b *pgx.Batch, turnID int64, hold time.Duration) {
	b.Queue(`
		INSERT INTO outbox (kind, team_id, thread_id, card_id, replica, process, held_until)
		SELECT DISTINCT 'card', t.team_id, t.id, a.card_id, $2, $3, now() + $4::interval
		FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE a.turn_id = $1 AND a.decided_via NOT IN ('rule', 'grant')`, turnID, db.Replica, db.Process, hold)
}

// Say writes a sentence for the thread into the outbox. It calls the admins of a project, if one is named.
func (s *Store) Say(ctx context.Context, l threads.Lease, sentence, adminsOf string) (Row, error) {
	return s.addOutboxRow(ctx, l, NewRow{Kind: Said, Body: sentence, AdminsOf: adminsOf})
}

// LeaveTurn queues the notice for a turn whose process has died: the work continues elsewhere, and its controls are
// disabled.
func (s *Store) LeaveTurn(ctx context.Context, l threads.Lease, turnID int64, sentence string) (Row, error) {
	return s.addOutboxRow(ctx, l, NewRow{Kind: Left, Turn: turnID, Body: sentence})
}

func (s *Store) addOutboxRow(ctx context.Context, l threads.Lease, n NewRow) (w Row, err error) {
	err = threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		rows, err := Add(ctx, tx, l.ThreadID, n)
		if err == nil {
			w = rows[0]
		}
		return err
	})
	if err != nil {
		return Row{}, fmt.Errorf("say something in thread %d: %w", l.ThreadID, err)
	}
	return w, nil
}

// unsent are the outbox rows of team $1 that nobody sends, for the process $3 of replica $2.
const unsent = `team_id = $1 AND (held_until <= now() OR held_until > now() + interval '5 minutes' -- a clock that jumped
	OR replica = $2 AND process <> $3)`

// ClaimOutbox takes over a team's rows that nobody sends: their process did not renew its hold, was an earlier one
// of this replica, or has put them back; the oldest first, limit at most. Ordered rows (see [Kind.InOrder])
// wait while another process still holds an earlier row of the same thread.
func (s *Store) ClaimOutbox(ctx context.Context, teamID string, limit int) (rows []Row, err error) {
	// Usually there are none, and a query is cheaper than a transaction.
	var some bool
	if err := s.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox WHERE `+unsent+`)`, teamID, s.db.Replica, s.db.Process).Scan(&some); err != nil || !some {
		return nil, pg.Wrap(err, "look for outbox rows")
	}
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		// One replica claims at a time, so that a thread's rows stay together.
		var free bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('claiming outbox/' || $1, 0))`, teamID).Scan(&free); err != nil || !free {
			return err
		}
		rows, err = pg.Collect[Row](tx.Query(ctx, `
			WITH o AS (
				UPDATE outbox SET replica = $2, process = $3, held_until = now() + $4, tries = tries + 1
				WHERE id IN (
					SELECT id FROM outbox w
					WHERE `+unsent+`
					  AND NOT (kind IN ('turn', 'left', 'given up', 'mark', 'said') AND EXISTS (
						SELECT FROM outbox e
						WHERE e.thread_id = w.thread_id AND e.id < w.id AND e.kind IN ('turn', 'left', 'given up', 'mark', 'said')
						  AND e.held_until > now() AND NOT (e.replica = $2 AND e.process <> $3)))
					  AND NOT (kind IN ('card', 'wait', 'budget', 'waits') AND EXISTS ( -- somebody shows it as it stands
						SELECT FROM outbox e
						WHERE e.kind = w.kind AND (e.card_id = w.card_id OR e.inbox_id = w.inbox_id OR e.notice_id = w.notice_id)
						  AND e.held_until > now() AND NOT (e.replica = $2 AND e.process <> $3)))
					ORDER BY id LIMIT $5 FOR UPDATE SKIP LOCKED)
				RETURNING *)
			SELECT `+Columns+` FROM`+Tables+` ORDER BY o.id`, teamID, s.db.Replica, s.db.Process, Hold, limit))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim outbox rows: %w", err)
	}
	return rows, nil
}

// HoldOutbox renews this process's hold on rows for another [Hold].
func (s *Store) HoldOutbox(ctx context.Context, ids []int64) error {
	_, err := s.db.Exec(ctx, `
		UPDATE outbox SET held_until = now() + $4 WHERE id = ANY ($1) AND replica = $2 AND process = $3`,
		ids, s.db.Replica, s.db.Process, Hold)
	return pg.Wrap(err, "hold outbox rows")
}

// PutBackOutbox returns rows that could not be sent, for a retry after two seconds, doubling each time up to a
// minute.
func (s *Store) PutBackOutbox(ctx context.Context, ids []int64) error {
	_, err := s.db.Exec(ctx, `
		UPDATE outbox SET held_until = now() + make_interval(secs => least(60, 2 << least(tries, 5))), tries = tries + 1
		WHERE id = ANY ($1) AND replica = $2 AND process = $3`, ids, s.db.Replica, s.db.Process)
	return pg.Wrap(err, "put outbox rows back")
}

// ReleaseOutbox releases all rows of this process, which stops.
func (s *Store) ReleaseOutbox(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `
		UPDATE outbox SET held_until = now() WHERE replica = $1 AND process = $2`, s.db.Replica, s.db.Process)
	return pg.Wrap(err, "release outbox rows")
}

// Shown says that rows of one kind about one subject were shown together, as of the row UpTo.
type Shown struct {
	Kind    Kind   // card, wait, budget or waits
	Subject string // the id of the card, of the prompt or post in the inbox, or of the notice
	UpTo    int64
}

// EndOutbox deletes rows that people have seen, or never can.
func (s *Store) EndOutbox(ctx context.Context, ids []int64, shown []Shown) error {
	var b pgx.Batch
	if len(ids) > 0 {
		b.Queue(`DELETE FROM outbox WHERE id = ANY ($1)`, ids)
	}
	for _, w := range shown {
		b.Queue(`
			DELETE FROM outbox WHERE kind = $1 AND id <= $3 AND COALESCE(card_id, notice_id, inbox_id::text) = $2`, w.Kind, w.Subject, w.UpTo)
	}
	if b.Len() == 0 {
		return nil
	}
	err := s.db.SendBatch(ctx, &b).Close()
	return pg.Wrap(err, "end outbox rows")
}

// StandQueue queues a row for the message with a thread's queue, which is or is about to be posted: while this
// process holds the row it updates or deletes the message. If another process had it the row says Again.
func (s *Store) StandQueue(ctx context.Context, threadID int64) (Row, error) {
	r, err := pg.CollectOne[Row](s.db.Query(ctx, `
		WITH o AS (
			INSERT INTO outbox AS q (kind, team_id, thread_id, replica, process, held_until)
			SELECT 'queue', team_id, id, $2, $3, now() + $4 FROM threads WHERE id = $1
			ON CONFLICT (thread_id) WHERE kind = 'queue' DO UPDATE
			SET replica = excluded.replica, process = excluded.process, held_until = excluded.held_until, tries = q.tries + 1
			RETURNING *)
		SELECT `+Columns+` FROM`+Tables, threadID, s.db.Replica, s.db.Process, Hold))
	return r, pg.Wrap(err, "write into the outbox what waits in thread %d", threadID)
}
