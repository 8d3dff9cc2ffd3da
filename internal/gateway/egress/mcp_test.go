package egress

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	serverToken  = "for this session"
	serverSecret = "Bearer mcp-canary-secret"

	// Messages to a server.
	ping, elsewhere, refused = `{"method":"ping"}`, `{"method":"ping","id":"elsewhere"}`, `{"method":"ping","id":"refused"}`
)

// withServers is a world with a server at /api/mcp, and one of the older form at /old/sse,
// both of the same handler.
func withServers(t *testing.T, h http.HandlerFunc) *world {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	at := func(path string) *url.URL {
		u, err := url.Parse(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	headers := http.Header{"Authorization": {serverSecret}}
	return newWorld(t, Options{Token: serverToken, Servers: map[string]Server{
		"stock": {URL: at("/api/mcp?key=7"), Headers: headers}, "root": {URL: at("/"), Headers: headers}, "bare": {URL: at(""), Headers: headers}, "old": {URL: at("/old/sse"), SSE: true, Headers: headers},
	}})
}

// call calls a server as the CLI does, and returns the answer.
func (w *world) call(method, server, token, path, body string) (*http.Response, string) {
	w.t.Helper()
	conn := w.dialSocket()
	_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s: %s\r\n%s: %s\r\nMcp-Session-Id: s1\r\nAuthorization: Bearer of-the-attacker\r\nCookie: a=b\r\nContent-Length: %d\r\n\r\n%s",
		method, path, tokenHeader, token, serverHeader, server, len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read whole
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp, string(text)
}

func TestServers(t *testing.T) {
	t.Parallel()
	w := withServers(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case string(body) == elsewhere:
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		case string(body) == refused:
			w.Header().Set("WWW-Authenticate", "Bearer resource_metadata=x")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, "the token mcp-canary-secret is over: ", r.Header.Get("Authorization"))
		default:
			w.Header().Set("Mcp-Session-Id", "s1")
			w.Header().Set("Set-Cookie", "a=b")
			fmt.Fprint(w, r.Method, " ", r.URL.RequestURI(), " ", string(body), " ", r.Header)
		}
	})
	const sent = " map[Authorization:[Bearer mcp-canary-secret] Mcp-Session-Id:[s1]]"
	for _, c := range []struct {
		method, server, token, path, body string
		status                            int
		want                              string
	}{
		{"POST", "stock", serverToken, "/api/mcp", ping, 200, "POST /api/mcp?key=7 " + ping + " map[Authorization:[Bearer mcp-canary-secret] Content-Length:[17] Content-Type:[application/json] Mcp-Session-Id:[s1]]"},
		{"GET", "stock", serverToken, "/api/mcp", "", 200, "GET /api/mcp?key=7 " + sent},
		{"DELETE", "stock", serverToken, "/api/mcp", "", 200, "DELETE /api/mcp?key=7 " + sent},
		{"GET", "stock", serverToken, "/api/mcp/below?a=b", "", 200, "GET /api/mcp/below?key=7&a=b " + sent},
		{"GET", "old", serverToken, "/old/messages?s=1", "", 200, "GET /old/messages?s=1 " + sent},
		{"POST", "stock", "of another session", "/api/mcp", ping, 404, ""},
		{"POST", "stock", "", "/api/mcp", ping, 404, ""},
		{"POST", "none", serverToken, "/api/mcp", ping, 404, ""},
		{"PUT", "stock", serverToken, "/api/mcp", ping, 405, ""},
		{"POST", "stock", serverToken, "/api/mcpx", ping, 404, ""},
		{"POST", "stock", serverToken, "/api/", ping, 404, ""},
		{"POST", "stock", serverToken, "/api/mcp/../admin", ping, 404, ""},
		{"POST", "stock", serverToken, "/api/mcp/%2e%2e/admin", ping, 404, ""},
		{"POST", "stock", serverToken, "/api/mcp/%2E%2E%2Fadmin", ping, 404, ""},
		{"POST", "stock", serverToken, "/api/mcp//admin", ping, 404, ""},
		{"POST", "stock", serverToken, "/api/mcp/..", ping, 404, ""},
		{"GET", "stock", serverToken, "/api/mcp/.well-known/oauth-protected-resource", "", 404, ""},
		{"GET", "root", serverToken, "/", "", 200, ""},
		{"GET", "bare", serverToken, "/", "", 200, ""},
		{"GET", "bare", serverToken, "//x", "", 404, ""},
		{"GET", "root", serverToken, "/.well-known/oauth-authorization-server", "", 404, ""},
		{"GET", "root", serverToken, "/.Well-Known/oauth-authorization-server", "", 404, ""},
		{"POST", "old", serverToken, "/api/mcp", ping, 404, ""},
		{"POST", "stock", serverToken, "/api/mcp", elsewhere, 502, "The MCP server cannot be reached. An admin finds the reason in the bot's log.\n"},
		{"POST", "stock", serverToken, "/api/mcp", refused, 401, "the token … is over: …"},
	} {
		resp, body := w.call(c.method, c.server, c.token, c.path, c.body)
		if resp.StatusCode != c.status || c.want != "" && body != c.want {
			t.Errorf("%s %s of %s, %q: %d %s", c.method, c.path, c.server, c.body, resp.StatusCode, body)
		}
		if h := resp.Header; h.Get("Set-Cookie")+h.Get("Location")+h.Get("Www-Authenticate") != "" || c.status == 200 && h.Get("Mcp-Session-Id") != "s1" {
			t.Errorf("%s %s: %v", c.method, c.path, h)
		}
	}
}

func TestMCPConfig(t *testing.T) {
	t.Parallel()
	w := withServers(t, func(http.ResponseWriter, *http.Request) {})
	text, err := json.Marshal(MCPConfig(w.options.Servers, "${ADDRESS}", "${TOKEN}"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "canary") || strings.Contains(string(text), "key=7") {
		t.Errorf("something secret is in it: %s", text)
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	server := func(kind, path, name string) any {
		return map[string]any{"type": kind, "url": "http://${ADDRESS}" + path, "headers": map[string]any{"X-Deckhand-Token": "${TOKEN}", "X-Deckhand-Server": name}}
	}
	want := any(map[string]any{"stock": server("http", "/api/mcp", "stock"), "root": server("http", "/", "root"), "bare": server("http", "", "bare"), "old": server("sse", "/old/sse", "old")})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAServerIsCalledAsAPerson: with their token and no other's; while nobody's turn runs, or they
// are not connected, nothing leaves. A token that is not taken is told of, and an answer does not
// repeat it.
func TestAServerIsCalledAsAPerson(t *testing.T) {
	t.Parallel()
	w := withServers(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer token-of-grace" {
			w.Header().Set("WWW-Authenticate", "Bearer resource_metadata=x")
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, "called by ", r.Header.Get("Authorization"))
	})
	token, why := "", error(nil)
	var noted []string
	server := w.options.Servers["stock"]
	server.Person = &Person{
		Token:   func(context.Context) (string, error) { return token, why },
		Refused: func(_ context.Context, token string) { noted = append(noted, token) },
	}
	w.options.Servers["stock"] = server
	for _, c := range []struct {
		token, why string
		status     int
		want       string
	}{
		{"token-of-ada", "", 200, "called by Bearer token-of-ada"},
		{"token-of-grace", "", 401, "called by …"},
		{"", "acts as nobody", 403, "The MCP server acts as nobody\n"},
	} {
		if token, why = c.token, nil; c.why != "" {
			why = errors.New(c.why)
		}
		resp, body := w.call("POST", "stock", serverToken, "/api/mcp", ping)
		if resp.StatusCode != c.status || body != c.want || resp.Header.Get("Www-Authenticate") != "" {
			t.Errorf("with %q: %d %q %v", c.token, resp.StatusCode, body, resp.Header)
		}
	}
	if diff := cmp.Diff([]string{"token-of-grace"}, noted); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}
