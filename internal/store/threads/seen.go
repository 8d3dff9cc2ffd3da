package threads

import (
	"context"
	"time"

	"deckhand/internal/store/pg"
)

// ServedThreads are a team's threads with activity since, the latest first, limit at most.
func (s *Store) ServedThreads(ctx context.Context, teamID string, since time.Time, limit int) ([]ThreadKey, error) {
	list, err := pg.Collect[ThreadKey](s.db.Query(ctx, `
		SELECT team_id, channel_id, thread_ts FROM threads WHERE team_id = $1 AND active_at >= $2 ORDER BY active_at DESC LIMIT $3`, teamID, since, limit))
	return list, pg.Wrap(err, "read the threads that are served")
}

// Concerns reports whether a message at ts in a thread concerns us. served: it came after what opened the thread.
// begins: the thread is about to be served, since an unhandled message of it older than ts is in the inbox. What was
// said before is nobody's business, also when it is delivered again or found later.
func (s *Store) Concerns(ctx context.Context, k ThreadKey, ts string) (served, begins bool, err error) {
	// One statement, since a prompt that opens its thread may be accepted concurrently.
	err = s.db.QueryRow(ctx, `
		SELECT EXISTS (
				SELECT FROM threads t WHERE t.team_id = $1 AND t.channel_id = $2 AND t.thread_ts = $3 AND COALESCE($4 > ( -- none opens a fork
					SELECT min(i.ts) FROM inbox i
					WHERE i.team_id = $1 AND i.channel_id = $2 AND i.kind = 'message' AND i.ts >= t.thread_ts AND i.thread_id = t.id), true)),
			EXISTS (SELECT FROM inbox e WHERE e.team_id = $1 AND e.channel_id = $2 AND e.thread_ts = $3 AND e.ts < $4
				AND e.state = 'received' AND e.kind = 'message')`, k.TeamID, k.ChannelID, k.ThreadTS, ts).Scan(&served, &begins)
	return served, begins, pg.Wrap(err, "read whether a thread is served")
}
