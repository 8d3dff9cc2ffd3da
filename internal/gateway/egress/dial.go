package egress

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// dial connects to an admitted target, directly or by the company's proxy for scheme; that of https carries
// tunnels.
func (s *Session) dial(ctx context.Context, t target, by admission, scheme string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	proxy, err := s.proxy.upstream(&url.URL{Scheme: scheme, Host: t.String()})
	if err != nil {
		return nil, fmt.Errorf("the bot's HTTPS_PROXY: %w", err)
	}
	if proxy != nil {
		return s.proxy.dialThrough(ctx, proxy, t)
	}
	return s.direct(ctx, t, by)
}

// direct looks a host up and connects to it. The address is checked when the kernel is about to connect, so that
// nothing can change in between.
func (s *Session) direct(ctx context.Context, t target, by admission) (net.Conn, error) {
	d := net.Dialer{
		KeepAlive: 30 * time.Second, Resolver: s.proxy.resolver,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !Reachable(at.Addr(), by.internal) {
				return s.notPublic(t, by)
			}
			return nil
		},
	}
	return d.DialContext(ctx, "tcp", t.String())
}

// dialThrough asks a proxy for a tunnel. Only the proxy knows the host's address.
func (p *Proxy) dialThrough(ctx context.Context, proxy *url.URL, t target) (net.Conn, error) {
	conn, err := p.dialProxy(ctx, proxy)
	if err != nil {
		return nil, fmt.Errorf("the bot's HTTPS_PROXY: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	out, err := connect(conn, proxy, t)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the bot's HTTPS_PROXY: %w", err), conn.Close())
	}
	return out, nil
}

// dialProxy connects to the company's proxy itself.
func (p *Proxy) dialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	d := &net.Dialer{KeepAlive: 30 * time.Second}
	switch proxy.Scheme {
	case "http":
		return d.DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), "80")))
	case "https":
		secure := tls.Dialer{NetDialer: d, Config: p.tlsConfig(proxy.Hostname())}
		return secure.DialContext(ctx, "tcp", net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), "443")))
	}
	return nil, fmt.Errorf("it is of the kind %q; write http://host:port or https://host:port", proxy.Scheme)
}

// connect asks the proxy at the other end of a connection to connect to a target.
func connect(conn net.Conn, proxy *url.URL, t target) (net.Conn, error) {
	head := "CONNECT " + t.String() + " HTTP/1.1\r\nHost: " + t.String() + "\r\n" + proxyAuthorization(proxy) + "\r\n"
	if _, err := io.WriteString(conn, head); err != nil {
		return nil, err
	}
	in := bufio.NewReader(io.LimitReader(conn, maxHeader))
	resp, err := http.ReadResponse(in, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close() // a tunnel's answer has none; an error's is not read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", resp.Status)
	}
	if in.Buffered() > 0 {
		early := make([]byte, in.Buffered())
		_, _ = io.ReadFull(in, early) // it is buffered
		return &earlyConn{conn, early}, nil
	}
	return conn, nil
}

// proxyAuthorization is our credentials' header line.
func proxyAuthorization(proxy *url.URL) string {
	if proxy.User == nil {
		return ""
	}
	password, _ := proxy.User.Password()
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(proxy.User.Username()+":"+password)) + "\r\n"
}

// earlyConn is a connection whose first bytes were read already.
type earlyConn struct {
	net.Conn
	early []byte
}

func (c *earlyConn) Read(p []byte) (int, error) {
	if len(c.early) > 0 {
		n := copy(p, c.early)
		c.early = c.early[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

func (c *earlyConn) CloseWrite() error { return closeWrite(c.Conn) }
