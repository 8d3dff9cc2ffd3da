package main

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"deckhand/internal/money"
	"deckhand/internal/store"
	"deckhand/internal/store/ledger"
	"deckhand/internal/upkeep"
)

const (
	// scrapeTimeout bounds what a scrape waits for the database.
	scrapeTimeout = 2 * time.Second
	// scrapeTTL is how long figures are cached.
	scrapeTTL = 10 * time.Second
)

// figures provides the metrics: a [store.Store].
type figures interface {
	Spend(ctx context.Context, team string) ([]ledger.Spend, error)
	Count(ctx context.Context, team string, c *store.Counter) (store.Totals, error)
	Waiting(ctx context.Context, team string) (store.Waiting, error)
	MeterState(ctx context.Context, team string) (ledger.MeterState, error)
}

// metrics exports to Prometheus the database's figures of a team, and this process's state. The database's figures
// are the same on every replica: take their maximum over instances, not their sum. No label holds a person or a
// channel.
//
// A scrape reads the database at most every scrapeTTL. What cannot be read in scrapeTimeout keeps its last value,
// and counts as an error. It starts no goroutine and is safe for concurrent use.
type metrics struct {
	from figures
	team string
	self replica
	log  *zap.Logger
	now  func() time.Time

	errors *prometheus.CounterVec

	mu      sync.Mutex
	read    time.Time // the last attempt
	counter store.Counter
	spend   map[spendKey]ledger.Spend // the highest value exported
	totals  *store.Totals             // nil until known
	waiting *store.Waiting
	meter   *ledger.MeterState
}

type spendKey struct{ project, model string }

var (
	spendDesc     = prometheus.NewDesc("deckhand_spend_usd_total", "US dollars spent by list price.", []string{"project", "model"}, nil)
	contractDesc  = prometheus.NewDesc("deckhand_contract_spend_usd_total", "US dollars spent by contract prices, of what has one.", []string{"project", "model"}, nil)
	turnsDesc     = prometheus.NewDesc("deckhand_turns_total", "Turns that have ended.", []string{"project", "state"}, nil)
	askedDesc     = prometheus.NewDesc("deckhand_approvals_total", "Tool calls, questions and plans that were decided, by rule or by people, or ended otherwise.", []string{"status", "via"}, nil)
	waitDesc      = prometheus.NewDesc("deckhand_approval_wait_seconds", "Time from a question to a person's decision.", nil, nil)
	pendingDesc   = prometheus.NewDesc("deckhand_approvals_pending", "Approvals that nobody has decided yet.", nil, nil)
	oldestDesc    = prometheus.NewDesc("deckhand_approvals_oldest_pending_seconds", "How long the oldest of them waits.", nil, nil)
	outboxDesc    = prometheus.NewDesc("deckhand_outbox_pending", "What people must see (final answers, endings of cards, marks, sentences) and Slack does not have yet.", nil, nil)
	outboxAgeDesc = prometheus.NewDesc("deckhand_outbox_oldest_seconds", "How long the oldest of it waits.", nil, nil)
	inboxDesc     = prometheus.NewDesc("deckhand_inbox_pending", "What Slack sent and nobody works on yet.", nil, nil)
	cliTotalDesc  = prometheus.NewDesc("deckhand_cli_cost_difference_turns", "Turns of the last hour of which Claude Code says something else than its calls have cost, by reason; missing is the one to look into, by bot report verify.", []string{"reason"}, nil)
	unpricedDesc  = prometheus.NewDesc("deckhand_calls_unpriced", "Calls whose model had no price and that bot report reprice has not mended.", nil, nil)
	jobsDesc      = prometheus.NewDesc("deckhand_jobs_running", "1 while this replica works on deadlines, reminders and digests, else 0.", nil, nil)
	noticesDesc   = prometheus.NewDesc("deckhand_notices_heard", "1 while this replica hears what others tell it, else 0: it polls then.", nil, nil)
	unbookedDesc  = prometheus.NewDesc("deckhand_meter_unbooked", "Calls of the model that have ended on this replica and wait to be written into the ledger.", nil, nil)
	liveDesc      = prometheus.NewDesc("deckhand_sessions_live", "Claude Code processes of this replica.", nil, nil)
	webBytesDesc  = prometheus.NewDesc("deckhand_web_bytes_total", "Bytes that sessions of this replica sent to the web by the gateway (up) and got (down).", []string{"project", "direction"}, nil)
	webDesc       = prometheus.NewDesc("deckhand_web_connections_total", "Connections to the web that sessions of this replica asked the gateway for.", []string{"project", "verdict"}, nil)
	foldersDesc   = prometheus.NewDesc("deckhand_workspaces", "Folders of threads in this replica's data folder, when they were counted last.", nil, nil)
	folderDesc    = prometheus.NewDesc("deckhand_workspaces_bytes", "What they have.", nil, nil)
	workDesc      = prometheus.NewDesc("deckhand_work_kept_bytes", "What the database keeps of what threads have made.", nil, nil)
	buildDesc     = prometheus.NewDesc("deckhand_build_info", "1, for the version that runs.", []string{"version", "goversion"}, nil)
)

// newMetrics returns the metrics of a team, and of this replica.
func newMetrics(from figures, team string, self replica, log *zap.Logger) *metrics {
	m := &metrics{
		from: from, team: team, self: self, log: log, now: time.Now, spend: map[spendKey]ledger.Spend{},
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "deckhand_scrape_errors_total", Help: "Figures that could not be read from the database in time; the last ones were told again.",
		}, []string{"figures"}),
	}
	for _, what := range []string{"spend", "totals", "waiting", "meter"} {
		m.errors.WithLabelValues(what)
	}
	return m
}

// handler serves /metrics from a registry of its own.
func (m *metrics) handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(m, m.errors, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// Describe implements [prometheus.Collector].
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{spendDesc, contractDesc, turnsDesc, askedDesc, waitDesc, pendingDesc, oldestDesc, inboxDesc, outboxDesc, outboxAgeDesc, cliTotalDesc, unpricedDesc, jobsDesc, noticesDesc, liveDesc, unbookedDesc, webBytesDesc, webDesc, foldersDesc, folderDesc, workDesc, buildDesc} {
		to <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.now(); m.read.IsZero() || now.Sub(m.read) >= scrapeTTL || now.Before(m.read) {
		m.read = now
		m.refresh()
	}
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	value(buildDesc, prometheus.GaugeValue, 1, versionString(), runtime.Version())
	value(liveDesc, prometheus.GaugeValue, float64(m.self.sessions()))
	value(unbookedDesc, prometheus.GaugeValue, float64(m.self.unbooked()))
	value(jobsDesc, prometheus.GaugeValue, upOrNot(m.self.jobs()))
	value(noticesDesc, prometheus.GaugeValue, upOrNot(m.self.notices()))
	folders, bytes := m.self.workspaces()
	value(foldersDesc, prometheus.GaugeValue, float64(folders))
	value(folderDesc, prometheus.GaugeValue, float64(bytes))
	for project, n := range m.self.web() {
		value(webBytesDesc, prometheus.CounterValue, float64(n.Up), project, "up")
		value(webBytesDesc, prometheus.CounterValue, float64(n.Down), project, "down")
		value(webDesc, prometheus.CounterValue, float64(n.Connections), project, "allowed")
		value(webDesc, prometheus.CounterValue, float64(n.Refused), project, "refused")
	}
	for k, s := range m.spend {
		value(spendDesc, prometheus.CounterValue, money.Dollars(s.MicroUSD), k.project, k.model)
		if s.ContractMicroUSD != 0 {
			value(contractDesc, prometheus.CounterValue, money.Dollars(s.ContractMicroUSD), k.project, k.model)
		}
	}
	if w := m.waiting; w != nil {
		value(pendingDesc, prometheus.GaugeValue, float64(w.Approvals))
		value(oldestDesc, prometheus.GaugeValue, w.Oldest.Seconds())
		value(inboxDesc, prometheus.GaugeValue, float64(w.Inbox))
		value(outboxDesc, prometheus.GaugeValue, float64(w.OutboxRows))
		value(workDesc, prometheus.GaugeValue, float64(w.WorkBytes))
		value(outboxAgeDesc, prometheus.GaugeValue, w.OldestRow.Seconds())
	}
	if s := m.meter; s != nil {
		value(unpricedDesc, prometheus.GaugeValue, float64(s.Unpriced))
		for why, n := range s.Differ {
			value(cliTotalDesc, prometheus.GaugeValue, float64(n), string(why))
		}
	}
	if m.totals == nil {
		return
	}
	for k, n := range m.totals.Turns {
		value(turnsDesc, prometheus.CounterValue, float64(n), k.Project, k.State)
	}
	for k, n := range m.totals.Approvals {
		value(askedDesc, prometheus.CounterValue, float64(n), k.Status, k.Via)
	}
	count, buckets := uint64(0), map[float64]uint64{}
	for i, n := range m.totals.Waits {
		count += uint64(n)
		if i < len(store.WaitBounds) {
			buckets[store.WaitBounds[i]] = count
		}
	}
	to <- prometheus.MustNewConstHistogram(waitDesc, count, m.totals.WaitSeconds, buckets)
}

func upOrNot(s upkeep.State) float64 {
	if s.Up {
		return 1
	}
	return 0
}

// refresh reads what it can in time, first what waits: it is fast, and matters most.
func (m *metrics) refresh() {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	failed := func(what string, err error) {
		m.errors.WithLabelValues(what).Inc()
		m.log.Warn("read "+what+" for /metrics", zap.Error(err))
	}
	if w, err := m.from.Waiting(ctx, m.team); err != nil {
		failed("waiting", err)
	} else {
		m.waiting = &w
	}
	if meter, err := m.from.MeterState(ctx, m.team); err != nil {
		failed("meter", err)
	} else {
		m.meter = &meter
	}
	if spend, err := m.from.Spend(ctx, m.team); err != nil {
		failed("spend", err)
	} else {
		for _, s := range spend {
			// A correction may lower a sum, but a counter must not fall: it stays until the sum has caught up.
			k := spendKey{s.Project, s.Model}
			was := m.spend[k]
			s.MicroUSD, s.ContractMicroUSD = max(s.MicroUSD, was.MicroUSD), max(s.ContractMicroUSD, was.ContractMicroUSD)
			m.spend[k] = s
		}
	}
	if totals, err := m.from.Count(ctx, m.team, &m.counter); err != nil {
		failed("totals", err)
	} else {
		m.totals = &totals
	}
}
