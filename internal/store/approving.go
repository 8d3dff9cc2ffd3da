package store

import (
	"context"
	"fmt"
	"time"
)

// Approving is how a team decided about what it was asked in some time.
type Approving struct {
	Total    ApprovingStats
	ByPerson []ApprovingStats // the busiest first
	ByRule   []ApprovingStats // the most asked first
}

// ApprovingStats sums up decisions. What no person was asked for is not in it.
type ApprovingStats struct {
	Name                            string // a Slack user, a rule, or empty for the total
	Asked, Allowed, Denied, Expired int64  // for a person, Asked counts their decisions
	// Quick are the decisions made within two seconds of the question.
	Quick int64
	// Median and P95 are the time from the question to the decision.
	Median, P95 time.Duration
}

type approvingRow struct {
	Name                                   string
	Asked, Allowed, Denied, Expired, Quick int64
	Median, P95                            float64 // seconds
}

func (r approvingRow) stats() ApprovingStats {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return ApprovingStats{
		Name: r.Name, Asked: r.Asked, Allowed: r.Allowed, Denied: r.Denied, Expired: r.Expired, Quick: r.Quick,
		Median: seconds(r.Median), P95: seconds(r.P95),
	}
}

// approvingColumns sum up rows with status, and waited in seconds, NULL where
// nobody decided.
const approvingColumns = `
	count(*) AS asked,
	count(*) FILTER (WHERE status = 'allowed') AS allowed,
	count(*) FILTER (WHERE status = 'denied') AS denied,
	count(*) FILTER (WHERE status = 'expired') AS expired,
	count(*) FILTER (WHERE waited < 2) AS quick,
	COALESCE(percentile_cont(0.5) WITHIN GROUP (ORDER BY waited), 0) AS median,
	COALESCE(percentile_cont(0.95) WITHIN GROUP (ORDER BY waited), 0) AS p95`

// The approvals that people were asked for, and what each person said to them.
const (
	askedOfPeople = `
		SELECT a.rule, a.status,
			CASE WHEN a.status IN ('allowed', 'denied') THEN extract(epoch FROM a.decided_at - a.created_at)::float8 END AS waited
		FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE t.team_id = $1 AND a.created_at >= $2 AND a.created_at < $3 AND a.decided_via NOT IN ('rule', 'grant')`
	saidByPeople = `
		SELECT v.user_id, CASE WHEN v.allow THEN 'allowed' ELSE 'denied' END AS status,
			extract(epoch FROM v.at - a.created_at)::float8 AS waited
		FROM votes v JOIN approvals a ON a.id = v.approval_id JOIN threads t ON t.id = a.thread_id
		WHERE t.team_id = $1 AND a.created_at >= $2 AND a.created_at < $3`
)

// Approving sums up the approvals of a team that were asked in [since, until).
func (s *Store) Approving(ctx context.Context, teamID string, since, until time.Time) (Approving, error) {
	var out Approving
	for _, q := range []struct {
		sql  string
		into func([]ApprovingStats)
	}{
		{`SELECT '' AS name, ` + approvingColumns + ` FROM (` + askedOfPeople + `) x`, func(l []ApprovingStats) { out.Total = l[0] }},
		{`SELECT user_id AS name, ` + approvingColumns + ` FROM (` + saidByPeople + `) x GROUP BY user_id ORDER BY asked DESC, name`, func(l []ApprovingStats) { out.ByPerson = l }},
		{`SELECT rule AS name, ` + approvingColumns + ` FROM (` + askedOfPeople + `) x GROUP BY rule ORDER BY asked DESC, name`, func(l []ApprovingStats) { out.ByRule = l }},
	} {
		rows, err := collect[approvingRow](s.pool.Query(ctx, q.sql, teamID, since, until))
		if err != nil {
			return Approving{}, fmt.Errorf("sum up approvals: %w", err)
		}
		list := make([]ApprovingStats, len(rows))
		for i, r := range rows {
			list[i] = r.stats()
		}
		q.into(list)
	}
	return out, nil
}
