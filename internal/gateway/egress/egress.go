package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
)

const (
	// maxConnections bounds the connections from one session: npm opens some 50.
	maxConnections = 128
	// maxHeader bounds the head of a call and of an answer.
	maxHeader = 64 << 10
	// headTime is how long a head or a TLS hello may take to arrive.
	headTime = 30 * time.Second
	// dialTime is how long a host may take to be looked up and to answer.
	dialTime = 30 * time.Second
	// idleTime is how long a connection may carry nothing.
	idleTime = 10 * time.Minute
)

// Proxy opens a way to the web for each session. Its methods are safe for concurrent use.
type Proxy struct {
	log *zap.Logger
	// upstream is the company's own proxy for an address, or nil; see [http.ProxyFromEnvironment].
	upstream func(*url.URL) (*url.URL, error)
	resolver *net.Resolver
	roots    *x509.CertPool
	hold     time.Duration   // how long a connection waits for an answer
	servers  *http.Transport // the way to MCP servers

	mu     sync.Mutex
	totals map[string]*sharedTotal
}

// New returns a proxy. The bot's HTTP_PROXY, HTTPS_PROXY and NO_PROXY name the upstream proxy. roots are the
// certificates trusted for the project's MCP servers; nil means the system's. A nil log logs nothing.
func New(roots *x509.CertPool, log *zap.Logger) *Proxy {
	p := &Proxy{
		log: cmp.Or(log, zap.NewNop()), upstream: httpproxy.FromEnvironment().ProxyFunc(), resolver: net.DefaultResolver, roots: roots, hold: holdTime,
		totals: map[string]*sharedTotal{},
	}
	p.servers = p.serverTransport()
	return p
}

// Options say what a session may reach.
//
// The zero value reaches nothing.
type Options struct {
	// Project is the name that people know the rules by.
	Project string
	Rules   Rules
	// Ask: hosts that no rule names are asked about, see [Session.OnAsk].
	Ask bool
	// Denied, if not nil, returns the policy rule that refuses a host that the Rules allow; empty for none. It
	// returns at once.
	Denied func(host string, port uint16) string
	// Servers are the project's MCP servers by name; Token is what a call of one must show.
	Servers map[string]Server
	Token   string
}

// Session is the way to the web of one process and all that it starts.
type Session struct {
	proxy     *Proxy
	options   Options
	path      string
	tally     tally
	questions questions
	tools     toolCalls
	// complaints limits log lines when something inside keeps trying.
	complaints rate.Sometimes

	ctx    context.Context //nolint:containedctx // the session's own, for what runs beside calls
	calls  sync.RWMutex    // read-locked by each running call
	server http.Server
	close  func()
}

// Open serves a way to the web on a unix socket at path until [Session.Close]. Its folder belongs to one sandbox.
func (p *Proxy) Open(path string, o Options) (*Session, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("open the web's socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // its folder keeps others out; the sandbox may have its own idea of users
		return nil, errors.Join(fmt.Errorf("open the web's socket: %w", err), l.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{
		proxy: p, options: o, path: path, ctx: ctx, complaints: rate.Sometimes{First: 3, Interval: time.Minute},
		tally: tally{total: p.total(o.Project)}, tools: toolCalls{reading: make(chan struct{}, maxReading), allowed: map[string]*toolCall{}},
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	s.server = http.Server{
		Handler: s, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, Protocols: &protocols, ErrorLog: zap.NewStdLog(zap.NewNop()),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan struct{})
	s.close = sync.OnceFunc(func() {
		cancel()
		_ = s.server.Close()
		s.calls.Lock() // until the last has ended
		defer s.calls.Unlock()
		<-served
	})
	go func() {
		defer close(served)
		_ = s.server.Serve(netutil.LimitListener(l, maxConnections)) // until the session is closed
	}()
	return s, nil
}

// Socket is the path of the session's socket.
func (s *Session) Socket() string { return s.path }

// Close closes idle connections to MCP servers. Sessions are closed by whoever opened them.
func (p *Proxy) Close() { p.servers.CloseIdleConnections() }

// Close ends the session's connections and removes the socket. It may be called more than once.
func (s *Session) Close() { s.close() }

// ServeHTTP carries a call: a tunnel, plain HTTP, or a call of an MCP server.
func (s *Session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls.RLock()
	defer s.calls.RUnlock()
	switch {
	case s.ctx.Err() != nil:
	case r.Method == http.MethodConnect:
		s.tunnel(w, r)
	case r.URL.IsAbs():
		s.plain(w, r)
	default:
		s.mcp(w, r)
	}
}

// refusal is why something does not leave, in a sentence for whoever asked.
type refusal struct {
	status   int
	sentence string
}

func (n *refusal) Error() string { return n.sentence }

func refuse(format string, args ...any) *refusal {
	return &refusal{http.StatusForbidden, fmt.Sprintf(format, args...)}
}

// why turns an error into a refusal. An error that is none becomes the one for unreachable hosts, whose addresses
// are not shown inside.
func (s *Session) why(t target, err error) *refusal {
	if n, ok := errors.AsType[*refusal](err); ok {
		return n
	}
	if missing, ok := errors.AsType[*net.DNSError](err); ok && missing.IsNotFound {
		return &refusal{http.StatusBadGateway, "there is no host " + t.host}
	}
	if errors.Is(err, context.Canceled) {
		return &refusal{http.StatusBadGateway, "the session has ended, or its turn"}
	}
	s.complain("the web cannot be reached", zap.Stringer("host", t), zap.Error(err))
	return &refusal{http.StatusBadGateway, t.String() + " cannot be reached"}
}

func (s *Session) complain(what string, fields ...zap.Field) {
	s.complaints.Do(func() { s.proxy.log.Warn(what, append(fields, zap.String("project", s.options.Project))...) })
}

// admission is what a target is allowed.
type admission struct {
	internal bool            // an address that is not public
	asked    bool            // it was allowed by an answer
	during   context.Context //nolint:containedctx // ends what was admitted
}

// admit decides about a target; it may wait for a person.
func (s *Session) admit(ctx context.Context, t target) (admission, error) {
	if ok, internal := s.options.Rules.allow(t); ok {
		if s.options.Denied != nil {
			if rule := s.options.Denied(t.host, t.port); rule != "" {
				return admission{}, refuse("the policy does not allow %s (%s), though network: of project %s lists it", t, oneLine(rule), s.options.Project)
			}
		}
		return admission{internal: internal, during: s.ctx}, nil
	}
	if s.options.Ask {
		return s.ask(ctx, t)
	}
	return admission{}, refuse("network: of project %s does not allow %s; an admin can add it in deckhand.yaml", s.options.Project, t)
}

// notPublic refuses an address that was looked up.
func (s *Session) notPublic(t target, by admission) *refusal {
	if by.asked {
		return refuse("%s was allowed, but its address is not public, which no decision opens; an admin can list it with internal: before it under network: in deckhand.yaml", t)
	}
	return refuse("network: of project %s does not allow %s, whose address is not public; an admin can allow it with internal: before it", s.options.Project, t)
}

// write answers a plain call.
func (n *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(n.status)
	_, _ = fmt.Fprintln(w, n.sentence) // the caller may have gone
}

func (p *Proxy) tlsConfig(host string) *tls.Config {
	return &tls.Config{ServerName: host, RootCAs: p.roots, MinVersion: tls.VersionTLS12}
}
