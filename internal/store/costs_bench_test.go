package store_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"deckhand/internal/store"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// The benchmarks run on a generated ledger of DECKHAND_BENCH_ROWS entries (200,000), or on
// the one that ledgergen has put into the database at DECKHAND_BENCH_DATABASE_URL,
// which takes minutes to make for ten million and can be used many times. They add
// to it.
const (
	benchRowsEnv = "DECKHAND_BENCH_ROWS"
	benchURLEnv  = "DECKHAND_BENCH_DATABASE_URL"
)

var large struct {
	sync.Mutex
	url string
}

// largeLedger returns the address of the database with the generated ledger.
func largeLedger(b *testing.B) string {
	b.Helper()
	if url := os.Getenv(benchURLEnv); url != "" {
		return url
	}
	large.Lock()
	defer large.Unlock()
	if large.url != "" {
		return large.url
	}
	rows := 200_000
	if v := os.Getenv(benchRowsEnv); v != "" {
		var err error
		if rows, err = strconv.Atoi(v); err != nil {
			b.Fatalf("%s: %v", benchRowsEnv, err)
		}
	}
	url := storetest.LastingURL(b)
	began := time.Now()
	if err := storetest.GenerateLedger(b.Context(), url, rows, 1); err != nil {
		b.Fatal(err)
	}
	b.Logf("generated %d entries in %s", rows, time.Since(began).Round(time.Second))
	large.url = url
	return url
}

func openLarge(b *testing.B) (*store.Store, *pgxpool.Pool) {
	b.Helper()
	url := largeLedger(b)
	s := storetest.Open(b, url, store.Options{})
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return s, pool
}

func BenchmarkCosts(b *testing.B) {
	s, _ := openLarge(b)
	month := func(n int) time.Time { return storetest.LedgerTo.AddDate(0, n, 0) }
	odd := 9*time.Hour + 17*time.Minute
	for _, period := range []struct {
		name     string
		from, to time.Time
	}{
		{"month", month(-1), month(0)},
		{"30-odd-days", month(-1).AddDate(0, 0, -10).Add(odd), month(0).AddDate(0, 0, -10).Add(odd)},
		{"year", month(-12), month(0)},
		{"two-years", storetest.LedgerFrom, storetest.LedgerTo},
		{"two-odd-years", storetest.LedgerFrom.AddDate(0, 0, 12).Add(odd), storetest.LedgerTo.AddDate(0, 0, -12).Add(odd)},
	} {
		for _, by := range groups {
			q := ledger.CostQuery{TeamID: storetest.LedgerTeam, From: period.from, To: period.to, By: by}
			if by == ledger.ByThread {
				q.Limit = 20
			}
			name := string(by)
			if by == ledger.ByNothing {
				name = "total"
			}
			b.Run(period.name+"/"+name, func(b *testing.B) { report(b, s, q) })
		}
	}
	busiest := func(by ledger.CostGroup) []string {
		r, err := s.Costs(b.Context(), ledger.CostQuery{TeamID: storetest.LedgerTeam, By: by, Limit: 1})
		if err != nil || len(r.Lines) == 0 {
			b.Fatal("no costs", err)
		}
		return []string{r.Lines[0].Key}
	}
	for _, filter := range []struct {
		name string
		set  func(*ledger.CostQuery)
	}{
		{"of-a-user", func(q *ledger.CostQuery) { q.Users = busiest(ledger.ByUser) }},
		{"of-a-channel", func(q *ledger.CostQuery) { q.Channels = busiest(ledger.ByChannel) }},
		{"of-a-project", func(q *ledger.CostQuery) { q.Projects = busiest(ledger.ByProject) }},
	} {
		for _, by := range groups {
			q := ledger.CostQuery{TeamID: storetest.LedgerTeam, From: storetest.LedgerFrom, To: storetest.LedgerTo, By: by, Limit: 20}
			filter.set(&q)
			name := string(by)
			if by == ledger.ByNothing {
				name = "total"
			}
			b.Run("two-years-"+filter.name+"/"+name, func(b *testing.B) { report(b, s, q) })
		}
	}
}

func report(b *testing.B, s *store.Store, q ledger.CostQuery) {
	for b.Loop() {
		if _, err := s.Costs(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}

// latencies collects how long each of many operations took.
type latencies struct {
	sync.Mutex
	all []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.Lock()
	defer l.Unlock()
	l.all = append(l.all, d)
}

func (l *latencies) report(b *testing.B) {
	slices.Sort(l.all)
	at := func(share float64) float64 {
		return float64(l.all[min(len(l.all)-1, int(share*float64(len(l.all))))].Microseconds()) / 1000
	}
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}

// benchThread is a thread, a turn and an epoch that entries are booked on.
type benchThread struct {
	lease   threads.Lease
	turn    int64
	session string
	user    string
}

func newBenchThread(b *testing.B, pool *pgxpool.Pool, n int) *benchThread {
	b.Helper()
	t := &benchThread{session: uuid.NewString(), user: fmt.Sprintf("U%04d", n%7+1), lease: threads.Lease{Owner: "bench", Epoch: 1}}
	for _, q := range []struct {
		sql  string
		args []any
		into any
	}{
		{
			`INSERT INTO threads (team_id, channel_id, thread_ts, project, owner_id, lease_owner, lease_epoch)
			VALUES ($1, $2, $3, 'web', $4, 'bench', 1) RETURNING id`,
			[]any{storetest.LedgerTeam, fmt.Sprintf("C%03d", n%3+1), uuid.NewString(), t.user},
			&t.lease.ThreadID,
		},
		{`INSERT INTO sessions (id, thread_id, started) VALUES ($1, $2, true) RETURNING thread_id`, []any{&t.session, &t.lease.ThreadID}, &t.lease.ThreadID},
		{`INSERT INTO epochs (session_id, epoch, cli_version, baseline_micro_usd) VALUES ($1, 1, '2.1.329', 0) RETURNING session_id::text`, []any{&t.session}, &t.session},
		{
			`INSERT INTO turns (thread_id, session_id, epoch, lease_epoch, requested_by) VALUES ($1, $2, 1, 1, $3) RETURNING id`,
			[]any{&t.lease.ThreadID, &t.session, t.user},
			&t.turn,
		},
	} {
		if err := pool.QueryRow(b.Context(), q.sql, q.args...).Scan(q.into); err != nil {
			b.Fatal(err)
		}
	}
	return t
}

// BenchmarkInsert is the statement alone that writes two entries with their
// roll-ups, and its commit.
func BenchmarkInsert(b *testing.B) {
	_, pool := openLarge(b)
	t, l := newBenchThread(b, pool, 0), &latencies{}
	conn, err := pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	for b.Loop() {
		began := time.Now()
		if _, err := conn.Exec(b.Context(), `
			INSERT INTO ledger (booked_on, kind, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id,
				cli_version, model, input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens,
				web_searches, micro_usd, total_before, total_after)
			SELECT current_date, 'estimate', team_id, channel_id, id, project, owner_id, $2, 1, $3, '2.1.329', model, 10, 20, 0, 0, 0, 0, 7, 0, 7
			FROM threads, (VALUES ('claude-opus-5-5'), ('claude-haiku-5-5')) m (model) WHERE id = $1`, t.lease.ThreadID, t.session, t.turn); err != nil {
			b.Fatal(err)
		}
		l.add(time.Since(began))
	}
	l.report(b)
	if _, err := conn.Exec(b.Context(), `
		UPDATE turns SET cost_micro_usd = (SELECT sum(micro_usd) FROM ledger WHERE turn_id = turns.id) WHERE id = $1`, t.turn); err != nil {
		b.Fatal(err)
	}
}
