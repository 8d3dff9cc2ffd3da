package gateway

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"go.uber.org/zap"
)

const (
	// maxSocketPath is what the kernels take as a socket's path, with its final zero.
	maxSocketPath = 104 // macOS; 108 on Linux
	// nameLen is the length of a session's folder's name.
	nameLen = 16
	// maxUpstream bounds the connections to one provider, of all sessions.
	maxUpstream = 512
)

// Gateway opens a way to the model for each session. Its methods are safe for
// concurrent use.
type Gateway struct {
	dir      string
	log      *zap.Logger
	getenv   func(string) string
	outside  *outside
	listener *listener // nil where there is none
	limits   limits

	open  context.Context // ends with the gateway
	end   context.CancelFunc
	calls sync.WaitGroup // of all sessions, also closed ones; see enter

	mu       sync.Mutex
	sessions map[*Session]struct{} // nil when it is closed
	routes   map[string]*route     // by what [Provider] says
}

// Options configure a gateway.
type Options struct {
	// Dir is a folder of the gateway's own for the sockets. Leftovers of an earlier run are removed.
	Dir string
	// Getenv reads the bot's environment, where credentials, proxies and certificates are;
	// nil is [os.Getenv].
	Getenv func(string) string
	// Listen is for sessions that no socket reaches; the zero value has no listener.
	Listen Listen
	// Log receives what went wrong; nil logs nothing.
	Log *zap.Logger
}

// New returns a gateway. Its error is a sentence for people.
func New(o Options) (*Gateway, error) {
	dir := o.Dir
	if longest := len(filepath.Join(dir, fmt.Sprintf("%0*d", nameLen, 0), socketName)); longest >= maxSocketPath {
		return nil, fmt.Errorf("the data folder's path is %d characters too long for a socket below it; choose a shorter DECKHAND_DATA_DIR", longest-maxSocketPath+1)
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clear the gateway's folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the gateway's folder: %w", err)
	}
	g := &Gateway{dir: dir, log: cmp.Or(o.Log, zap.NewNop()), getenv: o.Getenv, limits: usualLimits, sessions: map[*Session]struct{}{}, routes: map[string]*route{}}
	g.open, g.end = context.WithCancel(context.Background())
	if g.getenv == nil {
		g.getenv = os.Getenv
	}
	var err error
	if g.outside, err = newOutside(g.getenv); err != nil {
		return nil, err
	}
	if g.listener, err = listen(o.Listen, g.log); err != nil {
		return nil, err
	}
	return g, nil
}

// routeTo returns the route to a provider. It is made once and keeps credentials and signatures.
func (g *Gateway) routeTo(p Provider) (*route, error) {
	key := fmt.Sprintf("%#v", p) // not by its name: two accounts may have the same
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.routes[key]; r != nil {
		return r, nil
	}
	r, err := newRoute(p, g.getenv, g.outside)
	if err == nil {
		g.routes[key] = r
	}
	return r, err
}

var errClosed = errors.New("the gateway is closed")

// Roots are the certificates that the bot trusts; nil means the system's.
func (g *Gateway) Roots() *x509.CertPool { return g.outside.roots }

// Close ends all sessions, cuts the calls that are under way, and waits for them.
func (g *Gateway) Close() {
	g.mu.Lock()
	open := g.sessions
	g.sessions = nil
	g.mu.Unlock()
	for s := range open {
		s.Close()
	}
	g.end()
	g.calls.Wait()
	if g.listener != nil {
		g.listener.close()
	}
	g.outside.transport.CloseIdleConnections()
}

// enter counts a call that calls done when it ends; false if the gateway is closed.
func (g *Gateway) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions == nil {
		return false
	}
	g.calls.Add(1)
	return true
}

func (g *Gateway) add(s *Session) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions == nil {
		return errClosed
	}
	g.sessions[s] = struct{}{}
	return nil
}

func (g *Gateway) remove(s *Session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, s)
}
