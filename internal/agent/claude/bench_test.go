package claude_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
)

// fifty is the size of the conversation that is decoded.
const fifty = 50 << 20

// bigConversation is the recorded conversations over and over, without the
// CLI's requests and answers, which a reader would try to answer.
func bigConversation(tb testing.TB) []byte {
	tb.Helper()
	var once []byte
	for _, line := range recordedLines(tb) {
		if !strings.Contains(line, `"control_re`) {
			once = append(append(once, line...), '\n')
		}
	}
	return bytes.Repeat(once, fifty/len(once)+1)
}

func BenchmarkDecode(b *testing.B) {
	big := bigConversation(b)
	b.Run("claude", func(b *testing.B) {
		b.SetBytes(int64(len(big)))
		b.ReportAllocs()
		for b.Loop() {
			for rest := big; len(rest) > 0; {
				i := bytes.IndexByte(rest, '\n')
				if _, err := claude.Decode(rest[:i]); err != nil {
					b.Fatal(err)
				}
				rest = rest[i+1:]
			}
		}
	})
	b.Run("encoding/json into maps", func(b *testing.B) {
		b.SetBytes(int64(len(big)))
		b.ReportAllocs()
		for b.Loop() {
			for rest := big; len(rest) > 0; {
				i := bytes.IndexByte(rest, '\n')
				var m map[string]any
				if err := json.Unmarshal(rest[:i], &m); err != nil {
					b.Fatal(err)
				}
				rest = rest[i+1:]
			}
		}
	})
}

func BenchmarkFold(b *testing.B) {
	var messages []claude.Message
	for _, line := range recordedLines(b) {
		messages = append(messages, decode(b, line))
	}
	b.ReportAllocs()
	for b.Loop() {
		var turn claude.Output
		for _, m := range messages {
			if turn.Result != nil && startsTurn(m) {
				turn = turn.Next()
			}
			turn = turn.Fold(m)
		}
	}
}

func BenchmarkFoldLongText(b *testing.B) {
	b.ReportAllocs()
	word := &claude.StreamEvent{Event: "content_block_delta", Delta: "text_delta", Text: "a word or two "}
	for b.Loop() {
		var turn claude.Output
		for range 10_000 {
			turn = turn.Fold(word)
		}
	}
}

const deltaLine = `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some text that \"streams\""}},"session_id":"c1b87f9b-c31a-4a12-b532-09a31882bcd5","parent_tool_use_id":"toolu_30589400","uuid":"af36dbcf-7d02-4030-ae56-35a1f03f14d9","api_message_id":"msg_f84e0f1aa7f9452f8cdc"}`

func BenchmarkDelta(b *testing.B) {
	line := []byte(deltaLine)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := claude.Decode(line); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart measures what the reaper adds to a start.
func BenchmarkStart(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.CommandContext(b.Context(), "true")
			if err := cmd.Start(); err != nil {
				b.Fatal(err)
			}
			_ = cmd.Wait() // true
		}
	})
	b.Run("under the reaper", func(b *testing.B) {
		dir := b.TempDir()
		var running time.Duration
		defer func() { b.ReportMetric(float64(running.Microseconds())/float64(b.N), "µs-to-running") }()
		for b.Loop() {
			begun := time.Now()
			p, err := claude.Start(b.Context(), claude.Options{Command: []string{"true"}, Dir: dir, SessionID: uuid.NewString(), Env: claude.Environ(nil, nil)})
			if err != nil {
				b.Fatal(err)
			}
			running += time.Since(begun)
			<-p.Done()
		}
	})
}

// TestFasterThanTheSDK reads the same 50 MB through the TypeScript Agent SDK
// and through this package, in the same run. DECKHAND_TEST_SDK names the folder
// of an installed @anthropic-ai/claude-agent-sdk.
func TestFasterThanTheSDK(t *testing.T) {
	sdk := os.Getenv("DECKHAND_TEST_SDK")
	if sdk == "" {
		t.Skip("set DECKHAND_TEST_SDK to the folder of an installed @anthropic-ai/claude-agent-sdk")
	}
	dir := t.TempDir()
	file, cli, script := filepath.Join(dir, "big.ndjson"), filepath.Join(dir, "claude"), filepath.Join(dir, "loop.mjs")
	for path, content := range map[string]string{
		file: string(bigConversation(t)),
		// It answers initialize and then says everything at once.
		cli: `#!/bin/sh
read -r line
id=$(printf %s "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{"commands":[],"models":[],"agents":[],"account":{}}}}\n' "$id"
exec cat ` + file + "\n",
		script: fmt.Sprintf(`import { query } from %q;
let n = 0; const t = performance.now();
try {
  for await (const m of query({ prompt: "hi", options: { pathToClaudeCodeExecutable: %q, includePartialMessages: true } })) n++;
} catch (e) { if (n === 0) throw e; }
console.log(JSON.stringify({ n, ms: performance.now() - t }));
`, filepath.Join(sdk, "sdk.mjs"), cli),
	} {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil { //nolint:gosec // one of them is a program
			t.Fatal(err)
		}
	}
	best := func(run func() (int, time.Duration)) (n int, best time.Duration) {
		for range 3 {
			m, d := run()
			if n = m; best == 0 || d < best {
				best = d
			}
		}
		return n, best
	}
	sdkN, sdkTime := best(func() (int, time.Duration) {
		cmd := exec.CommandContext(t.Context(), "node", script)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("node: %v", err)
		}
		var said struct {
			N  int
			MS float64
		}
		if err := json.Unmarshal(out, &said); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		return said.N, time.Duration(said.MS * float64(time.Millisecond))
	})
	ourN, ourTime := best(func() (int, time.Duration) {
		start := time.Now()
		p, err := claude.Start(t.Context(), claude.Options{Command: []string{cli}, Dir: dir, SessionID: uuid.NewString(), Env: claude.Environ(nil, nil)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Initialize(t.Context(), claude.InitializeRequest{}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for {
			m, err := p.Next(t.Context())
			if _, ended := errors.AsType[*claude.ExitError](err); ended {
				break
			}
			if n++; m == nil {
				t.Fatal(err)
			}
		}
		return n, time.Since(start)
	})
	t.Logf("SDK: %d messages in %v; here: %d in %v (%.1f times as fast)", sdkN, sdkTime, ourN, ourTime, float64(sdkTime)/float64(ourTime))
	if ourTime >= sdkTime {
		t.Errorf("not faster than the SDK")
	}
}

// TestManySessions streams from many processes at once and loses nothing.
// DECKHAND_TEST_SESSIONS sets how many (each is two small processes).
func TestManySessions(t *testing.T) {
	sessions, deltas := 20, 100
	if n := os.Getenv("DECKHAND_TEST_SESSIONS"); n != "" {
		if _, err := fmt.Sscan(n, &sessions); err != nil {
			t.Fatal(err)
		}
		deltas = 250
	}
	want := ""
	for i := range deltas {
		want += fmt.Sprintf("%d ", i)
	}
	dir := t.TempDir()
	lines := make([]string, deltas)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%d "}},"session_id":"s","parent_tool_use_id":null}`+"\n", i)
	}
	errs := make(chan error, 2*sessions)
	var begun time.Time
	ready := make(chan struct{})
	for i := range sessions {
		// The CLI is cat; what it prints comes from here at 50 a second.
		r, w := io.Pipe()
		pipe := filepath.Join(dir, fmt.Sprint(i))
		if out, err := exec.CommandContext(t.Context(), "mkfifo", pipe).CombinedOutput(); err != nil {
			t.Fatalf("mkfifo: %v %s", err, out)
		}
		p, err := claude.Start(t.Context(), claude.Options{
			Command: []string{"sh", "-c", "exec cat " + pipe}, Dir: dir, SessionID: uuid.NewString(), Env: claude.Environ(nil, nil),
		})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			f, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err == nil {
				_, err = io.Copy(f, bufio.NewReaderSize(r, 256))
				err = errors.Join(err, f.Close())
			}
			errs <- err
		}()
		go func() {
			<-ready
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for _, line := range lines {
				<-tick.C
				_, _ = io.WriteString(w, line) // the reader's error tells
			}
			_ = w.Close()
		}()
		go func() {
			var turn claude.Output
			for {
				m, err := p.Next(t.Context())
				if _, ended := errors.AsType[*claude.ExitError](err); ended {
					break
				}
				if err != nil {
					errs <- err
					return
				}
				turn = turn.Fold(m)
			}
			if got := turn.Text(); got != want {
				errs <- fmt.Errorf("session %d read %d bytes of %d", i, len(got), len(want))
				return
			}
			errs <- nil
		}()
	}
	begun = time.Now()
	close(ready)
	for range 2 * sessions {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d sessions, %d deltas each, in %v", sessions, deltas, time.Since(begun))
}
