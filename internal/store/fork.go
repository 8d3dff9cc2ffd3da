package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Fork is a thread that begins with the conversation and the files of another one.
type Fork struct {
	From      int64             // the thread
	Key       threads.ThreadKey // of the new one
	By        string            // Slack user
	SessionID string            // of the new one's session
	Title     string
	After     *Point // it begins with this; nil for as the other one is now
}

// ErrNothingKept means that nothing is kept of a thread's conversation.
var ErrNothingKept = errors.New("nothing is kept of the conversation")

// Fork opens a thread with copies of what is kept of another one: its conversation, its work, and how people want it
// done. Whatever the other does next is its own. If the thread exists it is returned as it is. While a turn of the
// other one runs it gives [pg.ErrNotYet].
func (s *Store) Fork(ctx context.Context, f Fork) (t threads.Thread, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		// Whoever writes what is copied holds this row, too.
		from, err := pg.CollectOne[threads.Thread](tx.Query(ctx, `SELECT `+threads.Columns+` FROM threads t WHERE id = $1 FOR NO KEY UPDATE`, f.From))
		if err != nil {
			return err
		}
		t, err = pg.CollectOne[threads.Thread](tx.Query(ctx, `SELECT `+threads.Columns+` FROM threads t WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3`,
			f.Key.TeamID, f.Key.ChannelID, f.Key.ThreadTS))
		if !errors.Is(err, pg.ErrNotFound) {
			return err
		}
		session, repositories := from.SessionID, []string(nil)
		if f.After != nil { // a repository that the thread did not have then begins anew
			session, repositories = f.After.SessionID, slices.Collect(maps.Keys(f.After.States))
		}
		var runs, kept bool
		if err := tx.QueryRow(ctx, `
			SELECT EXISTS (SELECT FROM turns WHERE thread_id = $1 AND state = 'running'),
				EXISTS (SELECT FROM transcripts WHERE session_id = NULLIF($2, '')::uuid AND agent = '')`, from.ID, session).Scan(&runs, &kept); err != nil {
			return err
		}
		switch {
		case runs:
			return pg.ErrNotYet
		case !kept:
			return ErrNothingKept
		}
		var id int64
		// A fork that has saved nothing yet (its work has no lease's epoch) still has the files of the thread before it,
		// under the name of that one's branch.
		if err := tx.QueryRow(ctx, `
			INSERT INTO threads (team_id, channel_id, thread_ts, project, owner_id, title, slug, base, model, effort, mode, mcp_off, forked_from)
			SELECT $2, $3, $4, project, $5, $6, slug, base, model, effort, mode, mcp_off,
				CASE WHEN EXISTS (SELECT FROM work w WHERE w.thread_id = o.id AND w.epoch = 0) THEN o.forked_from ELSE o.id END
			FROM threads o WHERE id = $1
			RETURNING id`, from.ID, f.Key.TeamID, f.Key.ChannelID, f.Key.ThreadTS, f.By, f.Title).Scan(&id); err != nil {
			return err
		}
		for _, sql := range []string{
			`INSERT INTO sessions (id, thread_id, parent_id, started) VALUES ($3, $2, $4, true)`,
			`UPDATE threads SET session_id = $3 WHERE id = $2`,
			`INSERT INTO work (thread_id, repository, epoch, branch, saved, packs, bytes, left_out, saved_at, held)
				SELECT $2, repository, 0, branch, saved, packs, bytes, left_out, saved_at, held FROM work WHERE thread_id = $1 AND ($5::text[] IS NULL OR repository = ANY ($5))`,
			`INSERT INTO work_packs (thread_id, pack, part, data)
				SELECT $2, p.pack, p.part, p.data FROM work w JOIN work_packs p ON p.thread_id = w.thread_id AND p.pack = ANY (w.packs) WHERE w.thread_id = $1`,
		} {
			// Each statement needs some of them alone; the first row says of which types all are.
			if _, err := tx.Exec(ctx, `WITH are (a, b, c, d, e) AS (VALUES ($1::bigint, $2::bigint, $3::uuid, $4::uuid, $5::text[])) `+sql, from.ID, id, f.SessionID, session, repositories); err != nil {
				return err
			}
		}
		if err := copyTranscripts(ctx, tx, id, session, f.SessionID, f.After == nil); err != nil {
			return err
		}
		if err := f.After.set(ctx, tx, threads.Lease{ThreadID: id}); err != nil {
			return err
		}
		if t, err = pg.CollectOne[threads.Thread](tx.Query(ctx, `SELECT `+threads.Columns+` FROM threads t WHERE id = $1`, id)); err != nil {
			return err
		}
		return audit.Append(ctx, tx, audit.Entry{
			Kind: audit.Forked, TeamID: t.TeamID, Actor: f.By, ThreadID: t.ID, Details: map[string]any{"from": from.ID, "session": f.SessionID, "parent": session, "after": f.After.turn()},
		})
	})
	return t, pg.Wrap(err, "fork thread %d", f.From)
}
