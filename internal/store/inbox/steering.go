package inbox

import (
	"context"
	"fmt"
	"time"

	"deckhand/internal/store/audit"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
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
	out, err := pg.CollectOne[Steering](s.db.Query(ctx, `
		SELECT model, effort, mode, mcp_off, mcp_again, mcp_seen, COALESCE(mcp_seen_at, '0001-01-01Z') AS mcp_seen_at FROM threads WHERE id = $1`, threadID))
	return out, pg.Wrap(err, "read how people want thread %d", threadID)
}

// NoteServers notes how the MCP servers of the thread's session are, that some were connected again, and tells the
// thread of it.
func (s *Store) NoteServers(ctx context.Context, l threads.Lease, seen []MCPServer, again []string, sentences ...string) (rows []outbox.Row, err error) {
	said := make([]outbox.NewRow, len(sentences))
	for i, sentence := range sentences {
		said[i] = outbox.NewRow{Kind: outbox.Said, Body: sentence}
	}
	err = threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		if _, err := tx.Exec(ctx, `
			UPDATE threads SET mcp_seen = $2, mcp_seen_at = now(), mcp_again = ARRAY(SELECT n FROM unnest(mcp_again) n WHERE n <> ALL ($3::text[]))
			WHERE id = $1`, l.ThreadID, append([]MCPServer{}, seen...), append([]string{}, again...)); err != nil {
			return err
		}
		rows, err = outbox.Add(ctx, tx, l.ThreadID, said...)
		return err
	})
	return rows, pg.Wrap(err, "note the MCP servers of thread %d", l.ThreadID)
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
func (s *Store) Steer(ctx context.Context, threadID int64, c Steer) (rows []outbox.Row, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
		rows, err = s.steer(ctx, tx, threadID, c, false)
		return err
	})
	return rows, pg.Wrap(err, "steer thread %d", threadID)
}

// steer is [Store.Steer]; free says that nobody is about to send the rows.
func (s *Store) steer(ctx context.Context, tx pg.Tx, threadID int64, c Steer, free bool) ([]outbox.Row, error) {
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
	rows, err := outbox.Add(ctx, tx, threadID, outbox.NewRow{Kind: outbox.Said, Body: c.Sentence, Free: free})
	if err != nil {
		return nil, err
	}
	if how.before == beforeMCP {
		if err := pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticeServers, ThreadID: threadID}); err != nil {
			return nil, err
		}
	}
	return rows, audit.Append(ctx, tx, audit.Entry{
		Kind: audit.Steered, TeamID: team, Actor: c.By, ThreadID: threadID, Details: map[string]any{"what": c.What, "value": c.Value, "before": before},
	})
}
