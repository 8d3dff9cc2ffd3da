package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"deckhand/internal/waittest"
)

// world is a proxy whose hosts are found by the test, and a session of it.
type world struct {
	t     *testing.T
	proxy *Proxy
	*Session
	mu    sync.Mutex
	hosts map[string][]string // by name: the addresses of each look-up, the last for ever
	asked map[string]int
}

func newWorld(t *testing.T, o Options) *world {
	t.Helper()
	w := &world{t: t, proxy: New(nil, nil), hosts: map[string][]string{}, asked: map[string]int{}}
	w.proxy.upstream = func(*url.URL) (*url.URL, error) { return nil, nil } //nolint:nilnil // none
	w.proxy.resolver = &net.Resolver{PreferGo: true, Dial: w.nameServer}
	w.open(o)
	return w
}

func (w *world) open(o Options) {
	w.t.Helper()
	dir, err := os.MkdirTemp("", "web") // short: a socket's path has few bytes
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if o.Project == "" {
		o.Project = "shop"
	}
	if w.Session, err = w.proxy.Open(filepath.Join(dir, "web"), o); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		w.Close()
		w.proxy.Close()
	})
}

// lives says which addresses a host has, in the order in which they are told.
func (w *world) lives(host string, addresses ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hosts[host] = addresses
}

// nameServer answers one look-up over a connection.
func (w *world) nameServer(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		defer ours.Close() //nolint:errcheck // all was said
		size := make([]byte, 2)
		for {
			if _, err := io.ReadFull(ours, size); err != nil {
				return
			}
			ask := make([]byte, int(size[0])<<8|int(size[1]))
			var q dnsmessage.Message
			if _, err := io.ReadFull(ours, ask); err != nil || q.Unpack(ask) != nil {
				return
			}
			out, err := w.found(q).Pack()
			if err != nil {
				return
			}
			_, _ = ours.Write(append([]byte{byte(len(out) >> 8), byte(len(out))}, out...))
		}
	}()
	return theirs, nil
}

func (w *world) found(q dnsmessage.Message) *dnsmessage.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	question := q.Questions[0]
	name := strings.TrimSuffix(question.Name.String(), ".")
	out := &dnsmessage.Message{Header: dnsmessage.Header{ID: q.ID, Response: true, Authoritative: true}, Questions: q.Questions}
	all, ok := w.hosts[name]
	if !ok {
		out.RCode = dnsmessage.RCodeNameError
		return out
	}
	if question.Type != dnsmessage.TypeA {
		return out
	}
	addr := all[min(w.asked[name], len(all)-1)]
	w.asked[name]++
	out.Answers = []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: question.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
		Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(addr).To4())},
	}}
	return out
}

func (w *world) dialSocket() net.Conn {
	w.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(w.t.Context(), "unix", w.Socket())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(waittest.Limit))
	return conn
}

// raw sends bytes and returns the whole answer.
func (w *world) raw(text string) string {
	w.t.Helper()
	conn := w.dialSocket()
	if _, err := io.WriteString(conn, text); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close() //nolint:errcheck // read whole
	return resp.Proto + " " + resp.Status
}

// tunnel opens one and returns it, with the answer's head.
func (w *world) connect(authority string) (net.Conn, *bufio.Reader, *http.Response) {
	w.t.Helper()
	conn := w.dialSocket()
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %[1]s\r\n\r\n", authority); err != nil {
		w.t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return conn, in, resp
}

// client speaks by the session's socket as by a proxy.
func (w *world) client(roots *x509.CertPool) *http.Client {
	t := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: "forwarder"}),
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", w.Socket())
		},
	}
	w.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t, Timeout: waittest.Limit}
}

func (w *world) get(c *http.Client, address string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close() //nolint:errcheck // read whole
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// secure is a server of TLS for example.com, and the certificates that it is believed by.
func secure(t *testing.T, h http.HandlerFunc) (port string, roots *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return portOf(s.Listener.Addr().String()), roots
}

func TestTheWeb(t *testing.T) {
	t.Parallel()
	port, roots := secure(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "secure ", r.Host) })
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "plain ", r.Host, " ", r.URL.RequestURI(), " ", r.Header)
	}))
	t.Cleanup(plain.Close)
	plainPort := portOf(plain.Listener.Addr().String())
	w := newWorld(t, Options{Rules: rules(t, "internal:example.com:"+port, "internal:*.example.com:"+plainPort)})
	w.lives("example.com", "127.0.0.1")
	w.lives("www.example.com", "127.0.0.1")
	c := w.client(roots)
	if status, body := w.get(c, "https://example.com:"+port+"/a"); status != 200 || body != "secure example.com:"+port {
		t.Errorf("%d %s", status, body)
	}
	host := "www.example.com:" + plainPort
	if status, body := w.get(c, "http://"+host+"/a?b=1;c=%zz"); status != 200 || body != "plain "+host+" /a?b=1;c=%zz map[Accept-Encoding:[gzip] Connection:[close] User-Agent:[Go-http-client/1.1]]" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := w.get(c, "http://evil.com/"); status != 403 || body != "network: of project shop does not allow evil.com:80; an admin can add it in deckhand.yaml\n" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := w.get(c, "https://evil.com/"); status != 0 || !strings.HasSuffix(body, ": network: of project shop does not allow evil.com:443; an admin can add it in deckhand.yaml") {
		t.Errorf("%d %s", status, body)
	}
	c.CloseIdleConnections()
	w.Close()
	got := w.Take()
	for i, v := range got {
		if v.Connections > 0 && (v.Up == 0 || v.Down == 0) {
			t.Errorf("%+v", v)
		}
		got[i].Up, got[i].Down = 0, 0
	}
	want := []Visit{
		{Host: "evil.com:443", Refused: 1}, {Host: "evil.com:80", Refused: 1}, {Host: "example.com:" + port, Connections: 1}, {Host: host, Connections: 1},
	}
	slices.SortFunc(want, func(a, b Visit) int { return strings.Compare(a.Host, b.Host) })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("visits (-want +got):\n%s", diff)
	}
	if again := w.Take(); len(again) != 0 {
		t.Errorf("taken twice: %v", again)
	}
	if n := w.proxy.Totals()["shop"]; n.Connections != 2 || n.Refused != 2 || n.Up == 0 {
		t.Errorf("totals: %+v", n)
	}
}

// What would reach this machine, its network or its cloud is refused when it is connected
// to, whatever the name was when it was looked up before.
func TestAddressesAreLookedAtWhenTheyAreConnectedTo(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.URL.Query().Get("to"), http.StatusFound)
	}))
	t.Cleanup(server.Close)
	port := portOf(server.Listener.Addr().String())
	w := newWorld(t, Options{Rules: rules(t, "internal:here.example.com:"+port, "*.example.com", "rebinds.example.com:"+port, "loop.example.com:"+port)})
	c := w.client(nil)
	for name, addr := range map[string]string{
		"private": "10.0.0.1", "loop": "127.0.0.1", "metadata": "169.254.169.254", "shared": "100.64.0.1", "nothing": "0.0.0.0", "everybody": "224.0.0.1", "mapped": "192.168.1.1",
	} {
		w.lives(name+".example.com", addr)
		want := "network: of project shop does not allow " + name + ".example.com:80, whose address is not public; an admin can allow it with internal: before it\n"
		if status, body := w.get(c, "http://"+name+".example.com/"); status != 403 || body != want {
			t.Errorf("%s: %d %s", addr, status, body)
		}
		_, _, resp := w.connect(name + ".example.com:443")
		if resp.StatusCode != 403 || !strings.Contains(resp.Status, "whose address is not public") {
			t.Errorf("%s: %s", addr, resp.Status)
		}
	}
	t.Run("a name that changes its mind", func(t *testing.T) {
		w.lives("rebinds.example.com", "192.0.2.1", "127.0.0.1")
		for range 3 {
			if status, body := w.get(c, "http://rebinds.example.com:"+port+"/"); status != 403 {
				t.Errorf("%d %s", status, body)
			}
		}
	})
	t.Run("a redirect", func(t *testing.T) {
		w.lives("here.example.com", "127.0.0.1")
		for to, want := range map[string]int{"evil.com/": 403, "loop.example.com:" + port + "/": 403, "127.0.0.1:" + port + "/": 403, "169.254.169.254/latest": 403} {
			if status, body := w.get(c, "http://here.example.com:"+port+"/?to="+url.QueryEscape(to)); status != want {
				t.Errorf("%s: %d %s", to, status, body)
			}
		}
	})
	t.Run("internal hosts are no more than they are named for", func(t *testing.T) {
		w.lives("here.example.com", "169.254.169.254")
		if status, body := w.get(c, "http://here.example.com:"+port+"/"); status != 403 {
			t.Errorf("%d %s", status, body)
		}
	})
	if status, body := w.get(c, "http://missing.example.com/"); status != 502 || body != "there is no host missing.example.com\n" {
		t.Errorf("%d %s", status, body)
	}
}

func TestSmuggling(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heard <- r.Host }))
	t.Cleanup(server.Close)
	ok := "allowed.example.com:" + portOf(server.Listener.Addr().String())
	w := newWorld(t, Options{Rules: rules(t, "internal:"+ok)})
	w.lives("allowed.example.com", "127.0.0.1")
	for name, c := range map[string]struct{ call, want string }{
		"two hosts":                       {"CONNECT " + ok + " HTTP/1.1\r\nHost: " + ok + "\r\nHost: evil.com\r\n\r\n", "HTTP/1.1 400"},
		"another host behind the address": {"CONNECT evil.com:443 HTTP/1.1\r\nHost: " + ok + "\r\n\r\n", "HTTP/1.1 403"},
		"a user before the host":          {"CONNECT " + ok + "@evil.com:443 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 403"},
		"a user before an allowed host":   {"GET http://evil.com@" + ok + "/ HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 403"},
		"a path as authority":             {"CONNECT /" + ok + " HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 403"},
		"an address as authority":         {"CONNECT http://" + ok + "/ HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 403"},
		"no port":                         {"CONNECT allowed.example.com HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 403"},
		"a dot at the end":                {"CONNECT allowed.example.com.:443 HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 403"},
		"secure without a tunnel":         {"GET https://" + ok + "/ HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 403"},
		"a file":                          {"GET file:///etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 403"},
		"a page of ours":                  {"GET / HTTP/1.1\r\nHost: " + ok + "\r\n\r\n", "HTTP/1.1 404"},
		"two lengths":                     {"POST http://" + ok + "/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nGET ", "HTTP/1.1 400"},
		"two ends":                        {"POST http://" + ok + "/ HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET", "HTTP/1.1 501"},
		"a line break in a header":        {"GET http://" + ok + "/ HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", "HTTP/1.1 400"},
		"an old protocol":                 {"GET http://evil.com/\r\n\r\n", "HTTP/1.1 400"},
		"another protocol":                {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 404"},
		"a head without an end":           {"GET http://" + ok + "/ HTTP/1.1\r\nX: " + strings.Repeat("a", 100<<10), "HTTP/1.1 431"},
	} {
		if got := w.raw(c.call); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %.200q", name, got)
		}
	}
	if len(heard) > 0 {
		t.Errorf("%s heard of it", <-heard)
	}
	// The address counts, and no header beside it.
	if got := w.raw("GET http://" + strings.ToUpper(ok) + "/ HTTP/1.1\r\nHost: evil.com\r\nConnection: close\r\nProxy-Authorization: Basic x\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("%q", got)
	} else if host := <-heard; !strings.EqualFold(host, ok) {
		t.Errorf("the server heard of %s", host)
	}
}

// hello is what a client of TLS says first to a server of that name.
func hello(t *testing.T, name string) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	c := tls.Client(ours, &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // nobody is at the other end
	go func() { _ = c.HandshakeContext(context.WithoutCancel(t.Context())) }()
	defer ours.Close() //nolint:errcheck // all was said
	head := make([]byte, 5)
	if _, err := io.ReadFull(theirs, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[3])<<8|int(head[4]))
	if _, err := io.ReadFull(theirs, body); err != nil {
		t.Fatal(err)
	}
	return slices.Concat(head, body)
}

// inPieces cuts a hello into records of few bytes, which it may be.
func inPieces(hello []byte, size int) []byte {
	var out []byte
	for part := range slices.Chunk(hello[5:], size) {
		out = append(append(out, hello[0], hello[1], hello[2], byte(len(part)>>8), byte(len(part))), part...)
	}
	return out
}

func TestHellos(t *testing.T) {
	t.Parallel()
	allowed := hello(t, "example.com")
	web, other := target{host: "example.com", port: 443}, target{host: "example.com", port: 8443}
	address := target{host: "192.0.2.1", port: 443}
	address.addr = rules(t, "93.184.216.34")[0].addr
	for name, c := range map[string]struct {
		to   target
		said []byte
		want string
	}{
		"the host's":                      {web, allowed, ""},
		"the host's, in capitals":         {web, hello(t, "EXAMPLE.com"), ""},
		"the host's, in pieces":           {web, inPieces(allowed, 40), ""},
		"the host's, on another port":     {other, allowed, ""},
		"another's":                       {web, hello(t, "evil.com"), `its TLS asks for "evil.com"`},
		"another's, on another port":      {other, hello(t, "evil.com"), `its TLS asks for "evil.com"`},
		"another's, in pieces":            {web, inPieces(hello(t, "evil.com"), 30), `its TLS asks for "evil.com"`},
		"one below":                       {web, hello(t, "www.example.com"), `its TLS asks for "www.example.com"`},
		"nobody's":                        {web, hello(t, ""), "its TLS names no host"},
		"nobody's, of an address":         {address, hello(t, ""), ""},
		"another's, of an address":        {address, hello(t, "evil.com"), `its TLS asks for "evil.com"`},
		"no TLS":                          {web, []byte("GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n"), "only TLS leaves by port 443"},
		"no TLS, on another port":         {other, []byte("SSH-2.0-x\r\n"), ""},
		"an alert before it":              {web, append([]byte{21, 3, 1, 0, 2, 1, 0}, hello(t, "evil.com")...), "only TLS leaves by port 443"},
		"a hello of SSL 2":                {web, []byte{0x80, 0x2e, 1, 3, 1}, "only TLS leaves by port 443"},
		"something that looks like TLS":   {web, append([]byte{22, 3, 1, 0, 5}, "hello"...), "its TLS cannot be read"},
		"a part of it":                    {web, allowed[:len(allowed)/2], "its TLS cannot be read"},
		"a record without an end":         {web, append([]byte{22, 3, 1, 0xff, 0xff}, bytes.Repeat([]byte{1}, 70000)...), "its TLS cannot be read"},
		"a hello and what comes after it": {web, append(slices.Clone(allowed), "more"...), ""},
	} {
		said, err := checkHello(bytes.NewReader(c.said), c.to)
		switch {
		case c.want != "":
			if err == nil || err.Error() != c.want {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case !bytes.HasPrefix(c.said, said):
			t.Errorf("%s: it was changed", name)
		}
	}
}

func TestAnotherNameInATunnel(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // of the test
	heard := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		said, _ := io.ReadAll(conn)
		heard <- string(said)
		_ = conn.Close()
	}()
	authority := "example.com:" + portOf(l.Addr().String())
	w := newWorld(t, Options{Rules: rules(t, "internal:"+authority)})
	w.lives("example.com", "127.0.0.1")
	conn, in, resp := w.connect(authority)
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	if _, err := conn.Write(hello(t, "evil.com")); err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(in); !bytes.Equal(got, tlsDenied) {
		t.Errorf("%q", got)
	}
	if said := <-heard; said != "" {
		t.Errorf("%q has left", said)
	}
	w.Close()
	if got := w.Take(); len(got) != 1 || got[0].Refused != 1 {
		t.Errorf("%+v", got)
	}
}

// Bytes pass both ways at once, and each way ends by itself.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // of the test
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close() //nolint:errcheck // of the test
				_, _ = io.WriteString(conn, "who are you?\n")
				said, _ := io.ReadAll(conn)
				_, _ = fmt.Fprintf(conn, "heard %d bytes", len(said))
			}()
		}
	}()
	authority := "example.com:" + portOf(l.Addr().String())
	w := newWorld(t, Options{Rules: rules(t, "internal:"+authority)})
	w.lives("example.com", "127.0.0.1")
	var all sync.WaitGroup
	var failed atomic.Int64
	for range 40 { // at once
		all.Go(func() {
			conn, in, resp := w.connect(authority)
			line, err := in.ReadString('\n') // the server speaks first
			if resp.StatusCode != 200 || err != nil || line != "who are you?\n" {
				failed.Add(1)
				return
			}
			_, _ = conn.Write(bytes.Repeat([]byte("a"), 300_000))
			_ = conn.(*net.UnixConn).CloseWrite()
			if rest, err := io.ReadAll(in); err != nil || string(rest) != "heard 300000 bytes" {
				failed.Add(1)
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of 40 failed", n)
	}
	w.Close()
	if got := w.Take(); len(got) != 1 || got[0].Connections != 40 || got[0].Up != 40*300_000 || got[0].Down != 40*31 {
		t.Errorf("%+v", got)
	}
}

// A websocket opens by a plain call and by a tunnel.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			t.Errorf("%v", r.Header)
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // of the test
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(conn, "heard "+line)
	}))
	t.Cleanup(server.Close)
	host := "example.com:" + portOf(server.Listener.Addr().String())
	w := newWorld(t, Options{Rules: rules(t, "internal:"+host)})
	w.lives("example.com", "127.0.0.1")
	upgrade := func(conn net.Conn, in *bufio.Reader, address string) {
		_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", address, host)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(resp.Status)
		}
		_, _ = io.WriteString(conn, "hello\n")
		if line, _ := in.ReadString('\n'); line != "heard hello\n" {
			t.Errorf("%q", line)
		}
	}
	plain := w.dialSocket()
	upgrade(plain, bufio.NewReader(plain), "http://"+host+"/")
	conn, in, _ := w.connect(host)
	upgrade(conn, in, "/")
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	}))
	t.Cleanup(server.Close)
	host := "example.com:" + portOf(server.Listener.Addr().String())
	w := newWorld(t, Options{Rules: rules(t, "internal:"+host)})
	w.lives("example.com", "127.0.0.1")
	conn, in, _ := w.connect(host)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := in.ReadByte(); err != nil {
		t.Fatal(err)
	}
	plain := w.dialSocket()
	_, _ = io.WriteString(plain, "GET http://"+host+"/ HTTP/1.1\r\nHost: a\r\n\r\n")
	if _, err := plain.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	w.Close()
	<-left
	<-left
	if _, err := io.ReadAll(in); err != nil {
		t.Logf("the tunnel was cut: %v", err)
	}
	if _, err := (&net.Dialer{}).DialContext(t.Context(), "unix", w.Socket()); err == nil {
		t.Error("a closed session's socket answers")
	}
}

// Where the bot has a proxy itself, tunnels and plain calls go by it, and what it says of
// a host is told.
func TestByTheCompanysProxy(t *testing.T) {
	t.Parallel()
	var heard sync.Map
	company := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard.Store(r.Method+" "+r.RequestURI+" "+r.Header.Get("Proxy-Authorization"), true)
		if r.Method != http.MethodConnect {
			fmt.Fprint(w, "by the company")
			return
		}
		if strings.HasPrefix(r.Host, "blocked") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // of the test
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\nearly")
		_, _ = io.Copy(io.Discard, conn)
	}))
	t.Cleanup(company.Close)
	w := newWorld(t, Options{Rules: rules(t, "*.example.com:22", "*.example.com:80")})
	address, err := url.Parse(company.URL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("bot", "secret")
	w.proxy.upstream = func(*url.URL) (*url.URL, error) { return address, nil }
	conn, in, resp := w.connect("git.example.com:22")
	if resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	early := make([]byte, 5)
	if _, err := io.ReadFull(in, early); err != nil || string(early) != "early" {
		t.Errorf("%q %v", early, err)
	}
	_ = conn.Close()
	if _, _, resp := w.connect("blocked.example.com:22"); resp.StatusCode != 502 {
		t.Error(resp.Status)
	}
	if status, body := w.get(w.client(nil), "http://www.example.com/a"); status != 200 || body != "by the company" {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := w.get(w.client(nil), "http://evil.com/a"); status != 403 {
		t.Errorf("%d", status)
	}
	for _, want := range []string{"CONNECT git.example.com:22 Basic Ym90OnNlY3JldA==", "GET http://www.example.com/a Basic Ym90OnNlY3JldA=="} {
		if _, ok := heard.Load(want); !ok {
			heard.Range(func(k, _ any) bool { t.Log(k); return true })
			t.Errorf("the company's proxy did not hear %s", want)
		}
	}
}

// What asks for hosts without end costs its own session, and not the bot.
func TestTheTallyIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Options{})
	for i := range 3 * maxVisits {
		w.tally.refused(target{host: fmt.Sprintf("h%d.example.com", i), port: 443})
	}
	got := w.Take()
	i := slices.IndexFunc(got, func(v Visit) bool { return v.Host == others })
	if len(got) != maxVisits+1 || i < 0 || got[i].Refused != 2*maxVisits {
		t.Errorf("%d hosts, %+v", len(got), got[max(i, 0)])
	}
}
