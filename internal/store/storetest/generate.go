package storetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// LedgerTeam is the team whose ledger [GenerateLedger] writes.
const LedgerTeam = "TLEDGER"

// The days of a generated ledger: LedgerFrom until before LedgerTo, in UTC.
var (
	LedgerFrom = time.Date(2024, time.November, 1, 0, 0, 0, 0, time.UTC)
	LedgerTo   = time.Date(2026, time.November, 1, 0, 0, 0, 0, time.UTC)
)

// GenerateLedger fills the ledger of the empty, migrated database at url with rows
// entries, the same for the same seed: two years of 500 people in 60 channels of
// 12 projects on 4 models, by calls and the ends of their turns. Few people cause most of
// it, weeks and working hours show, and threads go on for days. Turns, epochs, sessions and
// threads are there too, foreign keys hold, and the roll-ups are what the ledger's own
// trigger made of it. It returns when the tables are vacuumed and analysed.
//
// The database must be the caller's alone: constraints and indexes are away while
// the rows are copied.
func GenerateLedger(ctx context.Context, url string, rows int, seed uint64) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // every statement's error was seen
	var filled bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM threads) OR EXISTS (SELECT FROM ledger)`).Scan(&filled); err != nil {
		return fmt.Errorf("look at the database: %w", err)
	}
	if filled {
		return errors.New("the database holds threads already; a generated ledger needs an empty one")
	}
	if _, err := conn.Exec(ctx, `
		SELECT set_config('synchronous_commit', 'off', false), set_config('work_mem', '128MB', false), set_config('maintenance_work_mem', '256MB', false)`); err != nil {
		return fmt.Errorf("prepare the connection: %w", err)
	}
	restore, err := takeDown(ctx, conn)
	if err != nil {
		return err
	}
	g := newGenerator(seed, rows)
	for g.more() {
		if err := g.copyChunk(ctx, conn); err != nil {
			return err
		}
	}
	if err := g.copyParents(ctx, conn); err != nil {
		return err
	}
	for _, sql := range restore {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	for _, table := range []string{"threads", "turns", "ledger"} {
		if _, err := conn.Exec(ctx, `SELECT setval(pg_get_serial_sequence($1, 'id'), (SELECT max(id) FROM `+table+`))`, table); err != nil {
			return fmt.Errorf("set the ids of %s: %w", table, err)
		}
	}
	if _, err := conn.Exec(ctx, `
		VACUUM (ANALYZE) threads, sessions, epochs, turns, ledger, ledger_daily, ledger_monthly, ledger_channel_daily, ledger_channel_monthly,
			ledger_thread_daily, ledger_threads, ledger_openings`); err != nil {
		return fmt.Errorf("vacuum: %w", err)
	}
	return nil
}

// takeDown drops what would be checked and kept up row by row, and returns the
// statements that bring it back, which check all rows at once.
func takeDown(ctx context.Context, conn *pgx.Conn) (restore []string, err error) {
	rows, err := conn.Query(ctx, `
		SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
			format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
		FROM pg_constraint WHERE contype = 'f' AND conrelid IN ('ledger'::regclass, 'turns'::regclass)
		UNION ALL
		SELECT format('DROP INDEX %s', indexrelid::regclass), pg_get_indexdef(indexrelid)
		FROM pg_index WHERE indrelid = 'ledger'::regclass AND NOT indisunique
		ORDER BY 2 DESC`)
	if err != nil {
		return nil, fmt.Errorf("list constraints and indexes: %w", err)
	}
	var down []string
	var drop, add string
	if _, err := pgx.ForEachRow(rows, []any{&drop, &add}, func() error {
		down, restore = append(down, drop), append(restore, add)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list constraints and indexes: %w", err)
	}
	for _, sql := range down {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return nil, fmt.Errorf("%s: %w", sql, err)
		}
	}
	return restore, nil
}

// chunkRows is how many entries are copied at a time: the trigger rolls up a chunk
// at once.
const chunkRows = 250_000

// copyChunk writes the next turns with their entries.
func (g *generator) copyChunk(ctx context.Context, conn *pgx.Conn) error {
	g.turns, g.entries = g.turns[:0], g.entries[:0]
	for g.more() && len(g.entries) < chunkRows {
		g.day()
	}
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"turns"}, []string{
		"id", "thread_id", "session_id", "epoch", "lease_epoch", "requested_by", "state", "agent_turns", "cost_micro_usd", "started_at", "ended_at",
	}, pgx.CopyFromSlice(len(g.turns), func(i int) ([]any, error) {
		t := &g.turns[i]
		return []any{t.id, t.thread.id, t.thread.session, t.epoch, 1, t.user, "done", t.steps, t.microUSD, t.at.Add(-time.Duration(t.steps) * 20 * time.Second), t.at}, nil
	}))
	if err != nil {
		return fmt.Errorf("copy turns: %w", err)
	}
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"ledger"}, []string{
		"at", "booked_on", "kind", "team_id", "channel_id", "thread_id", "project", "user_id", "session_id", "epoch", "turn_id",
		"cli_version", "model", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens",
		"web_searches", "micro_usd", "contract_micro_usd", "total_before", "total_after", "turns", "approved",
		"call_id", "rate", "request_id", "started_at", "first_byte_at", "ended_at", "status", "complete", "priced", "bound_micro_usd",
	}, pgx.CopyFromSlice(len(g.entries), func(i int) ([]any, error) { return g.entries[i].row(), nil }))
	if err != nil {
		return fmt.Errorf("copy ledger entries: %w", err)
	}
	return nil
}

// row is the entry with what only calls have.
func (e *genEntry) row() []any {
	t, kind, turns := e.turn.thread, "call", 0
	if e.end {
		kind, turns = "end", 1
	}
	out := []any{
		e.turn.at, e.turn.at, kind, LedgerTeam, t.place.channel, t.id, t.place.project, e.turn.user, t.session, e.turn.epoch, e.turn.id,
		ledgerCLI, e.model, e.input, e.output, e.read, e.short, e.long, e.searches, e.microUSD, e.contract, e.before, e.after, turns, e.approved,
	}
	if e.end {
		return append(out, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil)
	}
	ended, status := any(e.at.Add(15*time.Second)), 200
	if e.cut {
		ended, status = nil, 0
	}
	return append(out, e.call, "", "", e.at, e.at.Add(time.Second), ended, status, !e.cut, true, e.bound)
}

const ledgerCLI = "2.1.329"

// copyParents writes what the turns belong to.
func (g *generator) copyParents(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.CopyFrom(ctx, pgx.Identifier{"threads"}, []string{
		"id", "team_id", "channel_id", "thread_ts", "project", "owner_id", "created_at", "active_at",
	}, pgx.CopyFromSlice(len(g.threads), func(i int) ([]any, error) {
		t := g.threads[i]
		return []any{
			t.id, LedgerTeam, t.place.channel, strconv.FormatInt(t.opened.Unix(), 10) + "." + fmt.Sprintf("%06d", t.id%1_000_000),
			t.place.project, t.owner, t.opened, t.opened,
		}, nil
	}))
	if err != nil {
		return fmt.Errorf("copy threads: %w", err)
	}
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"sessions"}, []string{"id", "thread_id", "started", "created_at"},
		pgx.CopyFromSlice(len(g.threads), func(i int) ([]any, error) {
			t := g.threads[i]
			return []any{t.session, t.id, true, t.opened}, nil
		}))
	if err != nil {
		return fmt.Errorf("copy sessions: %w", err)
	}
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"epochs"}, []string{"session_id", "epoch", "cli_version", "baseline_micro_usd", "started_at"},
		pgx.CopyFromSlice(len(g.epochs), func(i int) ([]any, error) {
			e := g.epochs[i]
			return []any{e.session, e.epoch, ledgerCLI, e.baseline, e.at}, nil
		}))
	if err != nil {
		return fmt.Errorf("copy epochs: %w", err)
	}
	return nil
}
