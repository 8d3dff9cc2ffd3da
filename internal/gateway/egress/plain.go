package egress

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"go.uber.org/zap"
)

// plain answers a call with an absolute URL. It leaves for the URL's host, whatever the Host header says: net/http
// takes it from there.
func (s *Session) plain(w http.ResponseWriter, r *http.Request) {
	t, n := plainTarget(r)
	if n != nil {
		n.write(w)
		return
	}
	by, err := s.admit(r.Context(), t)
	if err != nil {
		s.tally.refused(t)
		s.why(t, err).write(w)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(by.during, cancel)
	defer stop()
	r = r.WithContext(ctx)
	transport := s.transport(t, by)
	defer transport.CloseIdleConnections()
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host, r.Out.URL.RawQuery = r.In.Host, r.In.URL.RawQuery // as they came
		},
		Transport: transport, FlushInterval: -1, ErrorLog: zap.NewStdLog(zap.NewNop()),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the head was sent, or the session has ended
			}
			s.tally.refused(t)
			s.why(t, err).write(w)
		},
	}
	proxy.ServeHTTP(w, r)
}

// plainTarget returns where a call with an absolute URL goes.
func plainTarget(r *http.Request) (target, *refusal) {
	switch {
	case r.URL.Scheme != "http":
		return target{}, refuse("the gateway passes %s on by CONNECT, and nothing but http otherwise", r.URL.Scheme)
	case r.URL.User != nil || r.URL.Opaque != "":
		return target{}, refuse("the gateway takes an address with a host and a path, and without a user")
	}
	t, err := readTarget(r.URL.Host, 80)
	if err != nil {
		return target{}, refuse("the gateway does not take this address: %v", err)
	}
	return t, nil
}

// transport serves one plain call on a connection of its own, so that no leftover of another call is taken for the
// answer.
func (s *Session) transport(t target, by admission) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	counting := func(conn net.Conn, err error) (net.Conn, error) {
		if err != nil {
			return nil, err
		}
		return &countedConn{conn, s.tally.connected(t)}, nil
	}
	upstream, err := s.proxy.upstream(&url.URL{Scheme: "http", Host: t.String()})
	return &http.Transport{
		Protocols: &protocols, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader, ResponseHeaderTimeout: idleTime,
		TLSClientConfig: s.proxy.tlsConfig(""),
		Proxy:           func(*http.Request) (*url.URL, error) { return upstream, err },
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTime)
			defer cancel()
			if upstream != nil {
				return counting((&net.Dialer{}).DialContext(ctx, network, address))
			}
			return counting(s.direct(ctx, t, by))
		},
	}
}

// countedConn counts its bytes, and extends its deadline as it carries some.
type countedConn struct {
	net.Conn
	visit visit
}

func (c *countedConn) Read(p []byte) (int, error) {
	_ = c.SetReadDeadline(time.Now().Add(idleTime))
	n, err := c.Conn.Read(p)
	c.visit.down(n)
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	_ = c.SetWriteDeadline(time.Now().Add(idleTime))
	n, err := c.Conn.Write(p)
	c.visit.up(n)
	return n, err
}
