package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

func (b *bench) finish(t *testing.T, turn turns.Turn) {
	t.Helper()
	if _, _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{ID: turn.ID, State: "done"}); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) decide(t *testing.T, a approvals.Approval, status approvals.Status) {
	t.Helper()
	if _, err := b.Decide(t.Context(), approvals.Decision{ApprovalID: a.ID, Status: status, By: "U9", Via: "button"}); err != nil {
		t.Fatal(err)
	}
}

// pay makes a call of the thread's latest turn, and books what it cost.
func (b *bench) pay(t *testing.T, model string, microUSD int64) {
	t.Helper()
	e := ended(b.call(t), microUSD)
	e.Usage.Model = model
	b.end(t, e)
}

func (b *bench) report(t *testing.T, by ledger.CostGroup) ledger.CostReport {
	t.Helper()
	q := ledger.CostQuery{TeamID: thread.TeamID, By: by}
	r, err := b.Costs(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := b.RawCosts(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(raw, r); diff != "" {
		t.Fatalf("by %q, from the rows and from the roll-ups:\n%s", by, diff)
	}
	return r
}

func (b *bench) verify(t *testing.T) {
	t.Helper()
	if got, err := b.VerifyRollups(t.Context(), ""); err != nil || len(got) > 0 {
		t.Errorf("VerifyRollups: %+v, %v", got, err)
	}
	r, err := b.VerifyAudit(t.Context(), nil)
	if err != nil {
		t.Error(err)
	}
	for _, p := range r.Problems {
		if strings.Contains(p, "micro-USD") {
			t.Errorf("VerifyAudit: %s", p)
		}
	}
}

// TestATurnCountsOnceOnItsDearestModel, whatever its last call was.
func TestATurnCountsOnceOnItsDearestModel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, _ := b.begin(t)
	contract := int64(41)
	opus := ended(b.call(t), 50)
	opus.Usage.Input, opus.Usage.Output, opus.Usage.CacheRead, opus.Usage.CacheWrite5m, opus.Usage.CacheWrite1h, opus.Usage.WebSearches = 1, 2, 3, 4, 5, 6
	opus.Usage.ContractMicroUSD = &contract
	b.end(t, opus)
	b.pay(t, "opus", 900)
	b.pay(t, "sonnet", 7)
	b.pay(t, "haiku", 3)
	b.finish(t, turn)
	b.prompt(t, "U2", "for nothing")
	free, _ := b.begin(t)
	b.finish(t, free)

	got := b.report(t, ledger.ByModel)
	want := []ledger.CostLine{
		{
			Key: "opus", Turns: 1, Entries: 3, MicroUSD: 950, ContractMicroUSD: 41,
			Input: 11, Output: 902, CacheRead: 3, CacheWrite5m: 4, CacheWrite1h: 5, WebSearches: 6,
		},
		{Key: "sonnet", Entries: 1, Input: 10, Output: 7, MicroUSD: 7},
		{Key: "haiku", Entries: 1, Input: 10, Output: 3, MicroUSD: 3},
	}
	if diff := cmp.Diff(want, got.Lines); diff != "" {
		t.Errorf("by model (-want +got):\n%s", diff)
	}
	threads := b.report(t, ledger.ByThread)
	if len(threads.Lines) != 1 || threads.Lines[0].ThreadKey != thread || threads.Lines[0].Project != "web" || threads.Lines[0].Turns != 1 {
		t.Errorf("by thread: %+v", threads.Lines)
	}
	b.verify(t)
}

// TestWhatWasBookedBeforeTheMeterStays: differences of totals and estimates add up, are
// reported and verified, beside the calls of a turn that went on after an upgrade.
func TestWhatWasBookedBeforeTheMeterStays(t *testing.T) {
	t.Parallel()
	b, url := newOpenBench(t)
	before, _ := b.begin(t)
	contract := int64(41)
	storetest.BookBefore(t, url, before.ID,
		storetest.EntryBefore{Kind: "turn", Model: "opus", MicroUSD: 900},
		storetest.EntryBefore{
			Kind: "turn", Model: "opus", MicroUSD: 50, TotalBefore: 900, ContractMicroUSD: &contract, Turns: 1, Approved: 2,
			Input: 1, Output: 2, CacheRead: 3, CacheWrite5m: 4, CacheWrite1h: 5, WebSearches: 6,
		},
		storetest.EntryBefore{Kind: "estimate", Model: "sonnet", MicroUSD: 7},
	)
	b.finish(t, before)
	b.promptIn(t, 0)
	turn, _ := b.begin(t)
	storetest.BookBefore(t, url, turn.ID, storetest.EntryBefore{Kind: "turn", Model: "opus", MicroUSD: 5, TotalBefore: 950})
	b.pay(t, "haiku", 3)
	b.finish(t, turn)

	want := []ledger.CostLine{
		{
			Key: "opus", Turns: 1, Approved: 2, Entries: 3, MicroUSD: 955, ContractMicroUSD: 41,
			Input: 1, Output: 2, CacheRead: 3, CacheWrite5m: 4, CacheWrite1h: 5, WebSearches: 6,
		},
		{Key: "sonnet", Entries: 1, MicroUSD: 7, EstimatedMicroUSD: 7},
		{Key: "haiku", Turns: 1, Entries: 2, Input: 10, Output: 3, MicroUSD: 3},
	}
	if diff := cmp.Diff(want, b.report(t, ledger.ByModel).Lines); diff != "" {
		t.Errorf("by model (-want +got):\n%s", diff)
	}
	b.verify(t)
}

// TestWhatPeopleAllowedIsCounted with the turn, over all its attempts, and not
// what a rule allowed, what was denied, or what was no tool.
func TestWhatPeopleAllowedIsCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, _ := b.begin(t)
	b.decide(t, b.ask(t, turn, `{"command":"make"}`), approvals.Allowed)
	b.decide(t, b.ask(t, turn, `{"command":"rm -rf /"}`), approvals.Denied)
	b.ask(t, turn, `{"command":"nobody decides"}`)
	for _, via := range []struct {
		kind approvals.Kind
		via  string
	}{{approvals.Tool, "rule"}, {approvals.Tool, "grant"}, {approvals.Plan, "button"}} {
		if _, err := b.Ask(t.Context(), b.lease, approvals.Approval{
			ID: uuid.NewString(), Input: json.RawMessage(`{"command":"ls"}`),
			Origin:  approvals.Origin{SessionID: b.session, TurnID: turn.ID, RequestedBy: "U1"},
			Request: approvals.Request{Kind: via.kind, RequestID: uuid.NewString(), ToolUseID: "t", ToolName: "Bash", ExpiresAt: time.Now().Add(time.Hour)},
			Outcome: approvals.Outcome{Status: approvals.Allowed, DecidedBy: "U9", DecidedVia: via.via},
		}); err != nil {
			t.Fatal(err)
		}
	}
	b.newEpoch(t, 0) // the process dies; another goes on
	next, err := b.ContinueTurn(t.Context(), b.lease, turn, b.session, b.epoch)
	if err != nil {
		t.Fatal(err)
	}
	b.decide(t, b.ask(t, next, `{"command":"make test"}`), approvals.Allowed)
	b.pay(t, "haiku", 1)
	b.pay(t, "opus", 2)
	b.finish(t, next)

	if got := b.report(t, ledger.ByModel).Lines; got[0].Key != "opus" || got[0].Approved != 3 || got[1].Approved != 0 {
		t.Errorf("approved: %+v", got)
	}
	b.verify(t)
}

// TestADayIsTheWorkspacesDay: entries are booked on the day that its zone has.
func TestADayIsTheWorkspacesDay(t *testing.T) {
	t.Parallel()
	for !bookedInZones(t) {
		t.Log("midnight came in between")
	}
}

// bookedInZones books an entry in each of some zones, and looks for it on their day. It
// reports false if a day ended meanwhile.
func bookedInZones(t *testing.T) bool {
	t.Helper()
	b := newBench(t)
	var days []string
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("far east", 14*60*60), time.FixedZone("far west", -12*60*60)} {
		b.Store = b.In(zone)
		days = append(days, time.Now().In(zone).Format(time.DateOnly))
		turn, _ := b.begin(t)
		b.pay(t, "opus", 1)
		b.finish(t, turn)
		b.prompt(t, "U1", "again")
		if now := time.Now().In(zone).Format(time.DateOnly); now != days[len(days)-1] {
			return false
		}
	}
	want := map[string]int64{}
	for _, d := range days {
		want[d]++
	}
	got := map[string]int64{}
	for _, l := range b.report(t, ledger.ByDay).Lines {
		got[l.Key] = l.MicroUSD
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
	b.verify(t)
	return true
}

// TestCallsNeedAnEpoch: money is never dropped in silence.
func TestCallsNeedAnEpoch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.begin(t)
	stray := ended(b.call(t), 5)
	stray.Epoch = 99
	if err := b.EndCalls(t.Context(), []ledger.EndedCall{ended(b.call(t), 1), stray}); err == nil || !strings.Contains(err.Error(), "1 of them") {
		t.Errorf("EndCalls with an unknown epoch: %v", err)
	}
	if got := b.report(t, ledger.ByNothing); got.Total.Entries != 0 {
		t.Errorf("half of it was written: %+v", got.Total)
	}
}

// TestConcurrentTurnsAddUp: twenty threads end turn after turn, on the same rows
// of the roll-ups and on their own, with their models in every order.
func TestConcurrentTurnsAddUp(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	const workers, rounds = 20, 8
	models := []string{"opus", "sonnet", "haiku", "fable"}
	var wg sync.WaitGroup
	for w := range workers {
		b := newWorker(t, s, w)
		wg.Go(func() {
			for round := range rounds {
				turn, _, ok, err := b.BeginTurn(t.Context(), b.lease, b.session, b.epoch)
				if err != nil || !ok {
					t.Errorf("BeginTurn: ok=%v err=%v", ok, err)
					return
				}
				var calls []ledger.EndedCall
				for i := range models {
					e := ended(ledger.OpenCall{ID: uuid.New(), Lease: b.lease, SessionID: b.session, Epoch: b.epoch, StartedAt: time.Now()}, int64(1+w))
					e.Usage.Model = models[(i*(1+2*(w%2))+w+round)%len(models)]
					calls = append(calls, e)
					err = errors.Join(err, b.BeginCall(t.Context(), e.OpenCall))
				}
				if round%3 == 0 {
					err = errors.Join(err, b.EndCalls(t.Context(), calls[:2]))
					calls = calls[2:]
				}
				err = errors.Join(err, b.EndCalls(t.Context(), calls))
				if err == nil {
					_, _, err = b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{ID: turn.ID, State: "done"})
				}
				if err != nil {
					t.Error(err)
					return
				}
				if round < rounds-1 {
					b.promptIn(t, w)
				}
			}
		})
	}
	wg.Wait()
	r, err := s.Costs(t.Context(), ledger.CostQuery{TeamID: thread.TeamID, By: ledger.ByModel})
	if err != nil {
		t.Fatal(err)
	}
	each := int64(rounds * workers * (workers + 1) / 2)
	for _, l := range r.Lines {
		// The turns' ends are the entries beside the calls.
		if l.MicroUSD != each || l.Entries-l.Turns != workers*rounds {
			t.Errorf("%s: %d micro-USD in %d calls, want %d in %d", l.Key, l.MicroUSD, l.Entries-l.Turns, each, workers*rounds)
		}
	}
	if r.Total.Turns != workers*rounds || len(r.Lines) != len(models) {
		t.Errorf("%d turns on %d models", r.Total.Turns, len(r.Lines))
	}
	if got, err := s.VerifyRollups(t.Context(), ""); err != nil || len(got) > 0 {
		t.Errorf("VerifyRollups: %+v, %v", got, err)
	}
}

// newWorker is a thread of its own in one of two channels, by one of four people.
func newWorker(t *testing.T, s *store.Store, w int) *bench {
	t.Helper()
	b := &bench{Store: s}
	b.promptIn(t, w)
	th, err := s.ThreadByKey(t.Context(), workerThread(w))
	if err != nil {
		t.Fatal(err)
	}
	b.take(t, th.ID, fmt.Sprintf("replica-%d", w))
	b.session = uuid.NewString()
	if err := s.NewSession(t.Context(), b.lease, b.session, ""); err != nil {
		t.Fatal(err)
	}
	b.newEpoch(t, 0)
	return b
}

func workerThread(w int) threads.ThreadKey {
	return threads.ThreadKey{TeamID: thread.TeamID, ChannelID: fmt.Sprintf("C%d", w%2), ThreadTS: fmt.Sprintf("%d.000000", 200+w)}
}

func (b *bench) promptIn(t *testing.T, w int) {
	b.posts++
	key, user := workerThread(w), fmt.Sprintf("U%d", w%4)
	id, _, err := b.Receive(t.Context(), inbox.Envelope{
		EventID: fmt.Sprintf("Ev%d-%d", w, b.posts), Kind: inbox.Message, TeamID: key.TeamID, ChannelID: key.ChannelID, ThreadTS: key.ThreadTS,
		TS: fmt.Sprintf("%d.%06d", 200+w, b.posts), UserID: user, Payload: json.RawMessage(`{}`),
	})
	if err == nil {
		_, _, err = b.AcceptPrompt(t.Context(), inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: user, UUID: uuid.NewString(), Text: "x"})
	}
	if err != nil {
		t.Error(err)
	}
}

// rollups are the tables that follow the ledger.
var rollups = []string{"ledger_daily", "ledger_monthly", "ledger_channel_daily", "ledger_channel_monthly", "ledger_thread_daily", "ledger_threads", "ledger_openings"}

func TestNobodyWritesTheBooksByHand(t *testing.T) {
	t.Parallel()
	b, url := newOpenBench(t)
	pool := newPool(t, url)
	turn, _ := b.begin(t)
	b.pay(t, "opus", 5)
	b.finish(t, turn)
	refused := []string{
		`UPDATE ledger SET micro_usd = 0`, `DELETE FROM ledger`, `TRUNCATE ledger CASCADE`,
		`UPDATE threads SET project = 'another'`,
	}
	for _, table := range rollups {
		refused = append(refused, `UPDATE `+table+` SET project = 'x'`, `DELETE FROM `+table, `TRUNCATE `+table, `INSERT INTO `+table+` SELECT * FROM `+table+` WHERE false`)
	}
	for _, sql := range refused {
		if _, err := pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("the database let through: %s", sql)
		}
	}
	b.verify(t)
}

// newOpenBench is a bench with the address of its database.
func newOpenBench(t *testing.T) (b *bench, url string) {
	t.Helper()
	url = storetest.URL(t)
	return newWorker(t, storetest.Open(t, url, store.Options{}), 0), url
}

func newPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// TestVerifyFindsWhatIsWrong: whoever owns the database can switch the guards off
// and change a figure; then it no longer agrees with the others.
func TestVerifyFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, sql string
		table     string // whose guards are off
		want      []string
	}{
		{"a sum", `UPDATE ledger_daily SET output_tokens = output_tokens + 1`, "ledger_daily", []string{`ledger_daily {"output_tokens":5} {"output_tokens":6}`}},
		{"a month", `DELETE FROM ledger_monthly`, "ledger_monthly", []string{`ledger_monthly {"approved":0,"cache_read_tokens":0,`}},
		{"a day too many", `UPDATE ledger_channel_daily SET booked_on = booked_on + 1`, "ledger_channel_daily", []string{"ledger_channel_daily null", "ledger_channel_daily {"}},
		{"a thread's day", `UPDATE ledger_thread_daily SET turns = 2`, "ledger_thread_daily", []string{`ledger_thread_daily {"turns":1} {"turns":2}`}},
		{"a thread's life", `UPDATE ledger_threads SET first_on = '2020-01-01'`, "ledger_threads", []string{`ledger_threads {"first_on":`}},
		{"an opening", `UPDATE ledger_openings SET threads = 2`, "ledger_openings", []string{`ledger_openings {"threads":1} {"threads":2}`}},
		{"a turn", `UPDATE turns SET cost_micro_usd = 4`, "turns", []string{`turns {"cost_micro_usd":5} {"cost_micro_usd":4}`}},
		{"an audit that was emptied", `DELETE FROM audit`, "audit", []string{`audit {"micro_usd":5} null`}},
		{"an amount", `UPDATE ledger SET micro_usd = 6 WHERE kind = 'call'`, "ledger", []string{
			`ledger_daily {"micro_usd":6} {"micro_usd":5}`, "ledger_monthly", "ledger_channel_daily", "ledger_channel_monthly", "ledger_thread_daily", "ledger_threads",
			`turns {"cost_micro_usd":6} {"cost_micro_usd":5}`, `audit {"micro_usd":6} {"micro_usd":5}`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, url := newOpenBench(t)
			pool := newPool(t, url)
			turn, _ := b.begin(t)
			b.pay(t, "opus", 5)
			b.finish(t, turn)
			for _, sql := range []string{`ALTER TABLE ` + c.table + ` DISABLE TRIGGER USER`, c.sql, `ALTER TABLE ` + c.table + ` ENABLE TRIGGER USER`} {
				if _, err := pool.Exec(t.Context(), sql); err != nil {
					t.Fatal(err)
				}
			}
			got, err := b.VerifyRollups(t.Context(), thread.TeamID)
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			for _, d := range got {
				told = append(told, d.Check+" "+d.Want+" "+d.Got)
			}
			ok := len(told) == len(c.want)
			for i := range min(len(told), len(c.want)) {
				ok = ok && strings.HasPrefix(told[i], c.want[i])
			}
			if !ok {
				t.Errorf("told %q, want %q", told, c.want)
			}
			if other, err := b.VerifyRollups(t.Context(), "T2"); err != nil || len(other) > 0 {
				t.Errorf("another team's books: %+v, %v", other, err)
			}
		})
	}
}

// TestAGapInARunningTotalIsFound: the entries of before the meter follow the CLI's totals.
func TestAGapInARunningTotalIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check, want, got string
		before           []int64 // each entry's
	}{
		{"chain", `{"total_before":5}`, `{"total_before":6}`, []int64{0, 6}},
		{"baseline", `{"at_most":0}`, `{"at_most":10}`, []int64{10}},
	} {
		t.Run(c.check, func(t *testing.T) {
			t.Parallel()
			b, url := newOpenBench(t)
			for _, before := range c.before {
				turn, _ := b.begin(t)
				storetest.BookBefore(t, url, turn.ID, storetest.EntryBefore{Kind: "turn", Model: "opus", MicroUSD: 5, TotalBefore: before, Turns: 1})
				b.finish(t, turn)
				b.promptIn(t, 0)
			}
			got, err := b.VerifyRollups(t.Context(), "")
			if err != nil || len(got) != 1 || got[0].Check != c.check || got[0].Want != c.want || got[0].Got != c.got {
				t.Errorf("VerifyRollups: %+v, %v", got, err)
			}
		})
	}
}

func TestAGeneratedLedgerIsARealOne(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	if err := storetest.GenerateLedger(t.Context(), url, 3000, 7); err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, url, store.Options{})
	got, err := s.VerifyRollups(t.Context(), "")
	got = slices.DeleteFunc(got, func(d ledger.RollupDifference) bool { return d.Check == "audit" }) // it has none
	if err != nil || len(got) > 0 {
		t.Errorf("VerifyRollups: %+v, %v", got, err)
	}
	r, err := s.Costs(t.Context(), ledger.CostQuery{TeamID: storetest.LedgerTeam, From: storetest.LedgerFrom, To: storetest.LedgerTo, By: ledger.ByProject})
	if err != nil || r.Total.Entries != 3000 || len(r.Lines) != 12 {
		t.Errorf("%d entries in %d projects, %v", r.Total.Entries, len(r.Lines), err)
	}
	if err := storetest.GenerateLedger(context.WithoutCancel(t.Context()), url, 10, 7); err == nil {
		t.Error("a second ledger was generated into the same database")
	}
}
