package threads

import (
	"context"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
)

// Binding is the project of a channel that an admin has set up in Slack.
type Binding struct {
	ChannelID string
	Project   string // empty in [Store.Bind]: none any more
	BoundBy   string // Slack user
}

// Bindings are all of a team's, by channel.
func (s *Store) Bindings(ctx context.Context, team string) ([]Binding, error) {
	out, err := pg.Collect[Binding](s.db.Query(ctx, `SELECT channel_id, project, bound_by FROM bindings WHERE team_id = $1 AND project <> '' ORDER BY channel_id`, team))
	return out, pg.Wrap(err, "read the channels that were set up")
}

// Bind sets a channel up, and returns the project that it was set up for before, or empty. Of two
// at once the last one holds, and the audit has both.
func (s *Store) Bind(ctx context.Context, team string, b Binding) (was string, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
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
		return audit.Append(ctx, tx, audit.Entry{Kind: audit.Bound, TeamID: team, Actor: b.BoundBy, Details: map[string]any{"channel": b.ChannelID, "project": b.Project, "before": was}})
	})
	return was, pg.Wrap(err, "set the channel %s up", b.ChannelID)
}
