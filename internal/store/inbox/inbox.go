package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Kind is what Slack sent.
type Kind string

// The kinds of envelopes.
const (
	Message Kind = "message" // a post, whether it came as app_mention or as message
	Action  Kind = "action"  // a click
	View    Kind = "view"    // a modal submitted
	Command Kind = "command" // a slash command
	Event   Kind = "event"   // another event, such as app_home_opened
)

// Envelope is a row of the inbox: one thing that Slack sent.
type Envelope struct {
	ID         int64
	EventID    string // Slack's event_id, or envelope_id where there is none
	Kind       Kind
	TeamID     string
	ChannelID  string
	TS         string // the post's or the card's ts; may be empty
	ThreadTS   string // the thread it belongs to; for a top-level post its own ts
	UserID     string
	Payload    json.RawMessage
	ReceivedAt time.Time
	Holder     string // the replica that handles it
	// Attempts failed so far, the first at WaitsSince, see [Store.PutOff].
	Attempts   int
	WaitsSince time.Time // zero if there was none
	Marked     bool      // its author sees that it waits
	Edits      int       // how often it was changed while it waited
}

const envelopeColumns = `i.id, i.event_id, i.kind, i.team_id, i.channel_id, i.ts, i.thread_ts, i.user_id, i.payload, i.received_at,
	i.holder, i.attempts, COALESCE(i.waits_since, '0001-01-01T00:00:00Z') AS waits_since, i.marked, i.edits`

// Key is the thread the envelope belongs to.
func (e Envelope) Key() threads.ThreadKey {
	return threads.ThreadKey{TeamID: e.TeamID, ChannelID: e.ChannelID, ThreadTS: e.ThreadTS}
}

// Receive commits an envelope, so that it may be acknowledged, and holds it for its Holder, or leaves it to the
// next [Store.Due] if there is none. fresh is false for a duplicate: a retry, or the other event of the same post.
func (s *Store) Receive(ctx context.Context, e Envelope) (id int64, fresh bool, err error) {
	err = s.db.QueryRow(ctx, `
		INSERT INTO inbox (event_id, kind, team_id, channel_id, ts, thread_ts, user_id, payload, holder, next_try, marked)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + CASE $9 WHEN '' THEN interval '0' ELSE $10 END, $11)
		ON CONFLICT DO NOTHING
		RETURNING id`,
		e.EventID, e.Kind, e.TeamID, e.ChannelID, e.TS, e.ThreadTS, e.UserID, e.Payload, e.Holder, HoldFor, e.Marked,
	).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return id, err == nil, pg.Wrap(err, "store envelope %s", e.EventID)
}

// Prompt is an authorised message with or without a turn.
type Prompt struct {
	InboxID  int64
	ThreadID int64
	threads.ThreadKey
	UUID   string // ours, by which the CLI knows the message
	UserID string
	TS     string // of the person's own message
	Text   string
	Files  []PromptFile // that came with it
	Waited bool         // it slept until a budget changed, see [ledger.Store.WaitForBudget]
	// NotYet is true while the next attempt to start it, at NextTry, is due later, see [Store.PutOffPrompt];
	// Attempts failed so far, the first at WaitsSince.
	NotYet     bool
	NextTry    time.Time
	Attempts   int
	WaitsSince time.Time // zero if there was none
	Why        string    // of the last one, for people
	Marked     bool      // its author sees that it waits
	UrgentAt   time.Time // when UrgentBy sent it ahead of the others; or zero
	UrgentBy   string
	Rewind     *Rewind // what is to be done instead of a turn; nil for a turn
	Begun      bool    // the rewind has begun to change the files
	ByItself   bool    // it comes of the thread's pull request, see [forges.Store.WakePull], and nobody wrote it
}

// Rewind is what a prompt is to do that takes back a part of its thread.
type Rewind struct {
	To    int64  `json:"to"`              // the turn before which it goes back; 0 goes back to before the last rewind
	Go    bool   `json:"go,omitempty"`    // it is done, if the thread is still at turn Point of session In; else only looked at
	Point int64  `json:"point,omitempty"` // the last turn that counts
	In    string `json:"in,omitempty"`    // the session
	Name  string `json:"name"`            // of whoever wants it, for people
}

// PromptFile is a file that somebody attached to a message.
type PromptFile struct {
	ID   string `json:"id"`   // Slack's
	Name string `json:"name"` // as they named it
}

// NewPrompt is the input of AcceptPrompt beyond the envelope.
type NewPrompt struct {
	InboxID int64
	Thread  threads.ThreadKey
	Project string // of the thread if this prompt opens it
	Title   string // likewise
	Slug    string // likewise: what its branch is called after its number
	Base    string // likewise: the branch that it starts from; empty for the project's
	UserID  string
	UUID    string
	Text    string
	Files   []PromptFile
	Edits   int     // how often the message had been changed when it was read
	Steers  []Steer // what was chosen with it
	Rewind  *Rewind
	// Continues is the turn that a budget stopped and that this goes on with; 0 for
	// none. That is possible while the thread has not gone on, and nothing waits in it to.
	Continues int64
	// LookSince is since when replies may be missing, if this prompt opens the thread: earlier ones were ignored.
	// Unless it is zero a [Scan] is requested.
	LookSince time.Time
}

// AcceptPrompt turns a received envelope into a prompt of its thread, opens the thread if needed, and notifies the
// replicas unless this one holds it: the caller wakes its worker. ok is false when the envelope was already handled.
// [pg.ErrEnded] says that the thread has gone on after the turn that it continues, [pg.ErrNotYet] that an earlier message of the thread waits,
// or that this one was changed after it was read.
func (s *Store) AcceptPrompt(ctx context.Context, p NewPrompt) (t threads.Thread, ok bool, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var b, then pgx.Batch
		openThread(&b, p, &t) // and locks its row: prompts of one thread come one by one
		b.Queue(`
			UPDATE inbox i SET state = 'accepted', thread_id = t.id, prompt_uuid = $2, prompt = $3,
				files = COALESCE($5::jsonb, '[]'), rewind = $6, next_try = now(), attempts = 0, waits_since = NULL, why = '', marked = false
			FROM threads t
			WHERE i.id = $1 AND i.state = 'received' AND i.edits = $4 AND NOT `+behind+` AND t.team_id = $7 AND t.channel_id = $8 AND t.thread_ts = $9`,
			p.InboxID, p.UUID, p.Text, p.Edits, p.Files, p.Rewind, p.Thread.TeamID, p.Thread.ChannelID, p.Thread.ThreadTS).Exec(func(tag pgconn.CommandTag) error {
			ok = tag.RowsAffected() == 1
			return nil
		})
		if err := tx.Send(ctx, &b); err != nil {
			return err
		}
		if !ok {
			return stillReceived(ctx, tx, p.InboxID)
		}
		if err := mayContinue(ctx, tx, t.ID, p); err != nil {
			return err
		}
		if !p.LookSince.IsZero() {
			if err := want(ctx, tx, Scan{TeamID: t.TeamID, ChannelID: t.ChannelID, ThreadTS: t.ThreadTS, Since: p.LookSince}); err != nil {
				return err
			}
		}
		for _, c := range p.Steers {
			if _, err := s.steer(ctx, tx, t.ID, c, true); err != nil {
				return err
			}
		}
		details := map[string]any{"inbox": p.InboxID, "uuid": p.UUID, "text": p.Text}
		if len(p.Files) > 0 {
			details["files"] = p.Files
		}
		if t.LeaseOwner == "" || t.LeaseOwner != s.db.Replica {
			then.Queue(pg.SendNotice, pg.Channel, pg.Notice{Kind: pg.NoticePrompt, ThreadID: t.ID}.Body())
		}
		return audit.AppendAfter(ctx, tx, &then, audit.Entry{Kind: audit.Prompt, TeamID: t.TeamID, Actor: p.UserID, ThreadID: t.ID, Details: details})
	})
	if err != nil {
		return threads.Thread{}, false, fmt.Errorf("accept prompt %d: %w", p.InboxID, err)
	}
	return t, ok, nil
}

// openThread adds to a batch that the prompt's thread is read, and opened if there is none.
func openThread(b *pgx.Batch, p NewPrompt, t *threads.Thread) {
	b.Queue(`
		INSERT INTO threads AS t (team_id, channel_id, thread_ts, project, owner_id, title, slug, base)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (team_id, channel_id, thread_ts) DO UPDATE SET active_at = now()
		RETURNING `+threads.Columns, p.Thread.TeamID, p.Thread.ChannelID, p.Thread.ThreadTS, p.Project, p.UserID, p.Title, p.Slug, p.Base).Query(func(rows pgx.Rows) (err error) {
		*t, err = pg.CollectOne[threads.Thread](rows, nil)
		return err
	})
}

// mayContinue gives [pg.ErrEnded] unless the turn that the prompt goes on with still offers that.
func mayContinue(ctx context.Context, tx pg.Tx, threadID int64, p NewPrompt) error {
	if p.Continues == 0 {
		return nil
	}
	var offers bool
	err := tx.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM turns r WHERE id = $1 AND thread_id = $2 AND over_budget
		  AND NOT EXISTS (SELECT FROM turns l WHERE l.thread_id = r.thread_id AND l.id > r.id)
		  AND NOT EXISTS (SELECT FROM inbox i WHERE i.thread_id = r.thread_id AND i.state IN ('accepted', 'running') AND i.id <> $3))`,
		p.Continues, threadID, p.InboxID).Scan(&offers)
	if err == nil && !offers {
		err = pg.ErrEnded
	}
	return err
}

// NextFirst orders a thread's prompts, the next one first.
const NextFirst = `i.urgent_at NULLS LAST, i.ts, i.id`

// PromptColumns are those of a [Prompt], of row i.
const PromptColumns = `i.id AS inbox_id, i.thread_id, i.team_id, i.channel_id, i.thread_ts, i.prompt_uuid::text AS uuid, i.user_id, i.ts, i.prompt AS text, NULLIF(i.files, '[]') AS files,
	EXISTS (SELECT FROM budget_waits b WHERE b.inbox_id = i.id) AS waited,
	i.next_try > now() AS not_yet, i.next_try, i.attempts,
	COALESCE(i.waits_since, '0001-01-01T00:00:00Z') AS waits_since, i.why, i.marked, COALESCE(i.urgent_at, '0001-01-01T00:00:00Z') AS urgent_at, i.urgent_by,
	i.rewind, i.state = 'running' AND i.rewind IS NOT NULL AS begun, i.event_id LIKE 'pull/%' AS by_itself`

// Drop says how dropped prompts are reported.
type Drop struct {
	Outcome string
	Mark    string // how each is marked, for an [outbox.Mark]; empty for no mark
	// Sentence returns the text in the thread, for an [outbox.Said]; nil or empty for none. It is called only if
	// some were dropped.
	Sentence func(dropped int) string
	Buttons  []outbox.Button // below it
	Alone    bool            // only who asked for the last one is told the sentence, by an [outbox.Whisper]
}

// DropPrompts finishes every prompt of the thread that has no turn yet, and returns them with the outbox rows:
// their marks, then the sentence, and what they waited for, see [outbox.Wait].
func (s *Store) DropPrompts(ctx context.Context, l threads.Lease, d Drop) ([]Prompt, []outbox.Row, error) {
	return s.dropPrompts(ctx, l, nil, d)
}

// DropPrompt finishes one prompt without a turn, like [Store.DropPrompts]. If its author has taken it back or
// changed it, it gives [pg.ErrNotFound].
func (s *Store) DropPrompt(ctx context.Context, l threads.Lease, inboxID int64, d Drop) ([]outbox.Row, error) {
	_, rows, err := s.dropPrompts(ctx, l, &inboxID, d)
	return rows, err
}

// dropPrompts drops one prompt, or all.
func (s *Store) dropPrompts(ctx context.Context, l threads.Lease, one *int64, d Drop) (out []Prompt, rows []outbox.Row, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		if one != nil {
			if _, err := threads.Hold(ctx, tx, l); err != nil {
				return err
			}
		}
		out, err = pg.Collect[Prompt](tx.Query(ctx, `
			UPDATE inbox i SET state = 'done', outcome = $4, done_at = now()
			FROM threads t
			WHERE i.thread_id = $1 AND i.state = 'accepted' AND ($5::bigint IS NULL OR i.id = $5)
			  AND t.id = i.thread_id AND t.lease_owner = $2 AND t.lease_epoch = $3
			RETURNING `+PromptColumns, l.ThreadID, l.Owner, l.Epoch, d.Outcome, one))
		if err == nil && len(out) == 0 && one != nil {
			err = pg.ErrNotFound
		}
		if err != nil || len(out) == 0 {
			out = nil
			return err
		}
		var tell []outbox.NewRow
		var alone []outbox.Row
		for _, p := range out {
			if d.Mark != "" {
				tell = append(tell, outbox.NewRow{Kind: outbox.Mark, Inbox: p.InboxID, Body: d.Mark})
			}
		}
		if d.Sentence != nil {
			said, p := d.Sentence(len(out)), out[len(out)-1]
			switch {
			case said == "":
			case d.Alone:
				w := Whisper{ChannelID: p.ChannelID, ThreadTS: p.ThreadTS, UserID: p.UserID, Sentence: said}
				if alone, err = s.whisper(ctx, tx, p.TeamID, p.InboxID, w); err != nil {
					return err
				}
			default:
				tell = append(tell, outbox.NewRow{Kind: outbox.Said, Body: said, Buttons: d.Buttons})
			}
		}
		shown := len(tell)
		for _, p := range out {
			if p.Waited {
				tell = append(tell, outbox.NewRow{Kind: outbox.Wait, Inbox: p.InboxID})
			}
		}
		rows, err = outbox.Add(ctx, tx, l.ThreadID, tell...)
		if err == nil {
			rows = append(rows[:shown], alone...)
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("drop prompts of thread %d: %w", l.ThreadID, err)
	}
	return out, rows, nil
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
func (s *Store) FinishTelling(ctx context.Context, id int64, outcome string, tell ...Whisper) (rows []outbox.Row, err error) {
	const finish = `UPDATE inbox SET state = 'done', outcome = $2, done_at = now() WHERE id = $1 AND state = 'received' RETURNING team_id`
	if len(tell) == 0 { // nearly always: one round trip
		if _, err := s.db.Exec(ctx, finish, id, outcome); err != nil {
			return nil, fmt.Errorf("finish envelope %d: %w", id, err)
		}
		return nil, nil
	}
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var team string
		err := tx.QueryRow(ctx, finish, id, outcome).Scan(&team)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err = s.whisper(ctx, tx, team, id, tell...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("finish envelope %d: %w", id, err)
	}
	return rows, nil
}

// whisper queues sentences for single people, which come of an envelope.
func (s *Store) whisper(ctx context.Context, tx pg.Tx, team string, inboxID int64, tell ...Whisper) (rows []outbox.Row, err error) {
	for _, w := range tell {
		r, err := pg.CollectOne[outbox.Row](tx.Query(ctx, `
			WITH o AS (
				INSERT INTO outbox (kind, team_id, inbox_id, channel_id, thread_ts, user_id, body, replica, process, held_until)
				VALUES ('whisper', $1, $2, $3, $4, $5, $6, $7, $8, now() + $9)
				RETURNING *)
			SELECT `+outbox.Columns+` FROM`+outbox.Tables,
			team, inboxID, w.ChannelID, w.ThreadTS, w.UserID, w.Sentence, s.db.Replica, s.db.Process, outbox.Hold))
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}
