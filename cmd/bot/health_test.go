package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/upkeep"
)

// TestWhatHealthSays, in each state: two status codes, the words, and whom they concern.
func TestWhatHealthSays(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, time.November, 22, 2, 0, 0, 0, time.UTC)
	up := upkeep.State{Up: true, Since: since}
	down := upkeep.State{Since: since.Add(time.Millisecond), Err: errors.New("no river_job"), Cure: "run `bot migrate up`"}
	for _, tt := range []struct {
		name          string
		database      error
		slack         bool
		dead, ending  bool
		jobs, notices upkeep.State
		healthz       int
		readyz        int
		want          healthState // without Means
	}{
		{
			name: "all is well", slack: true, jobs: up, notices: up, healthz: 200, readyz: 200,
			want: healthState{Status: "ready", Database: "ok", Slack: "connected", Jobs: "running", Notices: "heard"},
		},
		{
			name: "just started", slack: true, healthz: 200, readyz: 200,
			want: healthState{Status: "ready", Database: "ok", Slack: "connected", Jobs: "starting", Notices: "starting"},
		},
		{
			name: "jobs do not run", slack: true, jobs: down, notices: up, healthz: 200, readyz: 200,
			want: healthState{Status: "degraded", Database: "ok", Slack: "connected", Jobs: "not running", Notices: "heard", Problems: []healthProblem{
				{What: "jobs", Since: &since, Error: "no river_job", Cure: "run `bot migrate up`"},
			}},
		},
		{
			name: "notices are not heard", slack: true, jobs: up, notices: down, healthz: 200, readyz: 200,
			want: healthState{Status: "degraded", Database: "ok", Slack: "connected", Jobs: "running", Notices: "not heard", Problems: []healthProblem{
				{What: "notices", Since: &since, Error: "no river_job", Cure: "run `bot migrate up`"},
			}},
		},
		{
			name: "it is about to stop", slack: true, ending: true, jobs: up, notices: up, healthz: 200, readyz: 503,
			want: healthState{Status: "draining", Database: "ok", Slack: "connected", Jobs: "running", Notices: "heard"},
		},
		{
			name: "it was taken for dead", slack: true, dead: true, jobs: up, notices: up, healthz: 200, readyz: 503,
			want: healthState{Status: "not ready", Database: "ok", Slack: "connected", Jobs: "running", Notices: "heard", Problems: []healthProblem{
				{What: "replica", Cure: "it goes on by itself; if it does not, see the log"},
			}},
		},
		{
			name: "Slack does not reach us", jobs: up, notices: up, healthz: 200, readyz: 503,
			want: healthState{Status: "not ready", Database: "ok", Slack: "not connected", Jobs: "running", Notices: "heard", Problems: []healthProblem{
				{What: "slack", Cure: "see the log, which says why; `bot doctor` checks the tokens"},
			}},
		},
		{
			name: "the database is away", slack: true, database: context.DeadlineExceeded, jobs: down, notices: down, healthz: 503, readyz: 503,
			want: healthState{Status: "not ready", Database: "unreachable", Slack: "connected", Jobs: "not running", Notices: "not heard", Problems: []healthProblem{
				{What: "database", Error: "context deadline exceeded", Cure: "see whether PostgreSQL runs, and whether the network to DATABASE_URL holds"},
				{What: "jobs", Since: &since, Error: "no river_job", Cure: "run `bot migrate up`"},
				{What: "notices", Since: &since, Error: "no river_job", Cure: "run `bot migrate up`"},
			}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := health{
				database: func(context.Context) error { return tt.database }, slack: func() bool { return tt.slack },
				replica: replica{
					alive: func() bool { return !tt.dead }, stopping: func() bool { return tt.ending },
					sessions: func() int { return 2 }, unbooked: func() int { return 0 }, jobs: func() upkeep.State { return tt.jobs }, notices: func() upkeep.State { return tt.notices },
				},
			}
			tt.want.Version, tt.want.Sessions = versionString(), 2
			if tt.want.Problems == nil {
				tt.want.Problems = []healthProblem{}
			}
			for path, code := range map[string]int{"/healthz": tt.healthz, "/readyz": tt.readyz} {
				w := httptest.NewRecorder()
				serve := map[string]http.HandlerFunc{"/healthz": h.serveHealthz, "/readyz": h.serveReadyz}[path]
				serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
				if w.Code != code {
					t.Errorf("%s: %d, want %d", path, w.Code, code)
				}
				var got healthState
				if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
					t.Fatal(err)
				}
				for i := range got.Problems {
					if got.Problems[i].Means == "" {
						t.Errorf("%s: nobody is told what it means that %+v", path, got.Problems[i])
					}
					got.Problems[i].Means = ""
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}
