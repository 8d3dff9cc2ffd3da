package judge

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Rows are the rows of Postgres.
type Rows struct {
	Waiting   []string // unfinished rows of the inbox, for people
	Running   []string // turns that have not ended
	Calls     int      // of the model, not booked
	Decisions []Decision
	Approvals []Approval
	Ledger    []Entry
	Estimates []string // entries of the ledger that are of no call
	Threads   []ThreadRow
	Turns     []TurnRow
	Posts     []PostRow
	Broken    int // rows of the audit that do not follow the previous one
}

// Decision is a decision in the audit: by a person, a grant or a rule.
type Decision struct {
	At      time.Time
	ToolUse string
	Status  string
	Via     string
}

// Approval is a card's row.
type Approval struct {
	ThreadID  int64
	CreatedAt time.Time
	Input     string
	Status    string
	DecidedBy string
	DecidedAt *time.Time
}

// Entry is a call in the ledger, in micro-USD, with what was corrected when its end became known.
type Entry struct {
	Request  string // empty if the bot did not see its answer begin
	Session  string
	User     string
	Complete bool
	Micro    int64
	Bound    int64 // what may be missing
}

// ThreadRow is a thread with its current session.
type ThreadRow struct {
	ID      int64
	Channel string
	TS      string
	Branch  string
}

// TurnRow is a turn, for the transcripts.
type TurnRow struct {
	ID       int64
	ThreadID int64
	Attempt  int
	State    string
	Problem  string
	Started  time.Time
	Ended    *time.Time
}

// PostRow is a received message, for the transcripts.
type PostRow struct {
	At      time.Time
	TS      string
	State   string
	Outcome string
}

func (e *Evidence) readRows(ctx context.Context, p Place) error {
	conn, err := pgx.Connect(ctx, p.Database)
	if err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // only read
	r := &e.Rows
	for _, part := range []struct {
		sql  string
		into any
	}{
		{`SELECT format('%s %s of %s in %s: %s %s', kind, ts, user_id, thread_ts, state, outcome) FROM inbox WHERE state <> 'done' ORDER BY id`, &r.Waiting},
		{`SELECT format('turn %s of thread %s, attempt %s', id, thread_id, attempt) FROM turns WHERE state = 'running' ORDER BY id`, &r.Running},
		{`SELECT at, COALESCE(details::json ->> 'tool_use', ''), COALESCE(details::json ->> 'status', ''), COALESCE(details::json ->> 'via', '')
			FROM audit WHERE kind = 'decided' ORDER BY seq`, &r.Decisions},
		{`SELECT thread_id, created_at, input, status, decided_by, decided_at FROM approvals ORDER BY created_at`, &r.Approvals},
		{`SELECT l.request_id, l.session_id::text, l.user_id, l.complete OR COALESCE(c.bound_micro_usd = -l.bound_micro_usd, false),
				l.micro_usd + COALESCE(c.micro_usd, 0), l.bound_micro_usd + COALESCE(c.bound_micro_usd, 0)
			FROM ledger l LEFT JOIN ledger c ON c.corrects = l.call_id AND c.cause = 'late' WHERE l.kind = 'call' ORDER BY l.id`, &r.Ledger},
		{`SELECT format('a %s of turn %s over %s µ$', kind, turn_id, micro_usd) FROM ledger WHERE kind NOT IN ('call', 'end') AND cause IS DISTINCT FROM 'late'`, &r.Estimates},
		{`SELECT id, channel_id, thread_ts, 'deckhand/' || id || CASE slug WHEN '' THEN '' ELSE '-' || slug END FROM threads ORDER BY id`, &r.Threads},
		{`SELECT id, thread_id, attempt, state, problem, started_at, ended_at FROM turns ORDER BY id`, &r.Turns},
		{`SELECT received_at, ts, state, outcome FROM inbox WHERE kind = 'message' ORDER BY id`, &r.Posts},
	} {
		rows, err := conn.Query(ctx, part.sql)
		if err != nil {
			return fmt.Errorf("read the database: %w", err)
		}
		switch into := part.into.(type) {
		case *[]string:
			*into, err = pgx.CollectRows(rows, pgx.RowTo[string])
		case *[]Decision:
			*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Decision])
		case *[]Approval:
			*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Approval])
		case *[]Entry:
			*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
		case *[]ThreadRow:
			*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[ThreadRow])
		case *[]PostRow:
			*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[PostRow])
		case *[]TurnRow:
			*into, err = pgx.CollectRows(rows, pgx.RowToStructByPos[TurnRow])
		}
		if err != nil {
			return fmt.Errorf("read the database: %w", err)
		}
	}
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM calls`).Scan(&r.Calls); err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	err = conn.QueryRow(ctx, `
		SELECT count(*) FROM (SELECT seq, prev_hash, lag(seq) OVER w AS before, lag(hash) OVER w AS hash_before FROM audit WINDOW w AS (ORDER BY seq)) a
		WHERE before IS NOT NULL AND (seq <> before + 1 OR prev_hash <> hash_before)`).Scan(&r.Broken)
	if err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	return nil
}
