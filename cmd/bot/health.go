package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"deckhand/internal/gateway/egress"
	"deckhand/internal/store/pg"
	"deckhand/internal/upkeep"
)

// healthTimeout bounds the wait for the database.
const healthTimeout = 3 * time.Second

// healthHandler serves /healthz, /readyz, and /metrics for Prometheus.
func (b *bot) healthHandler() http.Handler {
	h := b.checks()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", h.serveHealthz)
	mux.HandleFunc("GET /readyz", h.serveReadyz)
	mux.Handle("GET /metrics", newMetrics(b.store, b.app.TeamID(), h.replica, b.log.Named("metrics")).handler())
	return mux
}

// checks looks at a bot that is wired.
func (b *bot) checks() health {
	return health{
		database: b.store.Ping, slack: b.app.Connected,
		replica: replica{alive: b.supervisor.Alive, stopping: b.supervisor.Stopping, sessions: b.supervisor.Live, unbooked: b.supervisor.Unbooked, jobs: b.jobs.State, notices: b.store.Listening, web: b.web.Totals, workspaces: b.supervisor.Workspaces},
	}
}

// words describes the state for people: the status first, and a sentence for each problem.
func (s healthState) words() []string {
	out := []string{fmt.Sprintf("%s, version %s, live sessions here: %d", s.Status, s.Version, s.Sessions)}
	for _, p := range s.Problems {
		out = append(out, fmt.Sprintf("%s: %s. What helps: %s.", p.What, p.Means, strings.TrimRight(p.Cure, ".")))
	}
	return out
}

// replica is this process's own state.
type replica struct {
	alive         func() bool // it may run threads
	stopping      func() bool // it accepts no more work
	sessions      func() int
	unbooked      func() int // calls of the model
	jobs, notices func() upkeep.State
	web           func() map[string]egress.Total
	workspaces    func() (n int, bytes int64)
}

// health answers whether the process should stay alive, and whether people can use it.
type health struct {
	replica
	database func(context.Context) error
	slack    func() bool // connected
}

// healthState is the JSON of both answers.
type healthState struct {
	// Status is ready, degraded (people can work, but something is late or missing), draining (it stops, and lets
	// turns end), or not ready.
	Status   string          `json:"status"`
	Version  string          `json:"version"`
	Sessions int             `json:"sessions"`
	Database string          `json:"database"` // ok, unreachable
	Slack    string          `json:"slack"`    // connected, not connected
	Jobs     string          `json:"jobs"`     // starting, running, not running
	Notices  string          `json:"notices"`  // starting, heard, not heard
	Problems []healthProblem `json:"problems"`
}

type healthProblem struct {
	What  string     `json:"what"` // database, replica, slack, jobs, notices
	Means string     `json:"means"`
	Since *time.Time `json:"since,omitempty"`
	Error string     `json:"error,omitempty"`
	Cure  string     `json:"cure"`
}

// serveHealthz fails while the database is unreachable: an orchestrator may restart a container that cannot reach
// it for long.
func (h health) serveHealthz(w http.ResponseWriter, r *http.Request) {
	s := h.look(r.Context())
	code := http.StatusOK
	if s.Database != "ok" {
		code = http.StatusServiceUnavailable
	}
	s.write(w, code)
}

// serveReadyz fails while people cannot use the bot. They can while jobs do not run and notices do not arrive: the
// status and the metrics report these.
func (h health) serveReadyz(w http.ResponseWriter, r *http.Request) {
	s := h.look(r.Context())
	code := http.StatusOK
	if s.Status == "not ready" || s.Status == "draining" {
		code = http.StatusServiceUnavailable
	}
	s.write(w, code)
}

func (s healthState) write(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // the client has gone
}

func (h health) look(ctx context.Context) healthState {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	s := healthState{
		Status: "ready", Version: versionString(), Sessions: h.sessions(),
		Database: "ok", Slack: "connected", Problems: []healthProblem{},
	}
	if err := h.database(ctx); err != nil {
		s.Database, s.Status = "unreachable", "not ready"
		s.Problems = append(s.Problems, healthProblem{What: "database", Means: "nothing is decided or done", Error: err.Error(), Cure: pg.Cure(err)})
	}
	if !h.alive() && s.Database == "ok" && !h.stopping() {
		s.Status = "not ready"
		s.Problems = append(s.Problems, healthProblem{What: "replica", Means: "this replica runs no threads: it has not been able to tell the others that it lives", Cure: "it goes on by itself; if it does not, see the log"})
	}
	if !h.slack() {
		s.Slack, s.Status = "not connected", "not ready"
		s.Problems = append(s.Problems, healthProblem{What: "slack", Means: "nothing that people write or click arrives", Cure: "see the log, which says why; `bot doctor` checks the tokens"})
	}
	if h.stopping() {
		s.Status = "draining"
	}
	s.Jobs = s.part("jobs", h.jobs(), "running", "this replica ends no approval whose time is up, reminds nobody and sends no digest; another replica may")
	s.Notices = s.part("notices", h.notices(), "heard", "what other replicas tell this one, such as a decision, is found by polling: later")
	return s
}

// part adds a part's state and returns it in a word.
func (s *healthState) part(what string, is upkeep.State, up, means string) string {
	switch {
	case is.Up:
		return up
	case !is.Down():
		return "starting"
	}
	if s.Status == "ready" {
		s.Status = "degraded"
	}
	since := is.Since.UTC().Truncate(time.Second)
	s.Problems = append(s.Problems, healthProblem{What: what, Means: means, Since: &since, Error: is.Err.Error(), Cure: is.Cure})
	return "not " + up
}
