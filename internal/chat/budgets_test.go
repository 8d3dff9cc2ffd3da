package chat

import (
	"testing"

	"deckhand/internal/agent/spend"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/ledger"
)

// TestOfSeveralBudgetsTheOneThatWasReachedAsks: a notice names no budget, and its limit may
// have been raised since the period began.
func TestOfSeveralBudgetsTheOneThatWasReachedAsks(t *testing.T) {
	t.Parallel()
	a := &Chat{gate: &gate{c: Config{Budgets: []spend.Budget{
		{Scope: ledger.BudgetPerson, Period: ledger.BudgetDaily, LimitMicroUSD: 50e6},
		{Scope: ledger.BudgetPerson, Period: ledger.BudgetDaily, Only: []string{"U1"}, LimitMicroUSD: 5e6, Ask: true},
		{Scope: ledger.BudgetPerson, Period: ledger.BudgetMonthly, LimitMicroUSD: 5e6},
	}}}}
	for _, test := range []struct {
		key   string
		limit int64
		asks  bool
	}{{"U1", 5e6, true}, {"U1", 8e6, true}, {"U1", 50e6, false}, {"U2", 50e6, false}} {
		n := ledger.BudgetNotice{BudgetWindow: ledger.BudgetWindow{Scope: ledger.BudgetPerson, Period: ledger.BudgetDaily, Key: test.key}, Share: 100, LimitMicroUSD: test.limit}
		if got := (view.Budget{Notice: n, Status: a.BudgetOf(n)}).Asks(); got != test.asks {
			t.Errorf("%s at %d: asks %v", test.key, test.limit, got)
		}
	}
}
