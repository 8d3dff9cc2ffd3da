package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/gateway"
	"deckhand/internal/needtest"
	"deckhand/internal/playground/model"
	"deckhand/internal/waittest"
)

// cli is the real CLI in a namespace without any network, with the gateway before a
// scripted model.
type cli struct {
	t     testing.TB
	proc  *claude.Process
	model *model.Server
	meter *meter
	home  string

	mu    sync.Mutex
	heard []string // by the model: paths
}

// newCLI starts the CLI in a new session: in a namespace without any network and with the
// gateway, or with the machine's network and without.
func newCLI(t testing.TB, way bool) *cli {
	t.Helper()
	program := needtest.Claude(t)
	srv, err := model.New(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &cli{t: t, model: srv, home: folder(t), meter: newMeter()}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		c.heard = append(c.heard, r.Method+" "+r.URL.RequestURI())
		c.mu.Unlock()
		if r.Header.Get("X-Api-Key") != realKey {
			t.Errorf("%s: the key is %q", r.URL, r.Header.Get("X-Api-Key"))
		}
		srv.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	model := []string{"ANTHROPIC_BASE_URL=" + web.URL, "ANTHROPIC_API_KEY=" + realKey}
	set := map[string]string{
		"HOME": c.home, "CLAUDE_CONFIG_DIR": filepath.Join(c.home, ".claude"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
		"CLAUDE_CODE_MAX_RETRIES": "1",
	}
	all := claude.Environ(nil, set)
	bwrap := needtest.Program(t, "bwrap")
	command := []string{
		bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", os.TempDir(), "--bind", c.home, c.home,
	}
	if !way {
		command, all = append(command, "--share-net"), append(all, model...)
	} else {
		s, err := newGateway(t, nil, model...).Open(t.Context(), gateway.Opening{Env: all, Meter: c.meter})
		if err != nil {
			t.Fatal(err)
		}
		all = s.Env()
		for _, entry := range all {
			if strings.Contains(entry, realKey) {
				t.Errorf("the key is inside: %s", entry)
			}
		}
		command = append(command, "--ro-bind", filepath.Dir(s.Socket()), filepath.Dir(s.Socket()))
	}
	command = append(command, program)
	c.proc, err = claude.Start(t.Context(), claude.Options{
		Command: command, Dir: c.home, Env: all, SessionID: uuid.NewString(), InitializeTimeout: waittest.Limit, RequestTimeout: waittest.Limit,
		StopGrace: claude.StopGrace{Close: waittest.Limit, Term: waittest.Limit, Kill: waittest.Limit},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.proc.Kill()
		<-c.proc.Done()
	})
	if _, err := c.proc.Initialize(t.Context(), claude.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// turn runs a prompt to its result; first is called at its first text.
func (c *cli) turn(text string, first func()) *claude.Result {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	if err := c.proc.Prompt(uuid.NewString(), claude.Text(text)); err != nil {
		c.t.Fatal(err)
	}
	for {
		m, err := c.proc.Next(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		switch m := m.(type) {
		case *claude.CanUseTool:
			if err := c.proc.Allow(m.RequestID, m.Input); err != nil {
				c.t.Fatal(err)
			}
		case *claude.StreamEvent:
			if first != nil && m.Delta == "text_delta" {
				first()
				first = nil
			}
		case *claude.Result:
			return m
		}
	}
}

func words(r *claude.Result) string {
	return fmt.Sprintf("error %v, status %d, %s: %q %q", r.IsError, r.APIErrorStatus, r.TerminalReason, r.Text, r.Errors)
}

// calls are the distinct calls that the model has heard.
func (c *cli) calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(c.heard)))
}

// The real CLI, where there is no network at all.
func TestTheCLIWithoutANetwork(t *testing.T) {
	t.Parallel()
	c := newCLI(t, true)
	if r := c.turn("say: hello from outside", nil); r.IsError || r.Text != "hello from outside" {
		t.Fatal(words(r))
	}
	t.Run("an error of the provider", func(t *testing.T) {
		c.model.SetFaults([]model.Fault{{Status: 402, Message: "the limit is reached"}})
		defer c.model.ClearFaults()
		if r := c.turn("say: never", nil); !r.IsError || r.APIErrorStatus != 402 || !strings.Contains(r.Text, "the limit is reached") {
			t.Error(words(r))
		}
	})
	t.Run("a provider that is overloaded, once", func(t *testing.T) {
		c.model.SetFaults([]model.Fault{{Status: 529, Times: 1}})
		defer c.model.ClearFaults()
		if r := c.turn("say: again", nil); r.IsError || !strings.HasSuffix(r.Text, "again") {
			t.Error(words(r))
		}
	})
	t.Run("a provider that dies in mid-stream", func(t *testing.T) {
		c.model.SetFaults([]model.Fault{{CutAfterChars: 20, Times: 1}})
		defer c.model.ClearFaults()
		text := strings.Repeat("all of it, ", 10)
		if r := c.turn("say: "+text, nil); r.IsError || !strings.HasSuffix(strings.TrimSpace(r.Text), strings.TrimSpace(text)) {
			t.Error(words(r))
		}
	})
	t.Run("stop while it streams", func(t *testing.T) {
		r := c.turn("slow: 5\nsay: "+strings.Repeat("and on ", 1000), func() {
			if err := c.proc.Interrupt(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if r.TerminalReason != "aborted_streaming" {
			t.Error(words(r))
		}
	})
	t.Run("counting tokens", func(t *testing.T) {
		if r := c.turn("/context", nil); r.IsError {
			t.Error(words(r))
		}
	})
	if r := c.turn("say: and on it goes", nil); r.IsError || r.Text != "and on it goes" {
		t.Error(words(r))
	}
	for _, call := range c.calls() {
		if call != "POST /v1/messages?beta=true" && call != "POST /v1/messages/count_tokens?beta=true" {
			t.Error("the CLI makes a call that nobody has judged:", call)
		}
	}
	if !slices.Contains(c.calls(), "POST /v1/messages/count_tokens?beta=true") {
		t.Error("no tokens were counted:", c.calls())
	}
}

// TestAllThatTheCLISendsIsKnown: headers, betas and members of bodies are lists of what the
// pinned CLI sends, to Anthropic's own API and to others. Between its turns it calls nobody.
func TestAllThatTheCLISendsIsKnown(t *testing.T) {
	t.Parallel()
	program := needtest.Claude(t)
	for name, env := range map[string][]string{
		"Anthropic, by a key":   {"ANTHROPIC_BASE_URL=http://api.anthropic.com", "ANTHROPIC_API_KEY=sk-ant-api03-x"},
		"Anthropic, by a token": {"ANTHROPIC_BASE_URL=http://api.anthropic.com", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-x"},
		"another address":       {"ANTHROPIC_BASE_URL=http://model.invalid", "ANTHROPIC_API_KEY=x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, err := model.New(model.Options{})
			if err != nil {
				t.Fatal(err)
			}
			c := &cli{t: t}
			var running atomic.Bool
			var calls atomic.Int32
			web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				calls.Add(1)
				if !running.Load() {
					t.Errorf("between turns it calls %s", r.URL)
				}
				if unknown := gateway.Judge(r.Header, body); len(unknown) > 0 {
					t.Errorf("%s has what nobody has judged: %q", r.URL, unknown)
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				srv.ServeHTTP(w, r)
			}))
			socket := filepath.Join(folder(t), "model")
			_ = web.Listener.Close()
			if web.Listener, err = (&net.ListenConfig{}).Listen(t.Context(), "unix", socket); err != nil {
				t.Fatal(err)
			}
			web.Start()
			t.Cleanup(web.Close)
			c.home = folder(t)
			set := map[string]string{
				"HOME": c.home, "CLAUDE_CONFIG_DIR": filepath.Join(c.home, ".claude"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
				"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "CLAUDE_CODE_MAX_RETRIES": "1", "ANTHROPIC_UNIX_SOCKET": socket,
			}
			c.proc, err = claude.Start(t.Context(), claude.Options{
				Command: []string{program}, Dir: c.home, Env: append(claude.Environ(nil, set), env...), SessionID: uuid.NewString(),
				InitializeTimeout: waittest.Limit, RequestTimeout: waittest.Limit,
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				c.proc.Kill()
				<-c.proc.Done()
			})
			if _, err := c.proc.Initialize(t.Context(), claude.InitializeRequest{}); err != nil {
				t.Fatal(err)
			}
			for _, prompt := range []string{
				"say: hello", "think: hm\nsay: ok", "tool: WebSearch {\"query\":\"go\"}\nsay: found",
				"tool: Task {\"description\":\"d\",\"prompt\":\"say: below\",\"subagent_type\":\"general-purpose\"}\nsay: done", "/context", "/compact", "say: after it",
			} {
				running.Store(true)
				if r := c.turn(prompt, nil); r.IsError {
					t.Errorf("%q: %s", prompt, words(r))
				}
				running.Store(false)
			}
			if calls.Load() < 7 {
				t.Errorf("it has made %d calls", calls.Load())
			}
		})
	}
}
