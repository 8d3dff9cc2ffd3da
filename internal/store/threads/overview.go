package threads

import (
	"context"
	"time"

	"deckhand/internal/store/pg"
)

// State is a thread's state in overviews.
type State string

// The states of a thread.
const (
	ThreadWaits   State = "waits"       // for a decision of people about a request
	ThreadBudget  State = "budget"      // for a budget
	ThreadWorks   State = "running"     // a turn runs
	ThreadQueued  State = "queued"      // a prompt waits for its turn
	ThreadDone    State = "done"        // its last turn has answered
	ThreadStopped State = "interrupted" // its last turn was interrupted
	ThreadFailed  State = "failed"
	ThreadSpent   State = "over_budget" // its last turn was stopped by a budget, and offers to go on
	ThreadNew     State = "new"         // it has had no turn
)

// Recent is a thread as a person's overview shows it.
type Recent struct {
	ID        int64
	ChannelID string
	ThreadTS  string
	Project   string
	OwnerID   string
	Title     string // may be empty
	State     State
	MicroUSD  int64
	CreatedAt time.Time
	ActiveAt  time.Time
}

// Place is a thread's channel and project.
type Place struct {
	ChannelID string
	Project   string
}

// Filter selects threads for an overview.
type Filter struct {
	TeamID string
	Owner  string  // threads that this person opened,
	Places []Place // and all threads in these places
	// Project and States restrict further; empty admits all.
	Project string
	States  []State
	Since   time.Time // active since
	Limit   int
	Offset  int
}

// threadState is the state of thread t.
const threadState = `CASE
	WHEN EXISTS (SELECT FROM approvals a WHERE a.thread_id = t.id AND a.delivered_at IS NULL AND a.status = 'pending') THEN 'waits'
	WHEN EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running') THEN 'running'
	WHEN ` + waitsForBudget + ` THEN 'budget'
	WHEN EXISTS (SELECT FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running')) THEN 'queued'
	ELSE COALESCE((SELECT CASE WHEN r.over_budget THEN 'over_budget' ELSE r.state END
		FROM turns r WHERE r.thread_id = t.id ORDER BY r.id DESC LIMIT 1), 'new')
	END`

// RecentThreads lists threads by their last activity, latest first.
func (s *Store) RecentThreads(ctx context.Context, f Filter) ([]Recent, error) {
	args := []any{f.TeamID, f.Owner, f.Since, f.Project, f.States, f.Limit, f.Offset}
	// A person's own threads are found by their index, if no others are requested.
	whose := "t.owner_id = $2"
	if len(f.Places) > 0 {
		var channels, projects []string
		for _, p := range f.Places {
			channels, projects = append(channels, p.ChannelID), append(projects, p.Project)
		}
		whose = "(" + whose + " OR (t.channel_id, t.project) IN (SELECT * FROM unnest($8::text[], $9::text[])))"
		args = append(args, channels, projects)
	}
	out, err := pg.Collect[Recent](s.db.Query(ctx, `
		SELECT t.id, t.channel_id, t.thread_ts, t.project, t.owner_id, t.title, t.state, t.created_at, t.active_at,
			COALESCE((SELECT l.micro_usd FROM ledger_threads l WHERE l.thread_id = t.id), 0) AS micro_usd
		FROM (SELECT t.*, `+threadState+` AS state FROM threads t
			WHERE t.team_id = $1 AND `+whose+` AND t.active_at >= $3 AND ($4 = '' OR t.project = $4)) t
		WHERE $5::text[] IS NULL OR t.state = ANY ($5)
		ORDER BY t.active_at DESC, t.id DESC LIMIT $6 OFFSET $7`, args...))
	return out, pg.Wrap(err, "read recent threads")
}

// ThreadPlaces lists where threads were active since, and a person's own projects, as places without a channel.
func (s *Store) ThreadPlaces(ctx context.Context, teamID, owner string, since time.Time) ([]Place, error) {
	out, err := pg.Collect[Place](s.db.Query(ctx, `
		SELECT DISTINCT channel_id, project FROM threads WHERE team_id = $1 AND active_at >= $3
		UNION SELECT DISTINCT '', project FROM threads WHERE team_id = $1 AND owner_id = $2 AND active_at >= $3
		ORDER BY 1, 2`, teamID, owner, since))
	return out, pg.Wrap(err, "list where threads are")
}
