package egress

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	// tokenHeader shows that a call of an MCP server comes from the session.
	tokenHeader = "X-Deckhand-Token"
	// serverHeader names the server.
	serverHeader = "X-Deckhand-Server"
)

// Server is an MCP server that is reached by HTTP.
type Server struct {
	// URL is its address. Calls leave for it and for what is below it; for an SSE server, whose messages go to
	// another address, for everything beside it.
	URL *url.URL
	SSE bool
	// Headers are set on every call. They are not visible inside.
	Headers http.Header
	// Person is whom its calls are made for; nil for nobody.
	Person *Person
}

// Person is somebody as whom a server is called.
type Person struct {
	// Token is what they are called by now, as a bearer. Its error goes on a sentence that begins with [TheServer].
	Token func(ctx context.Context) (string, error)
	// Refused is told that the server did not take a token.
	Refused func(ctx context.Context, token string)
}

// called is the server as it is called now: with its person's token, if it has one.
func (s Server) called(ctx context.Context) (Server, *refusal) {
	if s.Person == nil {
		return s, nil
	}
	token, err := s.Person.Token(ctx)
	if err != nil {
		return s, &refusal{http.StatusForbidden, TheServer + err.Error()}
	}
	s.Headers = s.Headers.Clone()
	s.Headers.Set("Authorization", "Bearer "+token)
	return s, nil
}

// prefix is the path below which calls leave.
func (s Server) prefix() string {
	if s.SSE {
		return strings.TrimSuffix(path.Dir("/"+strings.TrimPrefix(s.URL.EscapedPath(), "/")), "/")
	}
	return strings.TrimSuffix(s.URL.EscapedPath(), "/")
}

// MCPConfig is how the CLI reaches each server from inside: through the forwarder on loopback, at their own paths.
// address is the forwarder's, token is [Options.Token]; either may be a variable that the CLI expands, such as ${NAME}.
func MCPConfig(servers map[string]Server, address, token string) map[string]any {
	all := map[string]any{}
	for name, s := range servers {
		kind := "http"
		if s.SSE {
			kind = "sse"
		}
		all[name] = map[string]any{
			"type": kind, "url": "http://" + address + s.URL.EscapedPath(),
			"headers": map[string]string{tokenHeader: token, serverHeader: name},
		}
	}
	return all
}

// serverTransport is used for all MCP servers.
func (p *Proxy) serverTransport() *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:       p.proxyOf,
		DialContext: (&net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}).DialContext, TLSClientConfig: p.tlsConfig(""), Protocols: &protocols,
		DisableCompression: true, TLSHandshakeTimeout: dialTime, MaxResponseHeaderBytes: maxHeader,
		// A slow tool may answer only when it has ended.
		ResponseHeaderTimeout: 15 * time.Minute,
		MaxConnsPerHost:       512, MaxIdleConnsPerHost: 32, IdleConnTimeout: 90 * time.Second,
	}
}

func (p *Proxy) proxyOf(r *http.Request) (*url.URL, error) { return p.upstream(r.URL) }

// Headers that pass, and prefixes of such names.
var (
	callHeaders   = []string{"Accept", "Content-Type", "Last-Event-Id", "User-Agent"}
	answerHeaders = []string{"Content-Type", "Content-Length", "Cache-Control", "Date", "Retry-After"}
	mcpPrefix     = "Mcp-"
)

// TheServer begins a sentence of the gateway's about a server. It has no name, since the CLI takes the values of its
// headers and parts of its address for secrets, and masks them in errors.
const TheServer = "The MCP server "

// mcp passes a call to one of the project's MCP servers. What is posted leaves if it needs no decision, such as
// tools/list, or if there is one, see [Session.AllowCall].
func (s *Session) mcp(w http.ResponseWriter, r *http.Request) {
	name := r.Header.Get(serverHeader)
	server, ok := s.options.Servers[name]
	if s.options.Token == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(s.options.Token)) != 1 || !ok {
		(&refusal{http.StatusNotFound, "This is the gateway's way to the web: it takes CONNECT host:port and http:// addresses."}).write(w)
		return
	}
	to, no := server.admit(r)
	var body []byte
	var made []*toolCall
	if no == nil {
		server, no = server.called(r.Context())
	}
	if no == nil && r.Method == http.MethodPost {
		body, made, no = s.admitMessages(w, r, name)
	}
	if no != nil {
		s.tally.add("mcp:"+name, Total{Refused: 1})
		no.write(w)
		return
	}
	visit := s.tally.visited("mcp:" + name)
	proxy := httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host, r.Out.Header = to, "", server.header(r.In.Header)
			r.Out.Body, r.Out.ContentLength, r.Out.TransferEncoding = nil, int64(len(body)), nil
			if body != nil {
				r.Out.Body = countedBody{io.NopCloser(bytes.NewReader(body)), visit.up}
				r.Out.Header.Set("Content-Type", "application/json") // as it was read
			}
		},
		Transport: s.proxy.servers, FlushInterval: -1, ErrorLog: zap.NewStdLog(zap.NewNop()),
		ModifyResponse: func(resp *http.Response) error {
			if resp.StatusCode == http.StatusUnauthorized && server.Person != nil {
				_, token, _ := strings.Cut(server.Headers.Get("Authorization"), " ")
				server.Person.Refused(context.WithoutCancel(r.Context()), token)
			}
			if resp.StatusCode >= 400 && resp.StatusCode < 500 {
				s.tools.again(made)
			}
			err := server.answered(resp)
			resp.Body = countedBody{resp.Body, visit.down}
			return err
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				panic(http.ErrAbortHandler) // the head was sent, or the session has ended
			}
			s.complain("an MCP server cannot be reached", zap.String("server", name), zap.Error(err))
			(&refusal{http.StatusBadGateway, TheServer + "cannot be reached. An admin finds the reason in the bot's log."}).write(w)
		},
	}
	proxy.ServeHTTP(w, r)
}

// admit returns the address to which a call leaves.
func (s Server) admit(r *http.Request) (*url.URL, *refusal) {
	if !slices.Contains([]string{http.MethodGet, http.MethodPost, http.MethodDelete}, r.Method) {
		return nil, &refusal{http.StatusMethodNotAllowed, "An MCP server takes GET, POST and DELETE."}
	}
	p, prefix := r.URL.EscapedPath(), s.prefix()
	low := strings.ToLower(p)
	if slices.Contains(strings.Split(low, "/"), ".well-known") {
		return nil, &refusal{http.StatusNotFound, "Nothing is found out here: who is called as whom is decided outside."}
	}
	crooked := p != "/" && slices.ContainsFunc([]string{"/../", "/./", "//", "%2e", "%2f", "%5c", "\\"}, func(part string) bool { return strings.Contains(low+"/", part) })
	if crooked && p != s.URL.EscapedPath() || p != prefix && !strings.HasPrefix(p, prefix+"/") {
		return nil, &refusal{http.StatusNotFound, "This path does not belong to the MCP server."}
	}
	to := *s.URL
	to.Path, to.RawPath = r.URL.Path, r.URL.RawPath
	to.RawQuery = strings.Trim(s.URL.RawQuery+"&"+r.URL.RawQuery, "&")
	return &to, nil
}

// header returns the headers that leave with a call, with the server's own.
func (s Server) header(in http.Header) http.Header {
	out := http.Header{"User-Agent": nil}
	for name, values := range in {
		if slices.Contains(callHeaders, name) || strings.HasPrefix(name, mcpPrefix) {
			out[name] = values
		}
	}
	maps.Copy(out, s.Headers)
	return out
}

// maxError bounds an error's text.
const maxError = 64 << 10

// answered checks the head of a server's answer. An error's text may repeat what was sent.
func (s Server) answered(resp *http.Response) error {
	for name := range resp.Header {
		if !slices.Contains(answerHeaders, name) && !strings.HasPrefix(name, mcpPrefix) {
			delete(resp.Header, name)
		}
	}
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return errors.New("it speaks another protocol")
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode < 400:
		return fmt.Errorf("it answers with status %d: the gateway follows no redirects", resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxError))
	_ = resp.Body.Close()
	if err != nil {
		return err
	}
	for _, values := range s.Headers {
		for _, secret := range values {
			_, word, _ := strings.Cut(secret, " ") // for Bearer, too
			for _, v := range []string{secret, word} {
				if len(v) >= 8 { // shorter ones are ordinary words
					body = bytes.ReplaceAll(body, []byte(v), []byte("…"))
				}
			}
		}
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// countedBody counts the bytes read from a body.
type countedBody struct {
	io.ReadCloser
	count func(int)
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.count(n)
	return n, err
}
