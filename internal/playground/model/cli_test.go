package model

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/needtest"
	"deckhand/internal/waittest"
)

// event is a line of the CLI's output, as far as these tests look.
type event struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	raw     string

	RequestID string `json:"request_id"`
	Request   struct {
		Subtype  string          `json:"subtype"`
		ToolName string          `json:"tool_name"`
		Input    json.RawMessage `json:"input"`
	} `json:"request"`
	Response struct {
		RequestID string          `json:"request_id"`
		Subtype   string          `json:"subtype"`
		Response  json.RawMessage `json:"response"`
	} `json:"response"`
	IsError      bool                  `json:"is_error"`
	Result       string                `json:"result"`
	TotalCostUSD float64               `json:"total_cost_usd"`
	ModelUsage   map[string]modelUsage `json:"modelUsage"`
	SessionID    string                `json:"session_id"`
}

type modelUsage struct {
	InputTokens       int64   `json:"inputTokens"`
	OutputTokens      int64   `json:"outputTokens"`
	CacheRead         int64   `json:"cacheReadInputTokens"`
	CacheCreation     int64   `json:"cacheCreationInputTokens"`
	CacheCreation1h   int64   `json:"cacheCreationEphemeral1hInputTokens"`
	WebSearchRequests int64   `json:"webSearchRequests"`
	CostUSD           float64 `json:"costUSD"`
	CanonicalModel    string  `json:"canonicalModel"`
	CostBasis         string  `json:"costBasis"`
}

// decision is a person's answer to can_use_tool; a nil map denies.
type decision func(tool string, input json.RawMessage) map[string]any

func allowAll(_ string, input json.RawMessage) map[string]any {
	return map[string]any{"behavior": "allow", "updatedInput": input}
}

// cli is one running process of the real CLI against a model server.
type cli struct {
	tb      testing.TB
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	mu      sync.Mutex // guards stdin and decide
	decide  decision
	events  chan event
	stderr  bytes.Buffer
	asked   []string
	done    chan struct{} // closed when stdout ends
	Session string
	Dir     string
	home    string
	url     string
}

type cliOptions struct {
	Model  string
	Dir    string
	Home   string
	Resume string
	Decide decision
	Args   []string
	Env    []string
}

// startCLI runs the CLI against handler's address in private folders.
func startCLI(tb testing.TB, url string, o cliOptions) *cli {
	tb.Helper()
	program := needtest.Claude(tb)
	c := &cli{tb: tb, decide: o.Decide, events: make(chan event, 4096), Dir: o.Dir, home: o.Home, url: url}
	if c.decide == nil {
		c.decide = allowAll
	}
	if c.Dir == "" {
		c.Dir = tb.TempDir()
	}
	if c.home == "" {
		c.home = tb.TempDir()
	}
	args := []string{
		"-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose",
		"--permission-prompt-tool", "stdio", "--include-partial-messages", "--setting-sources", "user", "--strict-mcp-config",
	}
	if o.Resume != "" {
		c.Session = o.Resume
		args = append(args, "--resume", o.Resume)
	} else {
		c.Session = uuid.NewString()
		args = append(args, "--session-id", c.Session)
	}
	if o.Model != "" {
		args = append(args, "--model", o.Model)
	}
	args = append(args, o.Args...)
	c.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), program, args...)
	c.cmd.Dir = c.Dir
	c.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "CLAUDE_CONFIG_DIR=" + filepath.Join(c.home, ".claude"),
		"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=sk-ant-playground",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
	}, o.Env...)
	c.cmd.Stderr = &c.stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	c.stdin = stdin
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	c.done = make(chan struct{})
	go func() {
		defer close(c.done)
		defer close(c.events)
		c.readAll(stdout)
	}()
	tb.Cleanup(func() {
		_ = c.stdin.Close()
		timer := time.AfterFunc(waittest.Limit, func() { _ = c.cmd.Process.Kill() })
		<-c.done
		_ = c.cmd.Wait()
		timer.Stop()
	})
	c.send(map[string]any{"type": "control_request", "request_id": "init", "request": map[string]any{"subtype": "initialize"}})
	return c
}

func (c *cli) readAll(r io.Reader) {
	br := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := br.ReadString('\n')
		if strings.HasPrefix(line, "{") {
			var e event
			if jsonErr := json.Unmarshal([]byte(line), &e); jsonErr == nil {
				e.raw = strings.TrimSpace(line)
				c.answer(e)
				select {
				case c.events <- e:
				default: // nobody reads deltas by the thousand
				}
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *cli) answer(e event) {
	if e.Type != "control_request" || e.Request.Subtype != "can_use_tool" {
		return
	}
	c.mu.Lock()
	decide := c.decide
	c.asked = append(c.asked, e.Request.ToolName)
	c.mu.Unlock()
	d := decide(e.Request.ToolName, e.Request.Input)
	if d == nil {
		return // left pending
	}
	c.send(map[string]any{"type": "control_response", "response": map[string]any{
		"subtype": "success", "request_id": e.RequestID, "response": d,
	}})
}

func (c *cli) setDecision(d decision) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decide = d
}

// tools are the tools that were asked for so far.
func (c *cli) tools() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.asked)
}

func (c *cli) send(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = c.stdin.Write(append(b, '\n')) // an exited CLI shows in the events
}

func (c *cli) say(text string) {
	c.send(map[string]any{
		"type": "user", "uuid": uuid.NewString(), "session_id": "", "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": text},
	})
}

// until returns the events up to and with the first that is wanted.
func (c *cli) until(want func(event) bool) []event {
	c.tb.Helper()
	var seen []event
	deadline := time.NewTimer(waittest.Limit)
	defer deadline.Stop()
	for {
		select {
		case e, ok := <-c.events:
			if !ok {
				c.tb.Fatalf("the CLI ended; stderr: %s", c.stderr.String())
			}
			seen = append(seen, e)
			if want(e) {
				return seen
			}
		case <-deadline.C:
			for _, e := range seen {
				c.tb.Logf("%.300s", e.raw)
			}
			c.tb.Fatal("the CLI went silent")
		}
	}
}

func isResult(e event) bool { return e.Type == "result" }

// turn sends a prompt and returns its result.
func (c *cli) turn(text string) event {
	c.tb.Helper()
	c.say(text)
	seen := c.until(isResult)
	return seen[len(seen)-1]
}

// interrupt ends the turn and returns its result. A CLI that was asked in a moment in which
// it had nothing to abort waits for its model for ten minutes: it is asked once more.
func (c *cli) interrupt() event {
	c.tb.Helper()
	ask := func(id string) {
		c.send(map[string]any{"type": "control_request", "request_id": id, "request": map[string]any{"subtype": "interrupt"}})
	}
	ask(uuid.NewString())
	id := uuid.NewString()
	again := time.AfterFunc(30*time.Second, func() { ask(id) })
	answered := func(e event) bool { return e.Type == "control_response" && e.Response.RequestID == id }
	seen := c.until(isResult)
	if !again.Stop() && !slices.ContainsFunc(seen, answered) {
		c.until(answered) // before it can hit the next turn
	}
	return seen[len(seen)-1]
}

// control sends a control request and returns its answer.
func (c *cli) control(request map[string]any) json.RawMessage {
	c.tb.Helper()
	id := uuid.NewString()
	c.send(map[string]any{"type": "control_request", "request_id": id, "request": request})
	seen := c.until(func(e event) bool { return e.Type == "control_response" && e.Response.RequestID == id })
	return seen[len(seen)-1].Response.Response
}

// micro rounds an amount of the CLI's to micro-USD.
func micro(usd float64) int64 { return int64(math.Round(usd * 1e6)) }
