package claude_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/waittest"
)

// playFake is a CLI that does what the real one cannot be made to do. It runs
// the lines of the script:
//
//	print TEXT      prints a line
//	copy FILE       prints a file
//	long N          prints a line of N bytes
//	stderr TEXT     prints to stderr
//	read            reads a line
//	deltas N MS     prints N numbered deltas, one each MS milliseconds
//	sleepers        starts children in sessions of their own, and says ready
//	deaf            ignores SIGTERM and a closed stdin
//	wait            waits for the end of stdin
//	hang            waits for ever
//	exit N          exits
func playFake(script string) int {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	defer func() { _ = out.Flush() }()
	for line := range strings.Lines(script) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var n, ms int
		_, _ = fmt.Sscan(rest, &n, &ms) // words without numbers have none
		switch word {
		case "print":
			fmt.Fprintln(out, rest)
		case "copy":
			f, err := os.Open(rest)
			if err != nil {
				return 4
			}
			_, _ = io.Copy(out, f)
			_ = f.Close()
		case "long":
			fmt.Fprintf(out, `{"type":"long","text":"%s"}`+"\n", strings.Repeat("x", n))
		case "stderr":
			fmt.Fprintln(os.Stderr, rest)
		case "read":
			_ = out.Flush()
			got, err := in.ReadString('\n')
			if err != nil {
				return 5
			}
			fmt.Fprintf(out, `{"type":"heard","line":%s}`+"\n", strings.TrimSpace(got))
		case "deltas":
			for i := range n {
				fmt.Fprintf(out, `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%d "}},"session_id":"s","parent_tool_use_id":null}`+"\n", i)
				if ms > 0 {
					_ = out.Flush()
					time.Sleep(time.Duration(ms) * time.Millisecond)
				}
			}
		case "sleepers":
			_ = out.Flush()
			for _, setsid := range []bool{true, false} {
				cmd := exec.CommandContext(context.Background(), "sleep", "3600")
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
				if cmd.Start() != nil {
					return 6
				}
			}
			fmt.Fprintln(out, `{"type":"ready"}`)
		case "deaf":
			signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		case "wait":
			_ = out.Flush()
			_, _ = io.Copy(io.Discard, in)
		case "hang":
			_ = out.Flush()
			for { // not select {}, which Go without cgo takes for a deadlock
				time.Sleep(time.Hour)
			}
		case "exit":
			_ = out.Flush()
			return n
		}
	}
	return 0
}

// fake starts a fake CLI.
func fake(t testing.TB, script string, with ...func(*claude.Options)) *claude.Process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := claude.Options{
		Command: []string{exe}, Dir: t.TempDir(), SessionID: uuid.NewString(),
		Env: claude.Environ(nil, map[string]string{"DECKHAND_TEST_ROLE": "fake", "DECKHAND_TEST_SCRIPT": script}),
	}
	for _, f := range with {
		f(&o)
	}
	p, err := claude.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		waitDone(t, p)
	})
	return p
}

// waitDone waits for the end of a process, and says what hangs if it does not come.
func waitDone(t testing.TB, p *claude.Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(waittest.Limit):
		var stacks strings.Builder
		_ = pprof.Lookup("goroutine").WriteTo(&stacks, 2)
		for _, pid := range append(below(p.ReaperPID()), p.ReaperPID()) {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			fmt.Fprintf(&stacks, "process %d: %s\n%s\n", pid, commandLine(pid), status)
		}
		t.Fatalf("the process did not end in %v:\n%s", waittest.Limit, stacks.String())
	}
}

// drain fetches messages to the end.
func drain(t testing.TB, p *claude.Process) ([]claude.Message, *claude.ExitError) {
	t.Helper()
	var out []claude.Message
	for {
		m, err := p.Next(t.Context())
		if err == nil {
			out = append(out, m)
			continue
		}
		var exit *claude.ExitError
		if !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return out, exit
	}
}

func TestLinesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p := fake(t, "print Warning: something\nprint {\"type\":\"broken\nprint\nprint {\"type\":\"keep_alive\"}\nstderr \x1b[31mred words\x1b[0m")
	messages, exit := drain(t, p)
	if exit.Reason != claude.ExitClean || exit.Stderr != "red words\n" {
		t.Errorf("%v, stderr %q", exit, exit.Stderr)
	}
	if corrupt, noise := p.Corrupt(); corrupt != 1 || noise != 1 {
		t.Errorf("%d corrupt, %d noise", corrupt, noise)
	}
	kinds := make([]string, 0, len(messages))
	for _, m := range messages {
		kinds = append(kinds, fmt.Sprintf("%T", m))
	}
	if got := strings.Join(kinds, " "); got != "*claude.KeepAlive" {
		t.Error(got)
	}
}

func TestAnUnknownMCPServerIsRefused(t *testing.T) {
	t.Parallel()
	p := fake(t, `print {"type":"control_request","request_id":"r","request":{"subtype":"mcp_message","server_name":"nobody's","message":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}}
read`)
	messages, exit := drain(t, p)
	if exit.Reason != claude.ExitClean || len(messages) != 1 || !strings.Contains(string(messages[0].Head().Raw), "no such MCP server") {
		t.Errorf("%v, %+v", exit, messages)
	}
}

func TestALineOverTheLimitEndsTheSessionOnly(t *testing.T) {
	t.Parallel()
	p := fake(t, "long 1000000\nlong 3000000\nhang", func(o *claude.Options) { o.MaxLine = 2 << 20 })
	messages, exit := drain(t, p)
	if exit.Reason != claude.ExitLineTooLong || !strings.Contains(exit.Sentence(), "too large") || len(messages) != 1 {
		t.Errorf("%d messages, %v", len(messages), exit)
	}
}

func TestALineOf64MiB(t *testing.T) {
	t.Parallel()
	p := fake(t, fmt.Sprintf("long %d", 64<<20-100))
	messages, exit := drain(t, p)
	if exit.Reason != claude.ExitClean || len(messages) != 1 || len(messages[0].Head().Raw) < 64<<20-100 {
		t.Errorf("%d messages, %v", len(messages), exit)
	}
}

func TestEverythingInFlightFailsAtTheEnd(t *testing.T) {
	t.Parallel()
	p := fake(t, "read\nread\nexit 7", func(o *claude.Options) { o.RequestTimeout = waittest.Limit })
	failed := make(chan error, 2)
	for range 2 {
		go func() { failed <- p.Interrupt(t.Context()) }()
	}
	for range 2 {
		err := <-failed
		var exit *claude.ExitError
		if !errors.As(err, &exit) || exit.Reason != claude.ExitCrashed || exit.Code != 7 {
			t.Errorf("interrupt: %v", err)
		}
	}
	if err := p.SetModel(t.Context(), "x"); err == nil {
		t.Error("a request to an ended process was answered")
	}
}

func TestARequestThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	p := fake(t, "read\nhang", func(o *claude.Options) { o.RequestTimeout = 50 * time.Millisecond })
	if err := p.SetModel(t.Context(), "x"); !errors.Is(err, claude.ErrNoAnswer) || !strings.Contains(err.Error(), "set_model: no answer in 50ms") {
		t.Errorf("%v", err)
	}
}

func TestWhatIsWritten(t *testing.T) {
	t.Parallel()
	p := fake(t, `print {"type":"control_request","request_id":"R\"1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"a <b> & c"}}}
print {"type":"control_request","request_id":"D","request":{"subtype":"request_user_dialog","dialog_kind":"x"}}
print {"type":"control_request","request_id":"U","request":{"subtype":"surprise"}}
read
read
read
read`)
	var heard []string
	for {
		m, err := p.Next(t.Context())
		if err != nil {
			break
		}
		switch m := m.(type) {
		case *claude.CanUseTool:
			if err := p.Allow(m.RequestID, append([]byte("\n "), m.Input...)); err != nil {
				t.Error(err)
			}
			id := uuid.NewString()
			if err := p.Prompt(id, claude.Text("two\nlines")); err != nil {
				t.Error(err)
			}
		case *claude.Unknown:
			var line struct {
				Line json.RawMessage `json:"line"`
			}
			if err := json.Unmarshal(m.Raw, &line); err != nil {
				t.Error(err)
			}
			heard = append(heard, string(line.Line))
		}
	}
	all := strings.Join(heard, "\n")
	for _, want := range []string{
		`"request_id":"R\"1","response":{"behavior":"allow","updatedInput":  {"command":"a <b> & c"}}}}`,
		`"text":"two\nlines"`,
		`"request_id":"D","response":{"behavior":"cancelled"}`,
		`"subtype":"error","request_id":"U"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("not written: %s in\n%s", want, all)
		}
	}
}

func TestACLIThatDoesNotReadItsInput(t *testing.T) {
	t.Parallel()
	p := fake(t, "print {\"type\":\"keep_alive\"}\nhang", func(o *claude.Options) { o.WriteTimeout = 100 * time.Millisecond })
	if err := p.Prompt(uuid.NewString(), claude.Text(strings.Repeat("x", 1<<20))); err == nil || !strings.Contains(err.Error(), "not read its input") {
		t.Errorf("prompt: %v", err)
	}
	// It is still heard, and still ends.
	if _, err := p.Next(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestASilentCLIIsNoticed(t *testing.T) {
	t.Parallel()
	p := fake(t, "read\nhang", func(o *claude.Options) { o.SilenceAfter = 50 * time.Millisecond })
	if err := p.Prompt(uuid.NewString(), claude.Text("hello?")); err != nil {
		t.Fatal(err)
	}
	for {
		m, err := p.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := m.(*claude.Silence); ok {
			if since := time.Since(s.LastEvent); since < 50*time.Millisecond {
				t.Errorf("silent only since %v", since)
			}
			return
		}
	}
}

func TestEnvironIsAnAllowList(t *testing.T) {
	for k, v := range map[string]string{
		"SLACK_BOT_TOKEN": "xoxb", "DATABASE_URL": "postgres://", "PGPASSWORD": "p", "MY_SECRET": "s", "MY_FLAG": "f", "LC_ALL": "C", "HTTPS_PROXY": "p",
	} {
		t.Setenv(k, v)
	}
	env := claude.Environ([]string{"MY_FLAG", "SLACK_BOT_TOKEN", "PGPASSWORD", "DATABASE_URL"}, map[string]string{"HOME": "/elsewhere", "PGHOST": "set"})
	got := strings.Join(env, "\n")
	for _, want := range []string{"PATH=", "HOME=/elsewhere", "LC_ALL=C", "HTTPS_PROXY=p", "MY_FLAG=f", "PGHOST=set"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, never := range []string{"SLACK_", "DATABASE_URL", "PGPASSWORD", "MY_SECRET"} {
		if strings.Contains(got, never) {
			t.Errorf("%s is passed on", never)
		}
	}
	if !slices.IsSorted(env) {
		t.Error("the order changes from time to time")
	}
}
