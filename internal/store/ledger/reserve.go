package ledger

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"deckhand/internal/store/pg"
)

// CallBudget is a budget that a call counts towards.
type CallBudget struct {
	BudgetWindow
	LimitMicroUSD int64 // without what admins added for the period
	// GoesOn reports whether the call continues under the cheaper model that an admin chose for the rest of the
	// period, even over the limit; nil is never.
	GoesOn func(model string) bool
}

// OverBudgetError is why a call may not leave.
type OverBudgetError struct {
	Budget int         // the index of the refusing budget
	State  BudgetState // as it stands
	// Waits: running calls hold the rest of the budget. When they are booked, this call may be admitted.
	Waits bool
}

// Error implements error.
func (e *OverBudgetError) Error() string {
	if e.Waits {
		return fmt.Sprintf("what is left of budget %d is reserved by other calls", e.Budget)
	}
	return fmt.Sprintf("budget %d is used up", e.Budget)
}

// reserve records the call if all budgets admit it. It serialises the decisions about a budget across replicas.
//
// The spend, the reservations and this call must fit into the limit. A call that costs more than is left runs
// alone, so a limit is exceeded at most by one call's cost, or by what concurrent calls cost beyond their
// reservations.
//
// The transaction takes two round trips: up to the budgets' states, and the rest. If it fails in between, it ends
// with its connection.
func reserve(ctx context.Context, conn *pgxpool.Conn, c OpenCall, budgets []CallBudget) error {
	keys := make([]int64, len(budgets))
	windows := make([]BudgetWindow, len(budgets))
	for i, b := range budgets {
		keys[i], windows[i] = b.lock(), b.BudgetWindow
	}
	slices.Sort(keys) // always lock in the same order
	sql, args := budgetQuery(windows, c.ID)
	var look pgx.Batch
	look.Queue(`BEGIN`)
	look.Queue(`SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) AS k`, slices.Compact(keys))
	// A separate statement, to see what was committed while waiting for the locks.
	var states []BudgetState
	look.Queue(sql, args...).Query(func(rows pgx.Rows) (err error) {
		states, err = pg.Collect[BudgetState](rows, nil)
		return err
	})
	if err := conn.SendBatch(ctx, &look).Close(); err != nil {
		return err
	}
	if err := fits(c, budgets, states); err != nil {
		_, failed := conn.Exec(ctx, `ROLLBACK`)
		return cmp.Or(failed, err)
	}
	var record pgx.Batch
	var result error
	record.Queue(beginCall, c.args()...).QueryRow(func(row pgx.Row) error {
		result = begun(row)
		return nil // what there is to end is ended
	})
	record.Queue(`COMMIT`)
	return cmp.Or(conn.SendBatch(ctx, &record).Close(), result)
}

// fits returns why the call may not leave now, by the budgets' states, in order; nil if it may.
func fits(c OpenCall, budgets []CallBudget, states []BudgetState) error {
	var wait error
	for i, state := range states {
		b := budgets[i]
		if state.Model != "" && b.GoesOn != nil && b.GoesOn(state.Model) {
			continue
		}
		limit := b.LimitMicroUSD + state.RaisedMicroUSD
		switch {
		case state.SpentMicroUSD >= limit:
			return &OverBudgetError{Budget: i, State: state}
		case state.ReservedMicroUSD > 0 && state.SpentMicroUSD+state.ReservedMicroUSD+c.ReservedMicroUSD > limit:
			wait = &OverBudgetError{Budget: i, State: state, Waits: true}
		}
	}
	return wait
}

// lock is the advisory lock for admitting calls to a budget.
func (b CallBudget) lock() int64 {
	h := fnv.New64a()
	for _, part := range []string{"calls that count towards a budget", b.TeamID, string(b.Scope), b.Key, string(b.Period)} {
		_, _ = io.WriteString(h, part+"\x00") // a hash takes everything
	}
	return int64(h.Sum64()) //nolint:gosec // any number will do
}

// RecentOutput returns the most tokens in the project's recent answers of a model, among the last calls of all.
func (s *Store) RecentOutput(ctx context.Context, teamID, project, model string) (longest int64, err error) {
	err = s.db.QueryRow(ctx, `
		SELECT COALESCE(max(output_tokens), 0) FROM (
			SELECT output_tokens FROM (
				SELECT team_id, project, model, kind, output_tokens, id FROM ledger ORDER BY id DESC LIMIT 5000) l
			WHERE team_id = $1 AND project = $2 AND model = $3 AND kind = 'call'
			ORDER BY id DESC LIMIT 100) r`, teamID, project, model).Scan(&longest)
	return longest, pg.Wrap(err, "read how long answers are")
}
