package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Steering is how people want a thread's work done. What is empty is as its project has it.
type Steering struct {
	Model, Effort, Mode string
	// MCPOff are the MCP servers that are off, and MCPAgain those that are to be connected again.
	MCPOff, MCPAgain []string
	// MCPSeen is how the servers were at MCPSeenAt; zero if nobody has looked.
	MCPSeen   []MCPServer
	MCPSeenAt time.Time
}

// MCPServer is an MCP server of a thread's session as it was seen.
type MCPServer struct {
	Name string `json:"name"`
	// Status is connected, failed, needs-auth, pending or disabled, and Error says why.
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
	// Tools is the number of its tools, and Tokens what they cost in the model's context; 0 if that is not known.
	Tools  int `json:"tools,omitempty"`
	Tokens int `json:"tokens,omitempty"`
}

// Steering reads how people want the thread's next turn done.
func (s *Store) Steering(ctx context.Context, threadID int64) (Steering, error) {
	out, err := collectOne[Steering](s.pool.Query(ctx, `
		SELECT model, effort, mode, mcp_off, mcp_again, mcp_seen, COALESCE(mcp_seen_at, '0001-01-01Z') AS mcp_seen_at FROM threads WHERE id = $1`, threadID))
	return out, wrap(err, "read how people want thread %d", threadID)
}

// NoteServers notes how the MCP servers of the thread's session are, that some were connected again, and tells the
// thread of it.
func (s *Store) NoteServers(ctx context.Context, l Lease, seen []MCPServer, again []string, sentences ...string) (rows []OutboxRow, err error) {
	said := make([]newOutboxRow, len(sentences))
	for i, sentence := range sentences {
		said[i] = newOutboxRow{kind: OutboxSaid, body: sentence}
	}
	err = s.fencedTx(ctx, l, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			UPDATE threads SET mcp_seen = $2, mcp_seen_at = now(), mcp_again = ARRAY(SELECT n FROM unnest(mcp_again) n WHERE n <> ALL ($3::text[]))
			WHERE id = $1`, l.ThreadID, append([]MCPServer{}, seen...), append([]string{}, again...)); err != nil {
			return err
		}
		rows, err = s.addOutboxRows(ctx, tx, l.ThreadID, said...)
		return err
	})
	return rows, wrap(err, "note the MCP servers of thread %d", l.ThreadID)
}

// The kinds of steering.
const (
	SteerModel  = "model"
	SteerEffort = "effort"
	SteerMode   = "mode"
	// The value of these is an MCP server's name.
	SteerMCPOff   = "mcp off"
	SteerMCPOn    = "mcp on"
	SteerMCPAgain = "mcp reconnect"
)

// steers are, by kind, what was before and how it is set.
var steers = map[string]struct{ before, set string }{
	SteerModel:    {"model", "model = $2"},
	SteerEffort:   {"effort", "effort = $2"},
	SteerMode:     {"mode", "mode = $2"},
	SteerMCPOff:   {beforeMCP, "mcp_off = array_append(array_remove(mcp_off, $2), $2)"},
	SteerMCPOn:    {beforeMCP, "mcp_off = array_remove(mcp_off, $2)"},
	SteerMCPAgain: {beforeMCP, "mcp_again = array_append(array_remove(mcp_again, $2), $2)"},
}

const beforeMCP = `CASE WHEN $2 = ANY (mcp_off) THEN 'off' ELSE 'on' END`

// Steer is one choice of a person's, which holds from the thread's next turn on; of MCP servers at once, where a
// process runs.
type Steer struct {
	What, Value string // a kind and its value; empty for as the project has it
	By          string // Slack user
	Sentence    string // tells the thread
}

// Steer notes a choice and has the thread told. The last one that is committed holds.
func (s *Store) Steer(ctx context.Context, threadID int64, c Steer) (rows []OutboxRow, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		rows, err = s.steer(ctx, tx, threadID, c, false)
		return err
	})
	return rows, wrap(err, "steer thread %d", threadID)
}

// steer is [Store.Steer]; free says that nobody is about to send the rows.
func (s *Store) steer(ctx context.Context, tx pgx.Tx, threadID int64, c Steer, free bool) ([]OutboxRow, error) {
	how, ok := steers[c.What]
	if !ok {
		return nil, fmt.Errorf("steer a thread's %q", c.What)
	}
	var team, before string
	if err := tx.QueryRow(ctx, `
		WITH was AS (SELECT `+how.before+` AS before FROM threads WHERE id = $1 AND $2::text IS NOT NULL FOR NO KEY UPDATE)
		UPDATE threads t SET `+how.set+` FROM was WHERE t.id = $1 RETURNING t.team_id, was.before`, threadID, c.Value).Scan(&team, &before); err != nil {
		return nil, err
	}
	rows, err := s.addOutboxRows(ctx, tx, threadID, newOutboxRow{kind: OutboxSaid, body: c.Sentence, free: free})
	if err != nil {
		return nil, err
	}
	if how.before == beforeMCP {
		if err := notify(ctx, tx, Notice{Kind: NoticeServers, ThreadID: threadID}); err != nil {
			return nil, err
		}
	}
	return rows, audit(ctx, tx, AuditEntry{
		Kind: AuditSteered, TeamID: team, Actor: c.By, ThreadID: threadID, Details: map[string]any{"what": c.What, "value": c.Value, "before": before},
	})
}

// planAccepted ends plan mode in a thread whose plan somebody has just accepted: it was
// wanted for that.
func planAccepted(b *pgx.Batch, a Approval) {
	if a.Kind == ApprovalPlan && a.Status == ApprovalAllowed {
		b.Queue(`UPDATE threads SET mode = '' WHERE id = $1 AND mode = 'plan'`, a.ThreadID)
	}
}

// LastPrompt is what was last given to the thread's session as work, and is no command of
// Claude Code's; [ErrNotFound] if nothing was. Running says that it has not come to its end.
func (s *Store) LastPrompt(ctx context.Context, threadID int64) (LastPrompt, error) {
	p, err := collectOne[LastPrompt](s.pool.Query(ctx, `
		SELECT i.prompt AS text, NULLIF(i.files, '[]') AS files, i.state <> 'done' AS running FROM inbox i
		WHERE i.thread_id = $1 AND i.prompt_uuid IS NOT NULL AND i.prompt NOT LIKE '/%'
		ORDER BY i.ts DESC, i.id DESC LIMIT 1`, threadID))
	return p, wrap(err, "read the last prompt of thread %d", threadID)
}

// LastPrompt is a prompt that may be given again.
type LastPrompt struct {
	Text    string
	Files   []PromptFile
	Running bool
}

// PastSession is a session that a thread had, or has.
type PastSession struct {
	ID           string
	StartedAt    time.Time
	LastAt       time.Time // of its last turn; else when it was started
	Turns        int
	CostMicroUSD int64
	Now          bool // it is the thread's present one
}

// ThreadSessions lists the thread's sessions, the newest first, at most so many.
func (s *Store) ThreadSessions(ctx context.Context, threadID int64, limit int) ([]PastSession, error) {
	out, err := collect[PastSession](s.pool.Query(ctx, `
		SELECT s.id::text AS id, s.created_at AS started_at, COALESCE(r.last_at, s.created_at) AS last_at, COALESCE(r.turns, 0)::int AS turns,
			COALESCE((SELECT ledger_sum(l.micro_usd) FROM ledger l WHERE l.thread_id = s.thread_id AND l.session_id = s.id), 0)::bigint AS cost_micro_usd,
			s.id = t.session_id AS now
		FROM sessions s JOIN threads t ON t.id = s.thread_id
			LEFT JOIN LATERAL (SELECT count(*) FILTER (WHERE continues IS NULL) AS turns, max(started_at) AS last_at FROM turns WHERE session_id = s.id) r ON true
		WHERE s.thread_id = $1 ORDER BY s.created_at DESC, s.id LIMIT $2`, threadID, limit))
	return out, wrap(err, "list the sessions of thread %d", threadID)
}
