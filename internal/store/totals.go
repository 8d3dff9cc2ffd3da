package store

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
)

// Waiting is what currently waits.
type Waiting struct {
	Approvals int64 // undecided
	// Oldest is the age of the oldest of them, or 0.
	Oldest time.Duration
	// Inbox counts the acknowledged envelopes that nobody handles yet.
	Inbox int64
	// OutboxRows is the number of rows that Slack does not have yet, and OldestRow the age of the oldest.
	OutboxRows int64
	OldestRow  time.Duration
	// WorkBytes is the size of all threads' kept work.
	WorkBytes int64
}

// WaitBounds are the upper bounds of the histogram of [Totals], in seconds.
var WaitBounds = []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600}

// TurnKey is the key of a count of turns in [Totals].
type TurnKey struct{ Project, State string }

// ApprovalKey is the key of a count of approvals in [Totals].
type ApprovalKey struct{ Status, Via string }

// Totals are counts over a team's whole time. They never fall.
type Totals struct {
	Turns     map[TurnKey]int64     // ended ones
	Approvals map[ApprovalKey]int64 // ended ones, including those by rule
	// Waits are people's decisions by their duration: Waits[i] took at most WaitBounds[i] seconds and more than the
	// bound before; the last one has no bound.
	Waits       []int64
	WaitSeconds float64 // in total
}

// Counter updates [Totals] incrementally, without reading again what cannot change. The zero value has counted
// nothing. It is not safe for concurrent use.
type Counter struct {
	settled Totals
	turn    int64     // all turns up to it are in settled
	asked   time.Time // all approvals before it are in settled; zero before the first
}

// Batch sizes of a count; each batch is a query.
const (
	turnStep     = 200_000
	approvalStep = 14 * 24 * time.Hour
	// settleTime is longer than our longest transaction: what is older and has ended cannot change, and nothing
	// older can appear.
	settleTime = "1 hour"
)

// Waiting counts what waits.
func (s *Store) Waiting(ctx context.Context, teamID string) (Waiting, error) {
	w, err := pg.CollectOne[Waiting](s.db.Query(ctx, `
		SELECT count(*) AS approvals, COALESCE(now() - min(a.created_at), '0') AS oldest,
			(SELECT count(*) FROM inbox WHERE state = 'received' AND team_id = $1) + (SELECT count(*) FROM inbox WHERE state = 'accepted' AND team_id = $1) AS inbox,
			(SELECT count(*) FROM outbox WHERE team_id = $1 AND kind <> 'queue') AS outbox_rows,
			(SELECT COALESCE(now() - min(created_at), '0') FROM outbox WHERE team_id = $1 AND kind <> 'queue') AS oldest_row,
			(SELECT COALESCE(sum(bytes), 0)::bigint FROM work) AS work_bytes
		FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE a.status = 'pending' AND t.team_id = $1`, teamID))
	return w, pg.Wrap(err, "count what waits")
}

// Count brings c up to date and returns the totals. After an error the next call continues. The first call may read
// everything.
func (s *Store) Count(ctx context.Context, teamID string, c *Counter) (Totals, error) {
	now, err := s.count(ctx, teamID, c)
	return now, pg.Wrap(err, "count turns and approvals")
}

func (s *Store) count(ctx context.Context, teamID string, c *Counter) (Totals, error) {
	var turn, lastTurn int64
	var asked, first, now time.Time
	err := s.db.QueryRow(ctx, `
		SELECT LEAST(
				(SELECT min(id) - 1 FROM turns WHERE state = 'running'),
				COALESCE((SELECT id FROM turns WHERE started_at < now() - $1::interval ORDER BY id DESC LIMIT 1), 0)),
			COALESCE((SELECT max(id) FROM turns), 0),
			LEAST((SELECT min(created_at) FROM approvals WHERE status = 'pending'), now() - $1::interval),
			COALESCE((SELECT min(created_at) FROM approvals), now() - $1::interval),
			now()`, settleTime).Scan(&turn, &lastTurn, &asked, &first, &now)
	if err != nil {
		return Totals{}, err
	}
	if c.settled.Turns == nil {
		c.settled = newTotals()
	}
	for c.turn < turn {
		through := min(c.turn+turnStep, turn)
		if err := s.addTurns(ctx, teamID, &c.settled, c.turn, through); err != nil {
			return Totals{}, err
		}
		c.turn = through
	}
	if c.asked.IsZero() {
		c.asked = first
		if asked.Before(first) {
			c.asked = asked
		}
	}
	for c.asked.Before(asked) {
		until := c.asked.Add(approvalStep)
		if until.After(asked) {
			until = asked
		}
		if err := s.addApprovals(ctx, teamID, &c.settled, c.asked, until); err != nil {
			return Totals{}, err
		}
		c.asked = until
	}
	present := c.settled.clone()
	// What is added from here on may change until the next call.
	return present, errors.Join(
		s.addTurns(ctx, teamID, &present, c.turn, lastTurn),
		s.addApprovals(ctx, teamID, &present, c.asked, now.Add(time.Hour)))
}

func newTotals() Totals {
	return Totals{Turns: map[TurnKey]int64{}, Approvals: map[ApprovalKey]int64{}, Waits: make([]int64, len(WaitBounds)+1)}
}

func (t Totals) clone() Totals {
	t.Turns, t.Approvals, t.Waits = maps.Clone(t.Turns), maps.Clone(t.Approvals), append([]int64(nil), t.Waits...)
	return t
}

// addTurns adds the turns after one and through another.
func (s *Store) addTurns(ctx context.Context, teamID string, to *Totals, after, through int64) error {
	rows, err := s.db.Query(ctx, `
		SELECT t.project, r.state, count(*) FROM turns r JOIN threads t ON t.id = r.thread_id
		WHERE r.id > $1 AND r.id <= $2 AND r.state <> 'running' AND t.team_id = $3 GROUP BY t.project, r.state`, after, through, teamID)
	if err != nil {
		return err
	}
	counts := map[TurnKey]int64{}
	var k TurnKey
	var n int64
	if _, err := pgx.ForEachRow(rows, []any{&k.Project, &k.State, &n}, func() error { counts[k] = n; return nil }); err != nil {
		return err
	}
	for k, n := range counts { // all of them, or none
		to.Turns[k] += n
	}
	return nil
}

// addApprovals adds the ended approvals asked in [since, until). Bucket 0 has those that no person decided.
func (s *Store) addApprovals(ctx context.Context, teamID string, to *Totals, since, until time.Time) error {
	type row struct {
		Status, Via string
		Bucket      int
		Count       int64
		Seconds     float64
	}
	rows, err := pg.Collect[row](s.db.Query(ctx, `
		SELECT status, via, bucket, count(*) AS count, COALESCE(sum(waited), 0) AS seconds
		FROM (
			SELECT x.*, CASE WHEN waited IS NULL THEN 0 ELSE 1 + (SELECT count(*) FROM unnest($4::float8[]) bound WHERE bound < waited) END::int AS bucket
			FROM (
				SELECT a.status, a.decided_via AS via,
					CASE WHEN a.status IN ('allowed', 'denied') AND a.decided_via NOT IN ('rule', 'grant')
						THEN extract(epoch FROM a.decided_at - a.created_at)::float8 END AS waited
				FROM approvals a JOIN threads t ON t.id = a.thread_id
				WHERE a.created_at >= $1 AND a.created_at < $2 AND a.status <> 'pending' AND t.team_id = $3) x) y
		GROUP BY status, via, bucket`, since, until, teamID, WaitBounds))
	if err != nil {
		return err
	}
	for _, r := range rows {
		to.Approvals[ApprovalKey{r.Status, r.Via}] += r.Count
		if r.Bucket > 0 {
			to.Waits[r.Bucket-1] += r.Count
			to.WaitSeconds += r.Seconds
		}
	}
	return nil
}
