package inbox

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
)

// Post names a person's message.
type Post struct{ TeamID, ChannelID, TS, UserID string }

// Edit changes the stored content of a post without a turn. change makes the new payload from the old one, or
// reports false if they are the same. A post that is already a prompt is received again, so that its new content is
// used. ok is false when nothing was changed.
func (s *Store) Edit(ctx context.Context, p Post, change func(old json.RawMessage) (json.RawMessage, bool, error)) (ok bool, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var id int64
		var old json.RawMessage
		err := tx.QueryRow(ctx, `
			SELECT id, payload FROM inbox
			WHERE kind = 'message' AND team_id = $1 AND channel_id = $2 AND ts = $3 AND user_id = $4 AND state IN ('received', 'accepted')
			FOR UPDATE`, p.TeamID, p.ChannelID, p.TS, p.UserID).Scan(&id, &old)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		changed, differs, err := change(old)
		if err != nil || !differs {
			return err
		}
		ok = true
		if _, err := tx.Exec(ctx, `UPDATE budget_waits SET asleep = false WHERE inbox_id = $1`, id); err != nil {
			return err
		}
		// A received one is being handled, or waits: it keeps its time.
		_, err = tx.Exec(ctx, `
			UPDATE inbox SET payload = $2, edits = edits + 1, state = 'received',
				next_try = CASE state WHEN 'accepted' THEN now() ELSE next_try END,
				attempts = CASE state WHEN 'accepted' THEN 0 ELSE attempts END,
				waits_since = CASE state WHEN 'accepted' THEN NULL ELSE waits_since END
			WHERE id = $1`, id, changed)
		return err
	})
	return ok, pg.Wrap(err, "change the post %s in %s", p.TS, p.ChannelID)
}

// WorkedOn is the payload of a person's post whose turn is running; [pg.ErrNotFound] if there is none.
func (s *Store) WorkedOn(ctx context.Context, p Post) (payload json.RawMessage, err error) {
	err = s.db.QueryRow(ctx, `
		SELECT payload FROM inbox
		WHERE kind = 'message' AND team_id = $1 AND channel_id = $2 AND ts = $3 AND user_id = $4 AND state = 'running'`,
		p.TeamID, p.ChannelID, p.TS, p.UserID).Scan(&payload)
	return payload, pg.Wrap(pg.NotFound(err), "look whether the post %s in %s is worked on", p.TS, p.ChannelID)
}

// GiveToModel makes a person's post that was handled otherwise be handled again as a prompt: its payload's event
// then has "deckhand_for_model", and the project that the person chose for it, if any, as "deckhand_project". ok is false when there is none, or it was given to the model before. The error is
// [pg.ErrNotYet] while it is being handled: people may see the question about it before its row has the outcome.
func (s *Store) GiveToModel(ctx context.Context, p Post, project string) (ok bool, err error) {
	var given int
	var dealing bool
	err = s.db.QueryRow(ctx, `
		WITH post AS (
			SELECT id, state FROM inbox
			WHERE kind = 'message' AND team_id = $1 AND channel_id = $2 AND ts = $3 AND user_id = $4
			  AND state IN ('received', 'done') AND prompt_uuid IS NULL AND payload::jsonb ? 'event'
			  AND CASE $5::text WHEN '' THEN payload::jsonb #>> '{event,deckhand_for_model}' ELSE payload::jsonb #>> '{event,deckhand_project}' END IS NULL
			FOR UPDATE
		), given AS (
			UPDATE inbox i SET state = 'received', outcome = '', done_at = NULL, next_try = now(), holder = '',
				payload = jsonb_set(payload::jsonb, '{event}', payload::jsonb->'event' || jsonb_strip_nulls(jsonb_build_object(
					'deckhand_for_model', true, 'deckhand_project', NULLIF($5::text, ''))))
			FROM post WHERE i.id = post.id AND post.state = 'done'
			RETURNING i.id
		)
		SELECT (SELECT count(*) FROM given), EXISTS (SELECT FROM post WHERE state = 'received')`,
		p.TeamID, p.ChannelID, p.TS, p.UserID, project).Scan(&given, &dealing)
	if err == nil && given == 0 && dealing {
		err = pg.ErrNotYet
	}
	return given > 0, pg.Wrap(err, "give the post %s in %s to the model", p.TS, p.ChannelID)
}

// Delete finishes a post without a turn, since its author deleted it, and returns the outbox rows. ok is false when
// there is none.
func (s *Store) Delete(ctx context.Context, p Post) (ok bool, rows []outbox.Row, err error) {
	ok, rows, err = s.withdraw(ctx, "deleted", "", "", `i.kind = 'message' AND i.team_id = $2 AND i.channel_id = $3 AND i.ts = $4 AND i.user_id = $5
		AND i.state IN ('received', 'accepted')`, p.TeamID, p.ChannelID, p.TS, p.UserID)
	return ok, rows, pg.Wrap(err, "delete the post %s in %s", p.TS, p.ChannelID)
}

// DropWaiting finishes a prompt without a turn, since somebody dropped it. mark is for an [outbox.Mark], and said, unless
// it is empty, tells the thread. ok is false when it has a turn by now, or is gone.
func (s *Store) DropWaiting(ctx context.Context, inboxID int64, by, mark, said string) (ok bool, rows []outbox.Row, err error) {
	ok, rows, err = s.withdraw(ctx, "dropped by "+by, mark, said, `i.id = $2 AND i.state = 'accepted'`, inboxID)
	return ok, rows, pg.Wrap(err, "drop prompt %d", inboxID)
}

// SendNow makes a prompt without a turn the thread's next one, after earlier such ones, and ends the running turn
// for it. ok is false when it has a turn by now, or is gone.
func (s *Store) SendNow(ctx context.Context, inboxID int64, by string) (ok bool, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var threadID int64
		err := tx.QueryRow(ctx, `
			UPDATE inbox SET urgent_at = COALESCE(urgent_at, now()), urgent_by = CASE urgent_by WHEN '' THEN $2 ELSE urgent_by END
			WHERE id = $1 AND state = 'accepted' RETURNING thread_id`, inboxID, by).Scan(&threadID)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		ok = true
		return pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticePrompt, ThreadID: threadID})
	})
	return ok, pg.Wrap(err, "send prompt %d now", inboxID)
}

// withdraw finishes an envelope without a turn, and wakes the thread's replica. mark is for an [outbox.Mark],
// and said for an [outbox.Said]; either may be empty. It returns the outbox rows.
func (s *Store) withdraw(ctx context.Context, outcome, mark, said, where string, args ...any) (ok bool, rows []outbox.Row, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var id, threadID int64
		var waited bool
		err := tx.QueryRow(ctx, `
			UPDATE inbox i SET state = 'done', outcome = $1, done_at = now() WHERE `+where+`
			RETURNING i.id, COALESCE(i.thread_id, 0), EXISTS (SELECT FROM budget_waits b WHERE b.inbox_id = i.id)`,
			append([]any{outcome}, args...)...).Scan(&id, &threadID, &waited)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if ok = true; threadID == 0 {
			return nil
		}
		var tell []outbox.NewRow
		if mark != "" {
			tell = append(tell, outbox.NewRow{Kind: outbox.Mark, Inbox: id, Body: mark})
		}
		if said != "" {
			tell = append(tell, outbox.NewRow{Kind: outbox.Said, Body: said})
		}
		if waited {
			tell = append(tell, outbox.NewRow{Kind: outbox.Wait, Inbox: id})
		}
		if rows, err = outbox.Add(ctx, tx, threadID, tell...); err != nil {
			return err
		}
		return pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticePrompt, ThreadID: threadID})
	})
	return ok, rows, err
}
