package store

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"github.com/jackc/pgx/v5"
)

// CallBudget is a budget that a call counts towards.
type CallBudget struct {
	BudgetWindow
	LimitMicroUSD int64 // without what admins have added for the period
	// GoesOn reports whether the call goes on under the cheaper model that an admin
	// chose for the rest of the period, whatever is left; nil is never.
	GoesOn func(model string) bool
}

// OverBudgetError is why a call may not leave.
type OverBudgetError struct {
	Budget int         // the index of the budget that does not admit it
	State  BudgetState // as it stands
	// Waits: something is left, and calls that are under way hold it. When they have
	// been booked, this one may be admitted.
	Waits bool
}

// Error implements error.
func (e *OverBudgetError) Error() string {
	if e.Waits {
		return fmt.Sprintf("what is left of budget %d is reserved by other calls", e.Budget)
	}
	return fmt.Sprintf("budget %d is used up", e.Budget)
}

// reserve decides whether all budgets admit the call, while no other call of theirs is
// decided about on any replica. The transaction has to record the call then, and to end.
//
// What was spent, what is reserved and this call have to fit into the limit. A call that
// is dearer than what is left goes alone: so a limit is passed by no more than one call
// costs beyond what is left, or calls that go at once cost beyond what they reserved.
func reserve(ctx context.Context, tx pgx.Tx, c OpenCall, budgets []CallBudget) error {
	keys := make([]int64, len(budgets))
	windows := make([]BudgetWindow, len(budgets))
	for i, b := range budgets {
		keys[i], windows[i] = b.lock(), b.BudgetWindow
	}
	slices.Sort(keys) // whoever takes several takes them in one order
	sql, args := budgetQuery(windows, c.ID)
	// The read is a statement of its own: it has to see what was committed while the locks
	// were waited for.
	var batch pgx.Batch
	batch.Queue(`SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) AS k`, slices.Compact(keys))
	batch.Queue(sql, args...)
	results := tx.SendBatch(ctx, &batch)
	if _, err := results.Exec(); err != nil {
		_ = results.Close()
		return err
	}
	states, err := collect[BudgetState](results.Query())
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	var wait *OverBudgetError
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
	if wait != nil {
		return wait
	}
	return nil
}

// lock is the number of the lock under which calls are admitted to a budget.
func (b CallBudget) lock() int64 {
	h := fnv.New64a()
	for _, part := range []string{"calls that count towards a budget", b.TeamID, string(b.Scope), b.Key, string(b.Period)} {
		_, _ = io.WriteString(h, part+"\x00") // a hash takes everything
	}
	return int64(h.Sum64()) //nolint:gosec // any number will do
}

// RecentOutput is how many tokens the longest of the project's last answers of a model
// had, and how many answers that is of, as far as they are among the last calls of all.
func (s *Store) RecentOutput(ctx context.Context, teamID, project, model string) (longest int64, calls int, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT COALESCE(max(output_tokens), 0), count(*) FROM (
			SELECT output_tokens FROM (
				SELECT team_id, project, model, kind, output_tokens, id FROM ledger ORDER BY id DESC LIMIT 5000) l
			WHERE team_id = $1 AND project = $2 AND model = $3 AND kind = 'call'
			ORDER BY id DESC LIMIT 100) r`, teamID, project, model).Scan(&longest, &calls)
	if err != nil {
		return 0, 0, fmt.Errorf("read how long answers are: %w", err)
	}
	return longest, calls, nil
}
