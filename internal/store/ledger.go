package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// LedgerKind says where an entry's figures come from.
type LedgerKind string

// The kinds of ledger entries.
const (
	LedgerTurn     LedgerKind = "turn"     // the difference of two running totals of the CLI
	LedgerEstimate LedgerKind = "estimate" // a turn that was billed and never reported
)

// LedgerEntry is what one turn cost on one model. Amounts are micro-USD by list
// price, as the CLI counts them.
type LedgerEntry struct {
	Kind        LedgerKind
	SessionID   string
	Epoch       int // of the session
	Model       string
	Input       int64 // tokens
	Output      int64
	CacheRead   int64
	CacheWrite  int64
	WebSearches int64
	MicroUSD    int64
	TotalBefore int64 // the model's running total in this epoch
	TotalAfter  int64
}

// insertEntries fills in what the turn's own row and its thread know.
func insertEntries(ctx context.Context, tx pgx.Tx, turnID int64, entries []LedgerEntry) error {
	for _, e := range entries {
		_, err := tx.Exec(ctx, `
			INSERT INTO ledger (kind, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id,
				cli_version, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, web_searches,
				micro_usd, total_before, total_after)
			SELECT $2, t.team_id, t.channel_id, t.id, t.project, r.requested_by, e.session_id, e.epoch, r.id,
				e.cli_version, $3, $4, $5, $6, $7, $8, $9, $10, $11
			FROM turns r
			JOIN threads t ON t.id = r.thread_id
			JOIN epochs e ON e.session_id = $12 AND e.epoch = $13
			WHERE r.id = $1`,
			turnID, e.Kind, e.Model, e.Input, e.Output, e.CacheRead, e.CacheWrite, e.WebSearches,
			e.MicroUSD, e.TotalBefore, e.TotalAfter, e.SessionID, e.Epoch)
		if err != nil {
			return fmt.Errorf("write ledger entry for %s: %w", e.Model, err)
		}
	}
	return nil
}

// AddEntries writes entries for the thread's latest turn, whose end they do not
// belong to: the cost of what ran between turns, or of a turn that will go on.
func (s *Store) AddEntries(ctx context.Context, l Lease, entries []LedgerEntry) error {
	if len(entries) == 0 {
		return nil
	}
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		if err := hold(ctx, tx, l); err != nil {
			return err
		}
		var turnID int64
		if err := tx.QueryRow(ctx, `
			UPDATE turns SET cost_micro_usd = cost_micro_usd + $2
			WHERE id = (SELECT max(id) FROM turns WHERE thread_id = $1)
			RETURNING id`, l.ThreadID, total(entries)).Scan(&turnID); err != nil {
			return err
		}
		return insertEntries(ctx, tx, turnID, entries)
	})
	if err != nil {
		return fmt.Errorf("add ledger entries to thread %d: %w", l.ThreadID, err)
	}
	return nil
}

func total(entries []LedgerEntry) (microUSD int64) {
	for _, e := range entries {
		microUSD += e.MicroUSD
	}
	return microUSD
}

// ModelCost is the spend on one model over some scope and time.
type ModelCost struct {
	Model      string
	Turns      int64
	Input      int64
	Output     int64
	CacheRead  int64
	CacheWrite int64
	MicroUSD   int64
	Estimated  int64 // the part of MicroUSD that is estimates
}

// CostScope chooses ledger entries. TeamID is required; the rest narrow it when
// they are set.
type CostScope struct {
	TeamID   string
	ThreadID int64
	UserID   string
	Since    time.Time
}

// Costs sums the ledger by model over a scope, dearest first.
func (s *Store) Costs(ctx context.Context, c CostScope) ([]ModelCost, error) {
	out, err := collect[ModelCost](s.pool.Query(ctx, `
		SELECT model, count(DISTINCT turn_id) AS turns,
			sum(input_tokens)::bigint AS input, sum(output_tokens)::bigint AS output,
			sum(cache_read_tokens)::bigint AS cache_read, sum(cache_write_tokens)::bigint AS cache_write,
			sum(micro_usd)::bigint AS micro_usd,
			COALESCE(sum(micro_usd) FILTER (WHERE kind = 'estimate'), 0)::bigint AS estimated
		FROM ledger
		WHERE team_id = $1
		  AND ($2::bigint = 0 OR thread_id = $2)
		  AND ($3 = '' OR user_id = $3)
		  AND at >= $4
		GROUP BY model ORDER BY micro_usd DESC, model`,
		c.TeamID, c.ThreadID, c.UserID, c.Since))
	if err != nil {
		return nil, fmt.Errorf("sum the ledger: %w", err)
	}
	return out, nil
}
