package gateway_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"deckhand/internal/gateway"
	"deckhand/internal/price"
	"deckhand/internal/waittest"
)

// meter notes what it is told, and refuses calls if it is to.
type meter struct {
	refuse error
	ended  chan booked
	alone  chan gateway.Call
	wait   func(context.Context) // if it is set, before a call may leave

	mu    sync.Mutex
	calls []gateway.Call
	seen  []gateway.Answer
}

// booked is a call with its end.
type booked struct {
	gateway.Call
	gateway.Answer
}

func newMeter() *meter {
	return &meter{ended: make(chan booked, 1000), alone: make(chan gateway.Call, 1000)}
}

// last is the call that has begun last.
func (m *meter) last() gateway.Call {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls[len(m.calls)-1]
}

func (m *meter) Begin(ctx context.Context, c gateway.Call) (gateway.Booking, error) {
	if m.wait != nil {
		m.wait(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, c)
	return booking{m, c}, m.refuse
}

type booking struct {
	m *meter
	c gateway.Call
}

func (b booking) Seen(a gateway.Answer) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	b.m.seen = append(b.m.seen, a)
}

func (b booking) Alone() { b.m.alone <- b.c }

func (b booking) End(a gateway.Answer) { b.m.ended <- booked{b.c, a} }

// end waits for the next call that is over.
func (c *caller) end(t testing.TB) booked {
	t.Helper()
	select {
	case e := <-c.meter.ended:
		return e
	case <-time.After(waittest.Limit):
		t.Fatal("no call ended")
		return booked{}
	}
}

// started and stopped are the events of a stream that tell of its cost.
const (
	started = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-opus-5-5-20260801\",\"usage\":{\"input_tokens\":10,\"cache_creation_input_tokens\":7,\"cache_read_input_tokens\":5,\"cache_creation\":{\"ephemeral_5m_input_tokens\":3,\"ephemeral_1h_input_tokens\":4},\"output_tokens\":1}}}\n\n"
	delta   = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n"
	stopped = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":42,\"server_tool_use\":{\"web_search_requests\":2}}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	asked   = `{"model":"claude-opus-5-5","max_tokens":1000,"stream":true,"messages":[{"role":"user","content":"hello"}]}`
)

var (
	begun = price.Usage{Input: 10, Output: 1, CacheRead: 5, CacheWrite5m: 3, CacheWrite1h: 4}
	whole = price.Usage{Input: 10, Output: 42, CacheRead: 5, CacheWrite5m: 3, CacheWrite1h: 4, WebSearches: 2}
)

// times are the figures of an answer that clocks make.
var times = cmpopts.IgnoreFields(gateway.Answer{}, "FirstByte", "Ended")

func TestEveryCallEndsOnceWithWhatWasToldOfIt(t *testing.T) {
	t.Parallel()
	sse := func(text string, then func()) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Request-Id", "req_1")
			_, _ = io.WriteString(w, text)
			flush(w)
			then()
		}
	}
	cut := func() { panic(http.ErrAbortHandler) }
	const model, id = "claude-opus-5-5-20260801", "req_1"
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   gateway.Answer
	}{
		"complete":                {sse(started+delta+stopped, func() {}), gateway.Answer{MessageID: "msg_1", Model: model, RequestID: id, Status: 200, Usage: whole, Complete: true, Left: true}},
		"cut after its end":       {sse(started+delta+stopped, cut), gateway.Answer{MessageID: "msg_1", Model: model, RequestID: id, Status: 200, Usage: whole, Complete: true, Left: true}},
		"cut in the middle":       {sse(started+delta, cut), gateway.Answer{MessageID: "msg_1", Model: model, RequestID: id, Status: 200, Usage: begun, Left: true}},
		"cut before anything":     {sse("", cut), gateway.Answer{RequestID: id, Status: 200, Left: true}},
		"ended without an end":    {sse(started+delta, func() {}), gateway.Answer{MessageID: "msg_1", Model: model, RequestID: id, Status: 200, Usage: begun, Left: true}},
		"an error in the middle":  {sse(started+"event: error\ndata: {\"type\":\"error\"}\n\n", func() {}), gateway.Answer{MessageID: "msg_1", Model: model, RequestID: id, Status: 200, Usage: begun, Left: true}},
		"an error instead":        {sse("event: error\ndata: {\"type\":\"error\"}\n\n", func() {}), gateway.Answer{RequestID: id, Status: 200, Complete: true, Left: true}},
		"nonsense":                {sse("event: message_start\ndata: {nonsense\n\n"+stopped, func() {}), gateway.Answer{RequestID: id, Status: 200, Usage: price.Usage{Output: 42, WebSearches: 2}, Left: true}},
		"no answer":               {func(http.ResponseWriter, *http.Request) { cut() }, gateway.Answer{Left: true}},
		"refused by the provider": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(529) }, gateway.Answer{Status: 529, Complete: true, Left: true}},
		"a redirect":              {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) }, gateway.Answer{Status: 302, Complete: true, Left: true}},
		"one JSON value": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"type":"message","model":"m","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}`)
		}, gateway.Answer{Model: "m", Status: 200, Usage: price.Usage{Input: 3, Output: 4}, Complete: true, Left: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+newProvider(t, tc.answer).URL, "ANTHROPIC_API_KEY="+realKey)
			if resp, err := s.client.Do(s.request(http.MethodPost, "/v1/messages", asked)); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body) // some break off
				_ = resp.Body.Close()
			}
			// Whoever has seen the end finds the call booked.
			if tc.want.Complete && len(s.meter.ended) == 0 {
				t.Error("the end was seen before it was told")
			}
			e := s.end(t)
			if diff := cmp.Diff(tc.want, e.Answer, times); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if e.ID.Version() != 7 || e.Call.Model != "claude-opus-5-5" || e.MaxTokens != 1000 || e.Bytes != len(asked) || !e.Stream || e.At.IsZero() || e.Ended.Before(e.At) {
				t.Errorf("call %+v", e.Call)
			}
			if e.FirstByte.IsZero() != (tc.want.Status == 0) {
				t.Errorf("first byte at %v", e.FirstByte)
			}
			s.Close()
			if len(s.meter.ended) > 0 {
				t.Error("it ended twice")
			}
		})
	}
}

func TestWhatIsSeenOfACallIsToldAsItComes(t *testing.T) {
	t.Parallel()
	said := make(chan string)
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+newProvider(t, events(said)).URL, "ANTHROPIC_API_KEY="+realKey)
	r := s.stream(t)
	said <- started
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.meter.mu.Lock()
	seen := s.meter.seen
	s.meter.mu.Unlock()
	if len(seen) != 1 || seen[0].Usage != begun || seen[0].Complete {
		t.Errorf("seen %+v", seen)
	}
	s.meter.last().Cut()
	s.Close() // its caller has left
	if e := s.end(t); e.Usage != begun || e.Complete || !e.Left {
		t.Errorf("ended %+v", e)
	}
}

func TestACallThatMayNotLeaveDoesNot(t *testing.T) {
	t.Parallel()
	p := newProvider(t, nil)
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	for _, tc := range []struct {
		err    error
		status int
		want   string
	}{
		{fmt.Errorf("ask: %w", &gateway.Refusal{Status: 402, Sentence: "Today's budget is used up."}), 402, `{"type":"error","error":{"type":"billing_error","message":"Today's budget is used up."}}`},
		{errors.New("the database at 10.1.2.3 is away"), 503, "cannot be booked now"},
	} {
		s.meter.refuse = tc.err
		status, body := s.do(t, s.request(http.MethodPost, "/v1/messages", asked))
		if status != tc.status || !strings.Contains(body, tc.want) || strings.Contains(body, "10.1.2.3") {
			t.Errorf("%d %s", status, body)
		}
	}
	if len(p.calls) > 0 || len(s.meter.ended) > 0 {
		t.Errorf("%d calls left, %d ended", len(p.calls), len(s.meter.ended))
	}
	// What costs nothing is not asked.
	if status, body := s.do(t, s.request(http.MethodPost, "/v1/messages/count_tokens", asked)); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

func TestACallThatCannotLeaveCostsNothing(t *testing.T) {
	t.Parallel()
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL=http://127.0.0.1:1", "ANTHROPIC_API_KEY="+realKey)
	if status, _ := s.do(t, s.request(http.MethodPost, "/v1/messages", asked)); status != 502 {
		t.Error(status)
	}
	if e := s.end(t); e.Status != 0 || e.Left || !e.Complete {
		t.Errorf("%+v", e.Answer)
	}
}

// frame is an event as Amazon sends it.
func frame(t testing.TB, event string) string {
	t.Helper()
	var out strings.Builder
	_, data, _ := strings.Cut(event, "data: ")
	payload := fmt.Sprintf(`{"bytes":%q,"p":"abcd"}`, base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(data))))
	headers := eventstream.Headers{}
	headers.Set(":message-type", eventstream.StringValue("event"))
	headers.Set(":event-type", eventstream.StringValue("chunk"))
	if err := eventstream.NewEncoder().Encode(&out, eventstream.Message{Headers: headers, Payload: []byte(payload)}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAmazonsFramesAreRead(t *testing.T) {
	t.Parallel()
	const path = "/model/us.anthropic.claude-opus-5-5-20260801-v1%3A0/invoke-with-response-stream"
	delta1, stop, _ := strings.Cut(stopped, "\n\n")
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		w.Header().Set("X-Amzn-Requestid", "amz-1")
		for _, e := range []string{started, delta, delta1, stop} {
			_, _ = io.WriteString(w, frame(t, e))
		}
	})
	s := open(t, newGateway(t, nil), "CLAUDE_CODE_USE_BEDROCK=1", "ANTHROPIC_BEDROCK_BASE_URL="+p.URL, "AWS_BEARER_TOKEN_BEDROCK="+realKey)
	r := s.request(http.MethodPost, s.env["ANTHROPIC_BEDROCK_BASE_URL"]+path, `{"max_tokens":9}`)
	if status, body := s.do(t, r); status != 200 {
		t.Fatal(status, body)
	}
	e := s.end(t)
	want := gateway.Answer{MessageID: "msg_1", Model: "claude-opus-5-5-20260801", RequestID: "amz-1", Status: 200, Usage: whole, Complete: true, Left: true}
	if diff := cmp.Diff(want, e.Answer, times); diff != "" || e.Call.Model != "us.anthropic.claude-opus-5-5-20260801-v1:0" || e.MaxTokens != 9 || !e.Stream {
		t.Errorf("%+v; answer (-want +got):\n%s", e.Call, diff)
	}
}
