package approvals

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// ToolText is what the model is told of a tool of an MCP server: Description and Schema, its
// input's in JSON, may be cut, and SHA256 is of the whole; zero where it is not known or not one
// text, which is never one that was allowed.
type ToolText struct {
	SHA256      Sum    `json:"-" db:"sha256"`
	Description string `json:"description"`
	Schema      string `json:"schema"`
}

// ToolChange is what the model was told of a tool when it was allowed last, and what it is told
// now.
type ToolChange struct {
	Before ToolText `json:"before"`
	Now    ToolText `json:"now"`
}

// KnowTool compares what the model is told of a tool in a thread's session, which may be several
// things and is at least one, with what was allowed in the thread's project: what it is told at first counts as
// allowed. It returns nil if all of it was.
func (s *Store) KnowTool(ctx context.Context, l threads.Lease, tool string, told []ToolText) (*ToolChange, error) {
	const known = `
		SELECT m.sha256, m.description, m.schema FROM threads t JOIN mcp_tools m USING (team_id, project)
		WHERE t.id = $1 AND m.tool = $2 ORDER BY m.accepted_at DESC, m.sha256`
	all, err := pg.Collect[ToolText](s.db.Query(ctx, known, l.ThreadID, tool))
	if err == nil && len(all) == 0 && told[0].SHA256 != (Sum{}) {
		err = threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error { // one after another: what was first, decides
			if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('mcp_tools'), hashtext($1))`, tool); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `
				INSERT INTO mcp_tools (team_id, project, tool, sha256, description, schema, accepted_by)
				SELECT t.team_id, t.project, $2, $3, $4, $5, '' FROM threads t
				WHERE t.id = $1 AND NOT EXISTS (SELECT FROM mcp_tools m WHERE m.team_id = t.team_id AND m.project = t.project AND m.tool = $2)`,
				l.ThreadID, tool, told[0].SHA256[:], told[0].Description, told[0].Schema); err != nil {
				return err
			}
			all, err = pg.Collect[ToolText](tx.Query(ctx, known, l.ThreadID, tool))
			return err
		})
	}
	if err != nil {
		return nil, pg.Wrap(err, "read what is known of the tool %s", tool)
	}
	return ChangeOf(all, told), nil
}

// ChangeOf is what is told that is not among what was allowed, which has the latest first. Where that
// is several texts, the change has all of them, and no sum.
func ChangeOf(allowed, told []ToolText) *ToolChange {
	unknown := slices.DeleteFunc(slices.Clone(told), func(t ToolText) bool {
		return t.SHA256 != (Sum{}) && slices.ContainsFunc(allowed, func(was ToolText) bool { return was.SHA256 == t.SHA256 })
	})
	if len(unknown) == 0 {
		return nil
	}
	change := &ToolChange{Now: unknown[0]}
	if len(allowed) > 0 {
		change.Before = allowed[0]
	}
	if len(unknown) > 1 {
		change.Now = ToolText{Description: "(The model is told of this tool in several ways that nobody has allowed. These are all of them.)"}
		for _, t := range unknown {
			change.Now.Description += "\n\n" + t.Description + "\n" + t.Schema
		}
	}
	return change
}

// acceptTool notes that a person has allowed what the model is told of a tool by now.
func acceptTool(b *pgx.Batch, a Approval) {
	if a.Status != Allowed || a.ToolChange == nil || a.ToolSHA256 == (Sum{}) {
		return
	}
	b.Queue(`
		INSERT INTO mcp_tools (team_id, project, tool, sha256, description, schema, accepted_by) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (team_id, project, tool, sha256) DO UPDATE SET accepted_by = excluded.accepted_by, accepted_at = now()`,
		a.TeamID, a.Project, a.ToolName, a.ToolSHA256[:], a.ToolChange.Now.Description, a.ToolChange.Now.Schema, a.DecidedBy)
}

// orNull is the sum, or NULL for none.
func (s Sum) orNull() []byte {
	if s == (Sum{}) {
		return nil
	}
	return s[:]
}
