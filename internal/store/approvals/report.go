package approvals

import (
	"context"
	"fmt"
	"time"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/turns"
)

// Report sums up a team's decisions in a period.
type Report struct {
	Total    Stats
	ByPerson []Stats // the busiest first
	ByRule   []Stats // the most asked first
	// Feedback is people's feedback in the same period.
	Feedback []turns.FeedbackStats
}

// Stats sums up decisions, except those for which no person was asked.
type Stats struct {
	Name                            string // a Slack user, a rule, or empty for the total
	Asked, Allowed, Denied, Expired int64  // for a person, Asked counts their decisions
	// Quick are the decisions made within two seconds of the question.
	Quick int64
	// Median and P95 are the time from the question to the decision.
	Median, P95 time.Duration
}

// approvalsReportColumns sum up rows with status, and waited in seconds, NULL if nobody decided.
const approvalsReportColumns = `
	count(*) AS asked,
	count(*) FILTER (WHERE status = 'allowed') AS allowed,
	count(*) FILTER (WHERE status = 'denied') AS denied,
	count(*) FILTER (WHERE status = 'expired') AS expired,
	count(*) FILTER (WHERE waited < 2) AS quick,
	make_interval(secs => COALESCE(percentile_cont(0.5) WITHIN GROUP (ORDER BY waited), 0)) AS median,
	make_interval(secs => COALESCE(percentile_cont(0.95) WITHIN GROUP (ORDER BY waited), 0)) AS p95`

// The approvals that people were asked for, and each person's votes. An answer to the model's question is neither.
const (
	askedOfPeople = `
		SELECT a.rule, a.status,
			CASE WHEN a.status IN ('allowed', 'denied') THEN extract(epoch FROM a.decided_at - a.created_at)::float8 END AS waited
		FROM approvals a JOIN threads t ON t.id = a.thread_id
		WHERE t.team_id = $1 AND a.created_at >= $2 AND a.created_at < $3 AND a.kind <> 'question' AND a.decided_via NOT IN ('rule', 'grant')`
	saidByPeople = `
		SELECT v.user_id, CASE WHEN v.allow THEN 'allowed' ELSE 'denied' END AS status,
			extract(epoch FROM v.at - a.created_at)::float8 AS waited
		FROM votes v JOIN approvals a ON a.id = v.approval_id JOIN threads t ON t.id = a.thread_id
		WHERE t.team_id = $1 AND a.created_at >= $2 AND a.created_at < $3 AND a.kind <> 'question'`
)

// ApprovalsReport sums up the approvals of a team that were asked in [since, until).
func (s *Store) ApprovalsReport(ctx context.Context, teamID string, since, until time.Time) (Report, error) {
	var out Report
	var total []Stats
	for _, q := range []struct {
		sql  string
		into *[]Stats
	}{
		{`SELECT '' AS name, ` + approvalsReportColumns + ` FROM (` + askedOfPeople + `) x`, &total},
		{`SELECT user_id AS name, ` + approvalsReportColumns + ` FROM (` + saidByPeople + `) x GROUP BY user_id ORDER BY asked DESC, name`, &out.ByPerson},
		{`SELECT rule AS name, ` + approvalsReportColumns + ` FROM (` + askedOfPeople + `) x GROUP BY rule ORDER BY asked DESC, name`, &out.ByRule},
	} {
		var err error
		if *q.into, err = pg.Collect[Stats](s.db.Query(ctx, q.sql, teamID, since, until)); err != nil {
			return Report{}, fmt.Errorf("sum up approvals: %w", err)
		}
	}
	out.Total = total[0]
	var err error
	out.Feedback, err = pg.Collect[turns.FeedbackStats](s.db.Query(ctx, turns.FeedbackSQL, teamID, since, until))
	return out, pg.Wrap(err, "sum up what people think of answers")
}
