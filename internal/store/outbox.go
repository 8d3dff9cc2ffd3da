package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// OutboxRow is something that people must see: it is written in the transaction that causes it, and stays until
// Slack has it. Its writer sends it at once; if that process dies, another one does (see [Store.ClaimOutbox]). So
// it is sent at least once.
type OutboxRow struct {
	ID        int64
	Kind      OutboxKind
	ThreadKey // for a whisper the thread's ts may be empty
	// ThreadID is 0 for a whisper and for a post.
	ThreadID int64
	// Its subject; the kind determines which of these are set.
	TurnID   int64
	CardID   string // see [Approval.CardID]
	InboxID  int64  // of the prompt
	NoticeID string // of a budget
	TS       string // of the post in the envelope InboxID
	UserID   string // the recipient of a whisper
	// Body is what the kind needs; see [OutboxKind].
	Body      string
	CreatedAt time.Time
	// Again says that it may have been sent already.
	Again bool
}

// OutboxKind says what to show.
type OutboxKind string

// The kinds of outbox rows. Those of a card, a wait and a budget are rendered from the database's state when they
// are sent.
const (
	OutboxTurn    OutboxKind = "turn"     // how a turn ended: Body is its view, as the agent encodes it
	OutboxLeft    OutboxKind = "left"     // a turn continues elsewhere: Body is a sentence for its old message, or to be posted
	OutboxGivenUp OutboxKind = "given up" // a turn does not continue; Body is as for OutboxLeft
	OutboxCard    OutboxKind = "card"     // a card of approvals has changed
	OutboxWait    OutboxKind = "wait"     // what a prompt waits for, or no longer
	OutboxBudget  OutboxKind = "budget"   // a budget's notice, or how it was decided
	OutboxMark    OutboxKind = "mark"     // a prompt is marked: Body says how
	OutboxSaid    OutboxKind = "said"     // Body is a sentence in a thread
	OutboxWhisper OutboxKind = "whisper"  // Body is a sentence for one person
	OutboxWaits   OutboxKind = "waits"    // a post waits, or no longer: see [Store.PostWaits]
	OutboxQueue   OutboxKind = "queue"    // a message shows the thread's queue, while it exists
)

// InOrder reports whether rows of the kind are sent in order within a thread. The others edit existing messages.
func (k OutboxKind) InOrder() bool {
	switch k {
	case OutboxTurn, OutboxLeft, OutboxGivenUp, OutboxMark, OutboxSaid:
		return true
	case OutboxCard, OutboxWait, OutboxBudget, OutboxWhisper, OutboxWaits, OutboxQueue:
	}
	return false
}

// OutboxHold is how long a row belongs to its process, unless that renews it ([Store.HoldOutbox]).
const OutboxHold = 15 * time.Second

const outboxColumns = `o.id, o.kind, o.team_id, COALESCE(t.channel_id, NULLIF(o.channel_id, ''), i.channel_id, '') AS channel_id, COALESCE(t.thread_ts, o.thread_ts) AS thread_ts,
	COALESCE(o.thread_id, 0) AS thread_id, COALESCE(o.turn_id, 0) AS turn_id, COALESCE(o.card_id, '') AS card_id, COALESCE(o.inbox_id, 0) AS inbox_id,
	COALESCE(o.notice_id, '') AS notice_id, COALESCE(i.ts, '') AS ts, o.user_id, o.body, o.created_at, o.tries > 0 AS again`

// PostgreSQL overestimates a claim's rows: without the limit it would read all threads.
const outboxTables = ` o LEFT JOIN LATERAL (SELECT * FROM threads WHERE id = o.thread_id LIMIT 1) t ON true LEFT JOIN inbox i ON i.id = o.inbox_id`

// newOutboxRow is an outbox row of a thread to be written.
type newOutboxRow struct {
	kind         OutboxKind
	turn, inbox  int64
	card, notice string
	body         string
	free         bool // any process may send it
}

// addOutboxRows writes rows of a thread into the outbox in one round trip. This process is to send them.
func (s *Store) addOutboxRows(ctx context.Context, tx pgx.Tx, threadID int64, rows ...newOutboxRow) ([]OutboxRow, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	var out []OutboxRow
	var b pgx.Batch
	s.queueOutboxRows(&b, threadID, func(w OutboxRow) { out = append(out, w) }, rows...)
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("write into the outbox: %w", err)
	}
	return out, nil
}

// queueOutboxRows adds them to a batch, and has written called with each.
func (s *Store) queueOutboxRows(b *pgx.Batch, threadID int64, written func(OutboxRow), rows ...newOutboxRow) {
	for _, w := range rows {
		hold := OutboxHold
		if w.free {
			hold = 0
		}
		b.Queue(`
			WITH o AS (
				INSERT INTO outbox (kind, team_id, thread_id, turn_id, card_id, inbox_id, notice_id, body, replica, process, held_until)
				SELECT $2, team_id, id, NULLIF($3::bigint, 0), NULLIF($4, ''), NULLIF($5::bigint, 0), NULLIF($6, ''), $7, $8, $9, now() + $10
				FROM threads WHERE id = $1
				RETURNING *)
			SELECT `+outboxColumns+` FROM`+outboxTables,
			threadID, w.kind, w.turn, w.card, w.inbox, w.notice, w.body, s.replica, s.process, hold,
		).Query(func(rows pgx.Rows) error {
			got, err := collectOne[OutboxRow](rows, nil)
			written(got)
			return err
		})
	}
}

// queueCardRow adds to a batch that an approval's card is to be shown again.
func (s *Store) queueCardRow(b *pgx.Batch, a *Approval) {
	s.queueOutboxRows(b, a.ThreadID, func(w OutboxRow) { a.OutboxID = w.ID }, newOutboxRow{kind: OutboxCard, card: a.CardID})
}

func (s *Store) addCardRow(ctx context.Context, tx pgx.Tx, a *Approval) error {
	var b pgx.Batch
	s.queueCardRow(&b, a)
	return tx.SendBatch(ctx, &b).Close()
}

// closeCards queues a turn's cards to be shown once more after its end. This process holds them for some time.
func (s *Store) closeCards(ctx context.Context, tx pgx.Tx, turnID int64, hold time.Duration) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO outbox (kind, team_id, thread_id, card_id, replica, process, held_until)
		SELECT DISTINCT 'card', t.team_id, t.id, a.card_id, $2, $3, now() + $4::interval
		FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE a.turn_id = $1 AND a.decided_via NOT IN ('rule', 'grant')`, turnID, s.replica, s.process, hold)
	return err
}

// Say writes a sentence for the thread into the outbox.
func (s *Store) Say(ctx context.Context, l Lease, sentence string) (OutboxRow, error) {
	return s.addOutboxRow(ctx, l, newOutboxRow{kind: OutboxSaid, body: sentence})
}

// LeaveTurn queues the notice for a turn whose process has died: the work continues elsewhere, and its controls are
// disabled.
func (s *Store) LeaveTurn(ctx context.Context, l Lease, turnID int64, sentence string) (OutboxRow, error) {
	return s.addOutboxRow(ctx, l, newOutboxRow{kind: OutboxLeft, turn: turnID, body: sentence})
}

func (s *Store) addOutboxRow(ctx context.Context, l Lease, n newOutboxRow) (w OutboxRow, err error) {
	err = s.fencedTx(ctx, l, func(tx pgx.Tx) error {
		rows, err := s.addOutboxRows(ctx, tx, l.ThreadID, n)
		if err == nil {
			w = rows[0]
		}
		return err
	})
	if err != nil {
		return OutboxRow{}, fmt.Errorf("say something in thread %d: %w", l.ThreadID, err)
	}
	return w, nil
}

// unsent are the outbox rows of team $1 that nobody sends, for the process $3 of replica $2.
const unsent = `team_id = $1 AND (held_until <= now() OR held_until > now() + interval '5 minutes' -- a clock that jumped
	OR replica = $2 AND process <> $3)`

// ClaimOutbox takes over a team's rows that nobody sends: their process did not renew its hold, was an earlier one
// of this replica, or has put them back; the oldest first, limit at most. Ordered rows (see [OutboxKind.InOrder])
// wait while another process still holds an earlier row of the same thread.
func (s *Store) ClaimOutbox(ctx context.Context, teamID string, limit int) (rows []OutboxRow, err error) {
	// Usually there are none, and a query is cheaper than a transaction.
	var some bool
	if err := s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM outbox WHERE `+unsent+`)`, teamID, s.replica, s.process).Scan(&some); err != nil || !some {
		return nil, wrap(err, "look for outbox rows")
	}
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		// One replica claims at a time, so that a thread's rows stay together.
		var free bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('claiming outbox/' || $1, 0))`, teamID).Scan(&free); err != nil || !free {
			return err
		}
		rows, err = collect[OutboxRow](tx.Query(ctx, `
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
			SELECT `+outboxColumns+` FROM`+outboxTables+` ORDER BY o.id`, teamID, s.replica, s.process, OutboxHold, limit))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim outbox rows: %w", err)
	}
	return rows, nil
}

// HoldOutbox renews this process's hold on rows for another [OutboxHold].
func (s *Store) HoldOutbox(ctx context.Context, ids []int64) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE outbox SET held_until = now() + $4 WHERE id = ANY ($1) AND replica = $2 AND process = $3`,
		ids, s.replica, s.process, OutboxHold)
	return wrap(err, "hold outbox rows")
}

// PutBackOutbox returns rows that could not be sent, for a retry after two seconds, doubling each time up to a
// minute.
func (s *Store) PutBackOutbox(ctx context.Context, ids []int64) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE outbox SET held_until = now() + make_interval(secs => least(60, 2 << least(tries, 5))), tries = tries + 1
		WHERE id = ANY ($1) AND replica = $2 AND process = $3`, ids, s.replica, s.process)
	return wrap(err, "put outbox rows back")
}

// ReleaseOutbox releases all rows of this process, which stops.
func (s *Store) ReleaseOutbox(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE outbox SET held_until = now() WHERE replica = $1 AND process = $2`, s.replica, s.process)
	return wrap(err, "release outbox rows")
}

// Shown says that rows of one kind about one subject were shown together, as of the row UpTo.
type Shown struct {
	Kind    OutboxKind // card, wait, budget or waits
	Subject string     // the id of the card, of the prompt or post in the inbox, or of the notice
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
	err := s.pool.SendBatch(ctx, &b).Close()
	return wrap(err, "end outbox rows")
}

// GivenUp is the prefix of the outcome of a message that could not be handled; the reason follows, for people.
const GivenUp = "given up: "

// PostState is what people see of a post that has waited.
type PostState struct {
	Waits    bool   // its author sees that it waits
	GivenUp  string // why it was not handled; empty if it was not given up
	ThreadTS string
}

// PostWaits reads what people see of a post that waits or has waited.
func (s *Store) PostWaits(ctx context.Context, inboxID int64) (PostState, error) {
	p, err := collectOne[PostState](s.pool.Query(ctx, `
		SELECT marked AND state <> 'done' AS waits, CASE WHEN state = 'done' AND starts_with(outcome, $2) THEN substr(outcome, length($2) + 1) ELSE '' END AS given_up,
			thread_ts
		FROM inbox WHERE id = $1`, inboxID, GivenUp))
	return p, wrap(err, "read whether post %d waits", inboxID)
}

// ShowWaits queues an update of whether a post waits: a mark may be outdated.
func (s *Store) ShowWaits(ctx context.Context, p Post) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO outbox (kind, team_id, inbox_id, held_until)
		SELECT 'waits', team_id, id, now() FROM inbox WHERE kind = 'message' AND team_id = $1 AND channel_id = $2 AND ts = $3`, p.TeamID, p.ChannelID, p.TS)
	return wrap(err, "show whether the post %s waits", p.TS)
}

// StandQueue queues a row for the message with a thread's queue, which is or is about to be posted: while this
// process holds the row it updates or deletes the message. If another process had it the row says Again.
func (s *Store) StandQueue(ctx context.Context, threadID int64) (OutboxRow, error) {
	r, err := collectOne[OutboxRow](s.pool.Query(ctx, `
		WITH o AS (
			INSERT INTO outbox AS q (kind, team_id, thread_id, replica, process, held_until)
			SELECT 'queue', team_id, id, $2, $3, now() + $4 FROM threads WHERE id = $1
			ON CONFLICT (thread_id) WHERE kind = 'queue' DO UPDATE
			SET replica = excluded.replica, process = excluded.process, held_until = excluded.held_until, tries = q.tries + 1
			RETURNING *)
		SELECT `+outboxColumns+` FROM`+outboxTables, threadID, s.replica, s.process, OutboxHold))
	return r, wrap(err, "write into the outbox what waits in thread %d", threadID)
}

// Whisper is a sentence that only one person sees.
type Whisper struct {
	ChannelID, ThreadTS string // ThreadTS is empty outside threads
	UserID              string
	Sentence            string
}

// FinishTelling marks an envelope as handled, with outcome in a word or two, and queues tell for its sender. A
// prompt that a worker has is left alone: its turn finishes it. Nothing is written for an envelope that is finished
// or that a worker has.
func (s *Store) FinishTelling(ctx context.Context, id int64, outcome string, tell ...Whisper) (rows []OutboxRow, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		var team string
		err := tx.QueryRow(ctx, `
			UPDATE inbox SET state = 'done', outcome = $2, done_at = now()
			WHERE id = $1 AND state = 'received' RETURNING team_id`, id, outcome).Scan(&team)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, w := range tell {
			r, err := collectOne[OutboxRow](tx.Query(ctx, `
				WITH o AS (
					INSERT INTO outbox (kind, team_id, inbox_id, channel_id, thread_ts, user_id, body, replica, process, held_until)
					VALUES ('whisper', $1, $2, $3, $4, $5, $6, $7, $8, now() + $9)
					RETURNING *)
				SELECT `+outboxColumns+` FROM`+outboxTables,
				team, id, w.ChannelID, w.ThreadTS, w.UserID, w.Sentence, s.replica, s.process, OutboxHold))
			if err != nil {
				return err
			}
			rows = append(rows, r)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("finish envelope %d: %w", id, err)
	}
	return rows, nil
}
