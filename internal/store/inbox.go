package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ThreadKey names a Slack thread.
type ThreadKey struct {
	TeamID    string
	ChannelID string
	ThreadTS  string
}

// EnvelopeKind is what Slack sent.
type EnvelopeKind string

// The kinds of envelopes.
const (
	KindMessage EnvelopeKind = "message" // a post, whether it came as app_mention or as message
	KindAction  EnvelopeKind = "action"  // a click
	KindView    EnvelopeKind = "view"    // a modal submitted
	KindCommand EnvelopeKind = "command" // a slash command
	KindEvent   EnvelopeKind = "event"   // another event, such as app_home_opened
)

// Envelope is one thing that Slack sent, as it lies in the inbox.
type Envelope struct {
	ID         int64
	EventID    string // Slack's event_id, or envelope_id where there is none
	Kind       EnvelopeKind
	TeamID     string
	ChannelID  string
	TS         string // the post's or the card's ts; empty where there is none
	ThreadTS   string // the thread it belongs to; for a top-level post its own ts
	UserID     string
	Payload    json.RawMessage
	ReceivedAt time.Time
}

// Key is the thread the envelope belongs to.
func (e Envelope) Key() ThreadKey {
	return ThreadKey{TeamID: e.TeamID, ChannelID: e.ChannelID, ThreadTS: e.ThreadTS}
}

// Receive commits an envelope, so that it may be acknowledged. fresh is false
// when it is here already: a retry, or the other event of the same post.
func (s *Store) Receive(ctx context.Context, e Envelope) (id int64, fresh bool, err error) {
	err = s.pool.QueryRow(ctx, `
		INSERT INTO inbox (event_id, kind, team_id, channel_id, ts, thread_ts, user_id, payload)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT DO NOTHING
		RETURNING id`,
		e.EventID, e.Kind, e.TeamID, e.ChannelID, e.TS, e.ThreadTS, e.UserID, e.Payload,
	).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("store envelope %s: %w", e.EventID, err)
	}
	return id, true, nil
}

// Unrouted returns the envelopes that were acknowledged before olderThan and
// not acted on since, oldest first: what a crash left behind.
func (s *Store) Unrouted(ctx context.Context, olderThan time.Time) ([]Envelope, error) {
	out, err := collect[Envelope](s.pool.Query(ctx, `
		SELECT id, event_id, kind, team_id, channel_id, ts, thread_ts, user_id, payload, received_at
		FROM inbox WHERE state = 'received' AND received_at < $1 ORDER BY ts, id`, olderThan))
	if err != nil {
		return nil, fmt.Errorf("read the unrouted inbox: %w", err)
	}
	return out, nil
}

// Finish marks an envelope as dealt with; outcome says in a word or two how.
// It leaves a prompt alone that a worker has: its turn finishes it.
func (s *Store) Finish(ctx context.Context, id int64, outcome string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE inbox SET state = 'done', outcome = $2, done_at = now()
		WHERE id = $1 AND state = 'received'`, id, outcome)
	if err != nil {
		return fmt.Errorf("finish envelope %d: %w", id, err)
	}
	return nil
}

// Prompt is an authorised message that waits for a turn or has one.
type Prompt struct {
	InboxID  int64
	ThreadID int64
	Thread   ThreadKey
	UUID     string // ours; the CLI knows the message by it
	UserID   string
	TS       string // of the person's own message
	Text     string
	Waited   bool // it slept until a budget changed, see [Store.WaitForBudget]
}

// NewPrompt is what AcceptPrompt needs beyond the envelope.
type NewPrompt struct {
	InboxID int64
	Thread  ThreadKey
	Project string // of the thread if this prompt opens it
	UserID  string
	UUID    string
	Text    string
	// Continues is the turn that a budget stopped and that this goes on with; 0 for
	// none. That is possible once, and while the thread has not gone on.
	Continues int64
}

// AcceptPrompt turns a received envelope into a prompt of its thread, opening
// the thread if there is none, and wakes the replica that holds it. ok is false
// when the envelope was dealt with already. [ErrEnded] says that the turn that it
// should go on with was gone on from already.
func (s *Store) AcceptPrompt(ctx context.Context, p NewPrompt) (t Thread, ok bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		t, err = collectOne[Thread](tx.Query(ctx, `
			INSERT INTO threads AS t (team_id, channel_id, thread_ts, project, owner_id)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (team_id, channel_id, thread_ts) DO UPDATE SET active_at = now()
			RETURNING `+threadColumns,
			p.Thread.TeamID, p.Thread.ChannelID, p.Thread.ThreadTS, p.Project, p.UserID))
		if err != nil {
			return err
		}
		// The thread's row is locked by now: prompts of one thread come one by one.
		if err := takeContinue(ctx, tx, t.ID, p); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			UPDATE inbox SET state = 'accepted', thread_id = $2, prompt_uuid = $3, prompt = $4
			WHERE id = $1 AND state = 'received'`, p.InboxID, t.ID, p.UUID, p.Text)
		if err != nil {
			return err
		}
		ok = tag.RowsAffected() == 1
		if !ok {
			return nil
		}
		if err := notify(ctx, tx, Notice{Kind: NoticePrompt, ThreadID: t.ID}); err != nil {
			return err
		}
		return audit(ctx, tx, AuditEntry{
			Kind: AuditPrompt, TeamID: t.TeamID, Actor: p.UserID, ThreadID: t.ID,
			Details: map[string]any{"inbox": p.InboxID, "uuid": p.UUID, "text": p.Text},
		})
	})
	if err != nil {
		return Thread{}, false, fmt.Errorf("accept prompt %d: %w", p.InboxID, err)
	}
	return t, ok, nil
}

// takeContinue takes a stopped turn's offer to go on.
func takeContinue(ctx context.Context, tx pgx.Tx, threadID int64, p NewPrompt) error {
	if p.Continues == 0 {
		return nil
	}
	tag, err := tx.Exec(ctx, `
		UPDATE turns r SET continued_by = $3
		WHERE id = $1 AND thread_id = $2 AND over_budget AND continued_by = ''
		  AND NOT EXISTS (SELECT FROM turns l WHERE l.thread_id = r.thread_id AND l.id > r.id)
		  AND NOT EXISTS (SELECT FROM inbox i WHERE i.thread_id = r.thread_id AND i.state IN ('accepted', 'running'))`,
		p.Continues, threadID, p.UserID)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrEnded
	}
	return err
}

const promptColumns = `i.id AS inbox_id, i.thread_id, i.team_id, i.channel_id, i.thread_ts, i.prompt_uuid::text AS uuid, i.user_id, i.ts, i.prompt AS text,
	EXISTS (SELECT FROM budget_waits b WHERE b.inbox_id = i.id) AS waited`

type promptRow struct {
	InboxID                          int64
	ThreadID                         int64
	TeamID, ChannelID                string
	ThreadTS, UUID, UserID, TS, Text string
	Waited                           bool
}

func (r promptRow) prompt() Prompt {
	return Prompt{
		InboxID: r.InboxID, ThreadID: r.ThreadID,
		Thread: ThreadKey{TeamID: r.TeamID, ChannelID: r.ChannelID, ThreadTS: r.ThreadTS},
		UUID:   r.UUID, UserID: r.UserID, TS: r.TS, Text: r.Text, Waited: r.Waited,
	}
}

// Drop is how prompts end that get no turn, and what people are told of it.
type Drop struct {
	Outcome string
	Mark    string // how each is marked, for a [WordMark]; empty for no mark
	// Sentence is said in the thread, for a [WordSaid], of so many prompts; nil or empty
	// for none. It is not asked when none was dropped.
	Sentence func(dropped int) string
}

// DropPrompts finishes every prompt of the thread that has no turn yet, and
// returns them with what people are to be shown: their marks, then the sentence. What
// they waited for is to be shown as well, see [WordWait].
func (s *Store) DropPrompts(ctx context.Context, l Lease, d Drop) ([]Prompt, []Word, error) {
	return s.dropPrompts(ctx, l, 0, d)
}

// DropPrompt finishes one prompt of the thread that has no turn, as [Store.DropPrompts].
// None that is there to be dropped gives [ErrFenced].
func (s *Store) DropPrompt(ctx context.Context, l Lease, inboxID int64, d Drop) ([]Word, error) {
	dropped, words, err := s.dropPrompts(ctx, l, inboxID, d)
	if err == nil && len(dropped) == 0 {
		err = fmt.Errorf("drop a prompt of thread %d: %w", l.ThreadID, ErrFenced)
	}
	return words, err
}

// dropPrompts drops one prompt, or all if inboxID is 0.
func (s *Store) dropPrompts(ctx context.Context, l Lease, inboxID int64, d Drop) (out []Prompt, words []Word, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		rows, err := collect[promptRow](tx.Query(ctx, `
			UPDATE inbox i SET state = 'done', outcome = $4, done_at = now()
			FROM threads t
			WHERE i.thread_id = $1 AND i.state = 'accepted' AND ($5 = 0 OR i.id = $5)
			  AND t.id = i.thread_id AND t.lease_owner = $2 AND t.lease_epoch = $3
			RETURNING `+promptColumns, l.ThreadID, l.Owner, l.Epoch, d.Outcome, inboxID))
		if err != nil || len(rows) == 0 {
			return err
		}
		var tell []newWord
		for _, r := range rows {
			out = append(out, r.prompt())
			if d.Mark != "" {
				tell = append(tell, newWord{kind: WordMark, inbox: r.InboxID, body: d.Mark})
			}
		}
		if d.Sentence != nil {
			if said := d.Sentence(len(rows)); said != "" {
				tell = append(tell, newWord{kind: WordSaid, body: said})
			}
		}
		shown := len(tell)
		for _, p := range out {
			if p.Waited {
				tell = append(tell, newWord{kind: WordWait, inbox: p.InboxID})
			}
		}
		words, err = s.addWords(ctx, tx, l.ThreadID, tell...)
		if err == nil {
			words = words[:shown]
		}
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("drop prompts of thread %d: %w", l.ThreadID, err)
	}
	return out, words, nil
}
