package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// working is a thread with a turn that runs on a replica, which makes calls of the model.
func working(t testing.TB, db *store.Store, replica, threadTS, channel, user string) ledger.OpenCall {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key := threads.ThreadKey{TeamID: "T1", ChannelID: channel, ThreadTS: threadTS}
	id, _, err := db.Receive(ctx, inbox.Envelope{EventID: uuid.NewString(), Kind: inbox.Message, TeamID: "T1", ChannelID: channel, TS: threadTS, ThreadTS: threadTS, UserID: user, Payload: []byte(`{}`)})
	check(err)
	th, _, err := db.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: user, UUID: uuid.NewString(), Text: "go"})
	check(err)
	th, _, err = storetest.Acquire(ctx, db, th.ID, replica)
	check(err)
	c := ledger.OpenCall{Lease: threads.Lease{ThreadID: th.ID, Owner: replica, Epoch: th.LeaseEpoch}, SessionID: uuid.NewString(), Model: "opus", StartedAt: time.Now()}
	check(db.NewSession(ctx, c.Lease, c.SessionID, ""))
	c.Epoch, err = db.BeginEpoch(ctx, c.Lease, c.SessionID, "2.1.329", 0)
	check(err)
	_, _, _, err = db.BeginTurn(ctx, c.Lease, c.SessionID, c.Epoch)
	check(err)
	return c
}

func budgetOf(scope ledger.BudgetScope, key string, limit int64) ledger.CallBudget {
	b := ledger.CallBudget{BudgetWindow: ledger.BudgetWindow{TeamID: "T1", Scope: scope, Key: key, Period: ledger.BudgetDaily}, LimitMicroUSD: limit}
	b.From, b.To = b.Period.Span(time.Now(), time.UTC)
	return b
}

// floor is where calls go on for as long as everybody else can get on: a call ends when
// each of the others is under way too, waits, or is done. So they overlap as much as they
// ever can, however long they take.
type floor struct {
	mu      sync.Mutex
	changed *sync.Cond
	busy    int // threads that are about to do something
	under   int // calls under way
	peak    int
}

func newFloor(threads int) *floor {
	f := &floor{busy: threads}
	f.changed = sync.NewCond(&f.mu)
	return f
}

// rest waits, as one that is not busy, until ok.
func (f *floor) rest(ok func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	f.changed.Broadcast()
	for !ok() {
		f.changed.Wait()
	}
	f.busy++
}

func (f *floor) add(calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.under += calls
	f.peak = max(f.peak, f.under)
	f.changed.Broadcast()
}

// TestABudgetHolds: fifty threads on three replicas spend one budget at once, by calls
// that take as long as the others need to get on. What is spent passes the limit by no
// more than the calls cost beyond what they reserved; or by the last call, which was
// dearer than what was left, and so went alone.
func TestABudgetHolds(t *testing.T) {
	t.Parallel()
	const (
		threads, replicas = 50, 3
		limit             = 1_000_000
		reserved          = 60_000
	)
	url := storetest.URL(t)
	var stores []*store.Store
	for range replicas {
		stores = append(stores, storetest.Open(t, url, store.Options{}))
	}
	r := rand.New(rand.NewPCG(1, 2))
	f := newFloor(threads)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var spent, beyond int64
	var calls, waited int
	for i := range threads {
		db := stores[i%replicas]
		c := working(t, db, fmt.Sprint("replica-", i%replicas), fmt.Sprintf("%d.1", i), "C1", fmt.Sprint("U", i%7))
		c.ReservedMicroUSD = reserved
		budgets := []ledger.CallBudget{budgetOf(ledger.BudgetWorkspace, "", limit), budgetOf(ledger.BudgetPerson, fmt.Sprint("U", i%7), 100*limit)}
		seed := r.Uint64()
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 3))
			defer f.rest(func() bool { return true })
			for {
				c.ID = uuid.New()
				err := db.BeginCall(t.Context(), c, budgets...)
				if over, ok := errors.AsType[*ledger.OverBudgetError](err); ok && over.Waits {
					mu.Lock()
					waited++
					mu.Unlock()
					f.mu.Lock()
					was := f.under
					f.mu.Unlock()
					f.rest(func() bool { return f.under < was || f.under == 0 })
					continue
				} else if ok {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				f.add(1)
				f.rest(func() bool { return f.busy == 0 })
				cost := 20_000 + r.Int64N(46_000) // a tenth more than it reserved, at most
				if err := db.EndCalls(t.Context(), []ledger.EndedCall{ended(c, cost)}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				spent, beyond, calls = spent+cost, beyond+max(0, cost-reserved), calls+1
				mu.Unlock()
				f.add(-1)
			}
		})
	}
	wg.Wait()
	t.Logf("%d calls of %d threads spent %d of %d µ$, %d at once at most; they were told to wait %d times; they took %d µ$ more than they reserved", calls, threads, spent, limit, f.peak, waited, beyond)
	if over, last := spent-limit, lastBooked(t, url); over > beyond && over >= last {
		t.Errorf("the limit is passed by %d µ$; the last call took %d", over, last)
	}
	if f.peak < 10 {
		t.Errorf("only %d calls went at once", f.peak)
	}
	states, err := stores[0].BudgetStates(t.Context(), []ledger.BudgetWindow{budgetOf(ledger.BudgetWorkspace, "", limit).BudgetWindow})
	if err != nil || states[0].SpentMicroUSD != spent || states[0].ReservedMicroUSD != 0 {
		t.Errorf("the books have %+v, %v", states, err)
	}
}

// lastBooked is what the call cost that was booked last, in micro-USD.
func lastBooked(t *testing.T, url string) (cost int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test's connection
	if err := conn.QueryRow(t.Context(), `SELECT micro_usd FROM ledger ORDER BY id DESC LIMIT 1`).Scan(&cost); err != nil {
		t.Fatal(err)
	}
	return cost
}

// TestWhatABudgetAdmits, by what was spent and is reserved, of budgets that overlap.
func TestWhatABudgetAdmits(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	haiku := func(model string) bool { return model == "haiku" }
	for i, tt := range []struct {
		what            string
		spent, reserved int64   // before
		limits          []int64 // of the thread, the person, the channel, the project
		raised, model   bool    // an admin did so, by 100, at the first
		goesOn          func(string) bool
		want            string
	}{
		{"nothing is spent", 0, 0, []int64{100, 100, 100, 100}, false, false, nil, "admitted"},
		{"it fits exactly", 50, 0, []int64{100}, false, false, nil, "admitted"},
		{"it is dearer than what is left, and alone", 99, 0, []int64{100}, false, false, nil, "admitted"},
		{"nothing is left", 100, 0, []int64{100}, false, false, nil, "0 is used up"},
		{"a budget of nothing", 0, 0, []int64{0}, false, false, nil, "0 is used up"},
		{"it fits beside another", 10, 40, []int64{100}, false, false, nil, "admitted"},
		{"another holds what is left", 10, 41, []int64{100}, false, false, nil, "0 waits"},
		{"the third of four is used up", 80, 0, []int64{1000, 1000, 80, 1000}, false, false, nil, "2 is used up"},
		{"one waits and a later one is used up", 80, 30, []int64{120, 80}, false, false, nil, "1 is used up"},
		{"it was raised", 100, 0, []int64{100}, true, false, nil, "admitted"},
		{"a limit that was lowered", 100, 0, []int64{20}, false, false, nil, "0 is used up"},
		{"lowered below zero, and raised", 100, 0, []int64{0}, true, false, nil, "0 is used up"},
		{"a cheaper model goes on", 100, 0, []int64{100}, false, true, haiku, "admitted"},
		{"another model does not", 100, 0, []int64{100}, false, true, func(string) bool { return false }, "0 is used up"},
		{"nor past another budget", 100, 0, []int64{100, 100}, false, true, haiku, "1 is used up"},
	} {
		user, channel := fmt.Sprint("UA", i), fmt.Sprint("CA", i)
		c := working(t, db, "A", fmt.Sprintf("%d.9", i), channel, user)
		budgets := []ledger.CallBudget{
			budgetOf(ledger.BudgetThread, fmt.Sprint(c.Lease.ThreadID), 0), budgetOf(ledger.BudgetPerson, user, 0), budgetOf(ledger.BudgetChannel, channel, 0), budgetOf(ledger.BudgetThread, fmt.Sprint(c.Lease.ThreadID), 0),
		}[:len(tt.limits)]
		if len(budgets) == 4 { // the same as the first, by the week: its lock is another
			budgets[3].Period = ledger.BudgetWeekly
			budgets[3].From, budgets[3].To = budgets[3].Period.Span(time.Now(), time.UTC)
		}
		for n := range budgets {
			budgets[n].LimitMicroUSD = tt.limits[n]
		}
		begin := func(reserve int64, budgets ...ledger.CallBudget) (ledger.OpenCall, error) {
			c.ID, c.ReservedMicroUSD = uuid.New(), reserve
			return c, db.BeginCall(t.Context(), c, budgets...)
		}
		first, err := begin(0)
		if err == nil {
			err = db.EndCalls(t.Context(), []ledger.EndedCall{ended(first, tt.spent)})
		}
		if err == nil && tt.reserved > 0 {
			_, err = begin(tt.reserved)
		}
		if d := (ledger.BudgetDecision{RaiseMicroUSD: 100}); err == nil && (tt.raised || tt.model) {
			n := ledger.BudgetNotice{ID: uuid.NewString(), BudgetWindow: budgets[0].BudgetWindow, LimitMicroUSD: 1, Share: 100, ThreadID: c.Lease.ThreadID}
			if _, _, err = db.NoticeBudget(t.Context(), n); err == nil {
				if tt.model {
					d = ledger.BudgetDecision{Model: "haiku"}
				}
				_, err = db.DecideBudget(t.Context(), n.ID, d, "U1")
			}
			budgets[0].GoesOn = tt.goesOn
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = begin(50, budgets...)
		got := "admitted"
		if over, ok := errors.AsType[*ledger.OverBudgetError](err); ok {
			got = fmt.Sprint(over.Budget, map[bool]string{true: " waits", false: " is used up"}[over.Waits])
		} else if err != nil {
			t.Fatal(err)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}

// BenchmarkBeginCall is what it takes to reserve a call of five budgets.
func BenchmarkBeginCall(b *testing.B) {
	db := storetest.New(b)
	c := working(b, db, "A", "1.1", "C1", "U1")
	for _, n := range []int{0, 1, 5} {
		b.Run(fmt.Sprint(n, " budgets"), func(b *testing.B) {
			budgets := []ledger.CallBudget{
				budgetOf(ledger.BudgetWorkspace, "", 1<<50), budgetOf(ledger.BudgetProject, "web", 1<<50), budgetOf(ledger.BudgetChannel, "C1", 1<<50),
				budgetOf(ledger.BudgetPerson, "U1", 1<<50), budgetOf(ledger.BudgetThread, fmt.Sprint(c.Lease.ThreadID), 1<<50),
			}[:n]
			l := &latencies{}
			for b.Loop() {
				c.ID, c.ReservedMicroUSD = uuid.New(), 1000
				began := time.Now()
				if err := db.BeginCall(b.Context(), c, budgets...); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				l.add(time.Since(began))
				if err := db.EndCalls(b.Context(), []ledger.EndedCall{ended(c, 1)}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			l.report(b)
		})
	}
}
