package chat

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/agent/spend"
	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
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

func TestAQuestionAboutABudget(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]bool{
		"what is my budget?": true, "how much is left of my budget": true, "How much is left of the budget this month?": true, "what's my budget": true,
		"how much do I have left of my budget?": true, "how much of my budget is left?": true, "how much of the budget did we spend": false, "costs this month": false, "what is the budget test for": false,
	} {
		if asksBudget.MatchString(words) != want || want && !report.Asks(words, report.Context{Now: time.Now(), Asker: "U1"}) {
			t.Errorf("%q: want %v", words, want)
		}
	}
}

// booksOf has what was spent by key.
type booksOf struct {
	Store
	spent map[string]int64
}

func (booksOf) TimeZone() *time.Location { return time.UTC }

func (booksOf) Costs(_ context.Context, q ledger.CostQuery) (out ledger.CostReport, err error) {
	for _, k := range map[ledger.CostGroup][]string{ledger.ByProject: {"web", "api"}, ledger.ByUser: {"U1"}}[q.By] {
		out.Lines = append(out.Lines, ledger.CostLine{Key: k})
	}
	return out, nil
}

func (b booksOf) BudgetStates(_ context.Context, windows []ledger.BudgetWindow) (out []ledger.BudgetState, err error) {
	for _, w := range windows {
		out = append(out, ledger.BudgetState{SpentMicroUSD: b.spent[w.Key]})
	}
	return out, nil
}

type noScreen struct{ Screen }

func (noScreen) Permalink(_, _ string) string { return "" }

// TestHomeShowsBudgets: to everybody their own, to admins also those that name nobody and
// nothing, as far as something was spent.
func TestHomeShowsBudgets(t *testing.T) {
	t.Parallel()
	a := tab{&Chat{gate: &gate{screen: noScreen{}, c: Config{
		Store: booksOf{spent: map[string]int64{"": 10e6, "web": 5e6, "api": 1e6, "U1": 1_100_000}},
		Budgets: []spend.Budget{
			{Scope: ledger.BudgetWorkspace, Period: ledger.BudgetMonthly, LimitMicroUSD: 50e6},
			{Scope: ledger.BudgetProject, Period: ledger.BudgetDaily, LimitMicroUSD: 10e6},
			{Scope: ledger.BudgetPerson, Period: ledger.BudgetDaily, LimitMicroUSD: 2e6},
			{Scope: ledger.BudgetPerson, Period: ledger.BudgetWeekly, Only: []string{"U2"}, LimitMicroUSD: 2e6},
		},
	}}}}
	all, err := a.homeBudgets(t.Context(), time.Now())
	var shown []string
	for _, b := range all {
		shown = append(shown, string(b.Scope)+" "+b.Key)
	}
	if diff := cmp.Diff([]string{"person U1", "project web", "workspace ", "project api", "person U2"}, shown); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for team, want := range map[bool][]string{
		false: {"Your budget for today: $1.10 of $2.00"},
		true:  {"This month's budget of the team: $10.00 of $50.00", "Your budget for today: $1.10 of $2.00"},
	} {
		mine, err := a.budgetsFor(t.Context(), threads.Thread{}, "U1", team, time.Now())
		if diff := cmp.Diff(want, mine); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	here, err := a.budgetsFor(t.Context(), threads.Thread{Project: "web"}, "U1", false, time.Now())
	if diff := cmp.Diff([]string{"Today's budget of the project web: $5.00 of $10.00", "Your budget for today: $1.10 of $2.00"}, here); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
