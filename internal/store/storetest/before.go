package storetest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// EntryBefore is a ledger entry as it was written before calls were metered: what one
// turn cost on one model. Nothing writes such rows any more; ledgers hold them.
type EntryBefore struct {
	Kind  string // turn: the difference of two running totals of the CLI; estimate: never reported
	Model string

	Input, Output, CacheRead, CacheWrite5m, CacheWrite1h int64 // tokens
	WebSearches                                          int64

	MicroUSD         int64
	ContractMicroUSD *int64
	TotalBefore      int64 // the model's running total in the turn's epoch; after it, MicroUSD more

	Turns, Approved int // 1 and what was allowed, on the entry that counts the turn
}

// BookBefore writes such entries for a turn, in one transaction with the turn's cost and
// what the audit tells of it.
func BookBefore(tb testing.TB, dsn string, turnID int64, entries ...EntryBefore) {
	tb.Helper()
	ctx := tb.Context()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // every statement's error was seen
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, e := range entries {
			if _, err := tx.Exec(ctx, `
				INSERT INTO ledger (booked_on, kind, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id,
					cli_version, model, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
					web_searches, micro_usd, contract_micro_usd, total_before, total_after, turns, approved)
				SELECT (now() AT TIME ZONE 'UTC')::date, $2, t.team_id, t.channel_id, t.id, t.project, r.requested_by, r.session_id, r.epoch, r.id,
					e.cli_version, $3, $4, $5, $6, $7, $8, $9, $10::bigint, $11, $12::bigint, $12::bigint + $10::bigint, $13, $14
				FROM turns r JOIN threads t ON t.id = r.thread_id JOIN epochs e ON e.session_id = r.session_id AND e.epoch = r.epoch
				WHERE r.id = $1`,
				turnID, e.Kind, e.Model, e.Input, e.Output, e.CacheRead, e.CacheWrite5m, e.CacheWrite1h,
				e.WebSearches, e.MicroUSD, e.ContractMicroUSD, e.TotalBefore, e.Turns, e.Approved); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE turns SET cost_micro_usd = cost_micro_usd + $2 WHERE id = $1`, turnID, e.MicroUSD); err != nil {
				return err
			}
		}
		// Last: the audit's chain is locked from here on.
		for _, e := range entries {
			if _, err := tx.Exec(ctx, `
				INSERT INTO audit (kind, team_id, actor, thread_id, turn_id, approval_id, details)
				SELECT 'cost', t.team_id, '', t.id, r.id, '', json_build_object('micro_usd', $2::bigint)::text
				FROM turns r JOIN threads t ON t.id = r.thread_id WHERE r.id = $1`, turnID, e.MicroUSD); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatalf("book entries of before the meter on turn %d: %v", turnID, err)
	}
}
