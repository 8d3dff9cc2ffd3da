package approvals

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// GrantScope says where a grant applies, always within its project.
type GrantScope string

// The scopes, narrowest first.
const (
	GrantSession GrantScope = "session" // until the thread's session ends, by /clear for instance
	GrantThread  GrantScope = "thread"
	GrantChannel GrantScope = "channel"
	GrantProject GrantScope = "project"
)

// Grant is a standing permission given with a decision.
type Grant struct {
	ID        int64
	TeamID    string
	Project   string
	Scope     GrantScope
	ThreadID  int64  // of the approval that it came from
	ChannelID string // likewise
	ThreadTS  string
	ToolName  string
	// Pattern is a policy pattern such as "Bash(go test *)"; empty for exactly the input of its approval.
	Pattern    string
	ApprovalID string
	CreatedBy  string // Slack user
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RevokedBy  string    // empty while it is valid
	Uses       int64     // how many tool calls it allowed
	LastUsedAt time.Time // zero: never
}

// NewGrant is the grant that a decision creates.
type NewGrant struct {
	Scope   GrantScope
	Pattern string // empty: exactly the approval's input
	For     time.Duration
}

// A grant's thread and channel are its approval's; where they limit it, they equal its own.
const grantColumns = `g.id, g.team_id, g.project, g.scope, a.thread_id, t.channel_id, t.thread_ts, g.tool_name, g.pattern,
	g.approval_id, g.created_by, g.created_at, g.expires_at, g.revoked_by,
	u.uses, COALESCE(u.last_used_at, '0001-01-01T00:00:00Z') AS last_used_at`

const grantSource = `FROM grants g
	JOIN approvals a ON a.id = g.approval_id
	JOIN threads t ON t.id = a.thread_id
	CROSS JOIN LATERAL (SELECT count(*) AS uses, max(x.decided_at) AS last_used_at FROM approvals x WHERE x.grant_id = g.id) u`

// LiveGrant is a grant for the policy.
type LiveGrant struct {
	ID        int64
	Pattern   string   // empty: exactly this input
	Approvers []string // who could decide about its approval
	CreatedBy string
	CreatedAt time.Time
	// ToolSHA256 is its approval's: it is for what the model was told then.
	ToolSHA256 Sum `db:"tool_sha256"`
}

// LiveGrants lists the valid grants for a call of the first of the tools in the thread's session: those with a
// pattern for any of the tools in the thread's project, and those of the tool itself for exactly the input with the
// SHA-256 sum.
func (s *Store) LiveGrants(ctx context.Context, l threads.Lease, sessionID string, tools []string, sum [32]byte) ([]LiveGrant, error) {
	out, err := pg.Collect[LiveGrant](s.db.Query(ctx, `
		SELECT g.id, g.pattern, a.approvers, g.created_by, g.created_at, a.tool_sha256
		FROM threads t
		JOIN grants g ON g.team_id = t.team_id AND g.project = t.project
		JOIN approvals a ON a.id = g.approval_id
		WHERE t.id = $1 AND g.tool_name = ANY($3) AND g.revoked_at IS NULL AND g.expires_at > now()
		  AND (g.input_sha256 IS NULL OR g.input_sha256 = $4 AND g.tool_name = ($3::text[])[1])
		  AND (g.session_id IS NULL OR g.session_id = $2)
		  AND (g.thread_id IS NULL OR g.thread_id = t.id)
		  AND (g.channel_id IS NULL OR g.channel_id = t.channel_id)
		ORDER BY g.id`, l.ThreadID, sessionID, tools, sum[:]))
	return out, pg.Wrap(err, "read the grants of thread %d", l.ThreadID)
}

// insertGrant makes a grant from an approval that was just allowed.
func insertGrant(ctx context.Context, tx pg.Tx, a Approval, n NewGrant) (id int64, err error) {
	var sum []byte
	if n.Pattern == "" {
		sum = a.InputSHA256[:]
	}
	err = tx.QueryRow(ctx, `
		INSERT INTO grants (team_id, project, scope, session_id, thread_id, channel_id, tool_name, pattern, input_sha256,
			approval_id, created_by, expires_at)
		VALUES ($1, $2, $3, CASE WHEN $3 = 'session' THEN $4::uuid END, CASE WHEN $3 = 'thread' THEN $5::bigint END,
			CASE WHEN $3 = 'channel' THEN $6 END, $7, $8, $9, $10, $11, now() + make_interval(secs => $12))
		RETURNING id`,
		a.TeamID, a.Project, n.Scope, a.SessionID, a.ThreadID, a.ChannelID, a.ToolName, n.Pattern, sum,
		a.ID, a.DecidedBy, n.For.Seconds()).Scan(&id)
	return id, pg.Wrap(err, "write the grant")
}

// GrantFilter selects grants. TeamID is required.
type GrantFilter struct {
	TeamID    string
	ID        int64  // one grant, revoked or not
	CreatedBy string // made by this person
	ThreadID  int64  // valid in this thread
}

// Grants lists the valid grants, newest first, at most limit; or the one named by the filter.
func (s *Store) Grants(ctx context.Context, f GrantFilter, limit int) ([]Grant, error) {
	out, err := pg.Collect[Grant](s.db.Query(ctx, `
		SELECT `+grantColumns+` `+grantSource+`
		WHERE g.team_id = $1
		  AND ($2::bigint <> 0 OR (g.revoked_at IS NULL AND g.expires_at > now()))
		  AND ($2::bigint = 0 OR g.id = $2)
		  AND ($3 = '' OR g.created_by = $3)
		  AND ($4::bigint = 0 OR EXISTS (SELECT FROM threads h WHERE h.id = $4 AND h.project = g.project
			AND (g.session_id IS NULL OR g.session_id = h.session_id)
			AND (g.thread_id IS NULL OR g.thread_id = h.id)
			AND (g.channel_id IS NULL OR g.channel_id = h.channel_id)))
		ORDER BY g.id DESC LIMIT $5`, f.TeamID, f.ID, f.CreatedBy, f.ThreadID, limit))
	return out, pg.Wrap(err, "read grants")
}

// EndGrants revokes what was permitted for the thread alone, or a session of it, and returns the audit's entries of that.
func EndGrants(ctx context.Context, tx pg.Tx, threadID int64, by string) (entries []audit.Entry, err error) {
	ended, err := pg.Collect[Grant](tx.Query(ctx, `
		WITH g AS (
			UPDATE grants SET revoked_by = $2, revoked_at = now()
			WHERE revoked_at IS NULL AND expires_at > now() AND (thread_id = $1 OR session_id IN (SELECT id FROM sessions WHERE thread_id = $1))
			RETURNING *)
		SELECT `+grantColumns+` `+strings.Replace(grantSource, "FROM grants g", "FROM g", 1), threadID, by))
	for _, g := range ended {
		entries = append(entries, g.revoked(by))
	}
	return entries, err
}

// revoked is the audit's entry of its end.
func (g Grant) revoked(by string) audit.Entry {
	return audit.Entry{
		Kind: audit.GrantRevoked, TeamID: g.TeamID, Actor: by, ThreadID: g.ThreadID, ApprovalID: g.ApprovalID,
		Details: map[string]any{"grant": g.ID, "pattern": g.Pattern, "scope": g.Scope, "made_by": g.CreatedBy},
	}
}

// RevokeGrant ends a grant permanently. ok is false when it was already revoked. From the commit on it allows
// nothing.
func (s *Store) RevokeGrant(ctx context.Context, teamID string, id int64, by string) (g Grant, ok bool, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE grants SET revoked_by = $3, revoked_at = now()
			WHERE team_id = $1 AND id = $2 AND revoked_at IS NULL`, teamID, id, by)
		if err != nil {
			return err
		}
		ok = tag.RowsAffected() == 1
		g, err = pg.CollectOne[Grant](tx.Query(ctx, `SELECT `+grantColumns+` `+grantSource+` WHERE g.team_id = $1 AND g.id = $2`, teamID, id))
		if err != nil {
			return err
		}
		if !ok {
			return nil
		}
		return audit.Append(ctx, tx, g.revoked(by))
	})
	if err != nil && !errors.Is(err, pg.ErrNotFound) {
		err = fmt.Errorf("revoke grant %d: %w", id, err)
	}
	return g, ok, err
}
