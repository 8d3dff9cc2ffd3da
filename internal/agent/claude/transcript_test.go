package claude_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/agent/claude"
)

const (
	transcriptSession = "0b3a5d3e-7a53-4a5c-9d3e-6f1c0b8a9e11"
	transcriptPrompt  = "1c3a5d3e-7a53-4a5c-9d3e-6f1c0b8a9e12"
)

// writeTranscript writes a session's files: its own and its subagents', by name.
func writeTranscript(t *testing.T, main string, agents map[string]string) (configDir string) {
	t.Helper()
	configDir = t.TempDir()
	dir := filepath.Join(configDir, "projects", "-a-folder")
	below := filepath.Join(dir, transcriptSession, "subagents")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{filepath.Join(dir, transcriptSession+".jsonl"): main}
	for name, text := range agents {
		files[filepath.Join(below, name)] = text
	}
	for path, text := range files {
		if err := os.WriteFile(path, []byte(strings.TrimLeft(text, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return configDir
}

func TestReadCallsOfAPrompt(t *testing.T) {
	t.Parallel()
	dir := writeTranscript(t, `
{"type":"user","uuid":"another","promptId":"P0","message":{"role":"user","content":"before"}}
{"type":"assistant","uuid":"a0","message":{"id":"m0","model":"claude-opus-5","usage":{"input_tokens":9,"output_tokens":9}}}
{"type":"user","uuid":"`+transcriptPrompt+`","promptId":"P1","message":{"role":"user","content":"the prompt"}}
{"type":"attachment","uuid":"x"}
{"type":"assistant","uuid":"a1","message":{"id":"m1","model":"claude-opus-5","usage":{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":100}}}
{"type":"assistant","uuid":"a2","message":{"id":"m1","model":"claude-opus-5","usage":{"input_tokens":10,"output_tokens":40,"cache_read_input_tokens":100,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_1h_input_tokens":3,"ephemeral_5m_input_tokens":4},"server_tool_use":{"web_search_requests":2}}}}
{"type":"user","uuid":"r1","promptId":"P1","message":{"role":"user","content":[{"type":"tool_result"}]}}
{"type":"assistant","uuid":"s1","message":{"id":"s1","model":"<synthetic>","usage":{"input_tokens":0,"output_tokens":0}}}
{"type":"assistant","uuid":"a3","message":{"id":"m3","model":"claude-opus-5","usage":{"input_tokens":1,`, map[string]string{
		"agent-1.jsonl": `
{"type":"user","uuid":"u","promptId":"P1","agentId":"1","isSidechain":true,"message":{"role":"user","content":"go"}}
{"type":"assistant","uuid":"b","agentId":"1","message":{"id":"m2","model":"claude-haiku-4-5","usage":{"input_tokens":3,"output_tokens":5}}}
`,
		"agent-0.jsonl": `
{"type":"user","uuid":"u","promptId":"P0","agentId":"0","message":{"role":"user","content":"of the prompt before"}}
{"type":"assistant","uuid":"b","agentId":"0","message":{"id":"m9","model":"claude-haiku-4-5","usage":{"input_tokens":3,"output_tokens":5}}}
`,
	})
	got, err := claude.ReadCalls(dir, transcriptSession, transcriptPrompt)
	if err != nil {
		t.Fatal(err)
	}
	want := []claude.Call{
		{MessageID: "m1", Model: "claude-opus-5", Done: true, Usage: claude.TokenUsage{Input: 10, Output: 40, CacheRead: 100, CacheWrite: 7, CacheWrite5m: 4, CacheWrite1h: 3, WebSearches: 2}},
		{MessageID: "m2", Model: "claude-haiku-4-5", ParentToolUseID: "1", Done: true, Usage: claude.TokenUsage{Input: 3, Output: 5}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadCallsWithoutATranscript(t *testing.T) {
	t.Parallel()
	if got, err := claude.ReadCalls(t.TempDir(), transcriptSession, transcriptPrompt); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	dir := writeTranscript(t, `{"type":"assistant","message":{"id":"m0","model":"x","usage":{"input_tokens":1}}}`, nil)
	if got, err := claude.ReadCalls(dir, transcriptSession, transcriptPrompt); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := claude.ReadCalls(dir, "../../etc", transcriptPrompt); err == nil {
		t.Error("a session id that is a path was read")
	}
}

func TestMergeCallsTakesTheGreaterCount(t *testing.T) {
	t.Parallel()
	seen := []claude.Call{
		{MessageID: "m1", Model: "a", Usage: claude.TokenUsage{Input: 10, Output: 1}},
		{MessageID: "m2", Model: "a", Usage: claude.TokenUsage{Input: 5, Output: 6}, Done: true, Settled: true},
	}
	written := []claude.Call{
		{MessageID: "m1", Model: "a", Usage: claude.TokenUsage{Input: 10, Output: 30}, Done: true},
		{MessageID: "m2", Model: "a", Usage: claude.TokenUsage{Input: 5, Output: 1}, Done: true},
		{MessageID: "m3", Model: "b", Usage: claude.TokenUsage{Input: 2}, Done: true},
	}
	want := []claude.Call{
		{MessageID: "m1", Model: "a", Usage: claude.TokenUsage{Input: 10, Output: 30}, Done: true},
		{MessageID: "m2", Model: "a", Usage: claude.TokenUsage{Input: 5, Output: 6}, Done: true, Settled: true},
		{MessageID: "m3", Model: "b", Usage: claude.TokenUsage{Input: 2}, Done: true},
	}
	if diff := cmp.Diff(want, claude.MergeCalls(seen, written)); diff != "" {
		t.Error(diff)
	}
	if seen[0].Done {
		t.Error("the calls that were given have changed")
	}
}

func TestCopyTranscriptKeepsWhatWasSaid(t *testing.T) {
	t.Parallel()
	said := `{"parentUuid":null,"message":{"type":"worktree-state"},"type":"user"}` + "\n" + `{"type":"cost-state","totalCostUSD":1,"x":"\ud800"}` + "\n"
	for name, text := range map[string]string{
		"another type": `{"type":"worktree-state"}`, "an unknown type": `{"type":"brand-new"}`, "no type": `{"x":1}`, "no text": `{"type":1}`,
		"two types": `{"type":"user","type":"worktree-state"}`, "one in disguise": `{"type":"user","typ\u0065":"worktree-state"}`,
		"two members": `{"type":"user","a":1,"a":2}`, "no end": `{"type":"user"`, "more behind it": `{"type":"user"} {"type":"mode"}`, "a list": `["user"]`,
		"nothing": "", "noise": "\x00\xff", "too long": `{"type":"user","x":"` + strings.Repeat("x", 65<<20) + `"}`,
	} {
		var out strings.Builder
		if err := claude.CopyTranscript(&out, strings.NewReader(text+"\n"+said+text)); err != nil || out.String() != said {
			t.Errorf("%s: %.100q, %v", name, out.String(), err)
		}
	}
}
