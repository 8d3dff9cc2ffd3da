package ledger

import (
	"context"
	"encoding/json"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// CLITotal is the CLI's own running total of a session in an epoch, in micro-USD: at the last reading (or the
// epoch's start), and now. The ledger keeps it beside the calls without counting it.
type CLITotal struct {
	SessionID     string
	Epoch         int // of the session
	Before, After int64
	// Model is the most used one. It names the entry if no call was seen.
	Model string
}

// AddCLITotals records the CLI's total between turns, on the thread's last turn. It does nothing when nothing was
// spent.
func (s *Store) AddCLITotals(ctx context.Context, l threads.Lease, w CLITotal) error {
	if w.Before == w.After {
		return nil
	}
	err := threads.Fenced(ctx, s.db, l, func(tx pg.Tx) error {
		var turnID int64
		if err := tx.QueryRow(ctx, `SELECT id FROM turns WHERE thread_id = $1 ORDER BY id DESC LIMIT 1`, l.ThreadID).Scan(&turnID); err != nil {
			return pg.NotFound(err)
		}
		return InsertEnd(ctx, tx, turnID, []CLITotal{w}, false)
	})
	return pg.Wrap(err, "record what the CLI says of thread %d", l.ThreadID)
}

// InsertEnd writes entries of the CLI's totals. ends says that the turn ends: the last entry counts the turn and
// its approvals, including earlier attempts. Without totals, an empty entry does that if the turn has called a
// model.
func InsertEnd(ctx context.Context, tx pg.Tx, turnID int64, told []CLITotal, ends bool) error {
	if len(told) == 0 && !ends {
		return nil
	}
	today, err := today(ctx, tx)
	if err != nil {
		return err
	}
	rows, spent := make([]cliTotalRow, len(told)), false
	for i, w := range told {
		spent = spent || w.Before != w.After
		rows[i] = cliTotalRow{No: i, SessionID: &w.SessionID, Epoch: &w.Epoch, Model: w.Model, Before: &w.Before, After: &w.After}
	}
	if len(rows) == 0 {
		rows = []cliTotalRow{{}}
	}
	data, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		WITH RECURSIVE attempts AS (
			SELECT id, continues FROM turns WHERE id = $1
			UNION ALL
			SELECT t.id, t.continues FROM attempts a JOIN turns t ON t.id = a.continues),
		dearest AS (
			SELECT model FROM ledger l JOIN attempts a ON a.id = l.turn_id
			WHERE l.thread_id = (SELECT thread_id FROM turns WHERE id = $1) AND kind = 'call'
			GROUP BY model ORDER BY sum(micro_usd) DESC, model LIMIT 1),
		approved AS (
			SELECT count(*) AS n FROM attempts r
			JOIN approvals a ON a.turn_id = r.id AND a.kind = 'tool' AND a.status = 'allowed' AND a.decided_via <> 'rule')
		INSERT INTO ledger (booked_on, kind, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id, cli_version,
			model, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, web_searches, micro_usd,
			total_before, total_after, turns, approved)
		SELECT $2::date, 'end', t.team_id, t.channel_id, t.id, t.project, r.requested_by, e.session_id, e.epoch, r.id, e.cli_version,
			COALESCE((SELECT model FROM dearest), n.model), 0, 0, 0, 0, 0, 0, 0,
			n.before, n.after, CASE WHEN n.ends THEN 1 ELSE 0 END, CASE WHEN n.ends THEN (SELECT n FROM approved) ELSE 0 END
		FROM (SELECT *, $4 AND lead(no) OVER (ORDER BY no) IS NULL AS ends
			FROM json_to_recordset($3::json) AS n (no int, session_id uuid, epoch int, model text, before bigint, after bigint)) n
		JOIN turns r ON r.id = $1
		JOIN threads t ON t.id = r.thread_id
		JOIN epochs e ON e.session_id = COALESCE(n.session_id, r.session_id) AND e.epoch = COALESCE(n.epoch, r.epoch)
		WHERE n.before <> n.after OR (n.ends AND ($5 OR EXISTS (SELECT FROM dearest)))
		ORDER BY n.no`, turnID, today, string(data), ends, spent)
	return pg.Wrap(err, "record what the CLI says of turn %d", turnID)
}

// cliTotalRow is a CLITotal as database parameters.
type cliTotalRow struct {
	No        int     `json:"no"`
	SessionID *string `json:"session_id"`
	Epoch     *int    `json:"epoch"`
	Model     string  `json:"model"`
	Before    *int64  `json:"before"`
	After     *int64  `json:"after"`
}
