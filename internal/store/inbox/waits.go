package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// HoldFor is how long an envelope belongs to the replica that handles it. After that another one takes it.
const HoldFor = time.Minute

// behind is true of an envelope i that must wait for an earlier message of its thread.
const behind = `(i.kind = 'message' AND EXISTS (SELECT FROM inbox e
	WHERE e.team_id = i.team_id AND e.channel_id = i.channel_id AND e.thread_ts = i.thread_ts
	  AND e.state = 'received' AND e.kind = 'message' AND (e.ts, e.id) < (i.ts, i.id)))`

// stillReceived is [pg.ErrNotYet] if an envelope was not handled yet.
func stillReceived(ctx context.Context, tx pg.Tx, id int64) error {
	var received bool
	err := tx.QueryRow(ctx, `SELECT state = 'received' FROM inbox WHERE id = $1`, id).Scan(&received)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil && received {
		err = pg.ErrNotYet
	}
	return err
}

// Due returns envelopes to handle, limit at most, in the order of their posts, and holds them for holder: those due
// for another attempt, and those of dead replicas.
func (s *Store) Due(ctx context.Context, holder string, limit int) ([]Envelope, error) {
	out, err := pg.Collect[Envelope](s.db.Query(ctx, `
		UPDATE inbox i SET holder = $1, next_try = now() + $3
		FROM (SELECT id FROM inbox WHERE state = 'received' AND next_try <= now() ORDER BY ts, id LIMIT $2 FOR UPDATE SKIP LOCKED) d
		WHERE i.id = d.id
		RETURNING `+envelopeColumns, holder, limit, HoldFor))
	if err != nil {
		return nil, fmt.Errorf("read what is due in the inbox: %w", err)
	}
	slices.SortFunc(out, func(a, b Envelope) int { return cmp.Or(cmp.Compare(a.TS, b.TS), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// LetGo makes due what was held by holders with the prefix except but: earlier processes of the caller.
func (s *Store) LetGo(ctx context.Context, prefix, but string) error {
	_, err := s.db.Exec(ctx, `
		UPDATE inbox SET next_try = now()
		WHERE state = 'received' AND starts_with(holder, $1) AND holder <> $2 AND next_try > now() AND waits_since IS NULL`, prefix, but)
	return pg.Wrap(err, "let go of what was held in the inbox")
}

// PutOff delays the next attempt at an envelope. why is for the log. counted says that this was an attempt, mark
// that its author sees that it waits.
func (s *Store) PutOff(ctx context.Context, id int64, after time.Duration, why string, counted, mark bool) error {
	_, err := s.db.Exec(ctx, `
		UPDATE inbox SET next_try = now() + $2, why = $3, attempts = attempts + $4::boolean::int, marked = marked OR $5,
			waits_since = COALESCE(waits_since, now())
		WHERE id = $1 AND state = 'received'`, id, after, why, counted, mark)
	return pg.Wrap(err, "put off envelope %d", id)
}

// PutOffPrompt delays the next attempt to start an open prompt. why is a sentence for people. If the prompt is no
// longer open, since its author has taken it back or changed it, it gives [pg.ErrNotFound].
func (s *Store) PutOffPrompt(ctx context.Context, l threads.Lease, inboxID int64, after time.Duration, why string) error {
	err := threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE inbox SET next_try = now() + $3, why = $4, attempts = attempts + 1, marked = true, waits_since = COALESCE(waits_since, now())
			WHERE id = $1 AND thread_id = $2 AND state IN ('accepted', 'running')`, inboxID, l.ThreadID, after, why)
		if err == nil && tag.RowsAffected() == 0 {
			err = pg.ErrNotFound
		}
		return err
	})
	return pg.Wrap(err, "put off a prompt of thread %d", l.ThreadID)
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
	p, err := pg.CollectOne[PostState](s.db.Query(ctx, `
		SELECT marked AND state <> 'done' AS waits, CASE WHEN state = 'done' AND starts_with(outcome, $2) THEN substr(outcome, length($2) + 1) ELSE '' END AS given_up,
			thread_ts
		FROM inbox WHERE id = $1`, inboxID, GivenUp))
	return p, pg.Wrap(err, "read whether post %d waits", inboxID)
}

// ShowWaits queues an update of whether a post waits: a mark may be outdated.
func (s *Store) ShowWaits(ctx context.Context, p Post) error {
	_, err := s.db.Exec(ctx, `
		INSERT INTO outbox (kind, team_id, inbox_id, held_until)
		SELECT 'waits', team_id, id, now() FROM inbox WHERE kind = 'message' AND team_id = $1 AND channel_id = $2 AND ts = $3`, p.TeamID, p.ChannelID, p.TS)
	return pg.Wrap(err, "show whether the post %s waits", p.TS)
}
