package outbox

import (
	"context"
	"fmt"
	"time"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// PostKind is what a message of ours shows.
type PostKind string

// The kinds of messages that are edited after posting, with the subject of their [PostedMessage].
const (
	TurnPost   PostKind = "turn"   // a page of a turn
	CardPost   PostKind = "card"   // a card, see [approvals.Approval.CardID], or somebody's copy of it
	PlacePost  PostKind = "place"  // a thread's position in the queue for a session
	QueuePost  PostKind = "queue"  // a thread's queue
	WaitPost   PostKind = "wait"   // what a prompt, by its id in the inbox, waits for
	BudgetPost PostKind = "budget" // a budget's notice
	PullPost   PostKind = "pull"   // a pull request
)

// PostedMessage is a Slack message of ours, identified by kind, subject, part and audience.
type PostedMessage struct {
	Kind    PostKind
	Subject string
	Part    int // the number of a turn's page
	// Audience is the person with a copy of a card, or the channel that a budget's notice is sent to outside a
	// thread; else empty.
	Audience  string
	ChannelID string
	TS        string    // empty until it is posted
	CreatedAt time.Time // when it was first recorded
	// Open is for a turn's cards: the CLI still waits for an answer to something on it.
	Open bool
}

const postColumns = `p.kind, p.subject, p.part, p.audience, p.channel_id, p.ts, p.created_at`

// SavePosts records where messages were posted. One without a ts is about to be posted: it is recorded unless it
// was before.
func (s *Store) SavePosts(ctx context.Context, posts ...PostedMessage) error {
	for _, p := range posts {
		if _, err := s.db.Exec(ctx, `
			INSERT INTO posts (kind, subject, part, audience, channel_id, ts) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (kind, subject, part, audience) DO UPDATE SET channel_id = excluded.channel_id, ts = excluded.ts WHERE excluded.ts <> ''`,
			p.Kind, p.Subject, p.Part, p.Audience, p.ChannelID, p.TS); err != nil {
			return fmt.Errorf("note the message of %s %s: %w", p.Kind, p.Subject, err)
		}
	}
	return nil
}

// Posts lists the messages that show something, by part and audience.
func (s *Store) Posts(ctx context.Context, kind PostKind, subject string) ([]PostedMessage, error) {
	out, err := pg.Collect[PostedMessage](s.db.Query(ctx, `
		SELECT `+postColumns+`, false AS open FROM posts p WHERE p.kind = $1 AND p.subject = $2 ORDER BY p.part, p.audience`, kind, subject))
	return out, pg.Wrap(err, "read the messages of %s %s", kind, subject)
}

// ForgetPost deletes the record of a message that was deleted or is final. It finds it by CreatedAt or by TS: any
// replica may have posted another one of the same kind and subject since. A thread's position in the queue is kept
// while another replica than this one holds the thread: that one has taken the message over.
func (s *Store) ForgetPost(ctx context.Context, p PostedMessage, replica string) error {
	_, err := s.db.Exec(ctx, `
		DELETE FROM posts WHERE kind = $1 AND subject = $2 AND (created_at = $3 OR ts = $4 AND ts <> '')
			AND NOT EXISTS (SELECT FROM threads t WHERE t.id = CASE kind WHEN 'place' THEN subject::bigint END AND t.lease_owner <> $5)`,
		p.Kind, p.Subject, p.CreatedAt, p.TS, replica)
	return pg.Wrap(err, "forget the message of %s %s", p.Kind, p.Subject)
}

// postsOfTurn are the messages in its thread that show turn $1: its pages, and its cards with whether one waits for
// its answer.
const postsOfTurn = `(
	SELECT ` + postColumns + `, false AS open FROM posts p WHERE p.kind = 'turn' AND p.subject = $1::bigint::text
	UNION ALL
	SELECT ` + postColumns + `, c.open
	FROM (SELECT a.card_id, bool_or(a.delivered_at IS NULL AND a.status IN ('pending', 'allowed', 'denied')) AS open
		FROM approvals a WHERE a.turn_id = $1 GROUP BY a.card_id) c
	JOIN posts p ON p.kind = 'card' AND p.subject = c.card_id AND p.audience = '')`

// TurnPosts returns the messages in its thread that show a turn, its pages and its cards, in order.
func (s *Store) TurnPosts(ctx context.Context, turnID int64) ([]PostedMessage, error) {
	out, err := pg.Collect[PostedMessage](s.db.Query(ctx, `SELECT * FROM `+postsOfTurn+` m ORDER BY ts`, turnID))
	return out, pg.Wrap(err, "read the messages of turn %d", turnID)
}

// WroteBelow reports whether somebody has written in a turn's thread below its newest message, if that one was
// posted between from and to. These are times of this machine, which is assumed to agree with Slack's clock. Posts
// to other people are not known here.
func (s *Store) WroteBelow(ctx context.Context, k threads.ThreadKey, turnID int64, from, to time.Time) (wrote bool, err error) {
	// A ts is a number of seconds with six decimals, of ten digits until the year 2286.
	ts := func(t time.Time) string { return fmt.Sprintf("%d.%06d", max(0, t.Unix()), t.Nanosecond()/1000) }
	err = s.db.QueryRow(ctx, `
		SELECT EXISTS (
			SELECT FROM (SELECT max(m.ts) AS ts FROM `+postsOfTurn+` m) newest
			JOIN inbox e ON e.team_id = $2 AND e.channel_id = $3 AND e.thread_ts = $4 AND e.kind = 'message' AND e.ts > newest.ts
			WHERE newest.ts > $5 AND newest.ts < $6)`, turnID, k.TeamID, k.ChannelID, k.ThreadTS, ts(from), ts(to)).Scan(&wrote)
	return wrote, pg.Wrap(err, "read who has written below turn %d", turnID)
}

// StalePlaces are a team's threads with a message about the queue for a session that no longer wait: what they
// waited with was withdrawn, and nobody holds them.
func (s *Store) StalePlaces(ctx context.Context, teamID string) ([]threads.Thread, error) {
	out, err := pg.Collect[threads.Thread](s.db.Query(ctx, `
		SELECT `+threads.Columns+` FROM posts p JOIN threads t ON t.id = p.thread_id
		WHERE p.kind = 'place' AND t.team_id = $1 AND `+threads.Unheld+`
		  AND NOT EXISTS (SELECT FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running'))
		  AND NOT EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running')`, teamID))
	return out, pg.Wrap(err, "look for places in the queue that nobody has")
}
