package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// hearGap is after how long without a word of [Store.MoveCursor] nobody is known to have heard
	// what was posted.
	hearGap = 30 * time.Second
	// hearOverlap is how long before a gap is looked, too: what goes into a connection that
	// is about to be found dead, and clocks that differ.
	hearOverlap = 2 * time.Minute
)

// Scan is something in Slack that is to be looked through for posts which were not
// delivered.
type Scan struct {
	TeamID, ChannelID, ThreadTS string // a thread; all that the bot is in, if ChannelID is empty
	Since                       time.Time
	Asked                       int // how often it was wanted
	Tries                       int // this one counted
}

// MoveCursor says that what people post in a workspace reaches the inbox. deaf is for how long
// the caller did not hear until now, or is not sure that it did; 0 if it did all the time.
// Where posts may be missing a look for them is noted: since nobody has heard, and never
// since before the first call for the workspace. since is what the workspace is to be
// looked through from, zero for nothing.
func (s *Store) MoveCursor(ctx context.Context, teamID string, deaf time.Duration) (since time.Time, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		var now, until time.Time
		err := tx.QueryRow(ctx, `SELECT now(), until FROM heard WHERE team_id = $1 FOR UPDATE`, teamID).Scan(&now, &until)
		if errors.Is(err, pgx.ErrNoRows) {
			_, err := tx.Exec(ctx, `INSERT INTO heard (team_id, until) VALUES ($1, now()) ON CONFLICT DO NOTHING`, teamID)
			return err
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE heard SET until = now() WHERE team_id = $1`, teamID); err != nil {
			return err
		}
		if silence := now.Sub(until); silence > hearGap || deaf > 0 {
			if err := want(ctx, tx, Scan{TeamID: teamID, Since: now.Add(-max(silence, deaf, 0) - hearOverlap)}); err != nil {
				return err
			}
		}
		err = tx.QueryRow(ctx, `SELECT since FROM looks WHERE team_id = $1 AND channel_id = ''`, teamID).Scan(&since)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("note that what people post is heard: %w", err)
	}
	return since, nil
}

// want notes that something is to be looked through.
func want(ctx context.Context, tx pgx.Tx, l Scan) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO looks AS l (team_id, channel_id, thread_ts, since) VALUES ($1, $2, $3, $4)
		ON CONFLICT (team_id, channel_id, thread_ts) DO UPDATE SET since = least(l.since, excluded.since), asked = l.asked + 1, tries = 0`,
		l.TeamID, l.ChannelID, l.ThreadTS, l.Since)
	return err
}

// TakeScan takes what is to be looked through next, threads first, and holds it for the
// caller; ok is false when there is nothing.
func (s *Store) TakeScan(ctx context.Context, teamID string, hold time.Duration) (l Scan, ok bool, err error) {
	l, err = collectOne[Scan](s.pool.Query(ctx, `
		UPDATE looks l SET next_try = now() + $2, tries = l.tries + 1
		FROM (SELECT team_id, channel_id, thread_ts FROM looks WHERE team_id = $1
				AND (next_try <= now() OR next_try > now() + interval '1 day') -- a clock that jumped
			ORDER BY channel_id = '', since LIMIT 1 FOR UPDATE SKIP LOCKED) n
		WHERE (l.team_id, l.channel_id, l.thread_ts) = (n.team_id, n.channel_id, n.thread_ts)
		RETURNING l.team_id, l.channel_id, l.thread_ts, l.since, l.asked, l.tries`, teamID, hold))
	if errors.Is(err, ErrNotFound) {
		return Scan{}, false, nil
	}
	return l, err == nil, wrap(err, "take a look")
}

// HoldScan keeps a look its caller's for so long, or has it wait as long.
func (s *Store) HoldScan(ctx context.Context, l Scan, hold time.Duration) error {
	_, err := s.pool.Exec(ctx, `UPDATE looks SET next_try = now() + $4 WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3`,
		l.TeamID, l.ChannelID, l.ThreadTS, hold)
	return wrap(err, "hold a look")
}

// EndScan notes that a look is through. One that was wanted again meanwhile is due.
func (s *Store) EndScan(ctx context.Context, l Scan) error {
	var b pgx.Batch
	b.Queue(`DELETE FROM looks WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3 AND asked = $4`, l.TeamID, l.ChannelID, l.ThreadTS, l.Asked)
	b.Queue(`UPDATE looks SET next_try = now() WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3`, l.TeamID, l.ChannelID, l.ThreadTS)
	err := s.pool.SendBatch(ctx, &b).Close()
	return wrap(err, "end a look")
}

// ServedThreads are the threads of a team that something happened in since then, the latest
// first, limit at most.
func (s *Store) ServedThreads(ctx context.Context, teamID string, since time.Time, limit int) ([]ThreadKey, error) {
	list, err := collect[ThreadKey](s.pool.Query(ctx, `
		SELECT team_id, channel_id, thread_ts FROM threads WHERE team_id = $1 AND active_at >= $2 ORDER BY active_at DESC LIMIT $3`, teamID, since, limit))
	return list, wrap(err, "read the threads that are served")
}

// OpenedAt is the ts of the first prompt of a thread, or [ErrNotFound] where there is none.
func (s *Store) OpenedAt(ctx context.Context, k ThreadKey) (ts string, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT i.ts FROM threads t JOIN inbox i ON i.team_id = t.team_id AND i.channel_id = t.channel_id AND i.ts >= t.thread_ts AND i.kind = 'message'
		WHERE t.team_id = $1 AND t.channel_id = $2 AND t.thread_ts = $3 AND i.thread_id = t.id
		ORDER BY i.ts LIMIT 1`, k.TeamID, k.ChannelID, k.ThreadTS).Scan(&ts)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNotFound
	}
	return ts, wrap(err, "read how a thread began")
}

// LastPost is the ts of the last prompt of a thread that was posted before another post, or
// empty where none is known.
func (s *Store) LastPost(ctx context.Context, k ThreadKey, before string) (ts string, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT i.ts FROM threads t JOIN inbox i ON i.team_id = t.team_id AND i.channel_id = t.channel_id AND i.ts >= t.thread_ts AND i.ts < $4 AND i.kind = 'message'
		WHERE t.team_id = $1 AND t.channel_id = $2 AND t.thread_ts = $3 AND i.thread_id = t.id
		ORDER BY i.ts DESC LIMIT 1`, k.TeamID, k.ChannelID, k.ThreadTS, before).Scan(&ts)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("read the last prompt of a thread: %w", err)
	}
	return ts, nil
}

// WaitingPosts are posts without a turn, limit at most.
func (s *Store) WaitingPosts(ctx context.Context, teamID string, limit int) ([]Envelope, error) {
	list, err := collect[Envelope](s.pool.Query(ctx, `
		(SELECT `+envelopeColumns+` FROM inbox i WHERE i.state = 'received' AND i.team_id = $1 AND i.kind = 'message' ORDER BY i.ts LIMIT $2)
		UNION ALL
		(SELECT `+envelopeColumns+` FROM inbox i WHERE i.state = 'accepted' AND i.thread_id IS NOT NULL AND i.team_id = $1 AND i.kind = 'message' ORDER BY i.ts LIMIT $2)
		ORDER BY ts LIMIT $2`, teamID, limit))
	return list, wrap(err, "read the posts that wait")
}

// Concerns reports whether a thread is served, or about to be: a message of it that is older
// than ts is in the inbox, and not dealt with yet.
func (s *Store) Concerns(ctx context.Context, k ThreadKey, ts string) (served, begins bool, err error) {
	// One statement: a prompt that opens its thread is accepted at the same time.
	err = s.pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM threads t WHERE t.team_id = $1 AND t.channel_id = $2 AND t.thread_ts = $3),
			EXISTS (SELECT FROM inbox e WHERE e.team_id = $1 AND e.channel_id = $2 AND e.thread_ts = $3 AND e.ts < $4
				AND e.state = 'received' AND e.kind = 'message')`, k.TeamID, k.ChannelID, k.ThreadTS, ts).Scan(&served, &begins)
	return served, begins, wrap(err, "read whether a thread is served")
}
