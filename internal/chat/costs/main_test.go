package costs

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/playground/slack"
	"deckhand/internal/report"
	"deckhand/internal/slackui/costs"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger is a ledger with the same lines in every period, and the jobs that were
// scheduled.
type entries struct {
	lines map[ledger.CostGroup][]ledger.CostLine
	zone  *time.Location // or UTC

	mu    sync.Mutex
	asked []ledger.CostQuery
	jobs  []pg.Job
}

func (*entries) MeterNotes(context.Context, ledger.CostQuery) (ledger.MeterNotes, error) {
	return ledger.MeterNotes{}, nil
}

func (l *entries) Costs(_ context.Context, q ledger.CostQuery) (ledger.CostReport, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, q)
	r := ledger.CostReport{Lines: slices.Clone(l.lines[q.By])}
	for _, line := range l.lines[ledger.ByChannel] {
		r.Total.MicroUSD += line.MicroUSD
		r.Total.Turns += line.Turns
		r.Total.Entries += line.Entries
	}
	return r, nil
}

func (l *entries) Schedule(_ context.Context, jobs ...pg.Job) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs = append(l.jobs, jobs...)
	return nil
}

func (l *entries) ThreadByKey(_ context.Context, k threads.ThreadKey) (threads.Thread, error) {
	return threads.Thread{Title: "what is done in " + k.ChannelID}, nil
}

func (l *entries) TimeZone() *time.Location {
	if l.zone != nil {
		return l.zone
	}
	return time.UTC
}

func spent(key string, micro int64) ledger.CostLine {
	return ledger.CostLine{Key: key, MicroUSD: micro, Turns: 1, Entries: 1}
}

// posted is what was sent to Slack: to all in a channel, to one person there, or a file.
type posted struct {
	How, Channel, To, Text string
	Blocks                 bool
}

// web stands before Slack's Web API, remembers what is sent and may refuse blocks.
type web struct {
	next    http.Handler
	refuses int // posts with blocks, so many

	mu   sync.Mutex
	sent []posted
	file string // that is being uploaded
}

func (w *web) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body)) // other bodies are no posts
	if !w.take(path.Base(r.URL.Path), form) {
		_, _ = io.WriteString(out, `{"ok":false,"error":"invalid_blocks"}`)
		return
	}
	w.next.ServeHTTP(out, r)
}

func (w *web) take(method string, form url.Values) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := posted{Channel: form.Get("channel"), To: form.Get("user"), Text: form.Get("text"), Blocks: form.Get("blocks") != ""}
	switch method {
	case "chat.postMessage":
		p.How = "message"
	case "chat.postEphemeral":
		p.How = "whisper"
	case "files.getUploadURLExternal":
		w.file = form.Get("filename")
		return true
	case "files.completeUploadExternal":
		p = posted{How: "file", Channel: form.Get("channel_id"), Text: w.file}
	default:
		return true
	}
	if p.Blocks && w.refuses > 0 {
		w.refuses--
		return false
	}
	w.sent = append(w.sent, p)
	return true
}

// house is an accountant in a playground's workspace: Ada is an admin, the engineers are
// users of web; the channel of secret has users of its own.
type house struct {
	*Accountant
	api    *slackgo.Client
	ledger *entries
	web    *web
	told   []string // what was whispered or said, in order
	mu     sync.Mutex
}

// peopleOf are those of a workspace.
type peopleOf struct{ *directory.Directory }

func (p peopleOf) Names(ctx context.Context, users, channels []string, private func(id string) bool) report.Names {
	return p.Directory.Names(ctx, users, channels, private)
}

func (p peopleOf) Zone(ctx context.Context, user string) string {
	u, err := p.User(ctx, user)
	if err != nil {
		return ""
	}
	return u.TZ
}

var rules = access.Rules{
	Roles:    access.Roles{Admins: []string{slack.UserAda}, Users: []string{slack.GroupEngineers}},
	Projects: map[string]access.Roles{"secret": {Users: []string{slack.UserGrace}}},
	Places: access.Places{
		Channels:       map[string]string{slack.ChannelEngineering: "web", slack.ChannelPrivate: "secret"},
		DirectMessages: "web",
	},
}

func newHouse(t *testing.T, digests ...Digest) *house {
	t.Helper()
	return newHouseWith(t, slack.DefaultScopes(), digests...)
}

func newHouseWith(t *testing.T, scopes []string, digests ...Digest) *house {
	t.Helper()
	workspace, err := slack.New(slack.Options{NoRateLimits: true, Scopes: scopes})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{web: &web{next: workspace.Handler()}}
	server := httptest.NewServer(h.web)
	api := slackgo.New(workspace.BotToken(), slackgo.OptionAPIURL(server.URL+"/api/"), slackgo.OptionHTTPClient(server.Client()))
	h.ledger = &entries{lines: map[ledger.CostGroup][]ledger.CostLine{
		ledger.ByChannel: {spent(slack.ChannelEngineering, 4_000_000), spent(slack.ChannelPrivate, 3_000_000), spent("D0OTHER", 1_000_000)},
		ledger.ByProject: {spent("web", 5_000_000), spent("secret", 3_000_000)},
		ledger.ByUser:    {spent(slack.UserLinus, 5_000_000), spent(slack.UserGrace, 3_000_000)},
		ledger.ByModel:   {spent("claude-sonnet-4-5", 8_000_000)},
		ledger.ByThread: {
			{ThreadKey: threads.ThreadKey{ChannelID: slack.ChannelEngineering, ThreadTS: "1.1"}, Key: "1", Entries: 1, MicroUSD: 5_000_000},
			{ThreadKey: threads.ThreadKey{ChannelID: slack.ChannelPrivate, ThreadTS: "2.1"}, Key: "2", Entries: 1, MicroUSD: 3_000_000},
		},
	}}
	publisher := publish.New(api, publish.Options{Log: zap.NewNop()})
	h.api = api
	h.Accountant = New(Config{
		Team: slack.TeamID, Store: h.ledger, Access: rules, People: peopleOf{directory.New(api, zap.NewNop())},
		Screen: costs.Screen{API: api, Publisher: publisher, Log: zap.NewNop(), Say: func(channel, _ string, page view.Page) {
			h.tell(channel + ": " + render.Shown(page, render.Options{}).Text)
		}},
		Whisper: func(_ view.Place, user string, page view.Page) {
			h.tell(user + ": " + render.Shown(page, render.Options{}).Text)
		},
		Permalink: func(channel, ts string) string {
			return "https://example.slack.com/archives/" + channel + "/" + ts
		},
		Redact: func(s string) string { return s },
		Log:    zap.NewNop(), Digests: digests,
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var publishing sync.WaitGroup
	publishing.Go(func() {
		if err := publisher.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		publishing.Wait()
		server.Close()
		if err := workspace.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *house) tell(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, text)
}

func (h *house) sent() []posted {
	h.web.mu.Lock()
	defer h.web.mu.Unlock()
	return slices.Clone(h.web.sent)
}
