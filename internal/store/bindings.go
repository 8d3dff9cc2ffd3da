package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Binding is the project of a channel that an admin has set up in Slack.
type Binding struct {
	ChannelID string
	Project   string // empty in [Store.Bind]: none any more
	BoundBy   string // Slack user
	BoundAt   time.Time
}

// Bindings are all of a team's, by channel.
func (s *Store) Bindings(ctx context.Context, team string) ([]Binding, error) {
	out, err := collect[Binding](s.pool.Query(ctx, `SELECT channel_id, project, bound_by, bound_at FROM bindings WHERE team_id = $1 AND project <> '' ORDER BY channel_id`, team))
	return out, wrap(err, "read the channels that were set up")
}

// Bind sets a channel up, and returns the project that it was set up for before, or empty. Of two
// at once the last one holds, and the audit has both.
func (s *Store) Bind(ctx context.Context, team string, b Binding) (was string, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('bind'), hashtext($1))`, team+"/"+b.ChannelID); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, `SELECT COALESCE(max(project), '') FROM bindings WHERE team_id = $1 AND channel_id = $2`, team, b.ChannelID).Scan(&was); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			INSERT INTO bindings (team_id, channel_id, project, bound_by) VALUES ($1, $2, $3, $4)
			ON CONFLICT (team_id, channel_id) DO UPDATE SET project = excluded.project, bound_by = excluded.bound_by, bound_at = now()`,
			team, b.ChannelID, b.Project, b.BoundBy); err != nil {
			return err
		}
		return audit(ctx, tx, AuditEntry{Kind: AuditBound, TeamID: team, Actor: b.BoundBy, Details: map[string]any{"channel": b.ChannelID, "project": b.Project, "before": was}})
	})
	return was, wrap(err, "set the channel %s up", b.ChannelID)
}
