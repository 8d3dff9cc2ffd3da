package store_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	_ "time/tzdata"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"deckhand/internal/store"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// books is a store whose ledger a test writes by itself, at any time of day.
type books struct {
	*store.Store
	pool  *pgxpool.Pool
	teams atomic.Int64
}

func newBooks(t *testing.T) *books {
	t.Helper()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &books{Store: s, pool: pool}
}

// booking is a row of the ledger.
type booking struct {
	at                                     time.Time
	kind, user, channel, project, model    string
	thread                                 int64
	input, output, read, short, long, webs int64
	microUSD                               int64
	contract                               *int64
	turns, approved                        int64
	zone                                   *time.Location // it is booked in
}

// account is a thread that entries can be booked on.
type account struct {
	id, turn         int64
	channel, project string
	session          string
	totals           map[string]int64
}

// open makes a team's threads, each with a session, an epoch and a turn.
func (b *books) open(ctx context.Context, places [][2]string) (team string, accounts []*account, err error) {
	team = fmt.Sprintf("T%03d", b.teams.Add(1))
	for i, place := range places {
		a := &account{channel: place[0], project: place[1], session: uuid.NewString(), totals: map[string]int64{}}
		if err := b.pool.QueryRow(ctx, `
			INSERT INTO threads (team_id, channel_id, thread_ts, project, owner_id) VALUES ($1, $2, $3, $4, 'U1') RETURNING id`,
			team, place[0], fmt.Sprintf("1.%06d", i), place[1]).Scan(&a.id); err != nil {
			return "", nil, err
		}
		if _, err := b.pool.Exec(ctx, `INSERT INTO sessions (id, thread_id, started) VALUES ($1, $2, true)`, a.session, a.id); err != nil {
			return "", nil, err
		}
		if _, err := b.pool.Exec(ctx, `INSERT INTO epochs (session_id, epoch, cli_version, baseline_micro_usd) VALUES ($1, 1, '2.1.329', 0)`, a.session); err != nil {
			return "", nil, err
		}
		if err := b.pool.QueryRow(ctx, `
			INSERT INTO turns (thread_id, session_id, epoch, lease_epoch, requested_by, state, ended_at)
			VALUES ($1, $2, 1, 1, 'U1', 'done', now()) RETURNING id`, a.id, a.session).Scan(&a.turn); err != nil {
			return "", nil, err
		}
		accounts = append(accounts, a)
	}
	return team, accounts, nil
}

// book writes entries in one statement, and what they add up to on their turns.
func (b *books) book(ctx context.Context, team string, accounts []*account, entries []booking) error {
	byID := map[int64]*account{}
	for _, a := range accounts {
		byID[a.id] = a
	}
	costs := map[int64]int64{}
	_, err := b.pool.CopyFrom(ctx, pgx.Identifier{"ledger"}, []string{
		"at", "booked_on", "kind", "team_id", "channel_id", "thread_id", "project", "user_id", "session_id", "epoch", "turn_id",
		"cli_version", "model", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens",
		"web_searches", "micro_usd", "contract_micro_usd", "total_before", "total_after", "turns", "approved",
	}, pgx.CopyFromSlice(len(entries), func(i int) ([]any, error) {
		e := entries[i]
		a := byID[e.thread]
		before := a.totals[e.model]
		if e.kind == "turn" {
			a.totals[e.model] += e.microUSD
		}
		if e.kind != "correction" { // by hand, which no turn tells of
			costs[a.turn] += e.microUSD
		}
		year, month, day := e.at.In(e.zone).Date()
		return []any{
			e.at, time.Date(year, month, day, 0, 0, 0, 0, time.UTC), e.kind, team, a.channel, a.id, a.project, e.user, a.session, 1, a.turn,
			"2.1.329", e.model, e.input, e.output, e.read, e.short, e.long,
			e.webs, e.microUSD, e.contract, before, before + e.microUSD, e.turns, e.approved,
		}, nil
	}))
	if err != nil {
		return err
	}
	for turn, cost := range costs {
		if _, err := b.pool.Exec(ctx, `UPDATE turns SET cost_micro_usd = cost_micro_usd + $2 WHERE id = $1`, turn, cost); err != nil {
			return err
		}
	}
	return nil
}

// tally answers a query from a list of entries, by the plainest means.
func tally(team string, accounts []*account, entries []booking, q ledger.CostQuery) ledger.CostReport {
	lines := map[string]*ledger.CostLine{}
	var report ledger.CostReport
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return report
	}
	has := func(list []string, v string) bool { return len(list) == 0 || slices.Contains(list, v) }
	for _, e := range entries {
		if e.at.Before(q.From) || !q.To.IsZero() && !e.at.Before(q.To) || q.ThreadID != 0 && q.ThreadID != e.thread ||
			!has(q.Users, e.user) || !has(q.Channels, e.channel) || !has(q.Projects, e.project) || !has(q.Models, e.model) {
			continue
		}
		key := map[ledger.CostGroup]string{
			ledger.ByUser: e.user, ledger.ByChannel: e.channel, ledger.ByProject: e.project, ledger.ByModel: e.model,
			ledger.ByThread: strconv.FormatInt(e.thread, 10), ledger.ByDay: e.at.In(e.zone).Format("2006-01-02"), ledger.ByMonth: e.at.In(e.zone).Format("2006-01"),
		}[q.By]
		l := lines[key]
		if l == nil {
			l = &ledger.CostLine{Key: key}
			if q.By == ledger.ByThread {
				i := slices.IndexFunc(accounts, func(a *account) bool { return a.id == e.thread })
				l.ThreadKey, l.Project = threads.ThreadKey{TeamID: team, ChannelID: e.channel, ThreadTS: fmt.Sprintf("1.%06d", i)}, e.project
			}
			lines[key] = l
		}
		e.addTo(l)
		e.addTo(&report.Total)
	}
	if q.By == ledger.ByNothing {
		return report
	}
	for _, l := range lines {
		report.Lines = append(report.Lines, *l)
	}
	slices.SortFunc(report.Lines, func(a, b ledger.CostLine) int {
		byKey := cmp.Compare(a.Key, b.Key)
		if q.By == ledger.ByThread {
			byKey = cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), byKey) // as numbers
		}
		if q.By == ledger.ByDay || q.By == ledger.ByMonth {
			return byKey
		}
		return cmp.Or(cmp.Compare(b.MicroUSD, a.MicroUSD), byKey)
	})
	if q.Limit > 0 && len(report.Lines) > q.Limit {
		report.More = len(report.Lines) - q.Limit
		for _, l := range report.Lines[q.Limit:] {
			add(&report.Rest, l)
		}
		report.Lines = report.Lines[:q.Limit]
	}
	return report
}

func (e booking) addTo(l *ledger.CostLine) {
	x := ledger.CostLine{
		Turns: e.turns, Approved: e.approved, Entries: 1, Input: e.input, Output: e.output, CacheRead: e.read,
		CacheWrite5m: e.short, CacheWrite1h: e.long, WebSearches: e.webs, MicroUSD: e.microUSD,
	}
	if e.kind == "estimate" {
		x.EstimatedMicroUSD = e.microUSD
	}
	if e.contract != nil {
		x.ContractMicroUSD = *e.contract
	}
	add(l, x)
}

func add(l *ledger.CostLine, o ledger.CostLine) {
	l.Turns += o.Turns
	l.Approved += o.Approved
	l.Entries += o.Entries
	l.Input += o.Input
	l.Output += o.Output
	l.CacheRead += o.CacheRead
	l.CacheWrite5m += o.CacheWrite5m
	l.CacheWrite1h += o.CacheWrite1h
	l.WebSearches += o.WebSearches
	l.MicroUSD += o.MicroUSD
	l.EstimatedMicroUSD += o.EstimatedMicroUSD
	l.ContractMicroUSD += o.ContractMicroUSD
}

var (
	groups = []ledger.CostGroup{
		ledger.ByNothing, ledger.ByUser, ledger.ByChannel, ledger.ByProject, ledger.ByModel, ledger.ByThread, ledger.ByDay, ledger.ByMonth,
	}
	places = [][2]string{{"C1", "web"}, {"C1", "web"}, {"C1", "api"}, {"C2", "api"}, {"C3", "infra"}, {"c3", "Infra"}}
	users  = []string{"U1", "U2", "U3", "u1"}
	models = []string{"opus", "haiku", ""}
)

// zones are some with a summer time, one that begins it at midnight, so that a day
// lacks its first hour, and one that is not whole hours off.
func zones(t *testing.T) []*time.Location {
	t.Helper()
	var out []*time.Location
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Kiritimati"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, zone)
	}
	return out
}

// instants draws times that lie on the bounds of days and beside them more often
// than elsewhere.
func instants(zone *time.Location, days int) *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		at := time.Date(2024, time.January, rapid.IntRange(1, days).Draw(t, "day"), 0, 0, 0, 0, zone)
		if rapid.IntRange(0, 9).Draw(t, "month") == 0 {
			at = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, zone)
		}
		switch rapid.IntRange(0, 5).Draw(t, "where") {
		case 0:
			return at
		case 1:
			return at.Add(-time.Microsecond)
		case 2:
			return at.Add(time.Hour)
		}
		return at.Add(time.Duration(rapid.Int64Range(0, int64(26*time.Hour/time.Microsecond)).Draw(t, "µs")) * time.Microsecond)
	})
}

func entry(zone *time.Location, accounts []*account, days int) *rapid.Generator[booking] {
	at := instants(zone, days)
	return rapid.Custom(func(t *rapid.T) booking {
		a := rapid.SampledFrom(accounts).Draw(t, "account")
		n := func(name string) int64 { return rapid.Int64Range(0, 5).Draw(t, name) }
		e := booking{
			at: at.Draw(t, "at"), kind: rapid.SampledFrom([]string{"turn", "turn", "estimate", "correction"}).Draw(t, "kind"),
			user: rapid.SampledFrom(users).Draw(t, "user"), model: rapid.SampledFrom(models).Draw(t, "model"),
			channel: a.channel, project: a.project, thread: a.id, zone: zone,
			input: n("input"), output: n("output"), read: n("read"), short: n("5m"), long: n("1h"), webs: n("web"), microUSD: n("cost"),
			turns: rapid.Int64Range(0, 1).Draw(t, "turns"),
		}
		if e.kind == "correction" {
			e.microUSD = -e.microUSD
		}
		if e.turns == 1 {
			e.approved = n("approved")
		}
		if rapid.Bool().Draw(t, "contract") {
			c := n("contract")
			e.contract = &c
		}
		return e
	})
}

func query(zone *time.Location, team string, accounts []*account, days int) *rapid.Generator[ledger.CostQuery] {
	at := instants(zone, days)
	return rapid.Custom(func(t *rapid.T) ledger.CostQuery {
		q := ledger.CostQuery{TeamID: team, By: rapid.SampledFrom(groups).Draw(t, "by"), Limit: rapid.IntRange(0, 4).Draw(t, "limit")}
		if rapid.IntRange(0, 4).Draw(t, "bounded") > 0 {
			q.From = at.Draw(t, "from")
		}
		if rapid.IntRange(0, 4).Draw(t, "ends") > 0 {
			q.To = at.Draw(t, "to")
		}
		if rapid.Bool().Draw(t, "filtered") {
			some := func(name string, of ...string) []string {
				if rapid.IntRange(0, 2).Draw(t, name) > 0 {
					return nil
				}
				return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 1, 2, rapid.ID).Draw(t, name+"s")
			}
			q.Users, q.Channels = some("user", users...), some("channel", "C1", "C2", "c3")
			q.Projects, q.Models = some("project", "web", "api", "Infra"), some("model", models...)
			if rapid.IntRange(0, 3).Draw(t, "one thread") == 0 {
				q.ThreadID = rapid.SampledFrom(accounts).Draw(t, "thread").id
			}
		}
		return q
	})
}

// TestReportsAreWhatTheEntriesAddUpTo draws histories, zones and queries: the
// roll-ups, the ledger's rows and a plain loop over the entries agree on each.
func TestReportsAreWhatTheEntriesAddUpTo(t *testing.T) {
	t.Parallel()
	b, ctx, all := newBooks(t), t.Context(), zones(t)
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(all).Draw(t, "zone")
		days := rapid.SampledFrom([]int{2, 40, 400}).Draw(t, "days")
		team, accounts, err := b.open(ctx, places)
		if err != nil {
			t.Fatal(err)
		}
		var entries []booking
		for range 2 {
			more := rapid.SliceOfN(entry(zone, accounts, days), 0, 30).Draw(t, "entries")
			if err := b.book(ctx, team, accounts, more); err != nil {
				t.Fatal(err)
			}
			entries = append(entries, more...)
		}
		local := b.In(zone)
		for range 8 {
			q := query(zone, team, accounts, days).Draw(t, "query")
			got, err := local.Costs(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := local.RawCosts(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			want := tally(team, accounts, entries, q)
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("Costs(%+v) (-want +got):\n%s", q, diff)
			}
			if diff := gocmp.Diff(want, raw); diff != "" {
				t.Fatalf("RawCosts(%+v) (-want +got):\n%s", q, diff)
			}
		}
	})
	if got, err := b.VerifyRollups(ctx, ""); err != nil {
		t.Error(err)
	} else if got = slices.DeleteFunc(got, func(d ledger.RollupDifference) bool {
		// The histories count one turn many times, and no audit tells of them.
		return d.Check == "audit" || d.Check == "turns" && strings.Contains(d.Got, "counted")
	}); len(got) > 0 {
		t.Errorf("VerifyRollups: %+v", got)
	}
}

// TestAZoneChangeNeitherLosesNorDoubles: days stay as they were booked, and
// adjacent periods still hold every entry once.
func TestAZoneChangeNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	b, ctx, all := newBooks(t), t.Context(), zones(t)
	rapid.Check(t, func(t *rapid.T) {
		team, accounts, err := b.open(ctx, places[:2])
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			zone := rapid.SampledFrom(all).Draw(t, "booked in")
			if err := b.book(ctx, team, accounts, rapid.SliceOfN(entry(zone, accounts, 5), 1, 20).Draw(t, "entries")); err != nil {
				t.Fatal(err)
			}
		}
		zone := rapid.SampledFrom(all).Draw(t, "asked in")
		local := b.In(zone)
		whole, err := local.Costs(ctx, ledger.CostQuery{TeamID: team})
		if err != nil {
			t.Fatal(err)
		}
		bounds := rapid.SliceOfN(instants(zone, 5), 1, 4).Draw(t, "bounds")
		slices.SortFunc(bounds, time.Time.Compare)
		var sum ledger.CostLine
		for i := range len(bounds) + 1 {
			q := ledger.CostQuery{TeamID: team, By: rapid.SampledFrom(groups).Draw(t, "by")}
			if i > 0 {
				q.From = bounds[i-1]
			}
			if i < len(bounds) {
				q.To = bounds[i]
			}
			part, err := local.Costs(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := local.RawCosts(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(raw, part); diff != "" {
				t.Fatalf("from the rows and from the roll-ups, %+v:\n%s", q, diff)
			}
			add(&sum, part.Total)
		}
		if diff := gocmp.Diff(whole.Total, sum); diff != "" {
			t.Fatalf("the parts do not add up to the whole:\n%s", diff)
		}
	})
}

// TestWhatCannotBeAsked, and what has the empty answer.
func TestWhatCannotBeAsked(t *testing.T) {
	t.Parallel()
	b, ctx := newBooks(t), t.Context()
	noon := time.Date(2026, time.October, 31, 12, 0, 0, 0, time.UTC)
	team, accounts, err := b.open(ctx, places[:1])
	if err != nil {
		t.Fatal(err)
	}
	if err := b.book(ctx, team, accounts, []booking{{
		at: noon, kind: "turn", user: "U1", model: "opus", channel: "C1", project: "web", thread: accounts[0].id, microUSD: 5, turns: 1, zone: time.UTC,
	}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		q       ledger.CostQuery
		entries int64
		err     string
	}{
		{"no team", ledger.CostQuery{}, 0, "no team"},
		{"an unknown group", ledger.CostQuery{TeamID: team, By: "colour"}, 0, `no group "colour"`},
		{"another team", ledger.CostQuery{TeamID: "T0", By: ledger.ByUser}, 0, ""},
		{"ever", ledger.CostQuery{TeamID: team}, 1, ""},
		{"backwards", ledger.CostQuery{TeamID: team, From: noon.Add(time.Hour), To: noon}, 0, ""},
		{"no time", ledger.CostQuery{TeamID: team, From: noon, To: noon}, 0, ""},
		{"its microsecond", ledger.CostQuery{TeamID: team, From: noon, To: noon.Add(time.Microsecond)}, 1, ""},
		{"the one before", ledger.CostQuery{TeamID: team, From: noon.Add(-time.Microsecond), To: noon}, 0, ""},
		{"since the year 1", ledger.CostQuery{TeamID: team, From: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), To: noon.Add(1)}, 0, ""},
		{"until the year 20000", ledger.CostQuery{TeamID: team, From: noon, To: time.Date(20000, 1, 1, 5, 0, 0, 0, time.UTC)}, 1, ""},
		{"nobody by that name", ledger.CostQuery{TeamID: team, Users: []string{"'; DROP TABLE ledger; --"}}, 0, ""},
		{"a thread that is not there", ledger.CostQuery{TeamID: team, ThreadID: -1, By: ledger.ByThread, Limit: 5}, 0, ""},
		{"an old period of threads", ledger.CostQuery{TeamID: team, To: noon.AddDate(-1, 0, 0), By: ledger.ByThread, Limit: 5}, 0, ""},
	} {
		got, err := b.Costs(ctx, c.q)
		if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.err)
		}
		if got.Total.Entries != c.entries || (c.entries == 0 && (len(got.Lines) > 0 || got.More > 0 || got.Rest != ledger.CostLine{})) {
			t.Errorf("%s: %+v, want %d entries", c.name, got, c.entries)
		}
	}
}
