package pg

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
)

// losses are the tables with people's data that a step's reversal drops, by its version.
var losses = map[int64][]string{
	1: {"approvals", "epochs", "inbox", "ledger", "messages", "sessions", "threads", "turns"},
	2: {"grants", "votes"},
	3: {"audit", "audit_anchors"},
	4: {"river_job"},
	// Derived from the ledger by its trigger: applied again, the step begins with empty ones.
	5:  {"ledger_channel_daily", "ledger_channel_monthly", "ledger_daily", "ledger_monthly", "ledger_openings", "ledger_thread_daily", "ledger_threads"},
	6:  {"budget_decisions", "budget_notices"},
	7:  {"calls"},
	8:  {"budget_messages", "budget_waits"},
	9:  {"outbox"},
	10: {"channels_heard"},
	11: {"places", "turn_rests"},
	12: {"transcript_pieces", "transcripts"},
	13: {"work", "work_packs"},
	14: {"replicas"},
	15: {"heard", "looks"},
	16: nil,
	17: nil,
	18: {"card_copies"},
	19: nil,
	20: nil,
	21: nil,
	22: nil,
	23: {"feedback"},
	24: nil,
	25: nil,
	26: nil, // the rows of posts return to their old tables
	27: {"pulls"},
	28: nil,
	29: {"connections"},
	30: nil,
	31: nil,
	32: nil,
	33: nil,
	34: nil,
	35: {"bindings"},
	36: {"mcp_tools"},
	37: {"trust"},
	38: nil, // refused while there is work of further repositories
	39: nil,
	40: nil,
	41: nil,
}

// TableRows is a table's number of rows.
type TableRows struct {
	Table string
	Rows  int64
}

// LossError means that a step was not reverted because rows would be lost.
type LossError struct {
	Migration Migration
	Tables    []TableRows // all that are not empty, in order
	// Unnamed are those that the caller has not named; Misnamed is what the caller named but the step would not
	// delete.
	Unnamed, Misnamed []string
}

// Error implements error.
func (e *LossError) Error() string {
	if len(e.Misnamed) > 0 {
		return fmt.Sprintf("%s deletes no rows of %s", e.Migration.Name, strings.Join(e.Misnamed, ", "))
	}
	return fmt.Sprintf("%s is not reverted: it would delete all rows of %s", e.Migration.Name, strings.Join(e.Unnamed, ", "))
}

// MigrateDown reverts the newest step and drops its tables. It refuses with a [*LossError] unless lose names
// exactly those that are not empty. No bot may be running: rows that it writes meanwhile are not counted.
func MigrateDown(ctx context.Context, url string, lose []string) ([]Migration, error) {
	return migrate(ctx, url, func(db *sql.DB, p *goose.Provider) ([]*goose.MigrationResult, error) {
		version, err := p.GetDBVersion(ctx)
		if err != nil {
			return nil, err
		}
		if version == 0 {
			return nil, nil
		}
		if err := refuseLoss(ctx, db, p, version, lose); err != nil {
			return nil, err
		}
		r, err := p.Down(ctx)
		if err != nil {
			return nil, err
		}
		return []*goose.MigrationResult{r}, nil
	})
}

func refuseLoss(ctx context.Context, db *sql.DB, p *goose.Provider, version int64, lose []string) error {
	e := &LossError{Migration: Migration{Version: version}}
	for _, s := range p.ListSources() {
		if s.Version == version {
			e.Migration.Name = s.Path
		}
	}
	tables, known := losses[version]
	if e.Migration.Name == "" || !known {
		return fmt.Errorf("the database is at schema %d, which this binary does not know: revert with the newer one", version)
	}
	for _, table := range tables {
		var rows int64
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM `+pgx.Identifier{table}.Sanitize()).Scan(&rows); err != nil {
			return fmt.Errorf("count the rows of %s: %w", table, err)
		}
		if rows == 0 {
			continue
		}
		e.Tables = append(e.Tables, TableRows{table, rows})
		if !slices.Contains(lose, table) {
			e.Unnamed = append(e.Unnamed, table)
		}
	}
	e.Misnamed = slices.DeleteFunc(slices.Clone(lose), func(name string) bool { return slices.Contains(tables, name) })
	if len(e.Unnamed)+len(e.Misnamed) > 0 {
		return e
	}
	return nil
}
