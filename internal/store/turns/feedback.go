package turns

import (
	"context"
	"fmt"
	"time"

	"deckhand/internal/store/pg"
)

// Feedback is a person's rating of a turn's answer.
type Feedback struct {
	TurnID int64
	UserID string
	Good   bool
	Reason string // the person's, may be empty
}

// FeedbackStats counts the ratings of a project's answers.
type FeedbackStats struct {
	Project   string
	Good, Bad int64
}

// FeedbackReason is a person's text about an answer.
type FeedbackReason struct {
	Project, ChannelID, ThreadTS string
	// MessageTS is the answer's last message; empty if it was not recorded.
	MessageTS string
	UserID    string
	Good      bool
	Reason    string // theirs, with secrets masked
	At        time.Time
}

// FeedbackReport is a team's feedback.
type FeedbackReport struct {
	Projects []FeedbackStats  // the most rated first
	Reasons  []FeedbackReason // the latest first
}

// SaveFeedback records a person's rating, and replaces an earlier one; the same rating without a reason keeps the
// old reason. changed is false when nothing is new.
func (s *Store) SaveFeedback(ctx context.Context, f Feedback) (changed bool, err error) {
	tag, err := s.db.Exec(ctx, `
		INSERT INTO feedback AS f (turn_id, user_id, good, reason) VALUES ($1, $2, $3, $4)
		ON CONFLICT (turn_id, user_id) DO UPDATE SET good = excluded.good, reason = excluded.reason, at = now()
		WHERE f.good <> excluded.good OR excluded.reason NOT IN ('', f.reason)`, f.TurnID, f.UserID, f.Good, f.Reason)
	return tag.RowsAffected() == 1, pg.Wrap(err, "record what somebody thinks of turn %d", f.TurnID)
}

// FeedbackSQL counts a team's ratings in [$2, $3), by project.
const FeedbackSQL = `
	SELECT t.project, count(*) FILTER (WHERE f.good) AS good, count(*) FILTER (WHERE NOT f.good) AS bad
	FROM feedback f JOIN turns u ON u.id = f.turn_id JOIN threads t ON t.id = u.thread_id
	WHERE t.team_id = $1 AND f.at >= $2 AND f.at < $3 GROUP BY t.project ORDER BY count(*) DESC, t.project`

// FeedbackReport sums up a team's ratings in [since, until), with at most so many reasons.
func (s *Store) FeedbackReport(ctx context.Context, teamID string, since, until time.Time, most int) (out FeedbackReport, err error) {
	if out.Projects, err = pg.Collect[FeedbackStats](s.db.Query(ctx, FeedbackSQL, teamID, since, until)); err != nil {
		return FeedbackReport{}, fmt.Errorf("sum up what people think of answers: %w", err)
	}
	out.Reasons, err = pg.Collect[FeedbackReason](s.db.Query(ctx, `
		SELECT t.project, t.channel_id, t.thread_ts, f.user_id, f.good, f.reason, f.at,
			COALESCE((SELECT p.ts FROM posts p WHERE p.kind = 'turn' AND p.subject = f.turn_id::text ORDER BY p.part DESC LIMIT 1), '') AS message_ts
		FROM feedback f JOIN turns u ON u.id = f.turn_id JOIN threads t ON t.id = u.thread_id
		WHERE t.team_id = $1 AND f.at >= $2 AND f.at < $3 AND f.reason <> ''
		ORDER BY f.at DESC, f.turn_id DESC, f.user_id LIMIT $4`, teamID, since, until, most))
	return out, pg.Wrap(err, "read what people say about answers")
}
