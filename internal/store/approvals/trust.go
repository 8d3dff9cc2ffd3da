package approvals

import (
	"context"
	"encoding/hex"
	"time"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
)

// Trust is what a project's repository had of a kind when it was seen, and what an admin has decided about it.
type Trust struct {
	ID            int64
	Project, Kind string
	SHA256        []byte            `db:"sha256"`
	Files         map[string]string // contents by path
	Status        TrustStatus
	DecidedBy     string     // a Slack user; empty while it is pending
	DecidedAt     *time.Time // when
}

// TrustStatus says what was decided.
type TrustStatus string

// What is neither is pending, or replaced by a newer one and decided about no more.
const (
	TrustGiven   TrustStatus = "trusted"
	TrustRefused TrustStatus = "refused"
)

// SeeTrust notes what a repository has of a kind, unless it is what is trusted, or was seen since: then asked is false.
// again has it noted also if it was seen and is neither trusted nor pending.
func (s *Store) SeeTrust(ctx context.Context, t Trust, again bool) (asked bool, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('trust ' || $1::text || ' ' || $2::text, 0))`, t.Project, t.Kind); err != nil {
			return err
		}
		var seen bool
		if err := tx.QueryRow(ctx, `
			SELECT EXISTS (
				SELECT FROM trust WHERE project = $1 AND kind = $2 AND sha256 = $3 AND (status IN ('pending', 'trusted') OR NOT $4)
				AND id >= COALESCE((SELECT max(id) FROM trust WHERE project = $1 AND kind = $2 AND status = 'trusted'), 0))
			OR $5 AND NOT EXISTS (SELECT FROM trust WHERE project = $1 AND kind = $2)`,
			t.Project, t.Kind, t.SHA256, again, len(t.Files) == 0).Scan(&seen); err != nil || seen {
			return err
		}
		asked = true
		if _, err := tx.Exec(ctx, `UPDATE trust SET status = 'replaced' WHERE project = $1 AND kind = $2 AND status = 'pending'`, t.Project, t.Kind); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO trust (project, kind, sha256, files) VALUES ($1, $2, $3, $4)`, t.Project, t.Kind, t.SHA256, t.Files)
		return err
	})
	return asked, pg.Wrap(err, "note the %s of project %s", t.Kind, t.Project)
}

// Trusted are what is trusted of a project's repository, and what is pending: one of each for a kind.
func (s *Store) Trusted(ctx context.Context, project string) ([]Trust, error) {
	out, err := pg.Collect[Trust](s.db.Query(ctx, `
		SELECT DISTINCT ON (kind, status) id, project, kind, sha256, files, status, decided_by, decided_at FROM trust WHERE project = $1 AND status IN ('trusted', 'pending')
		ORDER BY kind, status, id DESC`, project))
	return out, pg.Wrap(err, "read what is trusted of project %s", project)
}

// DecideTrust decides about what is pending and has this hash, and tells the thread; [pg.ErrNotFound] if nothing is.
func (s *Store) DecideTrust(ctx context.Context, threadID int64, project, kind string, sha256 []byte, status TrustStatus, by, sentence string) (rows []outbox.Row, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		var team string
		if err := tx.QueryRow(ctx, `
			UPDATE trust SET status = $3, decided_by = $4, decided_at = now() WHERE project = $1 AND kind = $6 AND sha256 = $2 AND status = 'pending'
			RETURNING (SELECT team_id FROM threads WHERE id = $5)`, project, sha256, status, by, threadID, kind).Scan(&team); err != nil {
			return pg.NotFound(err)
		}
		if rows, err = outbox.Add(ctx, tx, threadID, outbox.NewRow{Kind: outbox.Said, Body: sentence}); err != nil {
			return err
		}
		return audit.Append(ctx, tx, audit.Entry{
			Kind: audit.Trust, TeamID: team, Actor: by, ThreadID: threadID,
			Details: map[string]any{"project": project, "kind": kind, "sha256": hex.EncodeToString(sha256), "status": status},
		})
	})
	return rows, pg.Wrap(err, "decide about what is trusted of project %s", project)
}
