package slack_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"deckhand/internal/playground/slack"
)

// The tests in this file and its kin run in a synctest bubble: the network is
// in memory, so that minutes of waiting take no time and nothing depends on a
// wall clock.

// memory is a listener whose connections are pipes.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8065} }

func (m *memory) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case m.conns <- far:
		return near, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// fast is a workspace in a bubble, with bare clients.
type fast struct {
	t    *testing.T
	srv  *slack.Server
	net  *memory
	http *http.Client

	stopWeb func()
}

// inBubble runs a test against a workspace in a synctest bubble.
func inBubble(t *testing.T, o slack.Options, test func(t *testing.T, f *fast)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// A bubble begins in 2000, when timestamps had a digit less.
		time.Sleep(time.Until(time.Date(2025, time.March, 1, 9, 0, 0, 0, time.UTC)))
		test(t, newFast(t, o))
	})
}

// newFast starts a workspace inside a bubble.
func newFast(t *testing.T, o slack.Options) *fast {
	t.Helper()
	srv, err := slack.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
	web := &http.Server{Handler: srv.Handler(), ReadHeaderTimeout: time.Minute}
	var wg sync.WaitGroup
	wg.Go(func() { _ = web.Serve(m) })
	tr := &http.Transport{DialContext: m.dial}
	f := &fast{t: t, srv: srv, net: m, http: &http.Client{Transport: tr}}
	t.Cleanup(f.stop)
	f.stopWeb = func() {
		tr.CloseIdleConnections()
		_ = web.Close()
		wg.Wait()
		time.Sleep(time.Second) // net/http lingers on a connection whose request was too large
	}
	return f
}

// stop closes the workspace; it is harmless twice.
func (f *fast) stop() {
	if err := f.srv.Close(context.WithoutCancel(f.t.Context())); err != nil {
		f.t.Errorf("Close: %v", err)
	}
	f.stopWeb()
}

const base = "http://127.0.0.1:8065"

// do makes a request and decodes the answer. It may be used in any goroutine.
func (f *fast) do(method, path, kind, token, body string) (*http.Response, obj) {
	f.t.Helper()
	resp, out, err := f.try(method, path, kind, token, body)
	if err != nil {
		f.t.Errorf("%s %s: %v", method, path, err)
		return &http.Response{Header: http.Header{}}, obj{}
	}
	return resp, out
}

func (f *fast) try(method, path, kind, token, body string) (*http.Response, obj, error) {
	req, err := http.NewRequestWithContext(f.t.Context(), method, base+path, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := f.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	raw, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		return nil, nil, err
	}
	var out obj
	if json.Unmarshal(raw, &out) != nil {
		out = obj{"text": string(raw)}
	}
	return resp, out, nil
}

// call calls a Web API method as the app and returns the answer.
func (f *fast) call(method string, args obj) obj {
	f.t.Helper()
	_, out := f.do("POST", "/api/"+method, "application/json; charset=utf-8", f.srv.BotToken(), encode(f.t, args))
	return out
}

// ok is call for what must succeed.
func (f *fast) ok(method string, args obj) obj {
	f.t.Helper()
	out := f.call(method, args)
	if out["ok"] != true {
		f.t.Fatalf("%s %v: %v", method, args, out)
	}
	return out
}

// fails is call for what must end with an error code.
func (f *fast) fails(method, code string, args obj) obj {
	f.t.Helper()
	out := f.call(method, args)
	if out["ok"] != false || out["error"] != code {
		f.t.Errorf("%s: %v, want the error %s", method, out, code)
	}
	return out
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return string(raw)
}

// control calls the control API.
func (f *fast) control(path string, in obj) obj {
	f.t.Helper()
	method, body := "POST", encode(f.t, in)
	if in == nil {
		method, body = "GET", ""
	}
	resp, out := f.do(method, "/_control/"+path, "application/json", "", body)
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("%s: %d %v", path, resp.StatusCode, out)
	}
	return out
}

// refused calls the control API and expects a sentence.
func (f *fast) refused(path string, in obj) string {
	f.t.Helper()
	method, body := "POST", encode(f.t, in)
	if in == nil {
		method, body = "GET", ""
	}
	resp, out := f.do(method, "/_control/"+path, "application/json", "", body)
	if resp.StatusCode != http.StatusBadRequest {
		f.t.Fatalf("%s %v: %d %v, want 400", path, in, resp.StatusCode, out)
	}
	return out["error"].(string)
}

func (f *fast) say(user, channel, text, thread string) string {
	f.t.Helper()
	return f.control("messages", obj{"user": user, "channel": channel, "text": text, "thread_ts": thread})["ts"].(string)
}

// envelope is a frame of Socket Mode and when it came.
type envelope struct {
	obj
	at   time.Time
	sock *sock
}

func (e envelope) id() string { s, _ := e.obj["envelope_id"].(string); return s }

// sock is a bare Socket Mode connection; frames are collected by its reader.
type sock struct {
	t    *testing.T
	conn *websocket.Conn
	in   chan envelope
	gone chan struct{}
}

// open asks for an address and connects to it.
func (f *fast) open() *sock {
	f.t.Helper()
	return f.dial(f.address(), nil)
}

// address asks where to connect.
func (f *fast) address() string {
	f.t.Helper()
	_, out := f.do("POST", "/api/apps.connections.open", "application/x-www-form-urlencoded", f.srv.AppToken(), "")
	return out["url"].(string)
}

// dial connects to an address; setup may change the connection first.
func (f *fast) dial(url string, setup func(*websocket.Conn)) *sock {
	f.t.Helper()
	d := websocket.Dialer{NetDialContext: f.net.dial}
	conn, resp, err := d.DialContext(f.t.Context(), url, nil)
	if err != nil {
		f.t.Fatalf("dial: %v", err)
	}
	_ = resp.Body.Close()
	if setup != nil {
		setup(conn)
	}
	s := &sock{t: f.t, conn: conn, in: make(chan envelope, 1000), gone: make(chan struct{})}
	go func() {
		defer close(s.gone)
		for {
			_, raw, err := conn.ReadMessage()
			if err != nil {
				_ = conn.Close()
				return
			}
			var o obj
			if json.Unmarshal(raw, &o) == nil {
				s.in <- envelope{o, time.Now(), s}
			}
		}
	}()
	return s
}

// next waits for a frame.
func (s *sock) next() envelope {
	s.t.Helper()
	select {
	case e := <-s.in:
		return e
	case <-time.After(time.Hour):
		s.t.Fatal("no frame in an hour")
		return envelope{}
	}
}

// none checks that no frame comes for a while.
func (s *sock) none(d time.Duration) {
	s.t.Helper()
	select {
	case e := <-s.in:
		s.t.Fatalf("an unexpected frame: %v", e.obj)
	case <-time.After(d):
	}
}

func (s *sock) ack(e envelope, payload any) {
	s.t.Helper()
	o := obj{"envelope_id": e.id()}
	if payload != nil {
		o["payload"] = payload
	}
	err := s.conn.WriteMessage(websocket.TextMessage, []byte(encode(s.t, o)))
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) && !errors.Is(err, io.ErrClosedPipe) { // the connection has ended
		s.t.Errorf("ack: %v", err)
	}
}

// hello connects and checks the greeting.
func (f *fast) hello() *sock {
	f.t.Helper()
	s := f.open()
	if e := s.next(); e.obj["type"] != "hello" || dig(f.t, e.obj, "connection_info/app_id") != slack.AppID {
		f.t.Fatalf("hello: %v", e.obj)
	}
	return s
}

// serve acknowledges everything, with what answer says, until the connection ends.
func (s *sock) serve(answer func(envelope) any) {
	go func() {
		for {
			select {
			case e := <-s.in:
				if e.id() == "" {
					continue
				}
				var payload any
				if answer != nil {
					payload = answer(e)
				}
				s.ack(e, payload)
			case <-s.gone:
				return
			}
		}
	}()
}

// events follows GET /_control/events until the test ends.
func (f *fast) events() <-chan obj {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	f.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/_control/events", http.NoBody)
	if err != nil {
		f.t.Fatal(err)
	}
	resp, err := f.http.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	out := make(chan obj, 1000)
	go func() {
		defer close(out)
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewReader(resp.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				if !errors.Is(err, io.EOF) && ctx.Err() == nil && !errors.Is(err, io.ErrUnexpectedEOF) {
					f.t.Errorf("events: %v", err)
				}
				return
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				var o obj
				if err := json.Unmarshal([]byte(data), &o); err != nil {
					f.t.Errorf("event %q: %v", data, err)
				}
				out <- o
			}
		}
	}()
	if first := <-out; first["kind"] != "hello" {
		f.t.Fatalf("first event: %v", first)
	}
	return out
}

// await reads events until one of a kind comes.
func await(t *testing.T, ch <-chan obj, kind string) obj {
	t.Helper()
	for {
		select {
		case e, ok := <-ch:
			if !ok {
				t.Fatalf("the events ended before a %s", kind)
			}
			if e["kind"] == kind {
				return e
			}
		case <-time.After(time.Hour):
			t.Fatalf("no %s in an hour", kind)
		}
	}
}
