package gateway_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"deckhand/internal/gateway"
)

// newListener is a gateway that listens on a free port of this machine.
func newListener(t testing.TB, o gateway.Listen, env ...string) *outer {
	t.Helper()
	return newListenerWithLog(t, o, nil, env...)
}

func newListenerWithLog(t testing.TB, o gateway.Listen, log *zap.Logger, env ...string) *outer {
	t.Helper()
	o.Address, o.URL = "127.0.0.1:0", "http://127.0.0.1:0"
	if o.CertFile != "" {
		o.URL = "https://127.0.0.1:0"
	}
	out := &outer{env: map[string]string{}}
	out.set(env)
	var err error
	if out.Gateway, err = gateway.New(gateway.Options{Dir: filepath.Join(folder(t), "gateway"), Getenv: out.getenv, Listen: o, Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(out.Close)
	return out
}

// far is a session that comes in by the listener.
func far(t testing.TB, g *outer, roots *x509.CertPool) *caller {
	t.Helper()
	m := newMeter()
	s, err := g.Open(t.Context(), gateway.Opening{Far: true, Meter: m})
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{Session: s, meter: m, env: map[string]string{}, client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}}
	for _, entry := range s.Env() {
		name, value, _ := strings.Cut(entry, "=")
		c.env[name] = value
	}
	t.Cleanup(c.client.CloseIdleConnections)
	t.Cleanup(s.Close)
	return c
}

// Sessions from afar are told apart by their tokens, and nobody else is heard.
func TestTheListenerKnowsSessionsByTheirTokens(t *testing.T) {
	t.Parallel()
	seen, log := observer.New(zap.WarnLevel)
	p := newProvider(t, nil)
	g := newListenerWithLog(t, gateway.Listen{}, zap.New(seen), "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	one, two := far(t, g, nil), far(t, g, nil)
	near := openFor(t, g, gateway.Provider{})
	if one.env["ANTHROPIC_UNIX_SOCKET"] != "" || !strings.HasPrefix(one.env["ANTHROPIC_BASE_URL"], "http://127.0.0.1:") {
		t.Error(one.env)
	}
	token := func(c *caller) string {
		_, value, _ := strings.Cut(c.env["ANTHROPIC_CUSTOM_HEADERS"], ": ")
		return value
	}
	for _, c := range []struct {
		name, token string
		want        int
	}{
		{"its own", token(one), 200},
		{"the other's", token(two), 200},
		{"none", "", 401},
		{"a wrong one", strings.Repeat("0", 64), 401},
		{"that of a session with a socket", token(near), 401},
	} {
		r := one.request(http.MethodPost, "/v1/messages", call)
		r.Header.Set("X-Deckhand-Token", c.token)
		status, body := one.do(t, r)
		if status != c.want || (status == 401 && !strings.Contains(body, `"authentication_error"`)) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
	two.Close()
	if status, _ := two.do(t, two.request(http.MethodPost, "/v1/messages", call)); status != http.StatusUnauthorized {
		t.Errorf("after its end: %d", status)
	}
	for range 50 {
		r := one.request(http.MethodGet, "/", "")
		r.Header.Del("X-Deckhand-Token")
		if status, _ := one.do(t, r); status != http.StatusUnauthorized {
			t.Fatal(status)
		}
	}
	if n := log.Len(); n != 3 {
		t.Errorf("%d lines in the log", n)
	}
}

// What is too much is refused before it is read, by whomever it is sent, and one session
// leaves room for the others.
func TestTheListenersLimits(t *testing.T) {
	t.Parallel()
	const most = 32 // calls of a session
	var wait sync.WaitGroup
	reached, answer := make(chan struct{}, most), make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		reached <- struct{}{}
		<-answer
		w.WriteHeader(http.StatusBadRequest)
	})
	g := newListener(t, gateway.Listen{}, "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	one, two := far(t, g, nil), far(t, g, nil)
	r := one.request(http.MethodPost, "/v1/messages", call)
	r.Header.Set("X-Long", strings.Repeat("x", 128<<10))
	if resp, err := one.client.Do(r); err == nil { // else it was cut while it was written
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a long head: %s", resp.Status)
		}
	}
	_, token, _ := strings.Cut(one.env["ANTHROPIC_CUSTOM_HEADERS"], ": ")
	for _, c := range []struct{ token, want string }{{token, "HTTP/1.1 413 "}, {"wrong", "HTTP/1.1 401 "}} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(one.env["ANTHROPIC_BASE_URL"], "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		// The body never comes: who waits for it waits for ever.
		fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nX-Deckhand-Token: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", c.token, 33<<20)
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, c.want) {
			t.Errorf("a long body is answered with %q, %v; want %s", line, err, c.want)
		}
	}
	for range most {
		wait.Go(func() { one.do(t, one.request(http.MethodPost, "/v1/messages", call)) })
	}
	for range most {
		<-reached
	}
	if status, body := one.do(t, one.request(http.MethodPost, "/v1/messages", call)); status != http.StatusServiceUnavailable || !strings.Contains(body, "32 calls under way") {
		t.Errorf("a call too many: %d %s", status, body)
	}
	close(answer)
	wait.Wait()
	if status, _ := two.do(t, two.request(http.MethodPost, "/v1/messages", call)); status != http.StatusBadRequest {
		t.Errorf("the other session: %d", status)
	}
}

// The end of a session ends its calls, also one that never says all that it began to.
func TestAFarSessionEnds(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		flush(w)
		<-r.Context().Done()
		close(left)
	})
	g := newListener(t, gateway.Listen{}, "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey)
	s := far(t, g, nil)
	r := s.stream(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.env["ANTHROPIC_BASE_URL"], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // a test's
	fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\n%s\r\nContent-Length: 100\r\n\r\n{", s.env["ANTHROPIC_CUSTOM_HEADERS"])
	s.meter.last().Cut()
	s.Close()
	<-left
	if _, err := r.ReadByte(); err == nil {
		t.Error("the stream goes on")
	}
}

func TestTheListenerSpeaksTLS(t *testing.T) {
	t.Parallel()
	roots, cert, key := certificate(t)
	p := newProvider(t, nil)
	s := far(t, newListener(t, gateway.Listen{CertFile: cert, KeyFile: key}, "ANTHROPIC_BASE_URL="+p.URL, "ANTHROPIC_API_KEY="+realKey), roots)
	if status, body := s.do(t, s.request(http.MethodPost, "/v1/messages", call)); status != http.StatusOK {
		t.Error(status, body)
	}
}

// certificate is one of 127.0.0.1 and localhost, by nobody that is known.
func certificate(t testing.TB) (roots *x509.CertPool, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the company's own"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost", "provider.example"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(certFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return roots, certFile, keyFile
}

func TestListenersThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    gateway.Listen
		want string
	}{
		{gateway.Listen{URL: "http://bot:1"}, "DECKHAND_GATEWAY_URL, DECKHAND_GATEWAY_CERT"},
		{gateway.Listen{Address: "0.0.0.0:8066"}, "DECKHAND_GATEWAY_URL: set it"},
		{gateway.Listen{Address: "8066", URL: "http://bot:8066"}, "DECKHAND_GATEWAY_LISTEN: "},
		{gateway.Listen{Address: ":8066", URL: "bot:8066"}, "DECKHAND_GATEWAY_URL: this is not"},
		{gateway.Listen{Address: ":8066", URL: "http://u:p@bot:8066"}, "DECKHAND_GATEWAY_URL: this is not"},
		{gateway.Listen{Address: ":8066", URL: "http://bot:8066/path"}, "DECKHAND_GATEWAY_URL: this is not"},
		{gateway.Listen{Address: ":8066", URL: "http://bot:8066", CertFile: "c"}, "DECKHAND_GATEWAY_CERT and DECKHAND_GATEWAY_KEY belong together"},
		{gateway.Listen{Address: "192.0.2.1:8066", URL: "http://bot:8066"}, "DECKHAND_GATEWAY_LISTEN: "},
		{gateway.Listen{Address: "127.0.0.1:0", URL: "https://bot:8066", CertFile: "/nowhere", KeyFile: "/nowhere"}, "DECKHAND_GATEWAY_CERT, DECKHAND_GATEWAY_KEY: "},
	} {
		g, err := gateway.New(gateway.Options{Dir: filepath.Join(folder(t), "gateway"), Listen: c.o})
		if err == nil {
			g.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	if _, err := newGateway(t, nil, "ANTHROPIC_API_KEY=k").Open(context.Background(), gateway.Opening{Far: true, Meter: newMeter()}); err == nil || !strings.Contains(err.Error(), "set DECKHAND_GATEWAY_LISTEN") {
		t.Error(err)
	}
}
