package publish_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/goleak"

	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is one call that the fake Slack got.
type call struct {
	at     time.Duration // since the fake was made
	method publish.Method
	args   url.Values
	ts     string // answered, or edited
}

func (c call) String() string {
	return fmt.Sprintf("%v %s %s %s", c.at, c.method, c.ts, c.args.Get("text"))
}

// fakeSlack answers after latency, with the errors that answer returns.
type fakeSlack struct {
	start   time.Time
	latency time.Duration
	answer  func(n int, c call) error // n counts calls from 1

	mu       sync.Mutex
	calls    []call
	flying   map[string]int
	mostOnTS int
	posted   int
}

func newFake() *fakeSlack {
	return &fakeSlack{start: time.Now(), latency: 50 * time.Millisecond, flying: map[string]int{}}
}

// Do answers a request of a real slack.Client.
func (f *fakeSlack) Do(req *http.Request) (*http.Response, error) {
	if err := req.ParseForm(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	method := publish.Method(path.Base(req.URL.Path))
	c := call{at: time.Since(f.start), method: method, args: req.PostForm, ts: req.PostForm.Get("ts")}
	if method == publish.PostMessage || method == publish.StartStream {
		f.posted++
		c.ts = fmt.Sprintf("%d.%06d", f.posted, f.posted)
	}
	f.calls = append(f.calls, c)
	n := len(f.calls)
	f.flying[c.ts]++
	f.mostOnTS = max(f.mostOnTS, f.flying[c.ts])
	latency, answer := f.latency, f.answer
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.flying[c.ts]--
	}()
	select {
	case <-req.Context().Done():
		return nil, req.Context().Err()
	case <-time.After(latency):
	}
	rec := httptest.NewRecorder()
	var err error
	if answer != nil {
		err = answer(n, c)
	}
	switch err := err.(type) { //nolint:errorlint // the test made it, unwrapped
	case nil:
		_ = json.NewEncoder(rec).Encode(map[string]any{"ok": true, "ts": c.ts, "channel": c.args.Get("channel")})
	case *slack.RateLimitedError:
		rec.Header().Set("Retry-After", strconv.Itoa(int(err.RetryAfter.Seconds())))
		rec.WriteHeader(http.StatusTooManyRequests)
	case slack.StatusCodeError:
		rec.WriteHeader(err.Code)
	case slack.SlackErrorResponse:
		_ = json.NewEncoder(rec).Encode(map[string]any{"ok": false, "error": err.Err, "response_metadata": err.ResponseMetadata})
	default:
		return nil, err
	}
	return rec.Result(), nil
}

func (f *fakeSlack) all() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]call(nil), f.calls...)
}

func (f *fakeSlack) texts() []string {
	var out []string
	for _, c := range f.all() {
		out = append(out, c.args.Get("text"))
	}
	return out
}

// house is a running scheduler over a fake Slack, in synthetic time.
type house struct {
	t     *testing.T
	slack *fakeSlack
	*publish.Scheduler
	cancel context.CancelFunc
	done   chan error
}

func open(t *testing.T, o publish.Options) *house {
	t.Helper()
	h := &house{t: t, slack: newFake(), done: make(chan error, 1)}
	client := slack.New("xoxb-test", slack.OptionHTTPClient(h.slack), slack.OptionAPIURL("https://slack.invalid/api/"))
	h.Scheduler = publish.New(client, o)
	ctx, cancel := context.WithCancel(t.Context())
	h.cancel = cancel
	go func() { h.done <- h.Run(ctx) }()
	return h
}

// close stops the scheduler and returns what Run said.
func (h *house) close() error {
	h.cancel()
	return <-h.done
}

// rest waits until nothing is pending.
func (h *house) rest() {
	h.t.Helper()
	for range 100_000 {
		synctest.Wait()
		if h.Pending() == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	h.t.Fatal("the scheduler does not come to rest")
}

func page(text string) render.Page {
	return render.Page{Text: text, Blocks: []slack.Block{slack.NewMarkdownBlock("", text)}}
}

func live(key, text string) publish.Message {
	return publish.Message{Key: key, Channel: "C1", ThreadTS: "1.0", Group: key, Page: page(text)}
}

func final(key, text string) publish.Message {
	m := live(key, text)
	m.Final, m.Priority = true, publish.Answer
	return m
}
