package gateway

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

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
	dir       string
	log       *zap.Logger
	transport *http.Transport

	mu       sync.Mutex
	sessions map[*Session]struct{} // nil when it is closed
}

// New returns a gateway whose sockets are below dir, a folder of its own: what lies
// there was left by an earlier run, and is removed. A nil log logs nothing.
func New(dir string, log *zap.Logger) (*Gateway, error) {
	if longest := len(filepath.Join(dir, fmt.Sprintf("%0*d", nameLen, 0), socketName)); longest >= maxSocketPath {
		return nil, fmt.Errorf("the data folder's path is %d characters too long for a socket below it; choose a shorter DECKHAND_DATA_DIR", longest-maxSocketPath+1)
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("clear the gateway's folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the gateway's folder: %w", err)
	}
	roots, err := trusted(os.Getenv("NODE_EXTRA_CA_CERTS"))
	if err != nil {
		return nil, err
	}
	return &Gateway{dir: dir, log: cmp.Or(log, zap.NewNop()), sessions: map[*Session]struct{}{}, transport: newTransport(roots)}, nil
}

// newTransport is the one way out of the bot to the providers. It speaks HTTP/1.1: a
// connection belongs to one call at a time, so that no session can hold up another's.
func newTransport(roots *x509.CertPool) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		DialContext:     (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		Protocols:       &protocols,
		// A packed answer could be neither masked nor, one day, metered.
		DisableCompression:  true,
		TLSHandshakeTimeout: 30 * time.Second,
		MaxConnsPerHost:     maxUpstream, MaxIdleConns: 128, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		// An answer that is not streamed begins when it is complete; the CLI gives up
		// after ten minutes.
		ResponseHeaderTimeout:  15 * time.Minute,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// trusted are the certificates of the system, and those of file, which the CLI would
// trust, too. Nil means the system's.
func trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // as tls.Config has it
	}
	pem, err := os.ReadFile(file) //nolint:gosec // the admin names it
	if err != nil {
		return nil, fmt.Errorf("NODE_EXTRA_CA_CERTS: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificates: %w", err)
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("NODE_EXTRA_CA_CERTS: %s holds no certificate", file)
	}
	return pool, nil
}

var errClosed = errors.New("the gateway is closed")

// Close ends all sessions, and the connections to the providers.
func (g *Gateway) Close() {
	g.mu.Lock()
	open := g.sessions
	g.sessions = nil
	g.mu.Unlock()
	for s := range open {
		s.Close()
	}
	g.transport.CloseIdleConnections()
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
