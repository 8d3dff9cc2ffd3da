package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/playground/model"
)

// countedCall is a call of the model as the server saw it.
type countedCall struct {
	Session, Model, Marker string
	RequestID              string // the server's; empty until it answers anything
	Message                string // its id; empty until the answer begins
	Usage                  countedUsage
	Begun                  bool // the client was told what the prompt costs
	Whole                  bool // the final usage was sent, so that it is billed for what it is
	Ended                  bool // nothing more is sent
	Mute                   bool // the client is told no usage
	Broken                 bool // the answer breaks off, or is nonsense
	Chars                  int  // how much of the answer's text was sent
	number                 int  // from 0
	endedAt                time.Time
	stalls, hangs          bool
	stalled                bool  // it says nothing more until goOn, or its client leaves
	excused                bool  // the bot was told to cut it, or killed
	blocks                 []int // how many characters of each content block were sent
}

type countedUsage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheWrite    int64 `json:"cache_creation_input_tokens"`
	CacheCreation struct {
		Long int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Server struct {
		Searches int64 `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// countingModel is the playground's model with a note of every call, and with
// faults for certain calls of certain prompts.
type countingModel struct {
	*model.Server
	changed func()

	mu     sync.Mutex
	calls  []*countedCall
	faults map[string]map[int]model.Fault // by marker and number of the call for it, from 1
	counts map[string]int
	mute   map[string]bool // by marker: its next call says nothing of its usage
	// on is closed, and made anew, when calls that hang or have stalled are to go on.
	on      chan struct{}
	excuses bool // see excuse
}

func newCountingModel(t testing.TB) *countingModel {
	t.Helper()
	s, err := model.New(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &countingModel{Server: s, changed: func() {}, faults: map[string]map[int]model.Fault{}, counts: map[string]int{}, mute: map[string]bool{}, on: make(chan struct{})}
}

// goOn has the calls that hang or have stalled go on.
func (m *countingModel) goOn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.on)
	m.on = make(chan struct{})
}

// idle reports whether no call is under way.
func (m *countingModel) idle() bool {
	return !slices.ContainsFunc(m.all(), func(c countedCall) bool { return !c.Ended })
}

// excuse says that calls which are under way, or begin until fn returns, may be cut on
// this side. So may those that nobody waited for and that have just ended here: the bot
// need not have read their end. unwritten is how long ago others may have ended that a bot
// which is killed has not written down.
func (m *countingModel) excuse(unwritten time.Duration, fn func()) {
	m.mu.Lock()
	m.excuses = true
	for _, c := range m.calls {
		ended := time.Since(c.endedAt)
		c.excused = c.excused || !c.Ended || ended < unwritten || (c.stalls || c.hangs) && ended < 10*time.Second
	}
	m.mu.Unlock()
	fn()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.excuses = false
}

// failNext has the n-th call from now on for a prompt run into a fault, once.
func (m *countingModel) failNext(marker string, n int, f model.Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n += m.counts[marker]
	if m.faults[marker] == nil {
		m.faults[marker] = map[int]model.Fault{}
	}
	f.Times = 1
	m.faults[marker][n] = f
}

// muteNext has the next call for a prompt be answered without its usage.
func (m *countingModel) muteNext(marker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mute[marker] = true
}

// find returns a copy of the last call that fits.
func (m *countingModel) find(fits func(countedCall) bool) (countedCall, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range slices.Backward(m.calls) {
		if fits(*c) {
			return *c, true
		}
	}
	return countedCall{}, false
}

func (m *countingModel) all() []countedCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]countedCall, len(m.calls))
	for i, c := range m.calls {
		out[i] = *c
	}
	return out
}

// subagentMark begins the prompts of subagents.
const subagentMark = "You are a subagent."

var marker = regexp.MustCompile(`#p[0-9]+`)

func (m *countingModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/messages") {
		m.Server.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req struct {
		Model     string            `json:"model"`
		MaxTokens int               `json:"max_tokens"`
		Messages  []json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(body, &req) != nil {
		m.Server.ServeHTTP(w, r)
		return
	}
	c := &countedCall{Session: r.Header.Get("X-Claude-Code-Session-Id"), Model: req.Model}
	for _, message := range slices.Backward(req.Messages) {
		if found := marker.FindAllString(string(message), -1); found != nil {
			c.Marker = found[len(found)-1]
			break
		}
	}
	m.mu.Lock()
	c.number, c.excused = len(m.calls), m.excuses
	m.calls = append(m.calls, c)
	m.counts[c.Marker]++
	c.Mute = m.mute[c.Marker]
	delete(m.mute, c.Marker)
	if f, ok := m.faults[c.Marker][m.counts[c.Marker]]; ok {
		delete(m.faults[c.Marker], m.counts[c.Marker])
		c.stalls, c.hangs = f.StallAfterChars > 0, f.Hang > 0
		if !c.stalls && !c.hangs {
			f.Session, c.Broken = c.Session, f.CutAfterChars > 0 || f.Garbage
			m.SetFaults([]model.Fault{f})
		}
	}
	on := m.on
	m.mu.Unlock()
	m.changed()
	defer func() {
		m.mu.Lock()
		c.Ended, c.endedAt = true, time.Now()
		m.mu.Unlock()
		m.changed()
	}()
	if c.hangs {
		select {
		case <-on:
		case <-r.Context().Done():
			return
		}
	}
	m.Server.ServeHTTP(&countingWriter{ResponseWriter: w, m: m, c: c, on: on, left: r.Context().Done()}, r)
}

// countingWriter reads along with an answer.
type countingWriter struct {
	http.ResponseWriter
	m        *countingModel
	c        *countedCall
	on, left <-chan struct{}
	unsent   []byte // an event, until it is flushed
}

func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countingWriter) Write(b []byte) (int, error) {
	if w.c.stalled { // set here alone
		select {
		case <-w.on:
		case <-w.left:
			return 0, errors.New("the client has left")
		}
	}
	if bytes.HasPrefix(b, []byte("event: ")) && !bytes.HasPrefix(b, []byte("event: message_delta")) {
		w.unsent = bytes.Clone(b)
	} else {
		w.note(b) // it is billed before it is sent
	}
	if !w.c.Mute {
		return w.ResponseWriter.Write(b)
	}
	if _, err := w.ResponseWriter.Write(usageInAnswer.ReplaceAll(b, []byte(`"usage":{}`))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// FlushError notes what was sent, as the server does that bills it.
func (w *countingWriter) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if err == nil && w.unsent != nil {
		w.note(w.unsent)
	}
	w.unsent = nil
	return err
}

var usageInAnswer = regexp.MustCompile(`"usage":\{(?:[^{}]|\{[^{}]*\})*\}`)

func (w *countingWriter) note(b []byte) {
	data := b
	if _, after, ok := bytes.Cut(b, []byte("\ndata: ")); ok {
		data = after
	}
	var e struct {
		Type    string       `json:"type"`
		ID      string       `json:"id"`
		Usage   countedUsage `json:"usage"`
		Message struct {
			ID    string       `json:"id"`
			Usage countedUsage `json:"usage"`
		} `json:"message"`
		Block struct {
			Name string `json:"name"`
		} `json:"content_block"`
		Delta struct {
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
			JSON     string `json:"partial_json"`
		} `json:"delta"`
	}
	w.m.mu.Lock()
	w.c.RequestID = w.Header().Get("Request-Id")
	w.m.mu.Unlock()
	if json.Unmarshal(data, &e) != nil {
		return // nonsense, or cut by a fault
	}
	w.m.mu.Lock()
	switch e.Type {
	case "message_start":
		w.c.Message, w.c.Usage, w.c.Begun = e.Message.ID, e.Message.Usage, true
	case "content_block_start":
		w.c.blocks = append(w.c.blocks, len(e.Block.Name))
	case "content_block_delta":
		w.c.Chars += len(e.Delta.Text)
		w.c.blocks[len(w.c.blocks)-1] += len(e.Delta.Text) + len(e.Delta.Thinking) + len(e.Delta.JSON)
		w.c.stalled = w.c.stalls && w.c.blocks[len(w.c.blocks)-1] > 0
	case "message_delta":
		w.c.Usage.Output, w.c.Usage.Server, w.c.Whole = e.Usage.Output, e.Usage.Server, true
	case "message": // not streamed
		w.c.Message, w.c.Usage, w.c.Begun, w.c.Whole = e.ID, e.Usage, true, true
	}
	w.m.mu.Unlock()
	w.m.changed()
}

// listPrice is what a model's tokens cost, in billionths of a dollar.
type listPrice struct {
	Name         string `json:"name"`
	Input        int64  `json:"input"`
	Output       int64  `json:"output"`
	CacheRead    int64  `json:"cache_read"`
	CacheWrite5m int64  `json:"cache_write_5m"`
	CacheWrite1h int64  `json:"cache_write_1h"`
	Long         *struct {
		Over  int64 `json:"over"`
		Times int64 `json:"times"`
	} `json:"long_prompt"`
}

// priceList is what a CLI takes for every model.
type priceList struct {
	WebSearch int64       `json:"web_search"`
	Models    []listPrice `json:"models"`
}

var listPrices = sync.OnceValues(func() (list priceList, err error) {
	b, err := os.ReadFile("../price/prices.json")
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	return list, err
})

// micro is what a call is billed at, in micro-dollars, rounded half up: for its usage, or
// where it broke off for its prompt and what had been made of the answer, a token for
// each four characters.
func (c countedCall) micro(t testing.TB) int64 {
	t.Helper()
	list, err := listPrices()
	if err != nil {
		t.Fatal(err)
	}
	var p *listPrice
	for i := range list.Models {
		if m := &list.Models[i]; strings.Contains(c.Model, m.Name) && (p == nil || len(m.Name) > len(p.Name)) {
			p = m
		}
	}
	if p == nil {
		t.Fatalf("no price for %s", c.Model)
	}
	u := c.Usage
	if !c.Begun {
		return 0
	}
	if !c.Whole {
		tokens := 0
		for _, chars := range c.blocks {
			tokens += (2*chars + 4) / 8
		}
		u.Output, u.Server.Searches = max(1, int64(tokens)), 0
	}
	short := u.CacheWrite - u.CacheCreation.Long
	sum := u.Input*p.Input + u.Output*p.Output + u.CacheRead*p.CacheRead + short*p.CacheWrite5m + u.CacheCreation.Long*p.CacheWrite1h
	if p.Long != nil && u.Input+u.CacheRead+u.CacheWrite > p.Long.Over {
		sum *= p.Long.Times
	}
	return (sum + u.Server.Searches*list.WebSearch + 500) / 1000
}
