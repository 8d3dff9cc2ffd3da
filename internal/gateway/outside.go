package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/oauth2"
)

// outside is how the bot reaches providers and those that issue their credentials: through the proxy and with the
// certificates that the environment names.
type outside struct {
	proxy     func(*http.Request) (*url.URL, error)
	roots     *x509.CertPool // nil: the system's
	transport *http.Transport
}

func newOutside(getenv func(string) string) (*outside, error) {
	roots, err := trusted(getenv)
	if err != nil {
		return nil, err
	}
	choose := (&httpproxy.Config{
		HTTPProxy: cmp.Or(getenv("HTTP_PROXY"), getenv("http_proxy")), HTTPSProxy: cmp.Or(getenv("HTTPS_PROXY"), getenv("https_proxy")), NoProxy: cmp.Or(getenv("NO_PROXY"), getenv("no_proxy")),
	}).ProxyFunc()
	o := &outside{roots: roots, proxy: func(r *http.Request) (*url.URL, error) {
		// The machine's metadata service, which has its credentials, is asked directly.
		if a, err := netip.ParseAddr(r.URL.Hostname()); err == nil && a.IsLinkLocalUnicast() {
			return nil, nil //nolint:nilnil // as http.Transport has it
		}
		return choose(r.URL)
	}}
	o.transport = newTransport(o)
	return o, nil
}

// newTransport is the bot's only transport to the providers. It speaks HTTP/1.1: each connection serves one call at
// a time, so that no session can hold up another's.
func newTransport(o *outside) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:           o.proxy,
		DialContext:     (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig: &tls.Config{RootCAs: o.roots, MinVersion: tls.VersionTLS12},
		Protocols:       &protocols,
		// A compressed answer could be neither masked nor metered.
		DisableCompression:  true,
		TLSHandshakeTimeout: 30 * time.Second,
		MaxConnsPerHost:     maxUpstream, MaxIdleConns: 128, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second,
		// An unstreamed answer begins when it is complete; the CLI gives up after ten minutes.
		ResponseHeaderTimeout:  15 * time.Minute,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// context makes package oauth2 use this transport.
func (o *outside) context() context.Context {
	return context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Transport: o.transport, Timeout: signLimit})
}

// trusted returns the certificates of the system, of SSL_CERT_FILE and of NODE_EXTRA_CA_CERTS, which the CLI
// trusts, too. Nil means the system's.
func trusted(getenv func(string) string) (*x509.CertPool, error) {
	var files []authorities
	for _, variable := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		file := getenv(variable)
		if file == "" {
			continue
		}
		pem, err := os.ReadFile(file) //nolint:gosec // the admin names it
		if err != nil {
			return nil, fmt.Errorf("%s: %w; name a file of certificates (PEM) that the bot's user may read", variable, err)
		}
		if a := (authorities{variable, file, string(pem)}); !slices.ContainsFunc(files, a.same) {
			files = append(files, a)
		}
	}
	if files == nil {
		return nil, nil //nolint:nilnil // the system's
	}
	return pools.of(files)
}

// authorities is a file of certificates, and the variable that names it.
type authorities struct{ variable, file, pem string }

func (a authorities) same(b authorities) bool { return a.pem == b.pem }

// pools caches the last pool: a start asks for it several times, and reading a company's certificates is a quarter
// of a start's cost.
var pools poolKeeper

type poolKeeper struct {
	mu   sync.Mutex
	from []authorities
	pool *x509.CertPool // never changed
}

func (k *poolKeeper) of(files []authorities) (*x509.CertPool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.EqualFunc(files, k.from, authorities.same) {
		return k.pool, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's certificates: %w", err)
	}
	for _, a := range files {
		if !pool.AppendCertsFromPEM([]byte(a.pem)) {
			return nil, fmt.Errorf("%s: %s holds no certificate; name a file of certificates (PEM)", a.variable, a.file)
		}
	}
	k.from, k.pool = files, pool
	return pool, nil
}
