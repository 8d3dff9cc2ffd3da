package slackui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/playground/slack"
	"deckhand/internal/slackui/publish"
)

// dialled is a workspace of the playground that refuses some things.
func dialled(t *testing.T, o slack.Options, refuses ...map[string]any) (*Workspace, *httptest.Server) {
	t.Helper()
	o.NoRateLimits = true
	s, err := slack.New(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		srv.Close()
		_ = s.Close(context.WithoutCancel(t.Context()))
	})
	for _, x := range refuses {
		body, _ := json.Marshal(x)
		control(t, srv, http.MethodPost, "refuse", string(body), &struct{}{})
	}
	w, err := Dial(t.Context(), Tokens{Bot: s.BotToken(), App: s.AppToken(), APIURL: srv.URL + "/api/"})
	if err != nil {
		t.Fatal(err)
	}
	return w, srv
}

// control calls the playground's control API.
func control(t *testing.T, srv *httptest.Server, method, what, body string, out any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+"/_control/"+what, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is read whole
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", what, body, resp.Status)
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		t.Fatal(err)
	}
}

// What a workspace has is told by 5 calls that nobody sees, which are made once.
func TestFeatures(t *testing.T) {
	t.Parallel()
	const all = "titles of threads and Slack's Stop button, status lines, suggestions of what to say, streams with tasks, files that people attach, files from Deckhand"
	for name, tt := range map[string]struct {
		o       slack.Options
		refuses []map[string]any
		want    string
		cure    string
	}{
		"all": {want: "Slack's features: available here: " + all + " · known after the first use: Markdown, tables, charts, feedback buttons"},
		"an old one": {
			refuses: []map[string]any{{"method": "agents.sessions.setStatus"}, {"method": "chat.startStream", "code": "feature_not_enabled"}, {"block": "table"}, {"block": "context_actions", "place": "message"}},
			want: "available here: status lines, suggestions of what to say, files that people attach, files from Deckhand, Markdown, charts · " +
				"not available here: titles of threads and Slack's Stop button (unknown_method), so threads have no title, and the Stop button is on their message; " +
				"streams with tasks (feature_not_enabled), so messages that grow are edited, which shows less often; " +
				"tables (invalid_blocks), so tables are shown as text; feedback buttons (invalid_blocks), so answers are not rated",
		},
		"no agent": {
			refuses: []map[string]any{{"method": "agents.sessions.setStatus", "code": "not_authorized"}},
			want:    "not available here: titles of threads and Slack's Stop button (not_authorized), so ", cure: declareAgent,
		},
		"an app without scopes": {
			o:    slack.Options{Scopes: []string{"chat:write", "files:write"}},
			want: "not available here: files that people attach (missing_scope), so files that people attach are not read", cure: "add the scope files:read to the app, and install it again",
		},
		"in trouble": {
			refuses: []map[string]any{{"method": "agents.sessions.setStatus", "code": "internal_error"}},
			want:    "known after the first use: titles of threads and Slack's Stop button",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, srv := dialled(t, tt.o, tt.refuses...)
			before := callsOf(t, srv)
			found := w.Features(t.Context())
			if got := FeaturesLine(found); !strings.Contains(got, tt.want) {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
			if n := callsOf(t, srv) - before; n != 5 {
				t.Errorf("%d calls", n)
			}
			again := 0
			if name == "in trouble" {
				again = 5
			}
			before = callsOf(t, srv)
			w.Features(t.Context())
			if n := callsOf(t, srv) - before; n != again {
				t.Errorf("%d calls the second time", n)
			}
			var cures []string
			for _, f := range found {
				if f.Cure != "" {
					cures = append(cures, f.Cure)
				}
			}
			if got := strings.Join(cures, "; "); got != tt.cure {
				t.Errorf("cure %q, want %q", got, tt.cure)
			}
		})
	}
}

// callsOf is how many calls of the Web API the playground got, and that nothing was posted.
func callsOf(t *testing.T, srv *httptest.Server) int {
	t.Helper()
	var out struct {
		Calls []struct {
			Method string         `json:"method"`
			Answer map[string]any `json:"answer"`
		} `json:"calls"`
	}
	control(t, srv, http.MethodGet, "calls", "", &out)
	for _, c := range out.Calls {
		if c.Method != "auth.test" && c.Method != "apps.connections.open" && c.Answer["ok"] != false {
			t.Errorf("%s was answered %s: somebody may have seen it", c.Method, fmt.Sprint(c.Answer))
		}
	}
	return len(out.Calls)
}

// What is known to be missing is left alone from the first turn on.
func TestWhatIsMissingIsNotAskedFor(t *testing.T) {
	t.Parallel()
	atDesk(t, func(d *desk) {
		app := d.bot.app
		app.features = func(context.Context) []Feature {
			return []Feature{
				{Name: "a", State: FeatureMissing, method: publish.SetSession},
				{Name: "b", State: FeatureMissing, method: publish.SetStatus},
				{Name: "c", State: FeatureMissing, method: publish.StartStream},
				{Name: "d", State: FeatureMissing, block: "context_actions"},
				{Name: "e", State: FeatureUntold, method: publish.SetPrompts},
			}
		}
		app.learnFeatures(context.Background())
		d.add(reading("auth.go"))
		d.rest()
		d.say("It is.")
		d.rest()
		d.end(agent.TurnDone, "")
		d.rest()
		for _, method := range []string{"agents.sessions.setStatus", "assistant.threads.setStatus", "chat.startStream"} {
			if n := d.slack.count(method); n != 0 {
				t.Errorf("%d calls of %s", n, method)
			}
		}
		for _, m := range d.slack.inThread(deskThread) {
			if strings.Contains(m.blocks, "context_actions") {
				t.Errorf("the answer has feedback buttons: %s", m.blocks)
			}
		}
		for _, p := range d.wrong() {
			t.Error(p)
		}
	})
}
