package threads_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// TestOverview: threads of a person and of places, by project and state, latest first.
func TestOverview(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // of a test
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	storetest.Asked(t, s, time.Hour) // of U1, in C1, project web
	exec(`INSERT INTO threads (team_id, channel_id, thread_ts, project, owner_id, title, active_at)
		SELECT 'T1', c, o || n, p, o, n, now() - i * interval '1 hour'
		FROM (VALUES (1, 'running', 'U1', 'C1', 'web'), (2, 'budget', 'U1', 'C2', 'api'), (3, 'queued', 'U2', 'C1', 'web'), (4, 'done', 'U2', 'C1', 'api'),
			(5, 'interrupted', 'U2', 'C2', 'web'), (6, 'failed', 'U2', 'C2', 'api'), (7, 'over_budget', 'U2', 'D2', 'web'), (8, 'new', 'U1', 'C1', 'web'),
			(9, 'gone on', 'U1', 'C1', 'web'), (10, 'deleted', 'U1', 'C1', 'web'), (999, 'old', 'U1', 'C1', 'web')) AS x (i, n, o, c, p)`)
	exec(`INSERT INTO sessions (id, thread_id) SELECT gen_random_uuid(), id FROM threads WHERE title <> ''`)
	exec(`INSERT INTO epochs (session_id, epoch, cli_version, baseline_micro_usd) SELECT s.id, 1, '1', 0 FROM sessions s JOIN threads t ON t.id = s.thread_id WHERE title <> ''`)
	exec(`INSERT INTO turns (thread_id, session_id, epoch, lease_epoch, requested_by, state, ended_at, over_budget)
		SELECT t.id, s.id, 1, 1, 'U1', CASE WHEN title IN ('running', 'interrupted', 'failed') AND g = 2 THEN title ELSE 'done' END,
			CASE WHEN title = 'running' AND g = 2 THEN NULL ELSE now() END, title = 'over_budget' AND g = 2 OR title = 'gone on' AND g = 1
		FROM threads t JOIN sessions s ON s.thread_id = t.id, generate_series(1, 2) g WHERE title NOT IN ('', 'new', 'deleted') ORDER BY g`)
	exec(`INSERT INTO inbox (event_id, kind, team_id, channel_id, ts, thread_ts, user_id, payload, state, done_at, thread_id, prompt_uuid)
		SELECT title, 'message', 'T1', channel_id, '9.' || id, thread_ts, 'U1', '{}', CASE title WHEN 'deleted' THEN 'done' ELSE 'accepted' END,
			CASE title WHEN 'deleted' THEN now() END, id, gen_random_uuid()
		FROM threads WHERE title IN ('budget', 'queued', 'deleted')`)
	exec(`INSERT INTO budget_notices (id, team_id, scope, key, period, period_start, limit_micro_usd, share, spent_micro_usd, thread_id)
		SELECT 'n', 'T1', 'project', 'api', 'day', now(), 1, 100, 1, id FROM threads WHERE title = 'budget'`)
	exec(`INSERT INTO budget_waits (inbox_id, thread_id, notice_id, until) SELECT id, thread_id, 'n', now() + interval '1 day' FROM inbox WHERE event_id IN ('budget', 'deleted')`)

	places := []threads.Place{{ChannelID: "C1", Project: "web"}, {ChannelID: "C2", Project: "api"}}
	for _, c := range []struct {
		filter threads.Filter
		want   []string
	}{
		{threads.Filter{Owner: "U1"}, []string{"waits ", "running running", "budget budget", "new new", "done gone on", "new deleted"}},
		{threads.Filter{Owner: "U2"}, []string{"queued queued", "done done", "interrupted interrupted", "failed failed", "over_budget over_budget"}},
		{threads.Filter{Owner: "U3", Places: places}, []string{"waits ", "running running", "budget budget", "queued queued", "failed failed", "new new", "done gone on", "new deleted"}},
		{threads.Filter{Owner: "U2", Places: places, Project: "api"}, []string{"budget budget", "done done", "failed failed"}},
		{threads.Filter{Owner: "U2", Places: places, States: []threads.State{threads.ThreadWaits, threads.ThreadSpent}}, []string{"waits ", "over_budget over_budget"}},
		{threads.Filter{Owner: "U1", Limit: 2, Offset: 1}, []string{"running running", "budget budget"}},
		{threads.Filter{Owner: "U3"}, nil},
	} {
		c.filter.TeamID, c.filter.Since = "T1", time.Now().AddDate(0, 0, -14)
		if c.filter.Limit == 0 {
			c.filter.Limit = 20
		}
		got, err := s.RecentThreads(t.Context(), c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var shown []string
		for _, th := range got {
			shown = append(shown, string(th.State)+" "+th.Title)
		}
		if diff := cmp.Diff(c.want, shown); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c.filter, diff)
		}
	}
	got, err := s.ThreadPlaces(t.Context(), "T1", "U2", time.Now().AddDate(0, 0, -14))
	if want := "[{ api} { web} {C1 api} {C1 web} {C2 api} {C2 web} {D2 web}]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("places: %v, %v, want %s", got, err, want)
	}
}
