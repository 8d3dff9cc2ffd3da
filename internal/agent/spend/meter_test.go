package spend

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"deckhand/internal/agent/memstore"
	"deckhand/internal/gateway"
	"deckhand/internal/price"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// metered is a meter with a store in memory and a turn that runs.
type metered struct {
	*Meter
	store   *memstore.Store
	lease   threads.Lease
	log     *observer.ObservedLogs
	running sync.WaitGroup // the meter
	cuts    atomic.Int32   // how often calls were cut
	holds   atomic.Int32   // how often another budget was waited for, or none
}

// newMetered begins in a bubble of testing/synctest.
func newMetered(t *testing.T) *metered {
	t.Helper()
	ctx := t.Context()
	core, logged := observer.New(zapcore.WarnLevel)
	m := &metered{store: new(memstore.Store), log: logged}
	key := threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: "1.1"}
	id, _, err := m.store.Receive(ctx, inbox.Envelope{EventID: "1", Kind: inbox.Message, TeamID: "T1", ChannelID: "C1", ThreadTS: "1.1", TS: "1.1", UserID: "U1"})
	must(t, err)
	_, _, err = m.store.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go"})
	must(t, err)
	th, _, err := storetest.Acquire(ctx, m.store, 1, "A")
	must(t, err)
	m.lease = threads.Lease{ThreadID: 1, Owner: "A", Epoch: th.LeaseEpoch}
	must(t, m.store.NewSession(ctx, m.lease, "s", ""))
	epoch, err := m.store.BeginEpoch(ctx, m.lease, "s", "2.1.329", 0)
	must(t, err)
	m.Meter = New(Config{Store: m.store, Log: zap.New(core)}).NewMeter(Session{
		Lease: m.lease, Thread: th, Log: zap.New(core), OnHeld: func() { m.holds.Add(1) }, OnStray: func(threads.ThreadKey) {},
	})
	m.MoveTo("s", epoch)
	m.running.Go(m.Run)
	return m
}

// cutTime is how long a turn that did not come to its end waits for its calls to be cut.
const cutTime = time.Second

var errAway = errors.New("the database is away")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// turnBegins begins the thread's turn.
func (m *metered) turnBegins(t *testing.T) {
	t.Helper()
	row, _, _, err := m.store.BeginTurn(t.Context(), m.lease, "s", 1)
	must(t, err)
	m.BeginTurn(row)
}

// call begins a call.
func (m *metered) call(t *testing.T, model string) gateway.Booking {
	t.Helper()
	b, err := m.Begin(t.Context(), gateway.Call{ID: uuid.New(), Model: model, MaxTokens: 100, Bytes: 1000, At: time.Now(), Cut: func() { m.cuts.Add(1) }})
	must(t, err)
	return b
}

// end is the meter's end: its process has gone.
func (m *metered) end() {
	m.Close()
	m.running.Wait()
}

func answered(u price.Usage) gateway.Answer {
	return gateway.Answer{Status: 200, Usage: u, Complete: true, Left: true, Ended: time.Now()}
}

// TestWhatAnswersHaveCost: of those that are known whole, in the turn that runs.
func TestWhatAnswersHaveCost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t)
		m.turnBegins(t)
		for i, id := range []string{"m1", "m2", "cut", ""} {
			a := answered(price.Usage{Input: 1000 * int64(i+1)})
			a.MessageID, a.Complete = id, id != "cut"
			m.call(t, "claude-opus-5-5").End(a)
		}
		one, ok := m.Cost([]string{"m1"})
		two, also := m.Cost([]string{"m2"})
		if both, all := m.Cost([]string{"m1", "m2"}); !ok || !also || !all || one == 0 || two != 2*one || both != one+two {
			t.Errorf("%d and %d cost %d: %v %v %v", one, two, both, ok, also, all)
		}
		for _, ids := range [][]string{nil, {"m1", "cut"}, {"m1", "unknown"}, {""}} {
			if micro, ok := m.Cost(ids); ok {
				t.Errorf("%q cost %d", ids, micro)
			}
		}
		m.turn++
		m.BeginTurn(turns.Turn{ID: m.turn, RequestedBy: "U1"})
		if micro, ok := m.Cost([]string{"m1"}); ok {
			t.Errorf("in another turn: %d", micro)
		}
		m.end()
	})
}

// Whatever order calls begin, are seen and end in, and whenever the database is away, the
// ledger has each once with all that it cost, and a turn's end knows its cost.
func TestEveryCallIsBookedOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			m, r := newMetered(t), rand.New(rand.NewPCG(seed, 1))
			m.turnBegins(t)
			models := []string{"claude-opus-5-5", "claude-haiku-5-5", "claude-sonnet-4-5-20250929"}
			var want int64
			type open struct {
				gateway.Booking
				model string
			}
			var under []open
			for range 40 {
				switch model := models[r.IntN(len(models))]; r.IntN(4) {
				case 0:
					under = append(under, open{m.call(t, model), model})
				case 1:
					if len(under) > 0 {
						under[0].Seen(gateway.Answer{Usage: price.Usage{Input: 10}, Left: true})
					}
				case 2:
					m.store.Break(errAway)
					time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
					m.store.Break(nil)
				default:
					if len(under) == 0 {
						continue
					}
					i := r.IntN(len(under))
					u := price.Usage{Input: r.Int64N(200_000), Output: r.Int64N(5000), CacheRead: r.Int64N(1000), Fast: r.IntN(5) == 0}
					cost, _ := price.Cost(under[i].model, u)
					want += cost
					under[i].End(answered(u))
					under = append(under[:i], under[i+1:]...)
				}
			}
			for _, b := range under {
				b.End(gateway.Answer{Status: 529, Complete: true, Left: true, Ended: time.Now()})
			}
			if cost, more := m.Settle(t.Context(), 0); cost != want || more || m.accounts.unbooked.Load() != 0 {
				t.Errorf("seed %d: the turn's end is told %d µ$ (%v), want %d; %d are not booked", seed, cost, more, want, m.accounts.unbooked.Load())
			}
			var got int64
			for _, e := range m.store.Entries() {
				got += e.MicroUSD
			}
			if got != want || len(m.store.Calls()) != 0 {
				t.Errorf("seed %d: the ledger has %d µ$, want %d; %d calls are under way", seed, got, want, len(m.store.Calls()))
			}
			m.end()
		})
	}
}

func TestACallBeforeTheFirstTurnWaitsForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t)
		begun := make(chan gateway.Booking)
		go func() { begun <- m.call(t, "claude-opus-5-5") }()
		synctest.Wait()
		if n := len(m.store.Calls()); n != 0 {
			t.Errorf("%d calls left", n)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Begin(gone, gateway.Call{}); err == nil {
			t.Error("a caller that has left waits on")
		}
		m.turnBegins(t)
		(<-begun).End(answered(price.Usage{Input: 1000}))
		if cost, _ := m.Settle(t.Context(), 0); cost != 4000 {
			t.Errorf("the turn costs %d", cost)
		}
		m.end()
	})
}

func TestATurnThatIsStoppedWaitsForItsCallsToBeCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t)
		m.turnBegins(t)
		b := m.call(t, "claude-opus-5-5")
		go func() {
			time.Sleep(cutTime / 2)
			b.End(gateway.Answer{Status: 200, Usage: price.Usage{Input: 1000}, Left: true, Ended: time.Now()})
		}()
		if cost, more := m.Settle(t.Context(), cutTime); cost != 4000 || !more {
			t.Errorf("%d µ$, more %v", cost, more)
		}
		b = m.call(t, "claude-opus-5-5") // and one that nobody cuts
		began := time.Now()
		if m.Settle(t.Context(), cutTime); time.Since(began) != cutTime {
			t.Errorf("waited %s", time.Since(began))
		}
		b.End(answered(price.Usage{}))
		m.end()
	})
}

// A call that its caller has left is booked when it ends, on its turn, however long that
// and its process have gone. Nobody waits for it, and what the CLI says is no witness.
func TestACallThatIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t)
		m.turnBegins(t)
		m.call(t, "claude-opus-5-5").End(answered(price.Usage{Input: 500}))
		b, cut := m.call(t, "claude-opus-5-5"), m.cuts.Load()
		if b.Alone(); m.Whole() || !m.Whole() {
			t.Error("the CLI is said to have heard all, or never to do so again")
		}
		began := time.Now()
		if cost, more := m.Settle(t.Context(), cutTime); cost != 2000 || !more || time.Since(began) > 0 {
			t.Errorf("%d µ$, more %v, after %s", cost, more, time.Since(began))
		}
		var told []int64
		m.WhenLate(func(cost int64, more bool) {
			if told = append(told, cost); more {
				t.Error("it may cost more")
			}
		})
		m.Close()
		if _, err := m.Begin(t.Context(), gateway.Call{ID: uuid.New(), Model: "claude-opus-5-5"}); err == nil {
			t.Error("a call of a process that has gone left")
		}
		time.Sleep(time.Minute)
		if n := len(m.store.Calls()); n != 1 || !m.Busy() {
			t.Errorf("%d calls are under way", n)
		}
		if m.Cut(); m.cuts.Load() != cut+1 {
			t.Error("it was not cut")
		}
		b.End(answered(price.Usage{Input: 1000}))
		m.running.Wait()
		if len(told) != 1 || told[0] != 6000 || m.Busy() || len(m.store.Calls()) > 0 {
			t.Errorf("told %v", told)
		}
	})
}

// What cannot be booked is in the log, and its call stays in the database as under way.
func TestADatabaseThatStaysAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t)
		m.turnBegins(t)
		b := m.call(t, "claude-opus-5-5")
		m.store.Break(errAway)
		b.End(answered(price.Usage{Input: 1000}))
		if _, err := m.Begin(t.Context(), gateway.Call{ID: uuid.New(), Model: "claude-opus-5-5"}); err == nil {
			t.Error("a call left that is not in the books")
		}
		began := time.Now()
		m.end()
		if waited := time.Since(began); waited > closeLimit+10*time.Second {
			t.Errorf("tried for %s", waited)
		}
		m.store.Break(nil)
		if n := m.log.FilterMessage("a call of the model is not booked as it ended").Len(); n != 2 || len(m.store.Calls()) != 1 {
			t.Errorf("%d lines in the log, %d calls under way", n, len(m.store.Calls()))
		}
	})
}

func TestACallIsPricedByListAndContract(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	terms := price.Terms{Input: 3_000_000_000, Output: 15_000_000_000}
	m := &Meter{
		accounts: New(Config{Prices: price.NewContract(map[string]price.Terms{"claude-sonnet-*": terms, "claude-haiku-*": {Input: 1_000_000_000}})}),
		project:  Project{Prices: price.NewContract(map[string]price.Terms{"claude-haiku-*": {Input: 500_000_000}})}, log: zap.New(core),
	}
	type charged struct {
		Model                   string
		MicroUSD, Contract, Max int64
		Unpriced                bool
	}
	long := price.Usage{Input: 60_000}
	for _, tc := range []struct {
		name   string
		call   gateway.Call
		answer gateway.Answer
		want   []charged
	}{
		{
			"as usual",
			gateway.Call{Model: "claude-sonnet-4-5"},
			answered(price.Usage{Input: 1000, Output: 10}),
			[]charged{{"claude-sonnet-4-5", 3150, 3150, 0, false}},
		},
		{
			"the project's own price, and the list's surcharge",
			gateway.Call{Model: "claude-haiku-5-5"},
			answered(price.Usage{Input: 120_000}),
			[]charged{{"claude-haiku-5-5", 60_000, 300_000, 0, false}},
		},
		{
			"two prompts",
			gateway.Call{Model: "claude-haiku-5-5"},
			gateway.Answer{Complete: true, Left: true, Usage: price.Usage{Input: 120_000}, Runs: []gateway.Run{{Usage: long}, {Usage: long}}},
			[]charged{{"claude-haiku-5-5", 12_000, 60_000, 0, false}},
		},
		{
			"advice of another model",
			gateway.Call{Model: "claude-sonnet-4-5"},
			gateway.Answer{Complete: true, Left: true, Usage: price.Usage{Input: 1000}, Runs: []gateway.Run{{Model: "claude-opus-5-5", Usage: price.Usage{Input: 10}, Apart: true}}},
			[]charged{{"claude-sonnet-4-5", 3000, 3000, 0, false}, {"claude-opus-5-5", 40, -1, 0, false}},
		},
		{
			"another model has answered",
			gateway.Call{Model: "claude-opus-5-5"},
			gateway.Answer{Model: "claude-sonnet-4-5-20250929", Complete: true, Usage: price.Usage{Input: 1000}},
			[]charged{{"claude-sonnet-4-5-20250929", 3000, 3000, 0, false}},
		},
		{
			"the same by another name",
			gateway.Call{Model: "claude-sonnet-4-5"},
			gateway.Answer{Model: "claude-sonnet-4-5-20250929", Complete: true, Usage: price.Usage{Input: 1000}},
			[]charged{{"claude-sonnet-4-5", 3000, 3000, 0, false}},
		},
		{
			"a model that nobody knows",
			gateway.Call{Model: "gpt-foo"},
			answered(price.Usage{Input: 1000}),
			[]charged{{"gpt-foo", 4000, -1, 0, true}},
		},
		{
			"cut, with what may follow",
			gateway.Call{Model: "claude-sonnet-4-5", MaxTokens: 1000, Bytes: 5000},
			gateway.Answer{Left: true, Usage: price.Usage{Input: 1000, Output: 10}},
			[]charged{{"claude-sonnet-4-5", 3150, 3150, 990 * 15, false}},
		},
		{
			"cut before anything was told",
			gateway.Call{Model: "claude-sonnet-4-5", MaxTokens: 1000, Bytes: 5000},
			gateway.Answer{Left: true},
			[]charged{{"claude-sonnet-4-5", 0, 0, 1000*15 + 5000*6, false}},
		},
		{"it never left", gateway.Call{Model: "claude-sonnet-4-5", Bytes: 5000}, gateway.Answer{}, []charged{{"claude-sonnet-4-5", 0, 0, 0, false}}},
	} {
		var got []charged
		for _, u := range m.charge(tc.call, tc.answer) {
			c := charged{u.Model, u.MicroUSD, -1, u.BoundMicroUSD, u.Unpriced}
			if u.ContractMicroUSD != nil {
				c.Contract = *u.ContractMicroUSD
			}
			got = append(got, c)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	var said []string
	for _, e := range logged.All() {
		said = append(said, e.Message)
	}
	if diff := cmp.Diff([]string{"no contract price for claude-opus-5-5", "the price list does not know the model gpt-foo", "no contract price for gpt-foo"}, said); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

// TestACallThatIsHeldSaysForWhat: a call that finds its budget reserved by others is shown
// with the budget's name until it leaves.
func TestACallThatIsHeldSaysForWhat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t)
		m.accounts.budgets = []Budget{{Scope: ledger.BudgetWorkspace, Period: ledger.BudgetDaily, LimitMicroUSD: 1000}}
		m.turnBegins(t)
		begin := func() (gateway.Booking, error) {
			return m.Begin(t.Context(), gateway.Call{ID: uuid.New(), Model: "claude-opus-5-5", Bytes: 3000, MaxTokens: 10, At: time.Now()})
		}
		first, err := begin()
		must(t, err)
		left := make(chan gateway.Booking)
		go func() {
			second, err := begin()
			if err != nil {
				t.Error(err)
			}
			left <- second
		}()
		synctest.Wait()
		if name := m.HeldFor(); name != "" {
			t.Errorf("a call that has just been held is shown: %q", name)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if name := m.HeldFor(); name != "Today's budget of the team" {
			t.Errorf("it waits for %q", name)
		}
		if n := m.holds.Swap(0); n != 1 {
			t.Errorf("the session is told %d times", n)
		}
		first.End(answered(price.Usage{Input: 1}))
		(<-left).End(answered(price.Usage{Input: 1}))
		if name := m.HeldFor(); name != "" {
			t.Errorf("it has left, and waits for %q", name)
		}
		if n := m.holds.Swap(0); n != 1 {
			t.Errorf("the session is told %d times", n)
		}
		m.end()
	})
}

// TestAFirstCallReservesWhatOthersWrite: at the price of an hour's cache until a call of
// the project says that it is written for minutes.
func TestAFirstCallReservesWhatOthersWrite(t *testing.T) {
	t.Parallel()
	c := gateway.Call{Model: "claude-opus-5-5", Bytes: 3_000_000, MaxTokens: 1, At: time.Now()}
	m := &Meter{accounts: New(Config{Store: new(memstore.Store), Budgets: []Budget{{}}}), project: Project{Name: "web"}, last: map[string]lastCall{}}
	reserved := func() int64 { return m.reservation(t.Context(), c) }
	if got, want := reserved(), int64(8_000_020); got != want {
		t.Errorf("the first of all reserves %d µ$, want %d", got, want)
	}
	for _, tt := range []struct {
		used price.Usage
		want int64
	}{
		{price.Usage{CacheWrite5m: 10}, 5_000_020},
		{price.Usage{CacheRead: 10}, 5_000_020},
		{price.Usage{CacheWrite5m: 10, CacheWrite1h: 10}, 8_000_020},
	} {
		m.noteUsage(c, answered(tt.used))
		m.last = map[string]lastCall{} // another session
		if got := reserved(); got != tt.want {
			t.Errorf("after %+v it reserves %d µ$, want %d", tt.used, got, tt.want)
		}
	}
}

// refusal is what a call is answered with that does not leave; nil if it does.
func (m *metered) refusal(t *testing.T, c gateway.Call) *gateway.Refusal {
	t.Helper()
	c.ID, c.At = uuid.New(), time.Now()
	b, err := m.Begin(t.Context(), c)
	if no, ok := errors.AsType[*gateway.Refusal](err); ok {
		return no
	}
	must(t, err)
	b.End(answered(price.Usage{Input: 1}))
	return nil
}

// TestBetweenTurnsNoCallLeaves: what a turn has left running calls nobody until the next.
func TestBetweenTurnsNoCallLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t)
		m.turnBegins(t)
		opus := gateway.Call{Model: "claude-opus-5-5"}
		if no := m.refusal(t, opus); no != nil {
			t.Error(no)
		}
		late := m.call(t, opus.Model) // is read to its end
		strays := 0
		m.onStray = func() { strays++ }
		m.EndTurn()
		if no := m.refusal(t, opus); no == nil || no.Status != http.StatusPaymentRequired {
			t.Errorf("between turns: %+v", no)
		}
		if _ = m.refusal(t, opus); strays != 1 {
			t.Errorf("the thread is told %d times", strays)
		}
		late.End(answered(price.Usage{Input: 1000}))
		m.BeginTurn(turns.Turn{ID: m.turn, RequestedBy: "U1"})
		if no := m.refusal(t, opus); no != nil {
			t.Error(no)
		}
		m.end()
	})
}

// TestModelsWithoutAPriceAreNotCalled, unless the configuration names them.
func TestModelsWithoutAPriceAreNotCalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t)
		m.project = Project{
			Models: []string{"ours"}, Named: gateway.Provider{Models: map[string]string{"ours": "arn:profile/ours"}}.Model,
			Prices: price.NewContract(map[string]price.Terms{"agreed-*": {Input: 1}}),
		}
		m.accounts.budgets = []Budget{{CheaperModel: "cheap"}}
		if !m.permits("cheap") {
			t.Error("the cheaper model of a budget is not permitted")
		}
		m.accounts.budgets = nil
		m.turnBegins(t)
		for _, c := range []gateway.Call{
			{Model: "claude-opus-5-5"},
			{Model: "claude-haiku-4-5-20251001"},
			{Model: "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"},
			{Model: "agreed-1"},
			{Model: "arn:profile/ours"},
			{Model: "of-the-environment", Named: true},
			{Model: "claude-opus-5-5", Fallbacks: []string{"claude-opus-5"}},
		} {
			if no := m.refusal(t, c); no != nil {
				t.Errorf("%+v: %v", c, no)
			}
		}
		if m.DeniedFor() != "" {
			t.Error(m.DeniedFor())
		}
		for _, c := range []gateway.Call{{}, {Model: "gpt-9"}, {Model: "claude-epic-9"}, {Model: "ours"}, {Model: "claude-opus-5-5", Fallbacks: []string{"gpt-9"}}} {
			if no := m.refusal(t, c); no == nil || no.Status != http.StatusPaymentRequired || no.Sentence != m.DeniedFor() {
				t.Errorf("%+v: %+v, and the turn is told %q", c, no, m.DeniedFor())
			}
		}
		m.end()
	})
}

// TestTheWebIsSearchedWhereItWasAllowed: the provider searches the web only while a tool use
// runs that may. What else runs in the session cannot have it search.
func TestTheWebIsSearchedWhereItWasAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetered(t)
		m.turnBegins(t)
		search := gateway.Call{Model: "claude-opus-5-5", Search: true}
		may := func(when string, want bool) {
			t.Helper()
			if no := m.refusal(t, search); (no == nil) != want {
				t.Errorf("%s: %+v", when, no)
			}
		}
		may("before anything", false)
		m.BeginSearch("2")
		m.BeginSearch("3")
		may("while two searches run", true)
		m.EndSearch("2")
		may("while one runs", true)
		m.EndSearch("3")
		may("after them", false)
		m.BeginSearch("4")
		m.EndTurn()
		m.BeginTurn(turns.Turn{ID: 2})
		may("in the next turn", false)
		if no := m.refusal(t, gateway.Call{Model: "claude-opus-5-5"}); no != nil {
			t.Errorf("another call: %+v", no)
		}
		m.end()
	})
}
