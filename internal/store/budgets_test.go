package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store"
)

func TestBudgetPeriods(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		period   store.BudgetPeriod
		at       string
		from, to string
	}{
		{store.BudgetDaily, "2026-10-25T12:00:00Z", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"}, // 25 hours
		{store.BudgetDaily, "2026-10-31T23:30:00Z", "2026-11-01T00:00:00+01:00", "2026-11-02T00:00:00+01:00"},
		{store.BudgetWeekly, "2026-11-01T12:00:00Z", "2026-10-26T00:00:00+01:00", "2026-11-02T00:00:00+01:00"}, // a Sunday
		{store.BudgetWeekly, "2026-11-02T12:00:00Z", "2026-11-02T00:00:00+01:00", "2026-11-09T00:00:00+01:00"},
		{store.BudgetMonthly, "2026-12-31T23:30:00Z", "2027-01-01T00:00:00+01:00", "2027-02-01T00:00:00+01:00"},
	} {
		at, err := time.Parse(time.RFC3339, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		from, to := tt.period.Span(at, berlin)
		if from.Format(time.RFC3339) != tt.from || to.Format(time.RFC3339) != tt.to {
			t.Errorf("%s at %s: %s to %s", tt.period, tt.at, from.Format(time.RFC3339), to.Format(time.RFC3339))
		}
	}
}

// TestABudgetIsDecidedOnce: people are told of a limit once, the first decision
// holds, and a raise counts in its period only.
func TestABudgetIsDecidedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := t.Context()
	from, to := store.BudgetDaily.Span(time.Now(), b.TimeZone())
	budget := store.BudgetWindow{TeamID: "T1", Scope: store.BudgetProject, Key: "web", Period: store.BudgetDaily, From: from, To: to}
	n := store.BudgetNotice{ID: uuid.NewString(), BudgetWindow: budget, LimitMicroUSD: 100, Share: 100, SpentMicroUSD: 120, ThreadID: b.thread.ID}
	if fresh, err := b.NoticeBudget(ctx, n); err != nil || !fresh {
		t.Fatalf("NoticeBudget: %v %v", fresh, err)
	}
	again := n
	again.ID = uuid.NewString()
	if fresh, err := b.NoticeBudget(ctx, again); err != nil || fresh {
		t.Errorf("the same limit is told of twice: %v", err)
	}
	got, err := b.BudgetNoticeByID(ctx, n.ID)
	if err != nil || !got.From.Equal(from) || !got.To.Equal(to) || got.Thread != thread || got.DecidedBy != "" {
		t.Errorf("the notice is %+v, %v", got, err)
	}
	decided, err := b.DecideBudget(ctx, n.ID, store.BudgetDecision{RaiseMicroUSD: 50}, "U1")
	if err != nil || decided.Decision.RaiseMicroUSD != 50 || decided.DecidedBy != "U1" {
		t.Fatalf("DecideBudget: %+v, %v", decided, err)
	}
	second, err := b.DecideBudget(ctx, n.ID, store.BudgetDecision{Leave: true}, "U2")
	if !errors.Is(err, store.ErrEnded) || second.DecidedBy != "U1" {
		t.Errorf("a second decision: %+v, %v", second, err)
	}
	state, err := b.BudgetState(ctx, budget)
	if err != nil || state.RaisedMicroUSD != 50 || state.SpentMicroUSD != 0 || state.Model != "" {
		t.Errorf("the state is %+v, %v", state, err)
	}
	budget.From, budget.To = store.BudgetDaily.Span(to.Add(time.Hour), b.TimeZone())
	if state, err := b.BudgetState(ctx, budget); err != nil || state.RaisedMicroUSD != 0 {
		t.Errorf("the raise counts tomorrow too: %+v, %v", state, err)
	}
	if _, err := b.BudgetNoticeByID(ctx, "nothing"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown notice: %v", err)
	}
}
