package publish_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"

	workspace "deckhand/internal/playground/slack"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/approvals"
)

var update = flag.Bool("update", false, "write the table of refusals anew")

// refusing is a workspace that refuses what it is told to, and counts it.
type refusing struct {
	t     *testing.T
	api   *slackgo.Client
	url   string
	tries int // calls that the last page took
	seq   int // of the last call that was counted
}

func newRefusing(t *testing.T) *refusing {
	t.Helper()
	srv, err := workspace.New(workspace.Options{NoRateLimits: true})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv.Handler())
	r := &refusing{t: t, url: web.URL}
	client := web.Client()
	r.api = slackgo.New(srv.BotToken(), slackgo.OptionAPIURL(web.URL+"/api/"), slackgo.OptionAppLevelToken(srv.AppToken()), slackgo.OptionHTTPClient(client))
	t.Cleanup(func() {
		client.CloseIdleConnections()
		web.Close()
		if err := srv.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return r
}

// control asks the control API; body nil is a GET, "" a DELETE.
func (r *refusing) control(path string, body any) map[string]any {
	r.t.Helper()
	method, sent := http.MethodPost, []byte(nil)
	switch body {
	case nil:
		method = http.MethodGet
	case "":
		method = http.MethodDelete
	default:
		var err error
		if sent, err = json.Marshal(body); err != nil {
			r.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(r.t.Context()), method, r.url+"/_control/"+path, bytes.NewReader(sent))
	if err != nil {
		r.t.Error(err)
		return nil
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Error(err)
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	var out map[string]any
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != http.StatusOK {
		r.t.Errorf("%s: %s, %v, %v", path, res.Status, out, err)
	}
	return out
}

// seen is what people see at a place.
type seen struct {
	Text   string           `json:"text"`
	Blocks []map[string]any `json:"blocks"`
}

// shownAt sends a page to a place as the app does, and returns what people see there; nil
// is nothing.
func (r *refusing) shownAt(at publish.Place, page render.Page, trigger func() string) *seen {
	r.t.Helper()
	s := publish.New(r.api, publish.Options{})
	raw := any(nil)
	r.tried()
	switch at {
	case publish.InMessage:
		ts := ""
		_ = s.Reduced(at, "x", page, func(p render.Page) (err error) {
			_, ts, err = r.api.PostMessageContext(r.t.Context(), workspace.ChannelEngineering, p.PostOptions()...)
			return err
		})
		raw = r.message(ts, "")
	case publish.InEphemeral:
		ts := ""
		_ = s.Reduced(at, "x", page, func(p render.Page) (err error) {
			ts, err = r.api.PostEphemeralContext(r.t.Context(), workspace.ChannelEngineering, workspace.UserAda, p.MsgOptions()...)
			return err
		})
		raw = r.message(ts, "&user="+workspace.UserAda)
	case publish.InModal:
		id := trigger()
		_ = s.Reduced(at, "x", page, func(p render.Page) error {
			v, err := r.api.OpenViewContext(r.t.Context(), id, slackgo.ModalViewRequest{
				Type: slackgo.VTModal, Title: slackgo.NewTextBlockObject("plain_text", "x", false, false),
				Submit: slackgo.NewTextBlockObject("plain_text", "x", false, false), Blocks: slackgo.Blocks{BlockSet: p.Blocks},
			})
			if err == nil {
				raw = v.View
			}
			return err
		})
	case publish.InHome:
		send := func(p render.Page) error {
			v, err := r.api.PublishViewContext(r.t.Context(), slackgo.PublishViewContextRequest{
				UserID: workspace.UserAda, View: slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab, Blocks: slackgo.Blocks{BlockSet: p.Blocks}},
			})
			if err == nil {
				raw = v.View
			}
			return err
		}
		err := s.Reduced(at, "x", page, send)
		if publish.Refuses(err) {
			_ = send(render.SmallHome())
		}
	}
	r.tries = r.tried()
	if raw == nil {
		return nil
	}
	b, err := json.Marshal(raw)
	if err != nil {
		r.t.Fatal(err)
	}
	var out seen
	if err := json.Unmarshal(b, &out); err != nil {
		r.t.Fatal(err)
	}
	return &out
}

// message is a message as it stands; nil if there is none.
func (r *refusing) message(ts, query string) any {
	for _, m := range r.control("messages?channel="+workspace.ChannelEngineering+query, nil)["messages"].([]any) {
		if m.(map[string]any)["ts"] == ts {
			return m
		}
	}
	return nil
}

// tried counts the calls that showed something since it was asked last.
func (r *refusing) tried() (n int) {
	got := r.control(fmt.Sprintf("calls?since=%d", r.seq), nil)
	r.seq = int(got["seq"].(float64))
	for _, c := range got["calls"].([]any) {
		if m := c.(map[string]any)["method"].(string); strings.HasPrefix(m, "chat.") || strings.HasPrefix(m, "views.") {
			n++
		}
	}
	return n
}

// triggers are made by a person's slash commands; the returned function makes one.
func (r *refusing) triggers() func() string {
	r.t.Helper()
	_, url, err := r.api.StartSocketModeContext(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	conn, res, err := websocket.DefaultDialer.DialContext(r.t.Context(), url, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = res.Body.Close()
	r.t.Cleanup(func() { _ = conn.Close() })
	ids := make(chan string, 100)
	go func() {
		defer close(ids)
		for {
			var e struct {
				ID      string `json:"envelope_id"`
				Payload struct {
					Trigger string `json:"trigger_id"`
				} `json:"payload"`
			}
			if conn.ReadJSON(&e) != nil {
				return
			}
			if e.ID != "" {
				_ = conn.WriteJSON(map[string]string{"envelope_id": e.ID})
			}
			if e.Payload.Trigger != "" {
				ids <- e.Payload.Trigger
			}
		}
	}()
	var said sync.WaitGroup
	r.t.Cleanup(said.Wait)
	return func() string {
		said.Go(func() { // it is answered when all that may come of it has come
			r.control("slash", map[string]string{"user": workspace.UserAda, "channel": workspace.ChannelEngineering, "text": "help"})
		})
		return <-ids
	}
}

// outline is what people see of a page, in a line: the types of its blocks, or its text.
func (s *seen) outline(p render.Page) string {
	if s == nil {
		return "nothing"
	}
	said, what := s.Text, "text"
	if strings.HasPrefix(said, "Slack did not accept") {
		what = "a sentence"
	}
	if len(s.Blocks) > 0 {
		var kinds []string
		for _, b := range s.Blocks {
			kinds = append(kinds, b["type"].(string))
			if text, ok := b["text"].(map[string]any); ok {
				said += "\n" + fmt.Sprint(text["text"])
			}
		}
		slices.Sort(kinds)
		what = strings.Join(slices.Compact(kinds), ", ")
	}
	if p.Instead != "" && strings.Contains(said, p.Instead) {
		what += "; “" + strings.Join(strings.Fields(p.Instead), " ") + "”"
	}
	return what
}

// goldenPage is a page or view that package render's tests keep.
func goldenPage(t *testing.T, name string) render.Page {
	t.Helper()
	raw, err := os.ReadFile("../render/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	type kept struct {
		Text   string         `json:"Text"`
		Blocks slackgo.Blocks `json:"blocks"`
	}
	var one kept
	if raw = bytes.TrimSpace(raw); raw[0] == '[' {
		var list []kept
		if err = json.Unmarshal(raw, &list); err == nil {
			one = list[len(list)-1]
		}
	} else {
		err = json.Unmarshal(raw, &one)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return render.Page{Text: one.Text, Blocks: one.Blocks.BlockSet}
}

func request(id string, kind approvals.Kind, tool, input string) approvals.Approval {
	at := time.Date(2026, 3, 4, 14, 2, 11, 0, time.UTC)
	return approvals.Approval{
		ID: id, Input: json.RawMessage(input),
		Request: approvals.Request{Kind: kind, ToolName: tool, CreatedAt: at, ExpiresAt: at.Add(time.Hour)},
		Outcome: approvals.Outcome{Status: approvals.Pending},
		Origin:  approvals.Origin{Project: "app", Workspace: "/srv/work/app", RequestedBy: workspace.UserLinus},
	}
}

func card(list ...approvals.Approval) render.Page { return render.Card(list, render.Options{}) }

// instead is a page with what to write instead of pressing its buttons.
func instead(p render.Page, words string) render.Page {
	p.Instead = words
	return p
}

const tableFile = "../../../docs/slack.md"

var tableMu sync.Mutex // of that file

// TestWhatPeopleSeeOfRefusals has the workspace refuse every type of block that a page has,
// at its place, then all of them, then texts too. The table of docs/slack.md is what people
// saw; nothing is ever dropped.
func TestWhatPeopleSeeOfRefusals(t *testing.T) {
	r := newRefusing(t)
	trigger := r.triggers()
	bash := request("7k2qxwerty0123456789", approvals.Tool, "Bash", `{"command":"go test ./...","description":"Run the tests"}`)
	write := request("8m3rawerty0123456789", approvals.Tool, "Write", `{"file_path":"/srv/work/app/a.txt","content":"one\ntwo\n"}`)
	question := request("7k2qxwerty0123456789", approvals.Question, "AskUserQuestion", `{"questions":[{"question":"Which library?","header":"Library","multiSelect":false,"options":[{"label":"pgx","description":"Fast"},{"label":"sql","description":"Standard"}]}]}`)
	plan := request("7k2qxwerty0123456789", approvals.Plan, "ExitPlanMode", `{"plan":"1. Read the code\n2. Fix *Add*\n"}`)
	var table strings.Builder
	table.WriteString("| what | refused | tries | people see |\n|---|---|---|---|\n")
	for _, c := range []struct {
		what string
		at   publish.Place
		page render.Page
	}{
		{"a card", publish.InMessage, card(bash)},
		{"a question", publish.InMessage, card(question)},
		{"a card of several", publish.InMessage, card(bash, write)},
		{"a plan's card", publish.InMessage, card(plan)},
		{"a turn", publish.InMessage, instead(goldenPage(t, "turn/waiting"), "To stop it, write `stop`.")},
		{"a report on costs", publish.InMessage, goldenPage(t, "view/costs_by_day")},
		{"an answer to one person", publish.InEphemeral, goldenPage(t, "view/grants")},
		{"a form", publish.InModal, goldenPage(t, "modal/grant")},
		{"the whole of a request", publish.InModal, goldenPage(t, "modal/input_long")},
		{"the home tab", publish.InHome, goldenPage(t, "view/home")},
	} {
		for _, kinds := range refusedKinds(c.page, c.at) {
			for _, kind := range kinds {
				r.control("refuse", map[string]string{"block": kind, "place": string(c.at)})
			}
			got := r.shownAt(c.at, c.page, trigger)
			saw := got.outline(c.page)
			switch {
			case got != nil:
			case c.at == publish.InModal:
				saw = "no window; the person who clicked is told what to write instead"
			case c.at == publish.InHome && kinds[0] == "*":
				saw = "the tab as it was before"
			default:
				t.Errorf("%s where %q is refused: nobody sees anything", c.what, kinds)
			}
			if wants := c.page.Instead; wants != "" && got != nil && !hasType(got, "actions") && !strings.Contains(fmt.Sprint(*got), wants) {
				t.Errorf("%s where %q is refused has no buttons, and does not say what to write: %v", c.what, kinds, *got)
			}
			if r.tries > 6 {
				t.Errorf("%s where %q is refused took %d tries", c.what, kinds, r.tries)
			}
			fmt.Fprintf(&table, "| %s | %s | %d | %s |\n", c.what, strings.Join(kinds, " and "), r.tries, saw)
			r.control("refuse", "")
		}
	}
	compareTable(t, "-run Refusals", table.String())
}

func hasType(s *seen, kind string) bool {
	return slices.ContainsFunc(s.Blocks, func(b map[string]any) bool { return b["type"] == kind })
}

// refusedKinds are what a page's place refuses, one after the other.
func refusedKinds(p render.Page, at publish.Place) (out [][]string) {
	var kinds []string
	for _, b := range p.Blocks {
		kinds = append(kinds, string(b.BlockType()))
	}
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		out = append(out, []string{kind})
	}
	out = append(out, []string{"*"})
	if at == publish.InMessage || at == publish.InEphemeral {
		out = append(out, []string{"*", "text"})
	}
	return out
}

// compareTable compares the table with the one in the documentation.
func compareTable(t *testing.T, by, table string) {
	t.Helper()
	tableMu.Lock()
	defer tableMu.Unlock()
	raw, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- The table is written by go test ./internal/slackui/publish "+by+" -update -->\n", "<!-- End of the table -->"
	head, rest, ok := strings.Cut(string(raw), begin)
	was, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", tableFile)
	}
	if *update {
		if err := os.WriteFile(tableFile, []byte(head+begin+table+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(was, table); diff != "" {
		t.Errorf("what people see has changed (-want +got); if that is right, run the test with -update\n%s", diff)
	}
}
