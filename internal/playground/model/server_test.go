package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serve starts a model server for a test.
func serve(tb testing.TB, o Options) (*Server, string) {
	tb.Helper()
	s, web := serveOn(tb, o)
	return s, web.URL
}

func serveOn(tb testing.TB, o Options) (*Server, *httptest.Server) {
	tb.Helper()
	s, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	ts := httptest.NewServer(s)
	tb.Cleanup(ts.Close)
	return s, ts
}

// numberIDs makes the ids of a server predictable.
func numberIDs(s *Server) {
	var n atomic.Int64
	s.newID = func(prefix string) string { return fmt.Sprintf("%s%022d", prefix, n.Add(1)) }
}

// ask is a request with one user message.
func ask(text string, more ...string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"model":"claude-opus-5-5","max_tokens":100,"messages":[{"role":"user","content":%s}]%s}`, b, strings.Join(more, ""))
}

const streamed = `,"stream":true`

type reply struct {
	Status int
	Header http.Header
	Body   string
}

func post(t *testing.T, url, body string, headers ...string) reply {
	t.Helper()
	r, err := tryPost(t.Context(), url, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryPost(ctx context.Context, url, body string, headers ...string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("X-Api-Key", "sk-ant-playground")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(b)}, err
}

// said is the text of a non-streamed answer.
func said(t *testing.T, r reply) string {
	t.Helper()
	var m struct {
		Content []struct{ Text string } `json:"content"`
	}
	if err := json.Unmarshal([]byte(r.Body), &m); err != nil || r.Status != http.StatusOK {
		t.Fatalf("status %d: %s", r.Status, r.Body)
	}
	var out strings.Builder
	for _, c := range m.Content {
		out.WriteString(c.Text)
	}
	return out.String()
}

func TestAnswersAreShapedLikeAnthropics(t *testing.T) {
	t.Parallel()
	const prompt = "think: Let me see.\nsay: On <it> & \"on\" it, with an é.\ntools: [{\"name\":\"Read\",\"input\":{\"file_path\":\"/x\"}},{\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]\nsay: never reached here"
	for _, tc := range []struct{ name, body string }{
		{"stream_tools.txt", ask(prompt, streamed)},
		{"stream_text.txt", ask("say: All done.", streamed)},
		{"stream_search.txt", ask("usage: {\"server_tool_use\":{\"web_search_requests\":2},\"cache_creation\":{\"ephemeral_1h_input_tokens\":40}}\nsay: Found.", streamed)},
		{"json_tools.txt", ask(prompt)},
		{"json_text.txt", ask("say: All done.")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, err := New(Options{})
			if err != nil {
				t.Fatal(err)
			}
			numberIDs(s)
			ts := httptest.NewServer(s)
			t.Cleanup(ts.Close)
			r := post(t, ts.URL+"/v1/messages?beta=true", tc.body)
			var out bytes.Buffer
			fmt.Fprintf(&out, "%d %s\nRequest-Id: %s\n\n%s", r.Status, r.Header.Get("Content-Type"), r.Header.Get("Request-Id"), r.Body)
			golden(t, tc.name, out.Bytes())
		})
	}
}

func TestRequestsThatAreNoMessage(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	numberIDs(s)
	for _, tc := range []struct {
		name, method, path, body, key string
		status                        int
		want                          string
	}{
		{"a probe", "HEAD", "/", "", "k", 200, ""},
		{"a probe under a prefix", "GET", "/model", "", "k", 200, ""},
		{"unknown", "POST", "/v1/complete", "{}", "k", 404, `{"type":"error","error":{"type":"not_found_error","message":"Not found"}`},
		{"nowhere", "POST", "/", "{}", "k", 404, `{"type":"error","error":{"type":"not_found_error"`},
		{"wrong method", "GET", "/v1/messages", "", "k", 405, `{"type":"error","error":{"type":"invalid_request_error","message":"Method Not Allowed"}`},
		{"no key", "POST", "/v1/messages", ask("hi"), "", 401, `{"type":"error","error":{"type":"authentication_error","message":"x-api-key header is required"}`},
		{"no JSON", "POST", "/v1/messages", "hello", "k", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"The request body is not valid JSON`},
		{"no model", "POST", "/v1/messages", `{"messages":[{"role":"user","content":"x"}]}`, "k", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"model and messages`},
		{"no messages", "POST", "/v1/messages", `{"model":"m","messages":[]}`, "k", 400, `{"type":"error","error":{"type":"invalid_request_error"`},
		{"count", "POST", "/model/v1/messages/count_tokens", ask("12345678"), "k", 200, `{"input_tokens":2}`},
		{"under a prefix", "POST", "/some/prefix/v1/messages", ask("say: hi"), "k", 200, `{"model":"claude-opus-5-5","id":"msg_01`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body))
			if tc.key != "" {
				r.Header.Set("X-Api-Key", tc.key)
			}
			s.ServeHTTP(w, r)
			if w.Code != tc.status || !strings.HasPrefix(w.Body.String(), tc.want) {
				t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, tc.status, tc.want)
			}
			if w.Header().Get("Request-Id") == "" {
				t.Error("no request id")
			}
			if tc.status >= 400 && !strings.Contains(w.Body.String(), `"request_id":"req_01`) {
				t.Errorf("no request id in the error: %s", w.Body)
			}
		})
	}
}

func TestABearerTokenIsAKeyToo(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{})
	if got := post(t, url+"/v1/messages", ask("say: hi"), "X-Api-Key", "", "Authorization", "Bearer x"); got.Status != 200 {
		t.Errorf("status %d: %s", got.Status, got.Body)
	}
}

func TestTheSessionOfACall(t *testing.T) {
	t.Parallel()
	const id, other = "11111111-2222-4333-8444-555555555555", "99999999-2222-4333-8444-555555555555"
	for name, tc := range map[string]struct{ header, user, want string }{
		"header":          {id, "", id},
		"header first":    {id, "user_x_account__session_" + other, id},
		"suffix":          {"", "user_abc_account__session_" + id, id},
		"JSON":            {"", `{"device_id":"d","account_uuid":"","session_id":"` + id + `"}`, id},
		"nothing":         {"", "", ""},
		"something else":  {"", "user_abc", ""},
		"JSON without it": {"", `{"device_id":"d"}`, ""},
	} {
		if got := sessionOf(tc.header, tc.user); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
	s, url := serve(t, Options{})
	user, err := json.Marshal("user_abc_account__session_" + id)
	if err != nil {
		t.Fatal(err)
	}
	post(t, url+"/v1/messages", ask("say: hi", `,"metadata":{"user_id":`, string(user), `}`))
	if got := s.Bill().Session(id).Total.Calls; got != 1 {
		t.Errorf("%d calls billed to the session, want 1", got)
	}
}

func TestEchoAndHelp(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{})
	for prompt, want := range map[string]string{
		"what is the moon made of":                         "You said: “what is the moon made of”. ",
		"[Alice in #general]: what is the moon made of":    "You said: “what is the moon made of”. ",
		"<@U12> hello":                                     "Hello! ",
		"[Bob]: @deckhand help":                            "Hello! ",
		"slow: 100000\n" + strings.Repeat("long ", 50):     "You said: “long long",
		"slow: 100000\nhello":                              "Hello! ",
		"usage: {}":                                        "Done.",
		"<system-reminder>hello</system-reminder>\nthanks": "You're welcome",
	} {
		if got := said(t, post(t, url+"/v1/messages", ask(prompt))); !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %q, want %q…", prompt, got, want)
		}
	}
	if got := said(t, post(t, url+"/v1/messages", ask(strings.Repeat("word ", 100)))); !strings.Contains(got, "…”") || len(got) > 400 {
		t.Errorf("a long message is not cut: %q", got)
	}
}

func TestHelperCalls(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{})
	const title = `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"title":{"type":"string"},"n":{"type":"integer"},"ok":{"type":"boolean"},"kind":{"enum":["a","b"]},"list":{"type":"array"}}}}}`
	for name, tc := range map[string]struct{ body, want string }{
		"title":       {ask("<session>\nfix the failing test please and hurry\n</session>\n\nWrite the title in …", title), `{"kind":"a","list":[],"n":0,"ok":false,"title":"Fix the failing test please"}`},
		"quota":       {`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"quota"}]}`, "#"},
		"topic":       {ask("fix it", `,"system":"Format as JSON with two fields: 'isNewTopic' and 'title'"`), `{"isNewTopic":true,"title":"Fix it"}`},
		"plain title": {ask("mend the sails", `,"system":[{"type":"text","text":"Write a title"}]`), "Mend the sails"},
		"search":      {ask("Perform a web search for the query: golang", `,"tools":[{"name":"web_search","type":"web_search_20250305"}]`), "I searched, but the playground has no way out: there are no results."},
		"summary":     {ask("Your task is to create a detailed summary of the conversation so far"), "<analysis>\nThe conversation was short.\n</analysis>\n\n<summary>\n1. Primary request and intent:\n</summary>"},
	} {
		if got := said(t, post(t, url+"/v1/messages", tc.body, "X-Claude-Code-Session-Id", name)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		bill := s.Bill().Session(name)
		billed := bill.Total
		if name == "quota" {
			billed = bill.Probes
		}
		if billed.Calls != 1 || billed.NanoUSD == 0 {
			t.Errorf("%s is not billed: %+v", name, bill)
		}
	}
	if got := s.Bill().Session("search").Total.WebSearchRequests; got != 1 {
		t.Errorf("%d web searches billed, want 1", got)
	}
}

func TestAnErrorDirectiveAnswersOnce(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{})
	body := ask("error: 529\nerror: 500\nsay: at last")
	for _, want := range []int{529, 500, 200, 200} {
		if got := post(t, url+"/v1/messages", body, "X-Claude-Code-Session-Id", "a"); got.Status != want {
			t.Errorf("status %d, want %d", got.Status, want)
		}
	}
	if got := post(t, url+"/v1/messages", body, "X-Claude-Code-Session-Id", "b"); got.Status != 529 {
		t.Errorf("another session gets %d, want its own 529", got.Status)
	}
	if got := s.Bill().Session("a").Total.Calls; got != 2 {
		t.Errorf("%d calls billed, want the 2 that were answered", got)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{})
	url += "/v1/messages"
	control := httptest.NewServer(s.Control())
	t.Cleanup(control.Close)

	if got := post(t, control.URL+"/_control/faults", `[{"status":529,"times":2,"retry_after":7},{"match":"Boom","status":400,"message":"prompt is too long","times":1}]`); got.Status != 200 {
		t.Fatal(got.Body)
	}
	got := post(t, url, ask("say: hi"))
	if got.Status != 529 || got.Header.Get("Retry-After") != "7" || !strings.Contains(got.Body, `"overloaded_error"`) {
		t.Errorf("got %+v", got)
	}
	post(t, url, ask("say: hi"))
	if got := said(t, post(t, url, ask("say: hi"))); got != "hi" {
		t.Errorf("after two: %q", got)
	}
	if got := post(t, url, ask("say: boom")); got.Status != 400 || !strings.Contains(got.Body, "prompt is too long") {
		t.Errorf("got %+v", got)
	}

	s.SetFaults([]Fault{{CutAfterChars: 20, Times: 1, Session: "x"}})
	if _, err := tryPost(t.Context(), url, ask("fill: 100", streamed)); err != nil {
		t.Errorf("another session was cut: %v", err)
	}
	if _, err := tryPost(t.Context(), url, ask("fill: 100", streamed), "X-Claude-Code-Session-Id", "x"); err == nil {
		t.Error("the stream was not cut")
	}
	if got := s.Bill().Session("x").Total; got.Calls != 1 || got.Output != 7 {
		t.Errorf("a cut stream of 20 characters is billed as %+v, want 7 tokens of output", got)
	}

	s.SetFaults([]Fault{{CutAfterBytes: 100, Times: 1}})
	if r, err := tryPost(t.Context(), url, ask("fill: 100", streamed)); err == nil || len(r.Body) != 100 {
		t.Errorf("got %d bytes and %v, want 100 and an error", len(r.Body), err)
	}

	s.SetFaults([]Fault{{Garbage: true, Times: 1}})
	if got := post(t, url, ask("say: hi", streamed)); json.Valid([]byte(got.Body)) || strings.Contains(got.Body, "event:") {
		t.Errorf("not garbage: %q", got.Body)
	}

	s.SetFaults([]Fault{{Mute: true, Times: 1}})
	if got := post(t, url, ask("say: hi", streamed), "X-Claude-Code-Session-Id", "mute"); strings.Contains(got.Body, "_tokens") || s.Bill().Session("mute").Total.Output == 0 {
		t.Errorf("an answer that tells no usage: %q, billed as %+v", got.Body, s.Bill().Session("mute"))
	}

	s.SetFaults([]Fault{{Hang: Duration(time.Hour)}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := tryPost(ctx, url, ask("say: hi"))
		done <- err
	}()
	cancel()
	if err := <-done; err == nil {
		t.Error("a hanging call answered")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, control.URL+"/_control/faults", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if left := s.Faults(); len(left) != 0 {
		t.Errorf("faults left after DELETE: %+v", left)
	}
	for body, want := range map[string]int{`{"hang":"5s","status":500}`: 200, `{"hang":1.5}`: 200, `{"hang":"soon"}`: 400, `nope`: 400} {
		if got := post(t, control.URL+"/_control/faults", body); got.Status != want {
			t.Errorf("POST %s: %d, want %d: %s", body, got.Status, want, got.Body)
		}
	}
}

func TestAStalledStreamEndsWithItsClient(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{})
	s.SetFaults([]Fault{{StallAfterChars: 24}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/messages", strings.NewReader(ask("fill: 1000", streamed)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", "k")
	req.Header.Set("X-Claude-Code-Session-Id", "stalled")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	got := 0
	for lines := bufio.NewScanner(resp.Body); got < 24 && lines.Scan(); {
		var e struct {
			Delta struct{ Text string } `json:"delta"`
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Fatal(err)
			}
			got += len(e.Delta.Text)
		}
	}
	cancel()
	var total Tally
	for total.Calls == 0 { // the server learns of it a moment later
		time.Sleep(time.Millisecond)
		total = s.Bill().Session("stalled").Total
	}
	if total.Output != 8 {
		t.Errorf("24 characters are billed as %d tokens, want 8", total.Output)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{})
	start := time.Now()
	post(t, url+"/v1/messages", ask("slow: 200\nfill: 60", streamed))
	if took := time.Since(start); took < 300*time.Millisecond {
		t.Errorf("60 characters at 200 a second took %s", took)
	}
	if _, err := New(Options{CharsPerSecond: -1}); err == nil {
		t.Error("a negative pace was accepted")
	}
}

func TestPaceOfScriptsCountsOnlyWhenThereIsAPace(t *testing.T) {
	t.Parallel()
	for pace, want := range map[int]int{0: 0, 1000: 30} {
		s, err := New(Options{CharsPerSecond: pace, Scripts: fstest.MapFS{"a.yaml": {Data: []byte("match: {contains: [x]}\npace: 30\nsteps: [{say: hi}]")}}})
		if err != nil {
			t.Fatal(err)
		}
		st, _, err := s.stepFor(&conversation{Last: "x"})
		if err != nil || st.Pace != want {
			t.Errorf("at %d: pace %d, %v; want %d", pace, st.Pace, err, want)
		}
	}
}

func TestEveryTextComesInSeveralPieces(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{})
	r := post(t, url+"/v1/messages", ask("say: "+strings.Repeat("word ", 12), streamed))
	if n := strings.Count(r.Body, "text_delta"); n < 3 {
		t.Errorf("%d deltas", n)
	}
	r = post(t, url+"/v1/messages", ask("fill: 100000", streamed))
	if n := strings.Count(r.Body, "text_delta"); n > 300 {
		t.Errorf("%d deltas for a long text", n)
	}
}

func TestRecordTo(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	_, url := serve(t, Options{RecordTo: &out})
	post(t, url+"/v1/messages?beta=true", ask("say: hi"), "X-Claude-Code-Session-Id", "s", "X-Api-Key", "sk-secret")
	if strings.Contains(out.String(), "sk-secret") {
		t.Error("the key is in the record")
	}
	var line struct{ Path, Session string }
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(struct{ Path, Session string }{"/v1/messages?beta=true", "s"}, line); diff != "" {
		t.Error(diff)
	}
}
