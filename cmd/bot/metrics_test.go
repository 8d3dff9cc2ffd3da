package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"deckhand/internal/gateway/egress"
	"deckhand/internal/store"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/storetest"
	"deckhand/internal/upkeep"
)

// someFigures are a database that can have trouble.
type someFigures struct {
	spend   []ledger.Spend
	totals  store.Totals
	waiting store.Waiting
	err     error
	hangs   bool
	asked   int
}

func (f *someFigures) trouble(ctx context.Context) error {
	f.asked++
	if f.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.err
}

func (f *someFigures) Spend(ctx context.Context, _ string) ([]ledger.Spend, error) {
	return f.spend, f.trouble(ctx)
}

func (f *someFigures) Count(ctx context.Context, _ string, _ *store.Counter) (store.Totals, error) {
	return f.totals, f.trouble(ctx)
}

func (f *someFigures) Waiting(ctx context.Context, _ string) (store.Waiting, error) {
	return f.waiting, f.trouble(ctx)
}

func (f *someFigures) MeterState(ctx context.Context, _ string) (ledger.MeterState, error) {
	return ledger.MeterState{Differ: map[ledger.Difference]int64{ledger.DifferenceCut: 2, ledger.DifferenceMissing: 0}, Unpriced: 5}, f.trouble(ctx)
}

func newFigures() *someFigures {
	waits := make([]int64, len(store.WaitBounds)+1)
	waits[0], waits[2], waits[len(waits)-1] = 2, 1, 1
	return &someFigures{
		spend: []ledger.Spend{{Project: "web", Model: "claude-opus-5", MicroUSD: 1_234_567, ContractMicroUSD: 1_000_000}, {Project: "api", Model: "claude-haiku-4-5", MicroUSD: 1}},
		totals: store.Totals{
			Turns:     map[store.TurnKey]int64{{Project: "web", State: "done"}: 3, {Project: "web", State: "failed"}: 1},
			Approvals: map[store.ApprovalKey]int64{{Status: "allowed", Via: "button"}: 4, {Status: "allowed", Via: "rule"}: 10},
			Waits:     waits, WaitSeconds: 100_004.5,
		},
		waiting: store.Waiting{WorkBytes: 8192, Approvals: 2, Oldest: 90 * time.Second, Inbox: 1, OutboxRows: 3, OldestRow: 4 * time.Second},
	}
}

// sevenLive is a replica with seven sessions that works on jobs and hears nothing.
var sevenLive = replica{
	sessions:   func() int { return 7 },
	unbooked:   func() int { return 2 },
	workspaces: func() (int, int64) { return 3, 4096 },
	jobs:       func() upkeep.State { return upkeep.State{Up: true} },
	notices:    func() upkeep.State { return upkeep.State{} },
	web: func() map[string]egress.Total {
		return map[string]egress.Total{"web": {Up: 10, Down: 20, Connections: 3, Refused: 1}}
	},
}

// scrape returns our lines of /metrics, without comments and without the version.
func scrape(t *testing.T, h http.Handler) []string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	var lines []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "deckhand_") && !strings.HasPrefix(line, "deckhand_build_info{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

const wantMetrics = `deckhand_approval_wait_seconds_bucket{le="1"} 2
deckhand_approval_wait_seconds_bucket{le="2"} 2
deckhand_approval_wait_seconds_bucket{le="5"} 3
deckhand_approval_wait_seconds_bucket{le="10"} 3
deckhand_approval_wait_seconds_bucket{le="30"} 3
deckhand_approval_wait_seconds_bucket{le="60"} 3
deckhand_approval_wait_seconds_bucket{le="120"} 3
deckhand_approval_wait_seconds_bucket{le="300"} 3
deckhand_approval_wait_seconds_bucket{le="600"} 3
deckhand_approval_wait_seconds_bucket{le="1800"} 3
deckhand_approval_wait_seconds_bucket{le="3600"} 3
deckhand_approval_wait_seconds_bucket{le="14400"} 3
deckhand_approval_wait_seconds_bucket{le="86400"} 3
deckhand_approval_wait_seconds_bucket{le="+Inf"} 4
deckhand_approval_wait_seconds_sum 100004.5
deckhand_approval_wait_seconds_count 4
deckhand_approvals_oldest_pending_seconds 90
deckhand_approvals_pending 2
deckhand_approvals_total{status="allowed",via="button"} 4
deckhand_approvals_total{status="allowed",via="rule"} 10
deckhand_calls_unpriced 5
deckhand_cli_cost_difference_turns{reason="cut"} 2
deckhand_cli_cost_difference_turns{reason="missing"} 0
deckhand_contract_spend_usd_total{model="claude-opus-5",project="web"} 1
deckhand_inbox_pending 1
deckhand_jobs_running 1
deckhand_meter_unbooked 2
deckhand_notices_heard 0
deckhand_outbox_oldest_seconds 4
deckhand_outbox_pending 3
deckhand_scrape_errors_total{figures="meter"} 0
deckhand_scrape_errors_total{figures="spend"} 0
deckhand_scrape_errors_total{figures="totals"} 0
deckhand_scrape_errors_total{figures="waiting"} 0
deckhand_sessions_live 7
deckhand_spend_usd_total{model="claude-haiku-4-5",project="api"} 1e-06
deckhand_spend_usd_total{model="claude-opus-5",project="web"} 1.234567
deckhand_turns_total{project="web",state="done"} 3
deckhand_turns_total{project="web",state="failed"} 1
deckhand_web_bytes_total{direction="down",project="web"} 20
deckhand_web_bytes_total{direction="up",project="web"} 10
deckhand_web_connections_total{project="web",verdict="allowed"} 3
deckhand_web_connections_total{project="web",verdict="refused"} 1
deckhand_work_kept_bytes 8192
deckhand_workspaces 3
deckhand_workspaces_bytes 4096`

func TestMetricsTellWhatTheDatabaseKnows(t *testing.T) {
	t.Parallel()
	m := newMetrics(newFigures(), "T1", sevenLive, zap.NewNop())
	h := m.handler()
	if diff := cmp.Diff(strings.Split(wantMetrics, "\n"), scrape(t, h)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if problems, err := testutil.CollectAndLint(m); err != nil || len(problems) > 0 {
		t.Errorf("Prometheus' own conventions: %+v, %v", problems, err)
	}
}

func TestScrapesShareFiguresForSomeSeconds(t *testing.T) {
	t.Parallel()
	f := newFigures()
	m := newMetrics(f, "T1", sevenLive, zap.NewNop())
	now := time.Now()
	m.now = func() time.Time { return now }
	h := m.handler()
	for range 5 {
		scrape(t, h)
	}
	if f.asked != 4 {
		t.Errorf("asked the database %d times", f.asked)
	}
	now = now.Add(scrapeTTL)
	scrape(t, h)
	if f.asked != 8 {
		t.Errorf("asked the database %d times", f.asked)
	}
}

func TestTroubleWithTheDatabaseLeavesTheLastFigures(t *testing.T) {
	t.Parallel()
	f := newFigures()
	m := newMetrics(f, "T1", sevenLive, zap.NewNop())
	now := time.Now()
	m.now = func() time.Time { return now }
	h := m.handler()
	before := scrape(t, h)
	f.err, f.spend, f.totals, f.waiting = errors.New("gone"), nil, store.Totals{}, store.Waiting{}
	now = now.Add(scrapeTTL)
	want := slices.Clone(before)
	for i, line := range want {
		if strings.HasPrefix(line, "deckhand_scrape_errors_total") {
			want[i] = strings.TrimSuffix(line, "0") + "1"
		}
	}
	scrape(t, h) // counts the errors; whether it tells them already is up to the registry's order
	if diff := cmp.Diff(want, scrape(t, h)); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestASpendThatIsCorrectedDoesNotFall(t *testing.T) {
	t.Parallel()
	f := newFigures()
	m := newMetrics(f, "T1", sevenLive, zap.NewNop())
	now := time.Now()
	m.now = func() time.Time { return now }
	h := m.handler()
	for _, step := range []struct {
		micro int64
		want  string
	}{{5_000_000, "5"}, {4_000_000, "5"}, {6_000_000, "6"}} {
		f.spend = []ledger.Spend{{Project: "web", Model: "m", MicroUSD: step.micro}}
		now = now.Add(scrapeTTL)
		if got := scrape(t, h); !slices.Contains(got, `deckhand_spend_usd_total{model="m",project="web"} `+step.want) {
			t.Errorf("after %d µ$: %q", step.micro, got)
		}
	}
}

func TestAScrapeIsBoundedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFigures()
		f.hangs = true
		m := newMetrics(f, "T1", sevenLive, zap.NewNop())
		began := time.Now()
		out := make(chan prometheus.Metric, 100)
		m.Collect(out)
		if took := time.Since(began); took != scrapeTimeout {
			t.Errorf("it took %s", took)
		}
		if n := len(out); n != 11 { // the version and the replica's own, which need no database
			t.Errorf("%d metrics without a database", n)
		}
		if n := testutil.ToFloat64(m.errors.WithLabelValues("spend")); n != 1 {
			t.Errorf("%v errors", n)
		}
	})
}

func TestMetricsOfAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	h := newMetrics(storetest.New(t), "T1", sevenLive, zap.NewNop()).handler()
	got := scrape(t, h)
	for _, want := range []string{"deckhand_approvals_pending 0", "deckhand_inbox_pending 0", "deckhand_approval_wait_seconds_count 0", `deckhand_scrape_errors_total{figures="totals"} 0`} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
}

// Every metric and label that the dashboard names is one that we export.
func TestTheDashboardNamesWhatIsExported(t *testing.T) {
	t.Parallel()
	m := newMetrics(newFigures(), "T1", sevenLive, zap.NewNop())
	exported := map[string]string{} // the labels of each
	descs := make(chan *prometheus.Desc, 100)
	m.Describe(descs)
	m.errors.Describe(descs)
	close(descs)
	shape := regexp.MustCompile(`fqName: "([a-z_]+)".*variableLabels: \{([a-z,]*)\}`)
	for d := range descs {
		parts := shape.FindStringSubmatch(d.String())
		if parts == nil {
			t.Fatalf("a description of another shape: %s", d)
		}
		exported[parts[1]] = parts[2]
	}
	raw, err := os.ReadFile("../../deploy/grafana/deckhand.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int    `json:"id"`
			Title   string `json:"title"`
			Targets []struct {
				Expr   string `json:"expr"`
				Legend string `json:"legendFormat"`
			} `json:"targets"`
		} `json:"panels"`
		Templating struct {
			List []struct {
				Definition string `json:"definition"`
			} `json:"list"`
		} `json:"templating"`
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	name, label := regexp.MustCompile(`deckhand_[a-z_]+`), regexp.MustCompile(`\{\{(\w+)\}\}|by \(([a-z, ]+)\)|(\w+)=~?"`)
	seen, ids := map[string]bool{}, map[int]bool{}
	check := func(where, expr, legend string) {
		var labels []string
		for _, n := range name.FindAllString(expr, -1) {
			family := strings.TrimSuffix(n, "_bucket")
			has, ok := exported[family]
			if !ok {
				t.Errorf("%s: nothing exports %s", where, n)
			}
			seen[family] = true
			labels = append(labels, strings.Split(has, ",")...)
		}
		for _, found := range label.FindAllStringSubmatch(expr+" "+legend, -1) {
			for l := range strings.SplitSeq(found[1]+found[2]+found[3], ", ") {
				if l != "instance" && l != "le" && !slices.Contains(labels, l) {
					t.Errorf("%s: no metric in %s has the label %s", where, expr, l)
				}
			}
		}
	}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 || ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q has no target, no title, or another's id", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			check(p.Title, target.Expr, target.Legend)
		}
	}
	for _, v := range dashboard.Templating.List {
		check("a variable", v.Definition, "")
	}
	for family := range exported {
		if !seen[family] {
			t.Errorf("%s is on no panel", family)
		}
	}
}
