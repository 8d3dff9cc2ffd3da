package inbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

const (
	// receiveGap is the time without [Store.MoveCursor] after which posts may have been missed.
	receiveGap = 30 * time.Second
	// scanOverlap is how much before a gap is also scanned, for connections that were already dead and for clock
	// differences.
	scanOverlap = 2 * time.Minute
)

// Scan is a part of Slack to search for posts that were not delivered.
type Scan struct {
	TeamID, ChannelID, ThreadTS string // a thread; the bot's whole workspace if ChannelID is empty
	Since                       time.Time
	Asked                       int // how often it was requested
	Tries                       int // including this one
}

// MoveCursor records that a workspace's posts reach the inbox. deaf is how long the caller did not receive them
// until now, or may not have; 0 if it always did. Where posts may be missing it requests a scan: since the last
// receipt, but never since before the first call for the workspace. since is the start of the workspace's scan,
// zero for none.
func (s *Store) MoveCursor(ctx context.Context, teamID string, deaf time.Duration) (since time.Time, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
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
		if silence := now.Sub(until); silence > receiveGap || deaf > 0 {
			if err := want(ctx, tx, Scan{TeamID: teamID, Since: now.Add(-max(silence, deaf, 0) - scanOverlap)}); err != nil {
				return err
			}
		}
		err = tx.QueryRow(ctx, `SELECT since FROM looks WHERE team_id = $1 AND channel_id = ''`, teamID).Scan(&since)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return since, pg.Wrap(err, "move the cursor")
}

// want requests a scan.
func want(ctx context.Context, tx pg.Tx, l Scan) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO looks AS l (team_id, channel_id, thread_ts, since) VALUES ($1, $2, $3, $4)
		ON CONFLICT (team_id, channel_id, thread_ts) DO UPDATE SET since = least(l.since, excluded.since), asked = l.asked + 1, tries = 0`,
		l.TeamID, l.ChannelID, l.ThreadTS, l.Since)
	return err
}

// TakeScan takes the next scan, threads first, and holds it for the caller; ok is false when there is none.
func (s *Store) TakeScan(ctx context.Context, teamID string, hold time.Duration) (l Scan, ok bool, err error) {
	l, err = pg.CollectOne[Scan](s.db.Query(ctx, `
		UPDATE looks l SET next_try = now() + $2, tries = l.tries + 1
		FROM (SELECT team_id, channel_id, thread_ts FROM looks WHERE team_id = $1
				AND (next_try <= now() OR next_try > now() + interval '1 day') -- a clock that jumped
			ORDER BY channel_id = '', since LIMIT 1 FOR UPDATE SKIP LOCKED) n
		WHERE (l.team_id, l.channel_id, l.thread_ts) = (n.team_id, n.channel_id, n.thread_ts)
		RETURNING l.team_id, l.channel_id, l.thread_ts, l.since, l.asked, l.tries`, teamID, hold))
	if errors.Is(err, pg.ErrNotFound) {
		return Scan{}, false, nil
	}
	return l, err == nil, pg.Wrap(err, "take a look")
}

// HoldScan extends the caller's hold on a scan, or delays it as long.
func (s *Store) HoldScan(ctx context.Context, l Scan, hold time.Duration) error {
	_, err := s.db.Exec(ctx, `UPDATE looks SET next_try = now() + $4 WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3`,
		l.TeamID, l.ChannelID, l.ThreadTS, hold)
	return pg.Wrap(err, "hold a look")
}

// EndScan finishes a scan. If it was requested again meanwhile, it becomes due.
func (s *Store) EndScan(ctx context.Context, l Scan) error {
	var b pgx.Batch
	b.Queue(`DELETE FROM looks WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3 AND asked = $4`, l.TeamID, l.ChannelID, l.ThreadTS, l.Asked)
	b.Queue(`UPDATE looks SET next_try = now() WHERE team_id = $1 AND channel_id = $2 AND thread_ts = $3`, l.TeamID, l.ChannelID, l.ThreadTS)
	err := s.db.SendBatch(ctx, &b).Close()
	return pg.Wrap(err, "end a look")
}

// LastPost is the ts of a thread's last prompt before another post; empty if unknown.
func (s *Store) LastPost(ctx context.Context, k threads.ThreadKey, before string) (ts string, err error) {
	err = s.db.QueryRow(ctx, `
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
	list, err := pg.Collect[Envelope](s.db.Query(ctx, `
		(SELECT `+envelopeColumns+` FROM inbox i WHERE i.state = 'received' AND i.team_id = $1 AND i.kind = 'message' ORDER BY i.ts LIMIT $2)
		UNION ALL
		(SELECT `+envelopeColumns+` FROM inbox i WHERE i.state = 'accepted' AND i.thread_id IS NOT NULL AND i.team_id = $1 AND i.kind = 'message' ORDER BY i.ts LIMIT $2)
		ORDER BY ts LIMIT $2`, teamID, limit))
	return list, pg.Wrap(err, "read the posts that wait")
}
