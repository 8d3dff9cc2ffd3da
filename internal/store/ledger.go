package store

import (
	"context"
	"encoding/json"
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

	LedgerCall       LedgerKind = "call"       // a call of the model, as the provider told it
	LedgerEnd        LedgerKind = "end"        // what the CLI says that it has spent, which costs nothing
	LedgerCorrection LedgerKind = "correction" // what an entry should have been more
)

// LedgerEntry is what one turn cost on one model. MicroUSD is by list price, as the
// CLI counts it.
type LedgerEntry struct {
	Kind      LedgerKind
	SessionID string
	Epoch     int // of the session
	Model     string

	Input     int64 // tokens
	Output    int64
	CacheRead int64
	// CacheWrite5m and CacheWrite1h are all that was written to the cache, by how long
	// it lives. What a CLI reports without saying how long counts as 5 minutes: that
	// is how it prices it.
	CacheWrite5m, CacheWrite1h int64
	WebSearches                int64

	MicroUSD int64
	// ContractMicroUSD is the same by the team's own prices; nil where it has none.
	ContractMicroUSD *int64
	TotalBefore      int64 // the model's running total in this epoch
	TotalAfter       int64
}

// insertEntries writes the entries in one statement, so that concurrent turns touch
// the roll-ups in the same order. It fills in what the turn and its thread know.
// ends says that they are all that is written with the turn's end: the dearest
// then stands for the turn and for what was approved in it, its earlier attempts
// included.
func (s *Store) insertEntries(ctx context.Context, tx pgx.Tx, turnID int64, entries []LedgerEntry, ends bool) error {
	if len(entries) == 0 {
		return nil
	}
	var now time.Time
	var approved int64
	if err := tx.QueryRow(ctx, `
		WITH RECURSIVE attempts AS (
			SELECT id, continues FROM turns WHERE id = $1 AND $2
			UNION ALL
			SELECT t.id, t.continues FROM attempts a JOIN turns t ON t.id = a.continues)
		SELECT now(), count(a.id) FROM attempts r
		LEFT JOIN approvals a ON a.turn_id = r.id AND a.kind = 'tool' AND a.status = 'allowed' AND a.decided_via <> 'rule'`,
		turnID, ends).Scan(&now, &approved); err != nil {
		return fmt.Errorf("count the approvals of turn %d: %w", turnID, err)
	}
	rows := make([]ledgerRow, len(entries))
	dearest := 0
	for i, e := range entries {
		rows[i] = ledgerRow{
			No: i, Kind: e.Kind, SessionID: e.SessionID, Epoch: e.Epoch, Model: e.Model,
			Input: e.Input, Output: e.Output, CacheRead: e.CacheRead, CacheWrite5m: e.CacheWrite5m, CacheWrite1h: e.CacheWrite1h,
			WebSearches: e.WebSearches, MicroUSD: e.MicroUSD, Contract: e.ContractMicroUSD, Before: e.TotalBefore, After: e.TotalAfter,
		}
		if e.MicroUSD > entries[dearest].MicroUSD {
			dearest = i
		}
	}
	if ends {
		rows[dearest].Turns, rows[dearest].Approved = 1, approved
	}
	data, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("write ledger entries: %w", err)
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO ledger (booked_on, kind, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id,
			cli_version, model, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
			web_searches, micro_usd, contract_micro_usd, total_before, total_after, turns, approved)
		SELECT $3::date, n.kind, t.team_id, t.channel_id, t.id, t.project, r.requested_by, e.session_id, e.epoch, r.id,
			e.cli_version, n.model, n.input, n.output, n.cache_read, n.cache_write_5m, n.cache_write_1h,
			n.web_searches, n.micro_usd, n.contract, n.before, n.after, n.turns, n.approved
		FROM json_to_recordset($2::json) AS n (no int, kind text, session_id uuid, epoch int, model text,
			input bigint, output bigint, cache_read bigint, cache_write_5m bigint, cache_write_1h bigint,
			web_searches bigint, micro_usd bigint, contract bigint, before bigint, after bigint, turns smallint, approved int)
		JOIN turns r ON r.id = $1
		JOIN threads t ON t.id = r.thread_id
		JOIN epochs e ON e.session_id = n.session_id AND e.epoch = n.epoch
		ORDER BY n.no`,
		turnID, string(data), s.dayOf(now).String())
	if err != nil {
		return fmt.Errorf("write ledger entries: %w", err)
	}
	if tag.RowsAffected() != int64(len(entries)) {
		return fmt.Errorf("write ledger entries: %d of %d have no turn or epoch to belong to", int64(len(entries))-tag.RowsAffected(), len(entries))
	}
	return nil
}

// ledgerRow is an entry on its way into the database.
type ledgerRow struct {
	No           int        `json:"no"`
	Kind         LedgerKind `json:"kind"`
	SessionID    string     `json:"session_id"`
	Epoch        int        `json:"epoch"`
	Model        string     `json:"model"`
	Input        int64      `json:"input"`
	Output       int64      `json:"output"`
	CacheRead    int64      `json:"cache_read"`
	CacheWrite5m int64      `json:"cache_write_5m"`
	CacheWrite1h int64      `json:"cache_write_1h"`
	WebSearches  int64      `json:"web_searches"`
	MicroUSD     int64      `json:"micro_usd"`
	Contract     *int64     `json:"contract"`
	Before       int64      `json:"before"`
	After        int64      `json:"after"`
	Turns        int        `json:"turns"`
	Approved     int64      `json:"approved"`
}

// AddEntries writes entries for the thread's latest turn, whose end they do not
// belong to: the cost of what ran between turns, or of a turn that will go on.
func (s *Store) AddEntries(ctx context.Context, l Lease, entries []LedgerEntry) error {
	if len(entries) == 0 {
		return nil
	}
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		team, err := hold(ctx, tx, l)
		if err != nil {
			return err
		}
		var turnID int64
		if err := tx.QueryRow(ctx, `
			UPDATE turns SET cost_micro_usd = cost_micro_usd + $2
			WHERE id = (SELECT max(id) FROM turns WHERE thread_id = $1)
			RETURNING id`, l.ThreadID, total(entries)).Scan(&turnID); err != nil {
			return err
		}
		if err := s.insertEntries(ctx, tx, turnID, entries, false); err != nil {
			return err
		}
		return audit(ctx, tx, costEntry(team, l.ThreadID, turnID, total(entries)))
	})
	if err != nil {
		return fmt.Errorf("add ledger entries to thread %d: %w", l.ThreadID, err)
	}
	return nil
}

// costEntry tells of a cost that came after what a turn's end has told.
func costEntry(team string, threadID, turnID, microUSD int64) AuditEntry {
	return AuditEntry{Kind: AuditCost, TeamID: team, ThreadID: threadID, TurnID: turnID, Details: map[string]any{"micro_usd": microUSD}}
}

func total(entries []LedgerEntry) (microUSD int64) {
	for _, e := range entries {
		microUSD += e.MicroUSD
	}
	return microUSD
}
