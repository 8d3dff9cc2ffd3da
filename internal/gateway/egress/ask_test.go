package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// notes is an asker that notes what it is told.
type notes struct{ asked, left chan *Question }

func newNotes() *notes { return &notes{make(chan *Question, 1000), make(chan *Question, 1000)} }

func (n *notes) Ask(q *Question)  { n.asked <- q }
func (n *notes) Left(q *Question) { n.left <- q }

// bubbled is a session without a socket, whose connections are calls of ask.
type bubbled struct {
	*Session
	notes *notes
	end   context.CancelFunc
}

func newBubbled() *bubbled {
	ctx, cancel := context.WithCancel(context.Background())
	b := &bubbled{&Session{proxy: &Proxy{hold: holdTime}, options: Options{Project: "shop", Ask: true}, ctx: ctx}, newNotes(), cancel}
	b.OnAsk(b.notes)
	return b
}

// comes is a connection that wants to go somewhere; what became of it is sent.
func (b *bubbled) comes(ctx context.Context, authority string) <-chan string {
	out := make(chan string, 1)
	t, err := readTarget(authority, 0)
	if err != nil {
		out <- err.Error()
		return out
	}
	go func() {
		a, err := b.ask(ctx, t)
		switch {
		case err != nil:
			out <- err.Error()
		case a.asked && !a.internal:
			out <- "in"
		}
	}()
	synctest.Wait()
	return out
}

func TestConnectionsWaitForAnAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		then func(b *bubbled, q *Question)
		want string
		left int // questions that nobody waits for
	}{
		"allowed":  {func(_ *bubbled, q *Question) { q.Answer(Answer{Allow: true}) }, "in", 0},
		"denied":   {func(_ *bubbled, q *Question) { q.Answer(Answer{Refusal: "no,\r\nset-cookie: x"}) }, "no,  set-cookie: x", 0},
		"twice":    {func(_ *bubbled, q *Question) { q.Answer(Answer{Refusal: "no"}); q.Answer(Answer{Allow: true}) }, "no", 0},
		"nobody":   {func(*bubbled, *Question) { time.Sleep(holdTime) }, "nobody has decided about a.example:443 in 10m0s; the question stands, so try again when somebody has", 1},
		"too late": {func(_ *bubbled, q *Question) { time.Sleep(holdTime); synctest.Wait(); q.Answer(Answer{Allow: true}) }, "nobody has decided about a.example:443 in 10m0s; the question stands, so try again when somebody has", 1},
		"the end":  {func(b *bubbled, _ *Question) { b.end() }, context.Canceled.Error(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBubbled()
				defer b.end()
				var all []<-chan string
				for range 3 {
					all = append(all, b.comes(t.Context(), "A.example:443"))
				}
				if n := len(b.notes.asked); n != 1 {
					t.Fatalf("%d questions", n)
				}
				tt.then(b, <-b.notes.asked)
				synctest.Wait()
				for _, c := range all {
					if got := <-c; got != tt.want {
						t.Errorf("%q, not %q", got, tt.want)
					}
				}
				if n := len(b.notes.left); n != tt.left {
					t.Errorf("%d were left", n)
				}
				if b.questions.held != 0 || len(b.questions.open) != 0 {
					t.Errorf("%+v", &b.questions)
				}
			})
		})
	}
}

func TestWhoLeavesWaitsNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubbled()
		defer b.end()
		one, leave := context.WithCancel(t.Context())
		first, second := b.comes(one, "a.example:443"), b.comes(t.Context(), "a.example:443")
		other := b.comes(t.Context(), "a.example:80") // another port is another question
		if len(b.notes.asked) != 2 {
			t.Fatalf("%d questions", len(b.notes.asked))
		}
		leave()
		if got := <-first; got != context.Canceled.Error() || len(b.notes.left) != 0 {
			t.Errorf("%s, %d left", got, len(b.notes.left))
		}
		q := <-b.notes.asked
		if q.Host != "a.example" || q.Port != 443 {
			t.Errorf("%+v", q)
		}
		q.Answer(Answer{Allow: true})
		if got := <-second; got != "in" {
			t.Error(got)
		}
		(<-b.notes.asked).Answer(Answer{Refusal: "no"})
		if got := <-other; got != "no" {
			t.Error(got)
		}
		// What was answered is asked again: whoever answers keeps what holds.
		again := b.comes(t.Context(), "a.example:443")
		(<-b.notes.asked).Answer(Answer{Allow: true})
		if got := <-again; got != "in" {
			t.Error(got)
		}
	})
}

func TestAFloodOfConnectionsIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubbled()
		var held []<-chan string
		for i := range maxHeld {
			held = append(held, b.comes(t.Context(), fmt.Sprintf("h%d.example:443", i)))
		}
		for i := range 1000 {
			if got := <-b.comes(t.Context(), fmt.Sprintf("x%d.example:443", i)); got != fmt.Sprintf("x%d.example:443 is not decided about, and 64 connections wait for decisions already; try again later", i) {
				t.Fatal(got)
			}
		}
		if n := len(b.notes.asked); n != maxHeld {
			t.Errorf("%d questions", n)
		}
		b.end()
		for _, h := range held {
			<-h
		}
	})
}

// What no decision could open is asked of nobody, in whatever spelling it comes.
func TestWhatNobodyIsAskedAbout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBubbled()
		defer b.end()
		for authority, want := range map[string]string{
			"10.0.0.1:80":                     "its address is not public",
			"127.0.0.1:80":                    "its address is not public",
			"169.254.169.254:80":              "its address is not public",
			"[::1]:443":                       "its address is not public",
			"[fd00:ec2::254]:80":              "its address is not public",
			"100.100.100.200:80":              "its address is not public",
			"[::ffff:10.0.0.1]:80":            "not written plainly",
			"[fe80::1%25eth0]:80":             "not written plainly",
			"localhost:8080":                  "it is no name of the public network",
			"nexus:8081":                      "it is no name of the public network",
			"a.localhost:80":                  "it is no name of the public network",
			"printer.local:631":               "it is no name of the public network",
			"METADATA.google.Internal:80":     "it is no name of the public network",
			"router.home.arpa:443":            "it is no name of the public network",
			"a.example.:443":                  "not written plainly",
			"ex\u0430mple.com:443":            "not written plainly",
			"a.example\u202e:443":             "not written plainly",
			"a\n.example:443":                 "not written plainly",
			"user@a.example:443":              "not written plainly",
			"0x7f.1:443":                      "not written plainly",
			"2130706433:443":                  "not written plainly",
			"a.example:0":                     "is no port",
			"a.example:99999":                 "is no port",
			"a.example":                       "it names no port",
			strings.Repeat("a.", 150) + "b:1": "not written plainly",
		} {
			if got := <-b.comes(t.Context(), authority); !strings.Contains(got, want) {
				t.Errorf("%q: %q, not %q", authority, got, want)
			}
		}
		if n := len(b.notes.asked); n != 0 {
			t.Errorf("%d questions", n)
		}
	})
}

func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Ask: true})
	if status, body := w.get(w.client(nil), "http://a.example/"); status != 403 || body != "network: of project shop does not list a.example:80, and nobody can be asked yet\n" {
		t.Errorf("%d %s", status, body)
	}
}

// far is a company's proxy, behind which every host is a server that says its name first.
func far(t *testing.T) *url.URL {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			fmt.Fprint(w, "page of ", r.URL.Host)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // of the test
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nI am "+r.RequestURI+"\n")
		_, _ = io.Copy(io.Discard, conn)
	}))
	t.Cleanup(s.Close)
	return &url.URL{Scheme: "http", Host: s.Listener.Addr().String()}
}

func TestWhatIsAllowedIsWhatIsDialled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Ask: true, Rules: rules(t, "listed.example", "*.shut.example"), Denied: func(host string, port uint16) string {
		if host == "a.shut.example" && port == 80 {
			return "deny SandboxNetworkAccess(domain:shut.example)"
		}
		return ""
	}})
	address := far(t)
	w.proxy.upstream = func(*url.URL) (*url.URL, error) { return address, nil }
	n := newNotes()
	w.OnAsk(n)
	c := w.client(nil)
	if status, body := w.get(c, "http://listed.example/"); status != 200 || body != "page of listed.example" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := w.get(c, "http://a.shut.example/"); status != 403 || body != "the policy does not allow a.shut.example:80 (deny SandboxNetworkAccess(domain:shut.example)), though network: of project shop lists it\n" {
		t.Errorf("%d %s", status, body)
	}
	if len(n.asked) != 0 {
		t.Errorf("%d questions", len(n.asked))
	}
	go func() { (<-n.asked).Answer(Answer{Allow: true}) }()
	if status, body := w.get(c, "http://Other.example/x"); status != 200 || body != "page of Other.example" {
		t.Errorf("%d %s", status, body)
	}
	go func() { (<-n.asked).Answer(Answer{Refusal: "The person denied this."}) }()
	if status, body := w.get(c, "http://other.example:8080/"); status != 403 || body != "The person denied this.\n" {
		t.Errorf("%d %s", status, body)
	}
	go func() { (<-n.asked).Answer(Answer{Refusal: "The person denied this."}) }()
	if _, _, resp := w.connect("other.example:443"); resp.Status != "403 The person denied this." {
		t.Error(resp.Status)
	}
	// A tunnel ends with what it was allowed for.
	during, over := context.WithCancel(t.Context())
	go func() { (<-n.asked).Answer(Answer{Allow: true, During: during}) }()
	_, in, resp := w.connect("OTHER.example:22")
	line, err := in.ReadString('\n')
	if resp.StatusCode != 200 || err != nil || line != "I am other.example:22\n" {
		t.Errorf("%s %q %v", resp.Status, line, err)
	}
	over()
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	// Who hangs up is noticed.
	conn := w.dialSocket()
	if _, err := io.WriteString(conn, "CONNECT gone.example:443 HTTP/1.1\r\nHost: gone.example:443\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	q := <-n.asked
	_ = conn.Close()
	if left := <-n.left; left != q {
		t.Errorf("%v left, not %v", left, q)
	}
	// The end of a session lets go of what is held.
	conn = w.dialSocket()
	if _, err := io.WriteString(conn, "GET http://held.example/ HTTP/1.1\r\nHost: held.example\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-n.asked
	w.Close()
	if said, _ := io.ReadAll(conn); len(said) > 0 && !strings.Contains(string(said), "the session has ended, or its turn") {
		t.Errorf("%q", said)
	}
	if len(n.asked) != 0 {
		t.Errorf("%v was asked besides", <-n.asked)
	}
}

// A name is looked up when it was allowed, not before, and an address that is not public
// stays shut.
func TestNoDecisionOpensAnAddressThatIsNotPublic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{Ask: true})
	n := newNotes()
	w.OnAsk(n)
	for host, addr := range map[string]string{"private.example": "10.0.0.1", "loop.example": "127.0.0.1", "cloud.example": "169.254.169.254", "alibaba.example": "100.100.100.200"} {
		w.lives(host, addr)
		go func() {
			q := <-n.asked
			w.mu.Lock()
			if w.asked[host] != 0 {
				t.Errorf("%s was looked up before anybody allowed it", host)
			}
			w.mu.Unlock()
			q.Answer(Answer{Allow: true})
		}()
		want := host + ":80 was allowed, but its address is not public, which no decision opens; an admin can list it with internal: before it under network: in deckhand.yaml\n"
		if status, body := w.get(w.client(nil), "http://"+host+"/"); status != 403 || body != want {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
	w.Close()
	for _, v := range w.Take() {
		if v.Refused != 1 || v.Connections != 0 {
			t.Errorf("%+v", v)
		}
	}
}
