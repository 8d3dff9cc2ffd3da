package model

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/needtest"
	"deckhand/internal/price"
	"deckhand/internal/waittest"
)

// agree compares the bill of the process's session with the CLI's own total,
// in all and per model. The bill of a call that broke off follows a moment
// after the client left.
func agree(t *testing.T, s *Server, c *cli, result event) {
	t.Helper()
	type cost struct {
		Input, Output, CacheRead, CacheWrite, CacheWrite1h, Searches, MicroUSD int64
	}
	want, got := map[string]cost{}, map[string]cost{}
	for name, u := range result.ModelUsage {
		want[strings.TrimSuffix(name, "[1m]")] = cost{u.InputTokens, u.OutputTokens, u.CacheRead, u.CacheCreation, u.CacheCreation1h, u.WebSearchRequests, micro(u.CostUSD)}
	}
	for deadline := time.Now().Add(waittest.Limit); ; time.Sleep(5 * time.Millisecond) {
		bill := s.Bill().Session(result.SessionID)
		clear(got)
		for _, m := range bill.Models {
			got[m.Model] = cost{m.Input, m.Output, m.CacheRead, m.CacheWrite5m + m.CacheWrite1h, m.CacheWrite1h, m.WebSearchRequests, m.MicroUSD}
		}
		diff := cmp.Diff(want, got)
		if diff == "" && bill.Total.MicroUSD == micro(result.TotalCostUSD) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the CLI says %d micro-USD, the bill %d; per model (-CLI +bill):\n%s", micro(result.TotalCostUSD), bill.Total.MicroUSD, diff)
		}
	}
}

func TestTheBillIsTheCLIsOwn(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{})
	c := startCLI(t, url+"/model", cliOptions{})
	for _, prompt := range []string{
		"hello",
		"[Alice in #general]: tool: Bash {\"command\":\"touch made; ls\",\"description\":\"Make a file\"}\nsay: made it",
		"think: hm\nsay: two at once\ntools: [{\"name\":\"Bash\",\"input\":{\"command\":\"echo one > 1\"}},{\"name\":\"Write\",\"input\":{\"file_path\":\"{{cwd}}/two\",\"content\":\"2\"}}]",
		"tool: Agent {\"description\":\"look\",\"subagent_type\":\"Explore\",\"run_in_background\":false,\"prompt\":\"tool: Bash {\\\"command\\\":\\\"ls\\\"}\\nsay: found it\"}\nsay: back",
		"error: 529\nsay: after an overload",
		"error: 500\nerror: 503\ntool: Bash {\"command\":\"ls\"}",
		"tool: WebSearch {\"query\":\"go\"}",
		"usage: {\"input_tokens\":1234567,\"output_tokens\":7,\"cache_creation\":{\"ephemeral_1h_input_tokens\":33,\"ephemeral_5m_input_tokens\":11}}\nsay: dear",
		"fill: 20000",
	} {
		r := c.turn(prompt)
		if r.IsError {
			t.Fatalf("%s: %s", prompt, r.raw)
		}
		agree(t, s, c, r)
	}
	if got, want := strings.Join(c.tools(), " "), "Bash Bash Write WebSearch"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	// The CLI's own calls are billed too.
	c.control(map[string]any{"subtype": "generate_session_title", "description": "mend the sails", "persist": false})
	c.control(map[string]any{"subtype": "side_question", "question": "why?"})
	agree(t, s, c, c.turn("say: after side calls"))
	agree(t, s, c, c.turn("/compact"))
	agree(t, s, c, c.turn("say: after a compaction"))
}

func TestPricesAreTheCLIs(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{})
	c := startCLI(t, url, cliOptions{Env: []string{"DISABLE_AUTO_COMPACT=1", "DISABLE_COMPACT=1", "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP=1"}})
	var offered struct {
		Models []struct {
			Value string `json:"value"`
		} `json:"models"`
	}
	if err := json.Unmarshal(c.control(map[string]any{"subtype": "list_models"}), &offered); err != nil {
		t.Fatal(err)
	}
	var models []string
	for _, m := range offered.Models {
		models = append(models, m.Value)
	}
	if len(models) < 4 {
		t.Errorf("the CLI offers %v", models)
	}
	for _, p := range price.Models() {
		models = append(models, p.Name)
	}
	models = append(
		models, "claude-opus-4-5-20251101", "claude-opus-4-1-20250805", "claude-opus-4-20250514", "claude-sonnet-4-5-20250929",
		"claude-sonnet-4-20250514", "claude-3-7-sonnet-20250219", "claude-3-5-sonnet-20241022", "claude-3-5-haiku-20241022",
		"claude-haiku-4-5-20251001", "claude-haiku-5-5-20261001", "claude-opus-5-6", "claude-opus-5-50", "claude-opus-4-10", "claude-opus-4-v1",
		"claude-haiku-5", "claude-3-opus-20240229", "claude-3-haiku-20240307", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "gpt-foo",
	)
	if _, version := price.Origin(); version != needtest.PinnedClaude(t) {
		t.Errorf("the prices hold for %s, the tests are for %s", version, needtest.PinnedClaude(t))
	}
	for _, m := range models {
		c.control(map[string]any{"subtype": "set_model", "model": m})
		usages := []string{`{"input_tokens":1013,"output_tokens":977,"cache_read_input_tokens":10007,"cache_creation":{"ephemeral_5m_input_tokens":3001,"ephemeral_1h_input_tokens":2003},"server_tool_use":{"web_search_requests":1}}`}
		p, _ := price.Of(m)
		if p.Long != nil || m == "haiku" || m == "default" {
			usages = append(usages, `{"input_tokens":40009,"output_tokens":977,"cache_read_input_tokens":50021,"cache_creation":{"ephemeral_5m_input_tokens":7001,"ephemeral_1h_input_tokens":9001}}`)
		}
		if p.Name == m { // and nowhere else, as turns take their time
			usages = append(usages, `{"input_tokens":1013,"output_tokens":977,"cache_read_input_tokens":10007,"server_tool_use":{"web_search_requests":2},"speed":"fast","inference_geo":"us"}`)
		}
		for _, u := range usages {
			r := c.turn("usage: " + u + "\nsay: x")
			if r.IsError {
				t.Fatalf("%s: %s", m, r.raw)
			}
			agree(t, s, c, r)
			// In order and without interruptions even the floats are the same,
			// and with them which way an exact half is rounded.
			if got := s.Bill().Session(r.SessionID).Total.USD; got != r.TotalCostUSD {
				t.Fatalf("%s: the CLI says %v USD, the bill %v", m, r.TotalCostUSD, got)
			}
		}
	}
}

func TestACallThatBreaksOffIsBilledAsTheCLIDoes(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"claude-haiku-5-5", "claude-sonnet-4-5-20250929"} { // a third, and a quarter
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			breaksOff(t, model)
		})
	}
}

func breaksOff(t *testing.T, model string) {
	t.Helper()
	s, web := serveOn(t, Options{})
	c := startCLI(t, web.URL, cliOptions{Model: model})
	agree(t, s, c, c.turn("hello"))
	const tool = "tool: AskUserQuestion {\"questions\":\"a long input that is streamed in several pieces\"}"
	for _, tc := range []struct {
		chars  int
		prompt string
	}{
		{1, "fill: 1000"},
		{7, "fill: 1000"},
		{8, "fill: 1000"},
		{500, "fill: 1000"},
		{100, "say: " + strings.Repeat("😀 é", 100)},
		{104, "think: " + strings.Repeat("abc", 33) + "\nsay: 0123456789\n" + tool},
		{130, "think: " + strings.Repeat("abc", 33) + "\nsay: 0123456789\n" + tool},
		{30, tool},
	} {
		s.SetFaults([]Fault{{StallAfterChars: tc.chars, Times: 1}})
		c.say(tc.prompt)
		got := 0
		c.until(func(e event) bool {
			got += e.chars()
			return got >= tc.chars
		})
		agree(t, s, c, c.interrupt())
	}
	filled := strings.TrimSpace(filler(1000))
	for _, times := range []int{1, 2} { // that the connection breaks, when the CLI has read what came
		s.SetFaults([]Fault{{StallAfterChars: 40, Times: times}})
		c.say("fill: 1000")
		for range times {
			got := 0
			c.until(func(e event) bool {
				got += e.chars()
				return got >= 40
			})
			web.CloseClientConnections()
		}
		seen := c.until(isResult)
		r := seen[len(seen)-1]
		if r.IsError || r.Result != filled {
			t.Fatalf("broken %d times: %s", times, r.raw)
		}
		agree(t, s, c, r)
	}
	for _, f := range []Fault{
		{CutAfterBytes: 10, Times: 1},
		{Garbage: true, Times: 1},
		{Status: 529, Times: 2},
		{Status: 429, RetryAfter: 1, Times: 1},
	} {
		s.SetFaults([]Fault{f})
		r := c.turn("fill: 1000")
		if r.IsError || r.Result != filled {
			t.Fatalf("%+v: %s", f, r.raw)
		}
		agree(t, s, c, r)
	}
}

func TestAMessageSentDuringATurnIsAnswered(t *testing.T) {
	t.Parallel()
	s, url := serve(t, Options{})
	sent := false
	var c *cli
	c = startCLI(t, url, cliOptions{Decide: func(tool string, input json.RawMessage) map[string]any {
		if !sent {
			sent = true
			c.say("say: and this is the second answer")
			// The CLI reads its stdin in order: it has the message first.
		}
		return allowAll(tool, input)
	}})
	r := c.turn("tool: Bash {\"command\":\"sleep 0.5; touch x\"}\nsay: first answer")
	if !strings.Contains(r.Result, "first answer") || !strings.Contains(r.Result, "second answer") {
		t.Errorf("result: %q", r.Result)
	}
	agree(t, s, c, r)
}

func TestATurnThatWasKilledGoesOn(t *testing.T) {
	t.Parallel()
	_, url := serve(t, Options{})
	home, dir := t.TempDir(), t.TempDir()
	asked := make(chan struct{}, 1)
	c := startCLI(t, url, cliOptions{Home: home, Dir: dir, Decide: func(tool string, input json.RawMessage) map[string]any {
		if tool == "Bash" {
			return allowAll(tool, input)
		}
		asked <- struct{}{}
		return nil
	}})
	c.turn("hello")
	c.say("tool: Bash {\"command\":\"touch one\"}\ntool: Write {\"file_path\":\"{{cwd}}/two\",\"content\":\"2\"}\nsay: all done")
	<-asked
	waitForTranscript(t, home, c.Session, `"name":"Write"`)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.done
	d := startCLI(t, url, cliOptions{Home: home, Dir: dir, Resume: c.Session})
	r := d.turn("The bot was restarted in the middle of this turn. Please continue where you left off.")
	if r.Result != "all done" {
		t.Errorf("after the restart: %q", r.Result)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "two")); err != nil || string(got) != "2" {
		t.Errorf("the call that was pending did not run: %q, %v", got, err)
	}
}

// waitForTranscript waits until the CLI, which writes it a moment after the
// events are printed, has put text into its transcript.
func waitForTranscript(t *testing.T, home, session, text string) {
	t.Helper()
	pattern := filepath.Join(home, ".claude/projects/*", session+".jsonl")
	for deadline := time.Now().Add(waittest.Limit); ; time.Sleep(10 * time.Millisecond) {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), text) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in %s", text, pattern)
		}
	}
}

// chars is the number of characters that a stream event adds to an answer.
func (e event) chars() int {
	if e.Type != "stream_event" {
		return 0
	}
	var v struct {
		Event struct {
			Delta struct {
				Text        string `json:"text"`
				Thinking    string `json:"thinking"`
				PartialJSON string `json:"partial_json"`
			} `json:"delta"`
		} `json:"event"`
	}
	if err := json.Unmarshal([]byte(e.raw), &v); err != nil {
		panic(fmt.Sprintf("stream event: %v", err))
	}
	d := v.Event.Delta
	return len([]rune(d.Text + d.Thinking + d.PartialJSON))
}
