package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// OutboxRow is something that people must see, as it lies in the outbox: written in the
// transaction that causes it, and there until Slack has it. Whoever has caused it sends
// it at once; if its process dies, another one does (see [Store.ClaimOutbox]). So it is
// sent at least once.
type OutboxRow struct {
	ID        int64
	Kind      OutboxKind
	ThreadKey // where; for a whisper the thread's ts may be empty
	// ThreadID is the thread's; 0 for a whisper, and of a post.
	ThreadID int64
	// What it is about; which of these are set is up to the kind.
	TurnID   int64
	CardID   string // see [Approval.CardID]
	InboxID  int64  // of the prompt
	NoticeID string // of a budget
	TS       string // of the post that the envelope InboxID is about
	UserID   string // whom a whisper is for
	// Body is what no other row has; see [OutboxKind].
	Body      string
	CreatedAt time.Time
	// Again says that somebody may have sent it already.
	Again bool
}

// OutboxKind says what is to be shown.
type OutboxKind string

// The kinds of outbox rows. Those of a card, a wait and a budget are rendered from the database
// as they stand when they are sent, whatever has changed meanwhile.
const (
	OutboxTurn    OutboxKind = "turn"     // how a turn ended: Body is its view, as the agent encodes it
	OutboxLeft    OutboxKind = "left"     // a turn that goes on elsewhere: Body is a sentence for what it has left, or is said
	OutboxGivenUp OutboxKind = "given up" // a turn that does not go on; Body is as that of one that was left
	OutboxCard    OutboxKind = "card"     // a card of approvals has changed
	OutboxWait    OutboxKind = "wait"     // what a prompt waits for, or does no longer
	OutboxBudget  OutboxKind = "budget"   // a budget's notice, or how it was decided
	OutboxMark    OutboxKind = "mark"     // a prompt is marked: Body says how
	OutboxSaid    OutboxKind = "said"     // Body is a sentence in a thread
	OutboxWhisper OutboxKind = "whisper"  // Body is a sentence for one person
	OutboxWaits   OutboxKind = "waits"    // a post waits, or does no longer: see [Store.PostWaits]
	OutboxQueue   OutboxKind = "queue"    // a message says what waits in a thread, for as long as it stands
)

// InOrder reports whether rows of the kind are sent in the order of their coming within
// a thread. The others edit what stands there.
func (k OutboxKind) InOrder() bool {
	switch k {
	case OutboxTurn, OutboxLeft, OutboxGivenUp, OutboxMark, OutboxSaid:
		return true
	case OutboxCard, OutboxWait, OutboxBudget, OutboxWhisper, OutboxWaits, OutboxQueue:
	}
	return false
}

// OutboxHold is for how long a row is its process's to send, unless that renews it
// ([Store.HoldOutbox]).
const OutboxHold = 15 * time.Second

const outboxColumns = `o.id, o.kind, o.team_id, COALESCE(t.channel_id, NULLIF(o.channel_id, ''), i.channel_id, '') AS channel_id, COALESCE(t.thread_ts, o.thread_ts) AS thread_ts,
	COALESCE(o.thread_id, 0) AS thread_id, COALESCE(o.turn_id, 0) AS turn_id, COALESCE(o.card_id, '') AS card_id, COALESCE(o.inbox_id, 0) AS inbox_id,
	COALESCE(o.notice_id, '') AS notice_id, COALESCE(i.ts, '') AS ts, o.user_id, o.body, o.created_at, o.tries > 0 AS again`

// PostgreSQL takes the few rows of a claim for many: without the limit it would read all
// threads.
const outboxTables = ` o LEFT JOIN LATERAL (SELECT * FROM threads WHERE id = o.thread_id LIMIT 1) t ON true LEFT JOIN inbox i ON i.id = o.inbox_id`

// newOutboxRow is an outbox row of a thread that is to be written.
type newOutboxRow struct {
	kind         OutboxKind
	turn, inbox  int64
	card, notice string
	body         string
	free         bool // nobody is about to send it
}

// addOutboxRows writes rows of a thread into the outbox, in one round trip. They are this
// process's to send.
func (s *Store) addOutboxRows(ctx context.Context, tx pgx.Tx, threadID int64, words ...newOutboxRow) ([]OutboxRow, error) {
	if len(words) == 0 {
		return nil, nil
	}
	var out []OutboxRow
	var b pgx.Batch
	for _, w := range words {
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
			out = append(out, got)
			return err
		})
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("write into the outbox: %w", err)
	}
	return out, nil
}

// addCardRow notes that an approval's card is to be shown as it stands now.
func (s *Store) addCardRow(ctx context.Context, tx pgx.Tx, a *Approval) error {
	rows, err := s.addOutboxRows(ctx, tx, a.ThreadID, newOutboxRow{kind: OutboxCard, card: a.CardID})
	if err == nil {
		a.OutboxID = rows[0].ID
	}
	return err
}

// closeCards notes that the cards of a turn are to be shown once more, since it asks for
// nothing any more. They are this process's to show for some time.
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

// LeaveTurn writes into the outbox what is true of a turn whose process has died: the
// work goes on elsewhere, and its controls are dead.
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

// ClaimOutbox takes over rows of a team that nobody sends: their process did not renew
// its hold, was an earlier one of this replica, or has put them back; the oldest first,
// limit at most. Ordered rows (see [OutboxKind.InOrder]) wait while another
// process still holds an earlier row of the same thread.
func (s *Store) ClaimOutbox(ctx context.Context, teamID string, limit int) (rows []OutboxRow, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		// One replica at a time looks, so that two do not share a thread's rows out.
		var free bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('claiming outbox/' || $1, 0))`, teamID).Scan(&free); err != nil || !free {
			return err
		}
		rows, err = collect[OutboxRow](tx.Query(ctx, `
			WITH o AS (
				UPDATE outbox SET replica = $2, process = $3, held_until = now() + $4, tries = tries + 1
				WHERE id IN (
					SELECT id FROM outbox w
					WHERE team_id = $1 AND (held_until <= now() OR held_until > now() + interval '5 minutes' -- a clock that jumped
						OR replica = $2 AND process <> $3)
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

// HoldOutbox keeps rows that this process is sending its own for another [OutboxHold].
func (s *Store) HoldOutbox(ctx context.Context, ids []int64) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE outbox SET held_until = now() + $4 WHERE id = ANY ($1) AND replica = $2 AND process = $3`,
		ids, s.replica, s.process, OutboxHold)
	return wrap(err, "hold outbox rows")
}

// PutBackOutbox gives outbox rows that could not be sent now to whoever looks after a while: two
// seconds, and twice as long each time, up to a minute.
func (s *Store) PutBackOutbox(ctx context.Context, ids []int64) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE outbox SET held_until = now() + make_interval(secs => least(60, 2 << least(tries, 5))), tries = tries + 1
		WHERE id = ANY ($1) AND replica = $2 AND process = $3`, ids, s.replica, s.process)
	return wrap(err, "put outbox rows back")
}

// ReleaseOutbox gives all that this process has to send to whoever is alive: it stops.
func (s *Store) ReleaseOutbox(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE outbox SET held_until = now() WHERE replica = $1 AND process = $2`, s.replica, s.process)
	return wrap(err, "release outbox rows")
}

// Shown is what was shown of outbox rows that are rendered from the database: all of one kind
// about one thing, as it stood when UpTo was the last outbox row about it.
type Shown struct {
	Kind    OutboxKind // card, wait, budget or waits
	Subject string     // the id of the card, of the prompt or post in the inbox, or of the notice
	UpTo    int64
}

// EndOutbox takes rows out of the outbox: people have seen them, or never can.
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

// GivenUp begins the outcome of a message that could not be worked on; why follows, for
// people.
const GivenUp = "given up: "

// PostState is what people are to see of a post that has waited.
type PostState struct {
	Waits    bool   // its author sees that it waits
	GivenUp  string // why it was not worked on; empty of one that was not given up
	ThreadTS string
}

// PostWaits fetches what people are to see of a post that waits, or has waited.
func (s *Store) PostWaits(ctx context.Context, inboxID int64) (PostState, error) {
	p, err := collectOne[PostState](s.pool.Query(ctx, `
		SELECT marked AND state <> 'done' AS waits, CASE WHEN state = 'done' AND starts_with(outcome, $2) THEN substr(outcome, length($2) + 1) ELSE '' END AS given_up,
			thread_ts
		FROM inbox WHERE id = $1`, inboxID, GivenUp))
	return p, wrap(err, "read whether post %d waits", inboxID)
}

// ShowWaits has the author of a post see whether it waits: somebody may have left a mark.
func (s *Store) ShowWaits(ctx context.Context, p Post) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO outbox (kind, team_id, inbox_id, held_until)
		SELECT 'waits', team_id, id, now() FROM inbox WHERE kind = 'message' AND team_id = $1 AND channel_id = $2 AND ts = $3`, p.TeamID, p.ChannelID, p.TS)
	return wrap(err, "show whether the post %s waits", p.TS)
}

// StandQueue writes into the outbox that a message says what waits in a thread, or is about
// to: it is this process's to take away, or to put right, for as long as it holds the row.
// Where another one had it the row says Again.
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

// Whisper is a sentence for one person, where nobody else sees it.
type Whisper struct {
	ChannelID, ThreadTS string // ThreadTS is empty outside of threads
	UserID              string
	Sentence            string
}

// FinishTelling marks an envelope as dealt with; outcome says in a word or two how, and
// tell is what the person who sent it is told. It leaves a prompt alone that a worker has:
// its turn finishes it. Nothing is written of an envelope that was finished already, or that a worker has.
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
