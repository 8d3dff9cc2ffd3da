package store

import (
	"context"
	"time"
)

// ThreadState is a thread's state in overviews.
type ThreadState string

// The states of a thread.
const (
	ThreadWaits   ThreadState = "waits"       // for a decision of people about a request
	ThreadBudget  ThreadState = "budget"      // for a budget
	ThreadWorks   ThreadState = "running"     // a turn runs
	ThreadQueued  ThreadState = "queued"      // a prompt waits for its turn
	ThreadDone    ThreadState = "done"        // its last turn has answered
	ThreadStopped ThreadState = "interrupted" // its last turn was interrupted
	ThreadFailed  ThreadState = "failed"
	ThreadSpent   ThreadState = "over_budget" // its last turn was stopped by a budget, and offers to go on
	ThreadNew     ThreadState = "new"         // it has had no turn
)

// RecentThread is a thread as a person's overview shows it.
type RecentThread struct {
	ID        int64
	ChannelID string
	ThreadTS  string
	Project   string
	OwnerID   string
	Title     string // may be empty
	State     ThreadState
	MicroUSD  int64
	CreatedAt time.Time
	ActiveAt  time.Time
}

// ThreadPlace is a thread's channel and project.
type ThreadPlace struct {
	ChannelID string
	Project   string
}

// ThreadFilter selects threads for an overview.
type ThreadFilter struct {
	TeamID string
	Owner  string        // threads that this person opened,
	Places []ThreadPlace // and all threads in these places
	// Project and States restrict further; empty admits all.
	Project string
	States  []ThreadState
	Since   time.Time // active since
	Limit   int
	Offset  int
}

// threadState is the state of thread t.
const threadState = `CASE
	WHEN EXISTS (SELECT FROM approvals a WHERE a.thread_id = t.id AND a.delivered_at IS NULL AND a.status = 'pending') THEN 'waits'
	WHEN EXISTS (SELECT FROM turns r WHERE r.thread_id = t.id AND r.state = 'running') THEN 'running'
	WHEN EXISTS (SELECT FROM budget_waits b WHERE b.thread_id = t.id AND b.asleep AND b.until > now()) THEN 'budget'
	WHEN EXISTS (SELECT FROM inbox i WHERE i.thread_id = t.id AND i.state IN ('accepted', 'running')) THEN 'queued'
	ELSE COALESCE((SELECT CASE WHEN r.over_budget AND r.continued_by = '' THEN 'over_budget' ELSE r.state END
		FROM turns r WHERE r.thread_id = t.id ORDER BY r.id DESC LIMIT 1), 'new')
	END`

// RecentThreads lists threads by their last activity, latest first.
func (s *Store) RecentThreads(ctx context.Context, f ThreadFilter) ([]RecentThread, error) {
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
	out, err := collect[RecentThread](s.pool.Query(ctx, `
		SELECT t.id, t.channel_id, t.thread_ts, t.project, t.owner_id, t.title, t.state, t.created_at, t.active_at,
			COALESCE((SELECT l.micro_usd FROM ledger_threads l WHERE l.thread_id = t.id), 0) AS micro_usd
		FROM (SELECT t.*, `+threadState+` AS state FROM threads t
			WHERE t.team_id = $1 AND `+whose+` AND t.active_at >= $3 AND ($4 = '' OR t.project = $4)) t
		WHERE $5::text[] IS NULL OR t.state = ANY ($5)
		ORDER BY t.active_at DESC, t.id DESC LIMIT $6 OFFSET $7`, args...))
	return out, wrap(err, "read recent threads")
}

// ThreadPlaces lists where threads were active since, and a person's own projects, as places without a channel.
func (s *Store) ThreadPlaces(ctx context.Context, teamID, owner string, since time.Time) ([]ThreadPlace, error) {
	out, err := collect[ThreadPlace](s.pool.Query(ctx, `
		SELECT DISTINCT channel_id, project FROM threads WHERE team_id = $1 AND active_at >= $3
		UNION SELECT DISTINCT '', project FROM threads WHERE team_id = $1 AND owner_id = $2 AND active_at >= $3
		ORDER BY 1, 2`, teamID, owner, since))
	return out, wrap(err, "list where threads are")
}
