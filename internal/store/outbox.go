package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Word is something that people must see, as it lies in the outbox: written in the
// transaction that causes it, and there until Slack has it. Whoever has caused it sends
// it at once; if its process dies, another one does (see [Store.ClaimWords]). So it is
// sent at least once.
type Word struct {
	ID     int64
	Kind   WordKind
	Thread ThreadKey // where; for a whisper the thread's ts may be empty
	// ThreadID is the thread's; 0 for a whisper, and of a post.
	ThreadID int64
	// What it is about; which of these are set is up to the kind.
	TurnID   int64
	CardID   string // see [Approval.CardID]
	InboxID  int64  // of the prompt
	NoticeID string // of a budget
	TS       string // of the post that the envelope InboxID is about
	UserID   string // whom a whisper is for
	// Body is what no other row has; see [WordKind].
	Body      string
	CreatedAt time.Time
	// Again says that somebody may have sent it already.
	Again bool
}

// WordKind says what is to be shown.
type WordKind string

// The kinds of words. Those of a card, a wait and a budget are rendered from the books
// as they stand when they are sent, whatever has changed meanwhile.
const (
	WordTurn    WordKind = "turn"     // how a turn ended: Body is its view, as the agent encodes it
	WordLeft    WordKind = "left"     // a turn that goes on elsewhere: Body is a sentence for what it has left, or is said
	WordGivenUp WordKind = "given up" // a turn that does not go on; Body is as that of one that was left
	WordCard    WordKind = "card"     // a card of approvals has changed
	WordWait    WordKind = "wait"     // what a prompt waits for, or does no longer
	WordBudget  WordKind = "budget"   // a budget's notice, or how it was decided
	WordMark    WordKind = "mark"     // a prompt is marked: Body says how
	WordSaid    WordKind = "said"     // Body is a sentence in a thread
	WordWhisper WordKind = "whisper"  // Body is a sentence for one person
	WordWaits   WordKind = "waits"    // a post waits, or does no longer: see [Store.PostWaits]
	WordQueue   WordKind = "queue"    // a message says what waits in a thread, for as long as it stands
)

// InOrder reports whether words of the kind are sent in the order of their coming within
// a thread. The others edit what stands there.
func (k WordKind) InOrder() bool {
	switch k {
	case WordTurn, WordLeft, WordGivenUp, WordMark, WordSaid:
		return true
	case WordCard, WordWait, WordBudget, WordWhisper, WordWaits, WordQueue:
	}
	return false
}

// WordHold is for how long a word is its process's to send, unless that renews it
// ([Store.HoldWords]).
const WordHold = 15 * time.Second

const wordColumns = `o.id, o.kind, o.team_id, COALESCE(t.channel_id, NULLIF(o.channel_id, ''), i.channel_id, '') AS channel_id, COALESCE(t.thread_ts, o.thread_ts) AS thread_ts,
	COALESCE(o.thread_id, 0) AS thread_id, COALESCE(o.turn_id, 0) AS turn_id, COALESCE(o.card_id, '') AS card_id, COALESCE(o.inbox_id, 0) AS inbox_id,
	COALESCE(o.notice_id, '') AS notice_id, COALESCE(i.ts, '') AS ts, o.user_id, o.body, o.created_at, o.tries > 0 AS again`

// PostgreSQL takes the few words of a claim for many: without the limit it would read all
// threads.
const wordTables = ` o LEFT JOIN LATERAL (SELECT * FROM threads WHERE id = o.thread_id LIMIT 1) t ON true LEFT JOIN inbox i ON i.id = o.inbox_id`

type wordRow struct {
	ID                          int64
	Kind                        WordKind
	TeamID, ChannelID, ThreadTS string
	ThreadID, TurnID            int64
	CardID                      string
	InboxID                     int64
	NoticeID, TS, UserID, Body  string
	CreatedAt                   time.Time
	Again                       bool
}

func (r wordRow) word() Word {
	return Word{
		ID: r.ID, Kind: r.Kind, Thread: ThreadKey{TeamID: r.TeamID, ChannelID: r.ChannelID, ThreadTS: r.ThreadTS},
		ThreadID: r.ThreadID, TurnID: r.TurnID, CardID: r.CardID, InboxID: r.InboxID, NoticeID: r.NoticeID, TS: r.TS, UserID: r.UserID,
		Body: r.Body, CreatedAt: r.CreatedAt, Again: r.Again,
	}
}

// newWord is a word of a thread that is to be written.
type newWord struct {
	kind         WordKind
	turn, inbox  int64
	card, notice string
	body         string
	free         bool // nobody is about to send it
}

// addWords writes words of a thread into the outbox, in one round trip. They are this
// process's to send.
func (s *Store) addWords(ctx context.Context, tx pgx.Tx, threadID int64, words ...newWord) ([]Word, error) {
	if len(words) == 0 {
		return nil, nil
	}
	var out []Word
	var b pgx.Batch
	for _, w := range words {
		hold := WordHold
		if w.free {
			hold = 0
		}
		b.Queue(`
			WITH o AS (
				INSERT INTO outbox (kind, team_id, thread_id, turn_id, card_id, inbox_id, notice_id, body, replica, process, held_until)
				SELECT $2, team_id, id, NULLIF($3::bigint, 0), NULLIF($4, ''), NULLIF($5::bigint, 0), NULLIF($6, ''), $7, $8, $9, now() + $10
				FROM threads WHERE id = $1
				RETURNING *)
			SELECT `+wordColumns+` FROM`+wordTables,
			threadID, w.kind, w.turn, w.card, w.inbox, w.notice, w.body, s.replica, s.process, hold,
		).Query(func(rows pgx.Rows) error {
			got, err := collectOne[wordRow](rows, nil)
			if err == nil {
				out = append(out, got.word())
			}
			return err
		})
	}
	if err := tx.SendBatch(ctx, &b).Close(); err != nil {
		return nil, fmt.Errorf("write into the outbox: %w", err)
	}
	return out, nil
}

// cardWord notes that an approval's card is to be shown as it stands now.
func (s *Store) cardWord(ctx context.Context, tx pgx.Tx, a *Approval) error {
	words, err := s.addWords(ctx, tx, a.ThreadID, newWord{kind: WordCard, card: a.CardID})
	if err == nil {
		a.Word = words[0].ID
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
func (s *Store) Say(ctx context.Context, l Lease, sentence string) (Word, error) {
	return s.oneWord(ctx, l, newWord{kind: WordSaid, body: sentence})
}

// LeaveTurn writes into the outbox what is true of a turn whose process has died: the
// work goes on elsewhere, and its controls are dead.
func (s *Store) LeaveTurn(ctx context.Context, l Lease, turnID int64, sentence string) (Word, error) {
	return s.oneWord(ctx, l, newWord{kind: WordLeft, turn: turnID, body: sentence})
}

func (s *Store) oneWord(ctx context.Context, l Lease, n newWord) (w Word, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := hold(ctx, tx, l); err != nil {
			return err
		}
		words, err := s.addWords(ctx, tx, l.ThreadID, n)
		if err == nil {
			w = words[0]
		}
		return err
	})
	if err != nil {
		return Word{}, fmt.Errorf("say something in thread %d: %w", l.ThreadID, err)
	}
	return w, nil
}

// ClaimWords takes over words of a team that nobody sends: their process did not renew
// its hold, was an earlier one of this replica, or has put them back; the oldest first,
// limit at most. Of a thread whose earlier words are still somebody's, those that are
// sent in order (see [WordKind.InOrder]) wait.
func (s *Store) ClaimWords(ctx context.Context, teamID string, limit int) ([]Word, error) {
	var rows []wordRow
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		// One replica at a time looks, so that two do not share a thread's words out.
		var free bool
		if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock(hashtextextended('claiming words/' || $1, 0))`, teamID).Scan(&free); err != nil || !free {
			return err
		}
		var err error
		rows, err = collect[wordRow](tx.Query(ctx, `
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
			SELECT `+wordColumns+` FROM`+wordTables+` ORDER BY o.id`, teamID, s.replica, s.process, WordHold, limit))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim words: %w", err)
	}
	out := make([]Word, len(rows))
	for i, r := range rows {
		out[i] = r.word()
	}
	return out, nil
}

// HoldWords keeps words that this process is sending its own for another [WordHold].
func (s *Store) HoldWords(ctx context.Context, ids []int64) error {
	if _, err := s.pool.Exec(ctx, `
		UPDATE outbox SET held_until = now() + $4 WHERE id = ANY ($1) AND replica = $2 AND process = $3`,
		ids, s.replica, s.process, WordHold); err != nil {
		return fmt.Errorf("hold words: %w", err)
	}
	return nil
}

// PutBackWords gives words that could not be sent now to whoever looks after a while: two
// seconds, and twice as long each time, up to a minute.
func (s *Store) PutBackWords(ctx context.Context, ids []int64) error {
	if _, err := s.pool.Exec(ctx, `
		UPDATE outbox SET held_until = now() + make_interval(secs => least(60, 2 << least(tries, 5))), tries = tries + 1
		WHERE id = ANY ($1) AND replica = $2 AND process = $3`, ids, s.replica, s.process); err != nil {
		return fmt.Errorf("put words back: %w", err)
	}
	return nil
}

// LetWordsGo gives all that this process has to send to whoever is alive: it stops.
func (s *Store) LetWordsGo(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, `
		UPDATE outbox SET held_until = now() WHERE replica = $1 AND process = $2`, s.replica, s.process); err != nil {
		return fmt.Errorf("let words go: %w", err)
	}
	return nil
}

// Shown is what was shown of words that are rendered from the books: all of one kind
// about one thing, as it stood when UpTo was the last word about it.
type Shown struct {
	Kind     WordKind // card, wait, budget or waits
	CardID   string
	InboxID  int64
	NoticeID string
	UpTo     int64
}

// EndWords takes words out of the outbox: people have seen them, or never can.
func (s *Store) EndWords(ctx context.Context, ids []int64, shown []Shown) error {
	var b pgx.Batch
	if len(ids) > 0 {
		b.Queue(`DELETE FROM outbox WHERE id = ANY ($1)`, ids)
	}
	for _, w := range shown {
		b.Queue(`
			DELETE FROM outbox WHERE kind = $1 AND id <= $5
			  AND CASE $1 WHEN 'card' THEN card_id = $2 WHEN 'wait' THEN inbox_id = $3 WHEN 'waits' THEN inbox_id = $3 WHEN 'budget' THEN notice_id = $4 END`,
			w.Kind, w.CardID, w.InboxID, w.NoticeID, w.UpTo)
	}
	if b.Len() == 0 {
		return nil
	}
	if err := s.pool.SendBatch(ctx, &b).Close(); err != nil {
		return fmt.Errorf("end words: %w", err)
	}
	return nil
}

// PostWaits reports whether the author of a post is to see that it waits.
func (s *Store) PostWaits(ctx context.Context, inboxID int64) (waits bool, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT marked AND state <> 'done' FROM inbox WHERE id = $1`, inboxID).Scan(&waits); err != nil {
		return false, fmt.Errorf("read whether post %d waits: %w", inboxID, err)
	}
	return waits, nil
}

// ShowWaits has the author of a post see whether it waits: somebody may have left a mark.
func (s *Store) ShowWaits(ctx context.Context, p Post) error {
	if _, err := s.pool.Exec(ctx, `
		INSERT INTO outbox (kind, team_id, inbox_id, held_until)
		SELECT 'waits', team_id, id, now() FROM inbox WHERE kind = 'message' AND team_id = $1 AND channel_id = $2 AND ts = $3`, p.TeamID, p.ChannelID, p.TS); err != nil {
		return fmt.Errorf("show whether the post %s waits: %w", p.TS, err)
	}
	return nil
}

// StandQueue writes into the outbox that a message says what waits in a thread, or is about
// to: it is this process's to take away, or to put right, for as long as it holds the word.
// Where another one had it the word says Again.
func (s *Store) StandQueue(ctx context.Context, threadID int64) (Word, error) {
	r, err := collectOne[wordRow](s.pool.Query(ctx, `
		WITH o AS (
			INSERT INTO outbox AS q (kind, team_id, thread_id, replica, process, held_until)
			SELECT 'queue', team_id, id, $2, $3, now() + $4 FROM threads WHERE id = $1
			ON CONFLICT (thread_id) WHERE kind = 'queue' DO UPDATE
			SET replica = excluded.replica, process = excluded.process, held_until = excluded.held_until, tries = q.tries + 1
			RETURNING *)
		SELECT `+wordColumns+` FROM`+wordTables, threadID, s.replica, s.process, WordHold))
	if err != nil {
		return Word{}, fmt.Errorf("write into the outbox what waits in thread %d: %w", threadID, err)
	}
	return r.word(), nil
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
func (s *Store) FinishTelling(ctx context.Context, id int64, outcome string, tell ...Whisper) (words []Word, err error) {
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
			r, err := collectOne[wordRow](tx.Query(ctx, `
				WITH o AS (
					INSERT INTO outbox (kind, team_id, inbox_id, channel_id, thread_ts, user_id, body, replica, process, held_until)
					VALUES ('whisper', $1, $2, $3, $4, $5, $6, $7, $8, now() + $9)
					RETURNING *)
				SELECT `+wordColumns+` FROM`+wordTables,
				team, id, w.ChannelID, w.ThreadTS, w.UserID, w.Sentence, s.replica, s.process, WordHold))
			if err != nil {
				return err
			}
			words = append(words, r.word())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("finish envelope %d: %w", id, err)
	}
	return words, nil
}
