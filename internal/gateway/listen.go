package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
)

// Listen configures a TCP listener for sessions on other machines that no socket reaches. The zero value has none.
type Listen struct {
	// Address is where it listens, host:port.
	Address string
	// URL is the address by which sessions reach it: http(s)://host[:port]. If both ports are 0 a free one is used.
	URL string
	// CertFile and KeyFile make it speak TLS.
	CertFile, KeyFile string
}

// maxFar bounds the listener's connections, of all sessions.
const maxFar = 1024

// listener serves sessions by TCP. It finds them by their tokens, and answers everybody else 401.
type listener struct {
	url        string
	server     http.Server
	served     chan struct{}
	log        *zap.Logger
	complaints rate.Sometimes

	mu sync.Mutex
	// sessions by the hash of their token: the time of a lookup says nothing about the tokens.
	sessions map[[sha256.Size]byte]farSession
}

// farSession is a session with its running calls, so that one session cannot use up the listener's connections.
type farSession struct {
	*Session
	calls chan struct{}
}

func listen(o Listen, log *zap.Logger) (*listener, error) {
	if err := o.Check(); err != nil || o.Address == "" {
		return nil, err
	}
	l := &listener{url: strings.TrimSuffix(o.URL, "/"), served: make(chan struct{}), log: log, complaints: rate.Sometimes{First: 3, Interval: time.Minute}, sessions: map[[sha256.Size]byte]farSession{}}
	l.server = http.Server{Handler: l, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: quiet}
	var at net.Listener
	at, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("DECKHAND_GATEWAY_LISTEN: %w; choose an address of this machine that is free", err)
	}
	if free, ok := strings.CutSuffix(l.url, ":0"); ok {
		l.url = fmt.Sprintf("%s:%d", free, at.Addr().(*net.TCPAddr).Port)
	}
	at = netutil.LimitListener(at, maxFar)
	if o.CertFile != "" {
		certificate, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("DECKHAND_GATEWAY_CERT, DECKHAND_GATEWAY_KEY: %w; name a certificate and its key (PEM)", err), at.Close())
		}
		at = tls.NewListener(at, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	go func() {
		defer close(l.served)
		_ = l.server.Serve(at) // until it is closed
	}()
	return l, nil
}

// Check says what is wrong with the settings, in a sentence.
func (o Listen) Check() error {
	if o == (Listen{}) {
		return nil
	}
	u, err := url.Parse(o.URL)
	_, _, notAddress := net.SplitHostPort(o.Address)
	switch {
	case o.Address == "":
		return errors.New("DECKHAND_GATEWAY_URL, DECKHAND_GATEWAY_CERT and DECKHAND_GATEWAY_KEY are of use with DECKHAND_GATEWAY_LISTEN alone; set it, such as 0.0.0.0:8066")
	case notAddress != nil:
		return fmt.Errorf("DECKHAND_GATEWAY_LISTEN: %q is not host:port; write 0.0.0.0:8066 for every interface", o.Address)
	case o.URL == "":
		return errors.New("DECKHAND_GATEWAY_URL: set it to the address by which the launchers' machines reach DECKHAND_GATEWAY_LISTEN, such as http://bot.internal:8066")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || (u.Path != "" && u.Path != "/") || u.RawQuery != "":
		return errors.New("DECKHAND_GATEWAY_URL: this is not the address of a host; write one such as https://bot.internal:8066")
	case (o.CertFile == "") != (o.KeyFile == ""):
		return errors.New("DECKHAND_GATEWAY_CERT and DECKHAND_GATEWAY_KEY belong together: set both, or none")
	}
	return nil
}

// ErrNoListener means that neither a socket nor the listener reaches the session.
var ErrNoListener = errors.New("the sandbox command has no way to the gateway: take {socket} along in the launcher's words, or set DECKHAND_GATEWAY_LISTEN and DECKHAND_GATEWAY_URL")

// address is how sessions reach it.
func (l *listener) address() (string, error) {
	if l == nil {
		return "", ErrNoListener
	}
	return l.url, nil
}

func (l *listener) add(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions[sha256.Sum256([]byte(s.token))] = farSession{s, make(chan struct{}, maxConnections)}
}

func (l *listener) remove(s *Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, sha256.Sum256([]byte(s.token)))
}

// ServeHTTP passes a call to its session, for as long as that lasts.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	s, known := l.sessions[sha256.Sum256([]byte(r.Header.Get(tokenHeader)))]
	l.mu.Unlock()
	if !known {
		l.complaints.Do(func() {
			l.log.Warn("a call to the gateway's listener has the token of no session", zap.String("from", r.RemoteAddr))
		})
		w.Header().Set("Connection", "close")
		refuse(http.StatusUnauthorized, "The token is no session's.").write(w)
		return
	}
	select {
	case s.calls <- struct{}{}:
		defer func() { <-s.calls }()
	default:
		w.Header().Set("Connection", "close")
		refuse(http.StatusServiceUnavailable, fmt.Sprintf("The session has %d calls under way, which are the most.", maxConnections)).write(w)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(s.open, func() {
		cancel()
		conn := http.NewResponseController(w)
		_, _ = conn.SetReadDeadline(time.Unix(1, 0)), conn.SetWriteDeadline(time.Unix(1, 0)) // cut stalled ones
	})
	defer stop()
	s.ServeHTTP(w, r.WithContext(ctx))
}

func (l *listener) close() {
	_ = l.server.Close()
	<-l.served
}
