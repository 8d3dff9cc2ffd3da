package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/needtest"
)

// rounds is how often each way is measured, in turn. A benchmark here takes longer
// than a second, so go test runs it once.
const rounds = 15

// rest lets pass what the last turn left to do, in the bot and in Claude Code, and Slack's one
// post a second: neither belongs to what is measured next.
func rest() { time.Sleep(1500 * time.Millisecond) }

// direct is the CLI driven without a bot, on the same model: the floor that the
// bot is measured against.
type direct struct {
	b       *testing.B
	options claude.Options
	proc    *claude.Process
}

func newDirect(b *testing.B, w *world) *direct {
	b.Helper()
	home := b.TempDir()
	d := &direct{b: b, options: claude.Options{
		Command: []string{needtest.Claude(b)}, Dir: w.Workspace, SessionID: uuid.NewString(),
		Env: claude.Environ(nil, map[string]string{
			"HOME": home, "CLAUDE_CONFIG_DIR": filepath.Join(home, ".claude"), "ANTHROPIC_BASE_URL": w.ModelURL, "ANTHROPIC_API_KEY": "x",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
		}),
	}}
	d.start()
	return d
}

func (d *direct) start() {
	d.b.Helper()
	var err error
	if d.proc, err = claude.Start(d.b.Context(), d.options); err != nil {
		d.b.Fatal(err)
	}
	if _, err := d.proc.Initialize(d.b.Context(), claude.InitializeRequest{PreToolUse: true}); err != nil {
		d.b.Fatal(err)
	}
}

func (d *direct) stop() {
	if err := d.proc.Stop(context.WithoutCancel(d.b.Context())); err != nil {
		d.b.Error(err)
	}
}

// deliberation is how long the person who approves thinks, in both ways.
const deliberation = time.Second

// turn runs a prompt and returns when its first text came, and when its tool was
// allowed.
func (d *direct) turn(text string) (firstText, allowed time.Time) {
	d.b.Helper()
	if err := d.proc.Prompt(uuid.NewString(), claude.Text(text)); err != nil {
		d.b.Fatal(err)
	}
	for {
		m, err := d.proc.Next(d.b.Context())
		if err != nil {
			d.b.Fatal(err)
		}
		switch m := m.(type) {
		case *claude.StreamEvent:
			if m.Delta == "text_delta" && firstText.IsZero() {
				firstText = time.Now()
			}
		case *claude.HookCallback:
			err = d.proc.AnswerPreToolUse(m.RequestID, claude.HookAsk, "")
		case *claude.CanUseTool:
			time.Sleep(deliberation)
			allowed = time.Now()
			err = d.proc.Allow(m.RequestID, m.Input)
		case *claude.Result:
			return firstText, allowed
		}
		if err != nil {
			d.b.Fatal(err)
		}
	}
}

// median of durations, in milliseconds.
func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}

// twoLines is an answer of two lines: its first text is posted when its first line is whole.
const twoLines = "say: %s %d\nsay: It goes on."

// BenchmarkFollowUp compares, message by message in one run, how long a thread
// waits for the first text: in the CLI driven directly (the floor), through the
// bot into Slack, and in the usual way, a process spawned with --resume for each
// message. ratio is (bot − one call of Slack's API) ÷ floor; at most 1.35 is wanted.
// speedup is usual ÷ bot; at least 5 is wanted. An answer of one line is posted with the end
// of its turn: line-ratio compares it with the CLI's result.
func BenchmarkFollowUp(b *testing.B) {
	w := newWorld(b)
	d := newDirect(b, w)
	d.turn("say: warm")
	usual := newDirect(b, w)
	usual.turn("say: warm")
	usual.stop()
	usual.options.Resume = true
	thread := w.post(linus, eng, "", "@deckhand say: warm")
	w.done(eng, thread, thread)

	var floor, bot, whole, line, spawned, call []time.Duration
	for i := range rounds {
		rest()
		began := time.Now()
		first, _ := d.turn(fmt.Sprintf(twoLines, "floor", i))
		floor = append(floor, first.Sub(began))
		whole = append(whole, time.Since(began))

		rest()
		began = time.Now()
		ts := w.post(linus, eng, thread, fmt.Sprintf(twoLines, "answer", i))
		bot = append(bot, w.postedAt(fmt.Sprintf("answer %d", i), ts).Sub(began))
		w.done(eng, thread, ts)

		rest()
		began = time.Now()
		ts = w.post(linus, eng, thread, fmt.Sprintf("say: short %d", i))
		line = append(line, w.postedAt(fmt.Sprintf("short %d", i), ts).Sub(began))
		w.done(eng, thread, ts)

		began = time.Now()
		w.must(http.MethodPost, "/api/auth.test?token="+w.BotToken, nil, nil)
		call = append(call, time.Since(began))

		began = time.Now()
		usual.start()
		first, _ = usual.turn(fmt.Sprintf(twoLines, "usual", i))
		spawned = append(spawned, first.Sub(began))
		usual.stop()
	}
	d.stop()
	b.ReportMetric(median(floor), "floor-ms")
	b.ReportMetric(median(bot), "bot-ms")
	b.ReportMetric(median(call), "call-ms")
	b.ReportMetric(median(spawned), "spawned-ms")
	b.ReportMetric((median(bot)-median(call))/median(floor), "ratio")
	b.ReportMetric(median(whole), "line-floor-ms")
	b.ReportMetric(median(line), "line-ms")
	b.ReportMetric((median(line)-median(call))/median(whole), "line-ratio")
	b.ReportMetric(median(spawned)/median(bot), "speedup")
	b.ReportMetric(0, "ns/op") // means nothing here
}

// postedAt is when the bot's call that first showed a text began.
func (w *world) postedAt(text, after string) time.Time {
	w.t.Helper()
	var at time.Time
	w.eventually("the text in Slack", func() bool {
		var out struct {
			Calls []struct {
				Time   time.Time       `json:"time"`
				Method string          `json:"method"`
				Args   json.RawMessage `json:"args"`
			} `json:"calls"`
		}
		w.must(http.MethodGet, "/_control/calls?method=chat.postMessage", nil, &out)
		for _, c := range out.Calls {
			if strings.Contains(string(c.Args), text) {
				at = c.Time
				return true
			}
		}
		return false
	})
	return at
}

// BenchmarkApproveToResult compares how long it takes from the allow, or from the
// click, until the tool has run: the tool itself notes the time. ratio is
// bot ÷ floor; at most 2 is wanted.
func BenchmarkApproveToResult(b *testing.B) {
	w := newWorld(b)
	d := newDirect(b, w)
	thread := w.post(linus, eng, "", "@deckhand say: warm")
	w.done(eng, thread, thread)
	var floor, bot []time.Duration
	for i := range rounds {
		rest()
		note := filepath.Join(w.Workspace, fmt.Sprintf("ran-%d", i))
		prompt := fmt.Sprintf("tool: Bash {\"command\":\"date +%%s%%N > %s\"}\nsay: noted", note)
		_, allowed := d.turn(prompt)
		floor = append(floor, noted(b, note).Sub(allowed))
		if err := os.Remove(note); err != nil {
			b.Fatal(err)
		}

		rest()
		ts := w.post(linus, eng, thread, prompt)
		card := w.card(eng, thread)
		time.Sleep(deliberation)
		clicked := time.Now()
		w.click(grace, eng, card.TS, "approve")
		w.done(eng, thread, ts)
		bot = append(bot, noted(b, note).Sub(clicked))
	}
	d.stop()
	b.ReportMetric(median(floor), "floor-ms")
	b.ReportMetric(median(bot), "bot-ms")
	b.ReportMetric(median(bot)/median(floor), "ratio")
	b.ReportMetric(0, "ns/op")
}

func noted(b *testing.B, file string) time.Time {
	b.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		b.Fatal(err)
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Unix(0, ns)
}

// BenchmarkSandbox compares, thread by thread in one run, what people wait for with a
// sandbox and without one: for the first text in a new thread (which starts a process), for
// that of the next message, and from the click that approves until the tool has run. Each
// -ratio is bwrap ÷ none; at most 1.1 is wanted.
func BenchmarkSandbox(b *testing.B) {
	kinds := []string{"bwrap", "none"}
	worlds := map[string]*world{}
	for _, kind := range kinds {
		w := newWorldIn(b, "sandbox: "+kind, "")
		worlds[kind] = w
		warm := w.post(linus, eng, "", "@deckhand say: warm")
		w.done(eng, warm, warm)
	}
	took := map[string][]time.Duration{}
	for i := range rounds {
		for _, kind := range kinds {
			w := worlds[kind]
			rest()
			began := time.Now()
			thread := w.post(linus, eng, "", fmt.Sprintf("@deckhand "+twoLines, "mention", i))
			took["mention-"+kind] = append(took["mention-"+kind], w.postedAt(fmt.Sprintf("mention %d", i), thread).Sub(began))
			w.done(eng, thread, thread)

			rest()
			began = time.Now()
			ts := w.post(linus, eng, thread, fmt.Sprintf(twoLines, "answer", i))
			took["followup-"+kind] = append(took["followup-"+kind], w.postedAt(fmt.Sprintf("answer %d", i), ts).Sub(began))
			w.done(eng, thread, ts)

			note := filepath.Join(w.Workspace, fmt.Sprintf("ran-%d", i))
			ts = w.post(linus, eng, thread, fmt.Sprintf("tool: Bash {\"command\":\"date +%%s%%N > %s\"}\nsay: noted", note))
			card := w.card(eng, thread)
			time.Sleep(deliberation)
			began = time.Now()
			w.click(grace, eng, card.TS, "approve")
			w.done(eng, thread, ts)
			took["approve-"+kind] = append(took["approve-"+kind], noted(b, note).Sub(began))
		}
	}
	for _, what := range []string{"mention", "followup", "approve"} {
		with, without := median(took[what+"-bwrap"]), median(took[what+"-none"])
		b.ReportMetric(with, what+"-bwrap-ms")
		b.ReportMetric(without, what+"-none-ms")
		b.ReportMetric(with/without, what+"-ratio")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory is the resident memory of the bot, as the image has it, with ten live
// threads; at most 45 MB are wanted. The CLI's processes are not in it. The parts of it
// that are pages of the program itself are told apart: the kernel takes them back when it
// needs memory.
func BenchmarkMemory(b *testing.B) {
	w := unstartedWorld(b)
	w.program = builtBot(b)
	w.start()
	for i := range 10 {
		thread := w.post(linus, eng, "", fmt.Sprintf("@deckhand say: thread %d", i))
		w.done(eng, thread, thread)
	}
	reportMemory(b, w.PIDs["bot"])
	b.ReportMetric(0, "ns/op")
}

// builtBot is the program as the image has it.
func builtBot(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "bot")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the bot: %v\n%s", err, out)
	}
	return program
}

func reportMemory(b *testing.B, pid int) {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("no /proc here: ", err)
	}
	for line := range strings.Lines(string(status)) {
		name, kb, _ := strings.Cut(line, ":")
		unit := map[string]string{"VmRSS": "RSS-MB", "RssFile": "program-MB"}[name]
		if unit == "" {
			continue
		}
		n, err := strconv.ParseFloat(strings.Fields(kb)[0], 64)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(n/1024, unit)
	}
}
