package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
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
	if _, fresh, err := b.NoticeBudget(ctx, n); err != nil || !fresh {
		t.Fatalf("NoticeBudget: %v %v", fresh, err)
	}
	again := n
	again.ID = uuid.NewString()
	if noted, fresh, err := b.NoticeBudget(ctx, again); err != nil || fresh || noted.ID != n.ID {
		t.Errorf("the same limit is told of twice: %v", err)
	}
	got, err := b.BudgetNoticeByID(ctx, n.ID)
	if err != nil || !got.From.Equal(from) || !got.To.Equal(to) || got.Thread != thread || got.Project != "web" || got.DecidedBy != "" {
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
	tomorrow := budget
	tomorrow.From, tomorrow.To = store.BudgetDaily.Span(to.Add(time.Hour), b.TimeZone())
	states, err := b.BudgetStates(ctx, []store.BudgetWindow{budget, tomorrow})
	want := []store.BudgetState{{RaisedMicroUSD: 50, Decisions: 1}, {}}
	if diff := cmp.Diff(want, states); err != nil || diff != "" {
		t.Errorf("the raise counts today alone (-want +got), %v:\n%s", err, diff)
	}
	if _, err := b.BudgetNoticeByID(ctx, "nothing"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown notice: %v", err)
	}
}

// TestWarningsAreInOrder: of one limit a lower share never comes after a higher one, and
// nothing comes after a limit of the period was reached, but the next limit.
func TestWarningsAreInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	from, to := store.BudgetDaily.Span(time.Now(), b.TimeZone())
	for i, tt := range []struct {
		limit int64
		share int
		fresh bool
	}{
		{100, 80, true},
		{100, 50, false},
		{100, 80, false},
		{100, 90, true},
		{100, 100, true},
		{100, 95, false},
		{100, 100, false},
		{150, 80, false},
		{150, 100, true},
		{90, 50, false},
	} {
		n := store.BudgetNotice{
			ID: uuid.NewString(), LimitMicroUSD: tt.limit, Share: tt.share, ThreadID: b.thread.ID,
			BudgetWindow: store.BudgetWindow{TeamID: "T1", Scope: store.BudgetWorkspace, Period: store.BudgetDaily, From: from, To: to},
		}
		_, fresh, err := b.NoticeBudget(t.Context(), n)
		if fresh != tt.fresh || err != nil && !errors.Is(err, store.ErrEnded) {
			t.Errorf("%d: %d %% of %d: fresh %v, %v", i, tt.share, tt.limit, fresh, err)
		}
	}
}

// TestPeopleAreToldInOrder: a warning that was claimed and not yet posted when a higher
// share was claimed is never posted after it, whichever replicas post them.
func TestPeopleAreToldInOrder(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	first, second := storetest.Open(t, url, store.Options{}), storetest.Open(t, url, store.Options{})
	threadID := working(t, first, "replica-1", "1.1", "C1", "U1").Lease.ThreadID
	from, to := store.BudgetDaily.Span(time.Now(), time.UTC)
	claim := func(share int) string {
		t.Helper()
		n := store.BudgetNotice{
			ID: uuid.NewString(), LimitMicroUSD: 100, Share: share, ThreadID: threadID,
			BudgetWindow: store.BudgetWindow{TeamID: "T1", Scope: store.BudgetWorkspace, Period: store.BudgetDaily, From: from, To: to},
		}
		if _, fresh, err := first.NoticeBudget(t.Context(), n); err != nil || !fresh {
			t.Fatalf("%d %%: fresh %v, %v", share, fresh, err)
		}
		return n.ID
	}
	var mu sync.Mutex
	var told []string
	tell := func(what string) func() error {
		return func() error {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, what)
			return nil
		}
	}
	half, most := claim(50), claim(80)
	if err := first.TellOfBudget(t.Context(), half, tell("50")); !errors.Is(err, store.ErrEnded) {
		t.Errorf("50 %% after 80 %% was claimed: %v", err)
	}
	var full sync.WaitGroup
	if err := first.TellOfBudget(t.Context(), most, func() error {
		limit := claim(100) // while Slack is being told of 80 %
		full.Go(func() {
			if err := second.TellOfBudget(t.Context(), limit, tell("100")); err != nil {
				t.Error(err)
			}
		})
		waitsForLock(t, url)
		return tell("80")()
	}); err != nil {
		t.Error(err)
	}
	full.Wait()
	if diff := cmp.Diff([]string{"80", "100"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if err := second.TellOfBudget(t.Context(), most, tell("80")); !errors.Is(err, store.ErrEnded) {
		t.Errorf("80 %% again, after 100 %%: %v", err)
	}
}

// waitsForLock returns when somebody waits for a lock in the database.
func waitsForLock(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test's connection
	for waits := false; !waits; {
		if err := conn.QueryRow(t.Context(), `
			SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
				WHERE d.datname = current_database() AND NOT l.granted AND l.locktype = 'advisory'), pg_sleep(0.01)`).Scan(&waits, nil); err != nil {
			t.Fatal(err)
		}
	}
}
