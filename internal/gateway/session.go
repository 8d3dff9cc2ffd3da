package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
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

	"deckhand/internal/redact"
)

const (
	socketName = "model"
	// maxHeader bounds the head of a call, and of an answer: the CLI's are 2 KB.
	maxHeader = 64 << 10
	// maxBody bounds a call, as Anthropic does.
	maxBody = 32 << 20
	// maxBodies bounds the bodies of a session's calls that are read at once.
	maxBodies = 2 * maxBody
	// maxConnections bounds a session's connections: the CLI has one per running call.
	maxConnections = 32
	// maxUnderWay bounds a session's calls that cost something, including those whose caller has gone. More wait.
	maxUnderWay = maxConnections
)

// Session is the way to the model for one process and all that it starts.
type Session struct {
	gateway *Gateway
	route   *route
	token   string
	dir     string
	env     []string
	far     bool // it uses the listener
	log     *zap.Logger
	meter   Meter
	offered offered

	server http.Server
	proxy  httputil.ReverseProxy
	bodies *semaphore.Weighted
	under  *semaphore.Weighted // calls that cost something
	// complaints limits log lines when something inside keeps trying.
	complaints rate.Sometimes

	open  context.Context // ends with the session
	close func()
}

// Opening configures a session.
type Opening struct {
	// Provider receives its calls, and is paid for them.
	Provider Provider
	// Env is the process's environment, NAME=value. What leads to a model in it is removed.
	Env []string
	// Far says that the session reaches no socket of this machine, and uses the gateway's listener.
	Far bool
	// Meter learns of every call before it leaves.
	Meter Meter
}

// Open opens a session and serves it until [Session.Close]. It fails if the provider's credential cannot be had.
// Its error is a sentence for people.
func (g *Gateway) Open(ctx context.Context, o Opening) (*Session, error) {
	r, err := g.routeTo(o.Provider)
	if err != nil {
		return nil, err
	}
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	s := &Session{
		gateway: g, route: r, token: redact.Token(), dir: filepath.Join(g.dir, rand.Text()[:nameLen]), log: g.log, meter: o.Meter,
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

// Socket is the path of the socket, the only file in its folder.
func (s *Session) Socket() string { return filepath.Join(s.dir, socketName) }

// Env is the environment for the CLI, NAME=value.
func (s *Session) Env() []string { return s.env }

func (s *Session) serve() error {
	s.proxy = s.reverse()
	if s.far {
		return s.serveFar()
	}
	// The gateway's folder keeps others out; users in the sandbox may differ.
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

// serveFar registers the session with the listener.
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

// reverse passes the session's calls on.
func (s *Session) reverse() httputil.ReverseProxy {
	return httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = ""
			r.Out.Body = r.In.Body // closed when it has left, which ReverseProxy would prevent
		},
		Transport: s.gateway.outside.transport, FlushInterval: -1, BufferPool: &buffers, ErrorLog: quiet,
		ModifyResponse: s.answered, ErrorHandler: s.failed,
	}
}

// Close ends the session: its token is void, its connections are cut, and its socket is gone. The gateway reads
// running calls of the provider to their end unless they are cut ([Call.Cut]). Close may be called more than once.
func (s *Session) Close() { s.close() }

// ServeHTTP passes a call on, or refuses it as Anthropic's API would.
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
	if c.metered == nil {
		s.pass(w, c)
		return
	}
	if s.under.Acquire(r.Context(), 1) != nil {
		return // the caller has gone
	}
	defer s.under.Release(1)
	t, no := s.begin(r.Context(), *c.metered)
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

// pass sends a call and returns its answer.
func (s *Session) pass(w http.ResponseWriter, c *admitted) {
	// It may have waited, and signatures expire.
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
	out     *http.Request
	text    []byte // its body
	metered *Call  // for the meter; nil if the call costs nothing
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
	s.offered.note(said.tools)
	out := r.WithContext(r.Context())
	out.URL, out.Header, out.Body, out.TransferEncoding, out.Trailer = target, header, body, nil, nil
	return &admitted{out, text, s.route.call(r, said)}, nil
}

// read reads and checks a call's body, and returns what determines its cost.
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

// body is a call's body. It is released once it has left, since the answer may take long.
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
