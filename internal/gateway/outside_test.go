package gateway_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/gateway"
)

// corporate is a proxy that knows its users, and the way to the provider, which nobody
// else finds.
type corporate struct {
	*httptest.Server
	user, password string
	refuses        bool
	leads          string // where every tunnel leads

	mu     sync.Mutex
	wanted []string
}

func newCorporate(t *testing.T, leads string) *corporate {
	c := &corporate{user: "bot", password: "the-password-of-the-proxy", leads: leads}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *corporate) address() string {
	return "http://" + c.user + ":" + c.password + "@" + c.Listener.Addr().String()
}

func (c *corporate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.wanted = append(c.wanted, r.Method+" "+r.Host)
	c.mu.Unlock()
	asked := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	if user, password, _ := asked.BasicAuth(); user != "bot" || password != "the-password-of-the-proxy" {
		w.WriteHeader(http.StatusProxyAuthRequired)
		return
	}
	if c.refuses || r.Method != http.MethodConnect {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", c.leads)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close() //nolint:errcheck // a tunnel's end
	w.WriteHeader(http.StatusOK)
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close() //nolint:errcheck // a tunnel's end
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}()
	_, _ = io.Copy(there, buffered)
	_ = there.Close()
	<-done
}

// secured is a provider whose certificate is the company's own, and the file that says so.
func secured(t *testing.T) (address, file string) {
	_, cert, key := certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model":"the-model","usage":{"input_tokens":8,"output_tokens":1}}`)
	}))
	web.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	web.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.StartTLS()
	t.Cleanup(web.Close)
	return web.Listener.Addr().String(), cert
}

// By a proxy with a password, and certificates of the company's own: only so the provider
// is reached, and nothing of either is known inside.
func TestTheCompanysProxyAndCertificates(t *testing.T) {
	t.Parallel()
	address, certificates := secured(t)
	proxy := newCorporate(t, address)
	_, port, _ := net.SplitHostPort(address)
	for _, c := range []struct {
		name string
		env  []string
		want int
	}{
		{"SSL_CERT_FILE", []string{"HTTPS_PROXY=" + proxy.address(), "SSL_CERT_FILE=" + certificates}, http.StatusOK},
		{"NODE_EXTRA_CA_CERTS, in small letters", []string{"https_proxy=" + proxy.address(), "NODE_EXTRA_CA_CERTS=" + certificates}, http.StatusOK},
		{"without the certificates", []string{"HTTPS_PROXY=" + proxy.address()}, http.StatusBadGateway},
		{"without the password", []string{"HTTPS_PROXY=http://" + proxy.Listener.Addr().String(), "SSL_CERT_FILE=" + certificates}, http.StatusBadGateway},
		{"NO_PROXY", []string{"HTTPS_PROXY=" + proxy.address(), "NO_PROXY=.example", "SSL_CERT_FILE=" + certificates}, http.StatusBadGateway}, // there is no such host
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, newGateway(t, nil, c.env...), "ANTHROPIC_API_KEY="+realKey, "ANTHROPIC_BASE_URL=https://provider.example:"+port)
			if status, body := s.do(t, s.request(http.MethodPost, "/v1/messages", call)); status != c.want || strings.Contains(body, proxy.password) {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	t.Cleanup(func() {
		if got := strings.Join(proxy.wanted, " "); !strings.HasPrefix(got, "CONNECT provider.example:"+port) {
			t.Error(got)
		}
	})
	for _, variable := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		for _, file := range []string{filepath.Join(t.TempDir(), "none"), write(t, "no certificate")} {
			env := func(name string) string { return map[string]string{variable: file}[name] }
			if _, err := gateway.New(gateway.Options{Dir: folder(t), Getenv: env}); err == nil || !strings.HasPrefix(err.Error(), variable+": ") {
				t.Error(err)
			}
		}
	}
}

// asks calls the model as the CLI would.
func asks(path string) func(ctx context.Context, env []string) error {
	return func(ctx context.Context, env []string) error {
		set := map[string]string{}
		for _, entry := range env {
			name, value, _ := strings.Cut(entry, "=")
			set[name] = value
		}
		base := set["ANTHROPIC_BASE_URL"] + set["ANTHROPIC_BEDROCK_BASE_URL"] + set["ANTHROPIC_VERTEX_BASE_URL"]
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"all that a session says"}],"max_tokens":32000}`))
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(set["ANTHROPIC_CUSTOM_HEADERS"], ": ")
		r.Header.Set(name, value)
		if key := set["ANTHROPIC_API_KEY"]; key != "" {
			r.Header.Set("X-Api-Key", key)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // the status is all we want
		return fmt.Errorf("%s", resp.Status)
	}
}

// Every failure of the doctor's call has a sentence with the cure, and no secret.
func TestTrialsSayTheCure(t *testing.T) {
	t.Parallel()
	address, certificates := secured(t)
	proxy, strict := newCorporate(t, address), newCorporate(t, address)
	strict.refuses = true
	_, port, _ := net.SplitHostPort(address)
	named := "https://provider.example:" + port
	plain := func(status int, body string) gateway.Provider {
		p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
			if sent, err := io.ReadAll(r.Body); err != nil || strings.Contains(string(sent), "session") || !strings.Contains(string(sent), `"max_tokens":1,`) {
				t.Errorf("%s left, %v", sent, err)
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		})
		return gateway.Provider{Kind: gateway.Anthropic, APIKeyEnv: "KEY", BaseURL: p.URL}
	}
	bedrock := func(status int, body string) gateway.Provider {
		return gateway.Provider{Kind: gateway.Bedrock, Region: "eu-central-1", AccessKeyIDEnv: "KEY", SecretAccessKeyEnv: "KEY", BaseURL: plain(status, body).BaseURL}
	}
	vertex := func(status int, body string) gateway.Provider {
		return gateway.Provider{Kind: gateway.Vertex, Region: "eu", Project: "p", SkipAuth: true, BaseURL: plain(status, body).BaseURL}
	}
	by := func(base string) gateway.Provider {
		return gateway.Provider{Kind: gateway.Anthropic, APIKeyEnv: "KEY", BaseURL: base}
	}
	for _, c := range []struct {
		name string
		of   gateway.Provider
		env  []string
		want string // empty: it works
	}{
		{"works", by(named), []string{"HTTPS_PROXY=" + proxy.address(), "SSL_CERT_FILE=" + certificates}, ""},
		{"unknown authority", by(named), []string{"HTTPS_PROXY=" + proxy.address()}, "set SSL_CERT_FILE or NODE_EXTRA_CA_CERTS"},
		{"proxy wants a password", by(named), []string{"HTTPS_PROXY=http://" + proxy.Listener.Addr().String()}, "the proxy wants a user and a password"},
		{"proxy refuses", by(named), []string{"HTTPS_PROXY=" + strict.address()}, "the proxy that HTTPS_PROXY names refuses it"},
		{"proxy is not there", by(named), []string{"HTTPS_PROXY=http://127.0.0.1:1"}, "the proxy that HTTPS_PROXY names cannot be reached"},
		{"no such host", by("https://nowhere.invalid"), nil, "there is no such host: correct the region"},
		{"nobody there", by("http://127.0.0.1:1"), nil, "look whether the bot's machine may reach it"},
		{"no API", plain(200, "<html>"), nil, "not as the model's API does; correct base_url"},
		{"key refused", plain(401, `{"error":{"message":"invalid key `+realKey+`"}}`), nil, "status 401 (invalid key …); the credential is not taken"},
		{"quota", plain(429, `{"error":{"message":"slow down"}}`), nil, "the way and the credential work; the quota is used up"},
		{"no credit", plain(400, `{"error":{"message":"Your credit balance is too low"}}`), nil, "no credit left"},
		{"no model", plain(404, `{"error":{"message":"model: m"}}`), nil, "correct model, models or base_url"},
		{"trouble", plain(529, `{}`), nil, "status 529 (no reason); the provider has trouble"},
		{"Bedrock without access", bedrock(403, `{"message":"You don't have access to the model with the specified model ID."}`), nil, "Model access"},
		{"Bedrock without a profile", bedrock(400, `{"message":"Invocation of model ID m with on-demand throughput isn’t supported."}`), nil, "an inference profile"},
		{"Bedrock, expired", bedrock(403, `{"message":"The security token included in the request is expired"}`), nil, "the credential of AWS does not hold: renew it"},
		{"Bedrock, wrong region", bedrock(400, `{"message":"The provided model identifier is invalid."}`), nil, "correct region or models"},
		{"Vertex without a role", vertex(403, `[{"error":{"message":"Permission 'aiplatform.endpoints.predict' denied"}}]`), nil, "roles/aiplatform.user"},
		{"Vertex, wrong region", vertex(404, `{"error":{"message":"Publisher Model was not found"}}`), nil, "not in this region"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{"KEY": realKey}
			for _, entry := range c.env {
				name, value, _ := strings.Cut(entry, "=")
				env[name] = value
			}
			path := map[gateway.Kind]string{gateway.Bedrock: "/model/m/invoke-with-response-stream", gateway.Vertex: "/projects/p/locations/eu/publishers/anthropic/models/m:streamRawPredict"}[c.of.Kind]
			if path == "" {
				path = "/v1/messages?beta=true"
			}
			trial, err := gateway.Try(t.Context(), c.of, func(name string) string { return env[name] }, asks(path))
			switch {
			case c.want == "" && (err != nil || trial.Model != "the-model" || trial.Input != 8 || trial.Output != 1):
				t.Errorf("%+v, %v", trial, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			case err != nil && (strings.Contains(err.Error(), realKey) || strings.Contains(err.Error(), proxy.password)):
				t.Errorf("a secret is told: %v", err)
			}
		})
	}
	if _, err := gateway.Try(t.Context(), by(named), func(name string) string { return map[string]string{"KEY": "k"}[name] }, func(context.Context, []string) error { return nil }); err == nil || !strings.Contains(err.Error(), "CLAUDE_COMMAND") {
		t.Error(err)
	}
}
