package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

const (
	socketName = "model"
	// maxHeader bounds the head of a call, and of an answer: the CLI's are 2 KB.
	maxHeader = 64 << 10
	// maxBody bounds a call, as Anthropic does.
	maxBody = 32 << 20
	// maxBodies bounds the calls of a session that are being read at once.
	maxBodies = 2 * maxBody
	// maxConnections bounds those of a session: the CLI has one for each call that runs.
	maxConnections = 32
	// maxUnderWay bounds the calls of a session that cost something, with those whose
	// caller has gone. Beyond it they wait.
	maxUnderWay = maxConnections
)

// Session is the way to the model of one process and all that it starts.
type Session struct {
	gateway *Gateway
	route   *route
	token   string
	dir     string
	env     []string
	far     bool // it comes in by the listener
	log     *zap.Logger
	meter   Meter

	server http.Server
	proxy  httputil.ReverseProxy
	bodies *semaphore.Weighted
	under  *semaphore.Weighted // calls that cost something
	// complaints keeps the log readable when something inside keeps trying.
	complaints rate.Sometimes

	open  context.Context // ends with the session
	close func()
}

// Opening is what a session is opened with.
type Opening struct {
	// Provider is whom its calls go to, and on whose account.
	Provider Provider
	// Env is the environment of what runs, NAME=value. What leads to a model in it is
	// taken out.
	Env []string
	// Far says that the session reaches no socket of this machine: it comes in by the
	// gateway's listener.
	Far bool
	// Meter is told of every call before it leaves.
	Meter Meter
}

// Open makes a session's way in and serves it until [Session.Close]. A provider whose
// credential cannot be had is an error. An error is a sentence for people.
func (g *Gateway) Open(ctx context.Context, o Opening) (*Session, error) {
	r, err := g.routeTo(o.Provider)
	if err != nil {
		return nil, err
	}
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	s := &Session{
		gateway: g, route: r, token: random(32), dir: filepath.Join(g.dir, random(nameLen/2)), log: g.log, meter: o.Meter,
		bodies: semaphore.NewWeighted(maxBodies), under: semaphore.NewWeighted(maxUnderWay), complaints: rate.Sometimes{First: 3, Interval: time.Minute},
	}
	d := door{socket: s.Socket(), token: s.token}
	if o.Far {
		if d.url, err = g.listener.address(); err != nil {
			return nil, err
		}
	}
	s.env, s.far = r.environ(o.Env, d), o.Far
	if err := s.serve(); err != nil {
		return nil, err
	}
	return s, nil
}

// random is a text of n random bytes in hexadecimal digits.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

// Socket is the path of the socket, which is alone in its folder.
func (s *Session) Socket() string { return filepath.Join(s.dir, socketName) }

// Env is the environment that the CLI gets instead, NAME=value.
func (s *Session) Env() []string { return s.env }

func (s *Session) serve() error {
	s.proxy = s.reverse()
	if s.far {
		return s.serveFar()
	}
	// The gateway's folder keeps others out; the sandbox may have its own idea of users.
	if err := os.Mkdir(s.dir, 0o755); err != nil { //nolint:gosec // see above
		return fmt.Errorf("make the folder of the model's socket: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", s.Socket())
	if err == nil {
		err = os.Chmod(s.Socket(), 0o666) //nolint:gosec // see above
	}
	if err != nil {
		return errors.Join(fmt.Errorf("open the model's socket: %w", err), os.RemoveAll(s.dir))
	}
	var cancel context.CancelFunc
	s.open, cancel = context.WithCancel(context.Background())
	s.server = http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: maxHeader, ErrorLog: quiet,
		BaseContext: func(net.Listener) context.Context { return s.open },
	}
	served := make(chan struct{})
	s.close = sync.OnceFunc(func() {
		cancel()
		_ = s.server.Close()
		<-served
		s.gateway.remove(s)
		if err := os.RemoveAll(s.dir); err != nil {
			s.log.Warn("remove the folder of the model's socket", zap.Error(err))
		}
	})
	go func() {
		defer close(served)
		_ = s.server.Serve(netutil.LimitListener(l, maxConnections)) // until the session is closed
	}()
	if err := s.gateway.add(s); err != nil {
		s.close()
		return err
	}
	return nil
}

// serveFar has the listener hand the session its calls.
func (s *Session) serveFar() error {
	var cancel context.CancelFunc
	s.open, cancel = context.WithCancel(context.Background())
	s.gateway.listener.add(s)
	s.close = sync.OnceFunc(func() {
		cancel()
		s.gateway.listener.remove(s)
		s.gateway.remove(s)
	})
	if err := s.gateway.add(s); err != nil {
		s.close()
		return err
	}
	return nil
}

var quiet = zap.NewStdLog(zap.NewNop())

// reverse is what passes the session's calls on.
func (s *Session) reverse() httputil.ReverseProxy {
	return httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = ""
			r.Out.Body = r.In.Body // to be closed when it has left, which ReverseProxy keeps from happening
		},
		Transport: s.gateway.outside.transport, FlushInterval: -1, BufferPool: &buffers, ErrorLog: quiet,
		ModifyResponse: s.answered, ErrorHandler: s.failed,
	}
}

// Close ends the session for whoever calls: its token is worth nothing, its connections
// are cut, and its socket is gone. Calls of the provider that are under way are read to
// their end by the gateway, unless they are cut ([Call.Cut]). It may be called more than
// once.
func (s *Session) Close() { s.close() }

// ServeHTTP passes a call on, or refuses it in the words of Anthropic's API.
func (s *Session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.gateway.enter() {
		return
	}
	defer s.gateway.calls.Done()
	if r.Context().Err() != nil || s.open.Err() != nil {
		return
	}
	c, no := s.admit(r)
	if no != nil {
		s.complain("a call to the gateway was refused", zap.String("method", r.Method), zap.String("path", r.URL.Path), zap.String("why", no.Sentence))
		no.write(w)
		return
	}
	defer c.out.Body.Close() //nolint:errcheck // it has no error
	if c.told == nil {
		s.pass(w, c)
		return
	}
	if s.under.Acquire(r.Context(), 1) != nil {
		return // the caller has left
	}
	defer s.under.Release(1)
	t, no := s.begin(r.Context(), *c.told)
	if no != nil {
		no.write(w)
		return
	}
	defer t.end() // however it goes
	if r.Context().Err() != nil {
		return // nothing of it has left
	}
	ctx, over := t.passage.leave(r.Context(), s.gateway.open, t.booking)
	defer over()
	c.out = t.follow(c.out.WithContext(ctx))
	s.pass(&deafWriter{ResponseWriter: w, limits: s.gateway.limits}, c)
}

// pass has a call leave, and hands its answer in.
func (s *Session) pass(w http.ResponseWriter, c *admitted) {
	// It may have waited, and a signature does not last.
	if err := s.route.sign(c.out.Context(), c.out, c.text); err != nil {
		s.complain("a call cannot be signed", zap.Error(err))
		refuse(http.StatusFailedDependency, "The call did not leave: "+err.Error()+".").write(w)
		return
	}
	s.proxy.ServeHTTP(w, c.out)
}

func (s *Session) complain(what string, fields ...zap.Field) {
	s.complaints.Do(func() { s.log.Warn(what, fields...) })
}

// admitted is a call from inside that may leave.
type admitted struct {
	out  *http.Request
	text []byte // its body
	told *Call  // what the meter is to know; nil of a call that costs nothing
}

// admit turns a call from inside into the one that leaves.
func (s *Session) admit(r *http.Request) (*admitted, *Refusal) {
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(s.token)) != 1 {
		return nil, refuse(http.StatusUnauthorized, "This socket belongs to another session.")
	}
	target, ok := s.route.target(r.URL)
	switch {
	case !ok:
		return nil, refuse(http.StatusNotFound, "The gateway passes calls of the model on, and nothing else.")
	case r.Method != http.MethodPost:
		return nil, refuse(http.StatusMethodNotAllowed, "The gateway passes POST on, and nothing else.")
	case r.ContentLength < 0:
		return nil, refuse(http.StatusLengthRequired, "The gateway takes calls of a known length only.")
	case r.ContentLength > maxBody:
		return nil, refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("The call is too large: it has %d bytes, and %d are the most.", r.ContentLength, maxBody))
	}
	header, ok := s.route.header(r.Header)
	if !ok {
		return nil, refuse(http.StatusUnauthorized, "The gateway adds the credentials, and takes no others.")
	}
	body, text, said, err := s.read(r)
	if err != nil {
		return nil, refuse(http.StatusPaymentRequired, "The gateway does not pass this call on: "+err.Error()+".")
	}
	out := r.WithContext(r.Context())
	out.URL, out.Header, out.Body, out.TransferEncoding, out.Trailer = target, header, body, nil, nil
	return &admitted{out, text, s.route.call(r, said)}, nil
}

// read reads and checks the body of a call, and returns what it says of the call's cost.
func (s *Session) read(r *http.Request) (io.ReadCloser, []byte, terms, error) {
	if err := s.bodies.Acquire(r.Context(), r.ContentLength); err != nil {
		return nil, nil, terms{}, errors.New("the session has ended")
	}
	text := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, text)
	var said terms
	if err == nil {
		said, err = check(text)
	}
	if err != nil {
		s.bodies.Release(r.ContentLength)
		return nil, nil, terms{}, err
	}
	b := &body{release: func() { s.bodies.Release(r.ContentLength) }}
	b.text.Reset(text)
	return b, text, said, nil
}

// body is a call's, until it has left: an answer can take long.
type body struct {
	mu      sync.Mutex
	text    bytes.Reader
	release func() // nil when it is closed
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Read(p)
}

func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.release != nil {
		b.text.Reset(nil)
		b.release()
		b.release = nil
	}
	return nil
}

// buffers are what answers are copied by.
var buffers bufferPool

type bufferPool struct{ pool sync.Pool }

const bufferSize = 16 << 10

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[bufferSize]byte); ok {
		return b[:]
	}
	return make([]byte, bufferSize)
}

func (p *bufferPool) Put(b []byte) { p.pool.Put((*[bufferSize]byte)(b)) }
