package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"deckhand/internal/gateway"
)

const (
	realKey = "sk-ant-the-real-key-of-the-team"
	call    = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
)

// provider is a scripted upstream that remembers the heads of calls.
type provider struct {
	*httptest.Server
	calls chan *http.Request
}

func newProvider(t testing.TB, answer http.HandlerFunc) *provider {
	p := &provider{calls: make(chan *http.Request, 100)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.calls <- r
		if answer != nil {
			answer(w, r)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(p.Close)
	return p
}

// folder is a short one: a socket's path has 108 bytes.
func folder(t testing.TB) string {
	dir, err := os.MkdirTemp("", "gw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// outer is a gateway, and the bot's environment.
type outer struct {
	*gateway.Gateway
	env map[string]string
}

func (o *outer) getenv(name string) string { return o.env[name] }

func (o *outer) set(env []string) {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		o.env[name] = value
	}
}

func newGateway(t testing.TB, log *zap.Logger, env ...string) *outer {
	t.Helper()
	o := &outer{env: map[string]string{}}
	o.set(env)
	var err error
	o.Gateway, err = gateway.New(gateway.Options{Dir: filepath.Join(folder(t), "gateway"), Getenv: o.getenv, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// caller is what is inside: it knows the environment and can reach the socket.
type caller struct {
	*gateway.Session
	meter  *meter
	env    map[string]string
	client *http.Client
}

// open opens a session of the provider that the environment chooses.
func open(t testing.TB, g *outer, env ...string) *caller {
	t.Helper()
	g.set(env)
	return openFor(t, g, gateway.Provider{})
}

// openFor opens a session of a provider.
func openFor(t testing.TB, g *outer, p gateway.Provider) *caller {
	t.Helper()
	var all []string
	for name, value := range g.env { // whatever was there is gone
		all = append(all, name+"="+value)
	}
	m := newMeter()
	s, err := g.Open(t.Context(), gateway.Opening{Provider: p, Env: all, Meter: m})
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{Session: s, env: map[string]string{}, meter: m}
	for _, entry := range s.Env() {
		name, value, _ := strings.Cut(entry, "=")
		c.env[name] = value
	}
	c.client = &http.Client{
		Transport: &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", c.env["ANTHROPIC_UNIX_SOCKET"])
		}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	t.Cleanup(c.client.CloseIdleConnections)
	t.Cleanup(s.Close)
	return c
}

// request is a call as the CLI makes it.
func (c *caller) request(method, path, body string) *http.Request {
	base := c.env["ANTHROPIC_BASE_URL"]
	if strings.HasPrefix(path, "http://") {
		base = ""
	}
	r, err := http.NewRequest(method, base+path, strings.NewReader(body)) //nolint:noctx // a test's
	if err != nil {
		panic(err)
	}
	name, value, _ := strings.Cut(c.env["ANTHROPIC_CUSTOM_HEADERS"], ": ")
	r.Header.Set(name, value)
	if key := c.env["ANTHROPIC_API_KEY"]; key != "" {
		r.Header.Set("X-Api-Key", key)
	}
	if token := c.env["CLAUDE_CODE_OAUTH_TOKEN"]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

// do returns status and body.
func (c *caller) do(t testing.TB, r *http.Request) (int, string) {
	t.Helper()
	resp, err := c.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read whole
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestTheCredentialIsAddedOutside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		env  []string
		ask  func(*http.Request)
		want http.Header // of what the provider hears
	}{
		{"an API key", []string{"ANTHROPIC_API_KEY=" + realKey}, nil, http.Header{"X-Api-Key": {realKey}}},
		{"an OAuth token", []string{"CLAUDE_CODE_OAUTH_TOKEN=" + realKey}, nil, http.Header{"Authorization": {"Bearer " + realKey}}},
		{"a token and a key", []string{"ANTHROPIC_API_KEY=other-key", "ANTHROPIC_AUTH_TOKEN=" + realKey}, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer deckhand-holds-anthropic_auth_token")
		}, http.Header{"Authorization": {"Bearer " + realKey}, "X-Api-Key": {"other-key"}}},
		{
			"headers of the team's gateway",
			[]string{"ANTHROPIC_API_KEY=" + realKey, "ANTHROPIC_CUSTOM_HEADERS=x-litellm-key: one\nX-Team: two"},
			nil,
			http.Header{"X-Api-Key": {realKey}, "X-Litellm-Key": {"one"}, "X-Team": {"two"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, nil)
			s := open(t, newGateway(t, nil), append(c.env, "ANTHROPIC_BASE_URL="+p.URL)...)
			for name, value := range s.env {
				if strings.Contains(value, realKey) || strings.Contains(value, p.URL) || strings.Contains(value, "litellm") {
					t.Errorf("%s=%s is known inside", name, value)
				}
			}
			r := s.request(http.MethodPost, "/v1/messages?beta=true", call)
			r.Header.Set("Anthropic-Beta", "claude-code-20250219,fast-mode-2026-02-01, effort-2025-11-24")
			for _, name := range []string{"Anthropic-Workspace-Id", "Anthropic-Example", "X-Claude-Example", "X-Stainless-Example"} {
				r.Header.Set(name, "x")
			}
			r.Header.Set("Cookie", "c=d")
			r.Header.Set("X-Forwarded-For", "1.2.3.4")
			if c.ask != nil {
				c.ask(r)
			}
			if status, body := s.do(t, r); status != http.StatusOK || body != call {
				t.Fatalf("%d %s", status, body)
			}
			got := <-p.calls
			if got.URL.String() != "/v1/messages?beta=true" || got.Host != strings.TrimPrefix(p.URL, "http://") {
				t.Errorf("the call went to %s%s", got.Host, got.URL)
			}
			c.want["Anthropic-Beta"], c.want["Content-Type"], c.want["User-Agent"] = []string{"claude-code-20250219,effort-2025-11-24"}, []string{"application/json"}, []string{"Go-http-client/1.1"}
			got.Header.Del("Content-Length")
			if diff := cmp.Diff(c.want, got.Header); diff != "" {
				t.Error("headers:", diff)
			}
		})
	}
}

func TestOnlyCallsOfTheModelPass(t *testing.T) {
	t.Parallel()
	p := newProvider(t, nil)
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		want   int
	}{
		{"without a token", func(r *http.Request) { r.Header.Del("X-Deckhand-Token") }, 401},
		{"with another session's", func(r *http.Request) { r.Header.Set("X-Deckhand-Token", strings.Repeat("0", 64)) }, 401},
		{"with a key of its own", func(r *http.Request) { r.Header.Set("X-Api-Key", "sk-ant-attacker") }, 401},
		{"with a bearer of its own", func(r *http.Request) { r.Header.Set("Authorization", "Bearer attacker") }, 401},
		{"another path", func(r *http.Request) { r.URL.Path = "/v1/files" }, 404},
		{"a path below", func(r *http.Request) { r.URL.Path = "/v1/messages/batches" }, 404},
		{"a way round", func(r *http.Request) { r.URL.Path = "/v1/files/../messages" }, 404},
		{"an escaped path", func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/v1/messages", "/v1%2Fmessages" }, 404},
		{"the root", func(r *http.Request) { r.URL.Path = "/" }, 404},
		{"another query", func(r *http.Request) { r.URL.RawQuery = "beta=true&x=y" }, 404},
		{"another provider's form", func(r *http.Request) { r.URL.Path = "/model/m/invoke" }, 404},
		{"GET", func(r *http.Request) { r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0 }, 405},
		{"an unknown length", func(r *http.Request) { r.ContentLength = -1 }, 411},
		{"no JSON", func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("hi")), 2 }, 402},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.request(http.MethodPost, "/v1/messages", call)
			c.change(r)
			status, body := s.do(t, r)
			if status != c.want || !strings.HasPrefix(body, `{"type":"error","error":{"type":"`) {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	if n := len(p.calls); n != 0 {
		t.Errorf("the provider heard of %d calls", n)
	}
}

// TestOddRequests: what no library would send is refused, or ends the connection. Whatever it
// is, the provider hears of nothing but whole calls of its own form, with headers and
// parameters of the list.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	p := newProvider(t, nil)
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	head := "Host: x\r\n" + s.env["ANTHROPIC_CUSTOM_HEADERS"] + "\r\nX-Api-Key: " + s.env["ANTHROPIC_API_KEY"] + "\r\nConnection: close\r\n"
	post := func(target, more, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n%s", target, head, more, len(body), body)
	}
	raw := map[string]string{}
	for _, target := range []string{
		"/v1/messages/", "//v1/messages", "/v1//messages", "/v1/./messages", "/v1/messages/.", "/v1/x/../messages", "/V1/messages", "/v1/Messages", "/v1/messages%00", "/v1/messages%20", "/v1/messages;x=y",
		"/v1/messages%3Fbeta=true", "/v1/%6dessages", "/v1%2fmessages", "/v1%5cmessages", "/v1/messages%2fbatches", "/v1/messages%252f..%252ffiles", "/v1/messages?beta=true&beta=false", "/v1/messages?beta=True",
		"/v1/messages?beta=true%00", "/v1/messages?beta=true;service_tier=priority", "/v1/messages?service_tier=priority", "/v1/messages?beta=true#x", "/v1/messages/count_tokens/x", "/v1/messages/count_tokens/../../files",
		"/v1/messages\xc0\xafx", "/v1/messages/batches", "/v1/complete", "/v1/models", "/v1/files", "/v1/organizations/usage", "/v1/sessions", "*", "v1/messages", "http://x/../v1/messages", "x:80",
	} {
		raw["POST "+target] = post(target, "", call)
	}
	for _, method := range []string{"CONNECT", "TRACE", "OPTIONS", "PUT", "PATCH", "DELETE", "HEAD", "post", "POST\tX", "PRI"} {
		raw[method] = strings.Replace(post("/v1/messages", "", call), "POST ", method+" ", 1)
	}
	for _, more := range []string{
		"Content-Length: 0\r\n", "Content-Length: +5\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: identity, chunked\r\n", "Transfer-Encoding : chunked\r\n", "X\x00Y: z\r\n",
		"Authorization: Bearer attacker\r\n", "Api-Key: attacker\r\n", "api-key: attacker\r\n", "Authorization: Basic YTpi\r\n", "X-Deckhand-Token\r\n", ": empty\r\n", "Content-Encoding\x01: gzip\r\n",
	} {
		raw["with "+strconv.Quote(more)] = post("/v1/messages", more, call)
	}
	for _, body := range []string{
		`{"model":"m","service_tier":"auto","messages":[]}`, `{"model":"m","Service_Tier":"priority","messages":[]}`, `{"model":"m","speed":"fast"}`, `{"model":"m","workspace_id":"w"}`, `{"model":"m","inference_geo":"eu"}`,
		`{"model":"m","model":"other","messages":[]}`, `{"model":"m","serv\u0069ce_tier":"priority"}`, `{"model":"m","betas":["fast-mode-2026-02-01"]}`, `{"model":"m","extra_body":{}}`, `{"model":"m","store":true}`,
		`{"model":"m","messages":[{"role":"system","content":[{"type":"tools","tools":[{"type":"web_fetch_20250910"}]}]}]}`, `{"model":"m","messages":[{"role":"system","content":[{"type":"tool_change","tool":{"type":"code_execution_20250825"}}]}]}`,
		"\xef\xbb\xbf" + call, call + "\x00", "\x1f\x8b\x08\x00" + call, "[" + call + "]", `"` + "x" + `"`, "null", `{"model":"m","messages":[]} // `, `{"model":"m",}`, `{'model':'m'}`,
	} {
		raw["the body "+strconv.Quote(body)] = post("/v1/messages", "", body)
	}
	for name, text := range raw {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", s.Socket())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, text) // it may be cut
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && resp.StatusCode < 300 {
			t.Errorf("%s: %s", name, resp.Status)
		}
		_ = conn.Close()
	}
	t.Logf("%d odd requests", len(raw))
	if n := len(p.calls); n != 0 {
		t.Errorf("the provider heard of %d calls: %v", n, (<-p.calls).URL)
	}
}

func TestACallThatIsTooLargeIsNotRead(t *testing.T) {
	t.Parallel()
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL=http://127.0.0.1:1", "ANTHROPIC_API_KEY="+realKey)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", s.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test's
	fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: %d\r\n\r\n", s.env["ANTHROPIC_CUSTOM_HEADERS"], 1<<40)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Error(resp.Status)
	}
}

// What the provider would fetch is a way round the sandbox's network.
func TestTheProviderFetchesNothing(t *testing.T) {
	t.Parallel()
	p := newProvider(t, nil)
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	for _, body := range []string{
		`{"mcp_servers":[{"type":"url","url":"https://attacker"}],"messages":[]}`,
		`{"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`,
		`{"tools":[{"name":"a"},{"type":"code_execution_20250825"}]}`,
		`{"tools":[{"type":"mcp_toolset"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://attacker"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"url":"https://attacker","typ\u0065":"url"}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"document","source":{"type":"url"}}]}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url"}}]}}]}]}`,
		`{"tools":[],"tools":[{"type":"web_fetch_20250910"}]}`,
		`{"messages":[],"speed":"fast"}`, `{"messages":[],"service_tier":"priority"}`, `{"messages":[],"inference_geo":"us"}`, `{"messages":[],"container":"c"}`,
		`{"messages":[],"anthropic_beta":["fast-mode-2026-02-01"]}`, `{"messages":[],"fallbacks":[{"model":"m","speed":"fast"}]}`, `{"messages":[],"fallbacks":["m"]}`,
		`{"messages":[]}{"messages":[]}`, `[]`, `{"messages":[`, ``,
	} {
		status, answer := s.do(t, s.request(http.MethodPost, "/v1/messages", body))
		if status != http.StatusPaymentRequired && body != "" {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if n := len(p.calls); n != 0 {
		t.Fatalf("the provider heard of %d calls", n)
	}
	status, answer := s.do(t, s.request(http.MethodPost, "/v1/messages", `{"model":"m","messages":[{"content":[{"tools":[{"type":"web_search_20250305"}]}]}]}`))
	if e := s.meter.last(); status != http.StatusOK || !e.Search {
		t.Errorf("a search is not told as one: %d %s, %+v", status, answer, e)
	}
	<-p.calls
	for _, body := range []string{
		`{"mcp_servers":[],"tools":[{"name":"Bash","input_schema":{"type":"object","properties":{"source":{"type":"url"}}}},{"type":"web_search_20250305"}]}`,
		`{"messages":[{"role":"assistant","content":[{"type":"tool_use","input":{"source":{"type":"url"}}}]},{"role":"user","content":"{\"source\":{\"type\":\"url\"}}\ud800"}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}`,
		`{"messages":null,"tools":null,"mcp_servers":null}`,
	} {
		if status, answer := s.do(t, s.request(http.MethodPost, "/v1/messages", body)); status != http.StatusOK {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
}

func TestErrorsOfTheProvider(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		status int
		want   string
	}{
		{"in its own words", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "7")
			w.Header().Set("X-Litellm-Api-Base", "http://inner")
			w.WriteHeader(529)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
		}, 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		{"that repeat a key", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"invalid key `+realKey+`"}}`)
		}, 401, `{"error":{"message":"invalid key …"}}`},
		{"that are a page", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `<h1>proxy7.corp.example: no route to 10.1.2.3</h1>`)
		}, 503, `{"type":"error","error":{"type":"overloaded_error","message":"The model's provider answers with status 503 and no reason."}}`},
		{"that lead elsewhere", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/attacker", http.StatusTemporaryRedirect)
		}, 502, `{"type":"error","error":{"type":"api_error","message":"The model's provider cannot be reached. An admin finds the reason in the bot's log."}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, c.answer)
			s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
			resp, err := s.client.Do(s.request(http.MethodPost, "/v1/messages", call))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close() //nolint:errcheck // read whole
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status || string(body) != c.want {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
			if resp.Header.Get("X-Litellm-Api-Base")+resp.Header.Get("Location") != "" || (c.status == 529 && resp.Header.Get("Retry-After") != "7") {
				t.Error(resp.Header)
			}
		})
	}
	t.Run("that is not there", func(t *testing.T) {
		t.Parallel()
		seen, log := observer.New(zap.WarnLevel)
		s := open(t, newGateway(t, zap.New(seen)), "ANTHROPIC_BASE_URL=http://127.0.0.1:1", "ANTHROPIC_API_KEY="+realKey)
		status, body := s.do(t, s.request(http.MethodPost, "/v1/messages", call))
		if status != http.StatusBadGateway || strings.Contains(body, "127.0.0.1") || !strings.Contains(body, `"api_error"`) {
			t.Errorf("%d %s", status, body)
		}
		if log.FilterField(zap.String("host", "127.0.0.1:1")).Len() != 1 {
			t.Error(log.All())
		}
	})
}

// events streams what it is told to, event by event.
func events(said <-chan string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		flush(w)
		for {
			select {
			case e, ok := <-said:
				if !ok {
					panic(http.ErrAbortHandler)
				}
				_, _ = io.WriteString(w, e)
				flush(w)
			case <-r.Context().Done():
				return
			}
		}
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// stream asks for a stream and returns its reader.
func (c *caller) stream(t testing.TB) *bufio.Reader {
	t.Helper()
	resp, err := c.client.Do(c.request(http.MethodPost, "/v1/messages", call))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return bufio.NewReader(resp.Body)
}

func TestEventsArriveAsTheyAreSent(t *testing.T) {
	t.Parallel()
	said := make(chan string)
	p := newProvider(t, events(said))
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	r := s.stream(t)
	for i := range 100 {
		event := fmt.Sprintf("data: %d\n", i)
		said <- event // the next is sent when this one has arrived
		if got, err := r.ReadString('\n'); got != event || err != nil {
			t.Fatal(got, err)
		}
	}
	close(said)
	if rest, err := io.ReadAll(r); err == nil {
		t.Errorf("a stream that broke off looks complete: %q", rest)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil)
	left := make(chan struct{}, 2)
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		flush(w)
		<-r.Context().Done()
		left <- struct{}{}
	})
	one := open(t, g, "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	two := open(t, g, "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	first, second := one.stream(t), two.stream(t)
	one.meter.last().Cut()
	one.Close()
	one.Close()
	<-left
	if _, err := first.ReadByte(); err == nil {
		t.Error("the stream goes on")
	}
	if _, err := os.Stat(filepath.Dir(one.Socket())); !os.IsNotExist(err) {
		t.Error(err)
	}
	if _, err := one.client.Do(one.request(http.MethodPost, "/v1/messages", call)); err == nil {
		t.Error("a closed session's socket answers")
	}
	g.Close()
	<-left
	if _, err := second.ReadByte(); err == nil {
		t.Error("the stream goes on")
	}
	if _, err := g.Open(t.Context(), gateway.Opening{}); err == nil {
		t.Error("a closed gateway opens a session")
	}
}

// What costs nothing is read for nobody.
func TestWhoLeavesEndsACallThatCostsNothing(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		flush(w)
		<-r.Context().Done()
		close(left)
	})
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := s.client.Do(s.request(http.MethodPost, "/v1/messages/count_tokens", call).WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is cut
	cancel()
	<-left
}

// What makes calls without an end costs its own session, and not the bot: neither open
// files nor lines of the log.
func TestManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	seen, log := observer.New(zap.WarnLevel)
	s := open(t, newGateway(t, zap.New(seen)), "ANTHROPIC_API_KEY="+realKey)
	for range 50 {
		if status, _ := s.do(t, s.request(http.MethodGet, "/", "")); status != http.StatusNotFound {
			t.Fatal(status)
		}
	}
	if n := log.Len(); n != 3 {
		t.Errorf("%d lines in the log", n)
	}
}

// A call is kept until it has left, not until it is answered.
func TestBodiesAreFreedWhenTheyHaveLeft(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		flush(w)
		<-r.Context().Done()
	})
	s := open(t, newGateway(t, nil), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	large := `{"messages":[{"role":"user","content":"` + strings.Repeat("a", 30<<20) + `"}]}`
	for range 4 { // two of them fit
		resp, err := s.client.Do(s.request(http.MethodPost, "/v1/messages", large))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() }) // all stay open
	}
}

func TestTheFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(folder(t), "gateway")
	if err := os.MkdirAll(filepath.Join(dir, "left"), 0o700); err != nil {
		t.Fatal(err)
	}
	g := &outer{env: map[string]string{}}
	var err error
	if g.Gateway, err = gateway.New(gateway.Options{Dir: dir, Getenv: g.getenv}); err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	s := open(t, g, "ANTHROPIC_API_KEY="+realKey)
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if got := mode(dir); got != 0o700 {
		t.Errorf("the gateway's folder: %o", got)
	}
	if got := mode(s.Socket()); got != 0o666 {
		t.Errorf("the socket: %o", got)
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v %v: what an earlier run left is still there", all, err)
	}
	if _, err := gateway.New(gateway.Options{Dir: "/" + strings.Repeat("d", 200)}); err == nil || !strings.Contains(err.Error(), "choose a shorter DECKHAND_DATA_DIR") {
		t.Error(err)
	}
}
