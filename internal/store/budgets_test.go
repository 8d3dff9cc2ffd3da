package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
)

func TestBudgetPeriods(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		period   ledger.BudgetPeriod
		at       string
		from, to string
	}{
		{ledger.BudgetDaily, "2026-10-25T12:00:00Z", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"}, // 25 hours
		{ledger.BudgetDaily, "2026-10-31T23:30:00Z", "2026-11-01T00:00:00+01:00", "2026-11-02T00:00:00+01:00"},
		{ledger.BudgetWeekly, "2026-11-01T12:00:00Z", "2026-10-26T00:00:00+01:00", "2026-11-02T00:00:00+01:00"}, // a Sunday
		{ledger.BudgetWeekly, "2026-11-02T12:00:00Z", "2026-11-02T00:00:00+01:00", "2026-11-09T00:00:00+01:00"},
		{ledger.BudgetMonthly, "2026-12-31T23:30:00Z", "2027-01-01T00:00:00+01:00", "2027-02-01T00:00:00+01:00"},
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
	from, to := ledger.BudgetDaily.Span(time.Now(), b.TimeZone())
	budget := ledger.BudgetWindow{TeamID: "T1", Scope: ledger.BudgetProject, Key: "web", Period: ledger.BudgetDaily, From: from, To: to}
	n := ledger.BudgetNotice{ID: uuid.NewString(), BudgetWindow: budget, LimitMicroUSD: 100, Share: 100, SpentMicroUSD: 120, ThreadID: b.thread.ID}
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
	decided, err := b.DecideBudget(ctx, n.ID, ledger.BudgetDecision{RaiseMicroUSD: 50}, "U1")
	if err != nil || decided.Decision.RaiseMicroUSD != 50 || decided.DecidedBy != "U1" {
		t.Fatalf("DecideBudget: %+v, %v", decided, err)
	}
	second, err := b.DecideBudget(ctx, n.ID, ledger.BudgetDecision{Leave: true}, "U2")
	if !errors.Is(err, pg.ErrEnded) || second.DecidedBy != "U1" {
		t.Errorf("a second decision: %+v, %v", second, err)
	}
	tomorrow := budget
	tomorrow.From, tomorrow.To = ledger.BudgetDaily.Span(to.Add(time.Hour), b.TimeZone())
	states, err := b.BudgetStates(ctx, []ledger.BudgetWindow{budget, tomorrow})
	want := []ledger.BudgetState{{RaisedMicroUSD: 50, Decisions: 1}, {}}
	if diff := cmp.Diff(want, states); err != nil || diff != "" {
		t.Errorf("the raise counts today alone (-want +got), %v:\n%s", err, diff)
	}
	if _, err := b.BudgetNoticeByID(ctx, "nothing"); !errors.Is(err, pg.ErrNotFound) {
		t.Errorf("an unknown notice: %v", err)
	}
}

// TestWarningsAreInOrder: of one limit a lower share never comes after a higher one, and
// nothing comes after a limit of the period was reached, but the next limit.
func TestWarningsAreInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	from, to := ledger.BudgetDaily.Span(time.Now(), b.TimeZone())
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
		n := ledger.BudgetNotice{
			ID: uuid.NewString(), LimitMicroUSD: tt.limit, Share: tt.share, ThreadID: b.thread.ID,
			BudgetWindow: ledger.BudgetWindow{TeamID: "T1", Scope: ledger.BudgetWorkspace, Period: ledger.BudgetDaily, From: from, To: to},
		}
		_, fresh, err := b.NoticeBudget(t.Context(), n)
		if fresh != tt.fresh || err != nil && !errors.Is(err, pg.ErrEnded) {
			t.Errorf("%d: %d %% of %d: fresh %v, %v", i, tt.share, tt.limit, fresh, err)
		}
	}
}

// TestAWarningThatComesTooLate: one that was noticed and not yet posted when a higher share was
// noticed is not to be posted any more, on any replica.
func TestAWarningThatComesTooLate(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	first, second := storetest.Open(t, url, store.Options{}), storetest.Open(t, url, store.Options{})
	threadID := working(t, first, "replica-1", "1.1", "C1", "U1").Lease.ThreadID
	from, to := ledger.BudgetDaily.Span(time.Now(), time.UTC)
	notices := map[int]string{}
	for _, share := range []int{50, 80, 100} {
		n := ledger.BudgetNotice{
			ID: uuid.NewString(), LimitMicroUSD: 100, Share: share, ThreadID: threadID,
			BudgetWindow: ledger.BudgetWindow{TeamID: "T1", Scope: ledger.BudgetWorkspace, Period: ledger.BudgetDaily, From: from, To: to},
		}
		if _, fresh, err := first.NoticeBudget(t.Context(), n); err != nil || !fresh {
			t.Fatalf("%d %%: fresh %v, %v", share, fresh, err)
		}
		notices[share] = n.ID
		for earlier, id := range notices {
			if stands, err := second.BudgetNoticeStands(t.Context(), id); err != nil || stands != (earlier == share) {
				t.Errorf("%d %% at %d %%: stands %v, %v", earlier, share, stands, err)
			}
		}
	}
}

// waitsForLock returns when somebody waits for a lock of this type, in PostgreSQL's words,
// in the database.
func waitsForLock(t *testing.T, url, locktype string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test's connection
	for waits := false; !waits; {
		if err := conn.QueryRow(t.Context(), `
			SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
				WHERE a.datname = current_database() AND NOT l.granted AND l.locktype = $1), pg_sleep(0.01)`, locktype).Scan(&waits, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnOfferToContinueIsOpenUntilTheThreadGoesOn: a prompt that took it and was refused leaves it as it was.
func TestAnOfferToContinueIsOpenUntilTheThreadGoesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stopped, _ := b.begin(t)
	if _, _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{ID: stopped.ID, State: "interrupted", OverBudget: true}); err != nil {
		t.Fatal(err)
	}
	press := func(ts string) (int64, error) {
		id := b.arrive(t, ts)
		_, _, err := b.AcceptPrompt(t.Context(), inbox.NewPrompt{InboxID: id, Thread: thread, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go on", Continues: stopped.ID})
		if err != nil {
			_, _ = b.FinishTelling(t.Context(), id, "too late")
		}
		return id, err
	}
	first, err := press("200.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := press("200.2"); !errors.Is(err, pg.ErrEnded) {
		t.Errorf("a second press, while the first waits: %v", err)
	}
	if _, err := b.DropPrompt(t.Context(), b.lease, first, inbox.Drop{Outcome: "over budget"}); err != nil {
		t.Fatal(err)
	}
	if _, err := press("200.3"); err != nil {
		t.Errorf("a press after the first was refused: %v", err)
	}
	turn, _ := b.begin(t)
	b.finish(t, turn)
	if _, err := press("200.4"); !errors.Is(err, pg.ErrEnded) {
		t.Errorf("a press after the thread has gone on: %v", err)
	}
}
