package store

import (
	"context"
	"fmt"
)

// Feedback is what a person thinks of a turn's answer.
type Feedback struct {
	TurnID int64
	UserID string
	Good   bool
	Reason string // the person's, may be empty
}

// FeedbackStats count what people think of a project's answers.
type FeedbackStats struct {
	Project   string
	Good, Bad int64
}

// SaveFeedback records what a person thinks of an answer, in the place of what they thought
// before; the same word again, without a reason, keeps the reason that it had. changed is
// false when nothing is new.
func (s *Store) SaveFeedback(ctx context.Context, f Feedback) (changed bool, err error) {
	tag, err := s.pool.Exec(ctx, `
		INSERT INTO feedback AS f (turn_id, user_id, good, reason) VALUES ($1, $2, $3, $4)
		ON CONFLICT (turn_id, user_id) DO UPDATE SET good = excluded.good, reason = excluded.reason, at = now()
		WHERE f.good <> excluded.good OR excluded.reason NOT IN ('', f.reason)`, f.TurnID, f.UserID, f.Good, f.Reason)
	if err != nil {
		return false, fmt.Errorf("record what somebody thinks of turn %d: %w", f.TurnID, err)
	}
	return tag.RowsAffected() == 1, nil
}

// feedbackSQL counts what was said of a team's answers in [$2, $3), by project.
const feedbackSQL = `
	SELECT t.project, count(*) FILTER (WHERE f.good) AS good, count(*) FILTER (WHERE NOT f.good) AS bad
	FROM feedback f JOIN turns u ON u.id = f.turn_id JOIN threads t ON t.id = u.thread_id
	WHERE t.team_id = $1 AND f.at >= $2 AND f.at < $3 GROUP BY t.project ORDER BY count(*) DESC, t.project`
