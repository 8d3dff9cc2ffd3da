package publish_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"
	"github.com/tidwall/gjson"

	"deckhand/internal/agent"
	"deckhand/internal/agent/claude"
	playground "deckhand/internal/playground/slack"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/threads"
)

// town is a scheduler over the playground's Slack with its rate limits, in synthetic time.
type town struct {
	t   *testing.T
	srv *playground.Server
	api *slack.Client
	*publish.Scheduler
	cancel context.CancelFunc
	done   chan error

	mu      sync.Mutex
	answers []answer
	// trouble, if it is not nil, says what becomes of a call. mu is held.
	trouble func(method publish.Method, args url.Values) trouble
}

// trouble is what becomes of a call: Slack refuses it, or its answer never arrives, nor does
// the call.
type trouble struct {
	refused      string
	lost, before bool
}

// answer is a call of Slack and what it said.
type answer struct {
	begun, at time.Time
	method    publish.Method
	args      url.Values
	status    int
	err, ts   string
}

const townLatency = 80 * time.Millisecond

// Do answers a request of a real client.
func (w *town) Do(req *http.Request) (*http.Response, error) {
	if err := req.ParseForm(); err != nil {
		return nil, err
	}
	a := answer{begun: time.Now(), method: publish.Method(path.Base(req.URL.Path)), args: req.PostForm}
	time.Sleep(townLatency / 2)
	var bad trouble
	w.mu.Lock()
	if w.trouble != nil {
		bad = w.trouble(a.method, a.args)
	}
	w.mu.Unlock()
	rec := httptest.NewRecorder()
	switch {
	case bad.before:
		return nil, context.DeadlineExceeded
	case bad.refused != "":
		a.at, a.err = time.Now(), bad.refused
		w.mu.Lock()
		w.answers = append(w.answers, a)
		w.mu.Unlock()
		_, _ = fmt.Fprintf(rec, `{"ok":false,"error":%q}`, bad.refused)
		return rec.Result(), nil
	}
	again := httptest.NewRequestWithContext(req.Context(), http.MethodPost, req.URL.Path, strings.NewReader(req.PostForm.Encode()))
	again.Header = req.Header.Clone()
	w.srv.Handler().ServeHTTP(rec, again)
	time.Sleep(townLatency / 2)
	body := rec.Body.String()
	a.at, a.status, a.err, a.ts = time.Now(), rec.Code, gjson.Get(body, "error").String(), gjson.Get(body, "ts").String()
	w.mu.Lock()
	w.answers = append(w.answers, a)
	w.mu.Unlock()
	if bad.lost {
		return nil, context.DeadlineExceeded
	}
	return rec.Result(), nil
}

func inTown(t *testing.T, o publish.Options, f func(w *town)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)))
		srv, err := playground.New(playground.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &town{t: t, srv: srv, done: make(chan error, 1)}
		w.api = slack.New(srv.BotToken(), slack.OptionHTTPClient(w), slack.OptionAPIURL("https://slack.invalid/api/"))
		w.open(o)
		f(w)
		if err := w.close(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := srv.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// open starts a scheduler, as a process that was started does.
func (w *town) open(o publish.Options) {
	w.Scheduler = publish.New(w.api, o)
	ctx, cancel := context.WithCancel(w.t.Context())
	w.cancel = cancel
	go func() { w.done <- w.Run(ctx) }()
}

func (w *town) close() error {
	w.cancel()
	return <-w.done
}

func (w *town) rest() {
	w.t.Helper()
	for range 100_000 {
		synctest.Wait()
		if w.Pending() == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatal("the scheduler does not come to rest")
}

// thread posts the root of a thread.
func (w *town) thread(channel string) string {
	w.t.Helper()
	_, ts, err := w.api.PostMessageContext(w.t.Context(), channel, slack.MsgOptionText("go", false))
	if err != nil {
		w.t.Fatal(err)
	}
	return ts
}

// replies are what stands in a thread.
func (w *town) replies(channel, root string) []slack.Message {
	w.t.Helper()
	msgs, _, _, err := w.api.GetConversationRepliesContext(w.t.Context(), &slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root, Limit: 200, IncludeAllMetadata: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return msgs[1:]
}

// count counts what was answered without an error, by method.
func (w *town) count() map[publish.Method]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := map[publish.Method]int{}
	for _, a := range w.answers {
		if a.err == "" {
			n[a.method]++
		}
	}
	return n
}

// actor is a turn that grows in a thread.
type actor struct {
	w    *town
	root string
	turn agent.TurnView
}

var turns atomic.Int64

func (w *town) actor(channel, root string) *actor {
	return &actor{w: w, root: root, turn: agent.TurnView{
		ID: turns.Add(1), Thread: threads.ThreadKey{TeamID: playground.TeamID, ChannelID: channel, ThreadTS: root},
		RequestedBy: playground.UserLinus, State: agent.TurnRunning, StartedAt: time.Now(),
	}}
}

// messages are what the frontend would show.
func (a *actor) messages() []publish.Message {
	var out []publish.Message
	after := ""
	pages := render.Turn(a.turn, render.Options{})
	for i, p := range pages {
		m := publish.Message{
			Key: fmt.Sprint("turn/", a.turn.ID, "/", p.Number), Channel: a.turn.Thread.ChannelID, ThreadTS: a.root, Group: a.root, After: after, Page: p,
			Recipient: publish.Recipient{Team: playground.TeamID, User: a.turn.RequestedBy},
			Metadata:  slack.SlackMetadata{EventType: "deckhand_turn", EventPayload: map[string]any{"turn": fmt.Sprint(a.turn.ID)}},
			Final:     a.turn.State.Ended(),
		}
		switch {
		case m.Final && i == len(pages)-1:
			m.Priority = publish.Answer
		case m.Final, a.turn.Waiting > 0:
			m.Priority = publish.Normal
		}
		after = m.Key
		out = append(out, m)
	}
	return out
}

func (a *actor) show() {
	for _, m := range a.messages() {
		a.w.Show(m)
	}
}

// write adds to the text that is being written, or begins one.
func (a *actor) write(s string) {
	items := slices.Clone(a.turn.Content.Items)
	if n := len(items) - 1; n >= 0 && items[n].Kind == claude.ItemText && !items[n].Final {
		items[n].Text += s
	} else {
		items = append(items, claude.Item{Kind: claude.ItemText, Text: s})
	}
	a.turn.Content.Items = items
}

// use begins a tool use, or ends the one that runs.
func (a *actor) use(state claude.ToolState) {
	items := slices.Clone(a.turn.Content.Items)
	for i := range items {
		items[i].Final = true
		if tool := items[i].Tool; tool != nil && tool.State == claude.ToolRunning {
			over := *tool
			over.State, over.Result = state, "ok\n"
			items[i].Tool = &over
		}
	}
	if state == claude.ToolRunning {
		id := fmt.Sprint("toolu_", a.turn.ID, "_", len(items))
		items = append(items, claude.Item{Kind: claude.ItemToolUse, ID: id, Tool: &claude.ToolUse{ID: id, Name: "Bash", State: state, Input: []byte(`{"command":"go test ./... <!channel>"}`)}})
	}
	a.turn.Content.Items = items
}

func (a *actor) end() {
	a.use(claude.ToolDone)
	a.turn.State, a.turn.EndedAt, a.turn.AgentTurns = agent.TurnDone, time.Now(), 3
	a.show()
}

var words = strings.Fields("the test of a parser that reads what people write and gives a tree with places and errors for each of them in order")

func sentence(r *rand.Rand) string {
	var b strings.Builder
	for range 8 + r.IntN(6) {
		b.WriteString(words[r.IntN(len(words))] + " ")
	}
	return "So " + strings.TrimSpace(b.String()) + ". "
}

// busy keeps so many other messages changing that a new one may begin as a stream.
func (w *town) busy() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var done sync.WaitGroup
	root := w.thread(playground.ChannelRandom)
	done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			for k := range 6 {
				m := live(fmt.Sprint("busy/", k), fmt.Sprint(i))
				m.Channel, m.ThreadTS = playground.ChannelRandom, root
				w.Show(m)
			}
			select {
			case <-time.After(5 * time.Second):
			case <-ctx.Done():
			}
		}
	})
	time.Sleep(10 * time.Second)
	return func() {
		cancel()
		done.Wait()
	}
}

// streams is how many messages were begun as streams.
func (w *town) streams() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.answers {
		if a.method == publish.StartStream && a.ts != "" {
			n++
		}
	}
	return n
}
