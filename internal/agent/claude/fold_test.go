package claude_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/tools/txtar"

	"deckhand/internal/agent/claude"
)

// TestConversations folds what real CLIs have printed and compares the turns
// with the golden ones beside them.
func TestConversations(t *testing.T) {
	t.Parallel()
	for name, archive := range conversations(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := story(t, section(archive, "stdout"))
			if *update {
				archive.Files = []txtar.File{{Name: "stdout", Data: section(archive, "stdout")}, {Name: "turns", Data: []byte(got)}}
				if err := os.WriteFile(filepath.Join("testdata/conversations", name+".txtar"), txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(section(archive, "turns")), got); diff != "" {
				t.Errorf("turns differ (-want +got), -update rewrites them:\n%s", diff)
			}
		})
	}
}

// story folds lines and tells every turn, and what was spent.
func story(t *testing.T, lines []byte) string {
	t.Helper()
	var b strings.Builder
	turn, totals := claude.Output{}, claude.NewTotals(claude.Usage{})
	for line := range bytes.Lines(lines) {
		m, err := claude.Decode(bytes.TrimSpace(bytes.Clone(line)))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if turn.Result != nil && startsTurn(m) {
			turn = tell(&b, turn)
		}
		turn = turn.Fold(m)
		if _, ok := m.(*claude.ConversationReset); ok {
			totals.Reset()
		}
		if r, ok := m.(*claude.Result); ok {
			if s, reset := totals.Observe(r.Running); s.Before != s.After {
				fmt.Fprintf(&b, "spent: %d to %d micro-USD, most on %s, reset %v\n", s.Before, s.After, s.Model, reset)
			}
		}
	}
	tell(&b, turn)
	return b.String()
}

func tell(b *strings.Builder, turn claude.Output) claude.Output {
	fmt.Fprintf(b, "turn: model %s", turn.Model)
	if r := turn.Result; r != nil {
		fmt.Fprintf(b, ", result %s error %v interrupted %v", r.Subtype, r.IsError, r.Interrupted())
	}
	if turn.Status != "" {
		fmt.Fprintf(b, ", status %q", turn.Status)
	}
	b.WriteByte('\n')
	for line := range strings.Lines(show(turn)) {
		b.WriteString("  " + line)
	}
	for _, task := range turn.Tasks {
		fmt.Fprintf(b, "  task %s\n", task.State)
	}
	for _, todo := range turn.Todos {
		fmt.Fprintf(b, "  todo %s %q\n", todo.State, todo.Text)
	}
	return turn.Next()
}

func foldAll(t testing.TB, lines ...string) claude.Output {
	t.Helper()
	var turn claude.Output
	for _, line := range lines {
		turn = turn.Fold(decode(t, line))
	}
	return turn
}

func TestFoldKeepsOldTurns(t *testing.T) {
	t.Parallel()
	for name, archive := range conversations(t) {
		var turn claude.Output
		var turns []claude.Output
		var told []string
		for line := range bytes.Lines(section(archive, "stdout")) {
			turns, told = append(turns, turn), append(told, fmt.Sprintf("%s %+v", show(turn), turn))
			turn = turn.Fold(decode(t, strings.TrimSpace(string(line))))
			// A second fold from the same turn must not reach the first.
			_ = turns[len(turns)-1].Fold(&claude.StreamEvent{Event: "content_block_delta", Delta: "text_delta", Text: "elsewhere"})
		}
		for i, turn := range turns {
			if got := fmt.Sprintf("%s %+v", show(turn), turn); got != told[i] {
				t.Fatalf("%s: turn %d changed:\n%s", name, i, cmp.Diff(told[i], got))
			}
		}
	}
}

func TestFoldForksFromOneTurnAtOnce(t *testing.T) {
	t.Parallel()
	start := foldAll(t,
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}`,
		`{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			turn, want := start, ""
			for j := range 500 {
				word := fmt.Sprintf("%d-%d ", i, j)
				want += word
				turn = turn.Fold(&claude.StreamEvent{Event: "content_block_delta", Delta: "text_delta", Text: word})
			}
			if got := turn.Text(); got != want {
				t.Errorf("fork %d reads %.60q", i, got)
			}
		})
	}
	wg.Wait()
}

func TestFoldNestsSubagents(t *testing.T) {
	t.Parallel()
	turn := foldAll(t,
		`{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"A","name":"Task","input":{}}]}}`,
		`{"type":"assistant","parent_tool_use_id":"A","message":{"id":"m2","content":[{"type":"tool_use","id":"B","name":"Task","input":{}}]}}`,
		`{"type":"stream_event","parent_tool_use_id":"B","event":{"type":"message_start","message":{"id":"m3"}}}`,
		`{"type":"stream_event","parent_tool_use_id":"B","event":{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"C","name":"Read"}}}`,
		`{"type":"assistant","parent_tool_use_id":"B","message":{"id":"m3","content":[{"type":"tool_use","id":"C","name":"Read","input":{"a":1}}]}}`,
		`{"type":"user","parent_tool_use_id":"B","message":{"content":[{"type":"tool_result","tool_use_id":"C","content":"found","is_error":false}]}}`)
	item, ok := turn.Tool("C")
	if !ok || item.ID != "A:B:C" || item.ParentID != "A:B" || item.Tool.State != claude.ToolDone || item.Tool.Result != "found" {
		t.Errorf("%+v %+v", item, item.Tool)
	}
	for of, want := range map[string]string{"A": "m2 m3", "A:B": "m3", "B": "", "A:B:C": "", "": ""} {
		if got := strings.Join(turn.AnswersBelow(of), " "); got != want {
			t.Errorf("below %q: %q, want %q", of, got, want)
		}
	}
}

func TestFoldPutsACallThatWasAskedFirstInItsPlace(t *testing.T) {
	t.Parallel()
	turn := foldAll(t,
		`{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"A","name":"Task","input":{}}]}}`,
		`{"type":"control_request","request_id":"R","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"B"}}`,
		`{"type":"assistant","parent_tool_use_id":"A","message":{"id":"m2","content":[{"type":"tool_use","id":"B","name":"Bash","input":{}}]}}`)
	if item, _ := turn.Tool("B"); item.ID != "A:B" || item.ParentID != "A" || item.Tool.State != claude.ToolAsked || len(turn.Items) != 2 {
		t.Error(show(turn))
	}
}

func TestFoldDeltasGiveWayToTheMessage(t *testing.T) {
	t.Parallel()
	lines := []string{
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"m","model":"x","usage":{"input_tokens":5,"output_tokens":1}}}}`,
		`{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}}`,
	}
	turn := foldAll(t, lines...)
	if turn.Text() != "Hello" || turn.Items[0].Final {
		t.Error(show(turn))
	}
	lines = append(lines,
		`{"type":"assistant","uuid":"u","message":{"id":"m","content":[{"type":"text","text":"Hello!"}]}}`,
		`{"type":"stream_event","event":{"type":"content_block_stop","index":0}}`,
		`{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":9}}}`)
	turn = foldAll(t, lines...)
	if turn.Text() != "Hello!" || !turn.Items[0].Final || len(turn.Items) != 1 {
		t.Error(show(turn))
	}
}

// TestFoldKnowsAMessageByItsConversation: up to 2.1.276 only message_start names the
// message, and a subagent in the background goes on with its own after the turn.
func TestFoldKnowsAMessageByItsConversation(t *testing.T) {
	t.Parallel()
	turn := foldAll(t,
		`{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"A","name":"Task","input":{}}]}}`,
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"old"}}}`,
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"m"}}}`,
		`{"type":"stream_event","parent_tool_use_id":"A","event":{"type":"message_start","message":{"id":"s"}}}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"main"}}}`,
		`{"type":"stream_event","parent_tool_use_id":"A","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"sub"}}}`)
	if len(turn.Items) != 3 || turn.Items[1].ID != "m/0" || turn.Items[2].ID != "A:s/0" {
		t.Error(show(turn))
	}
	next := turn.Fold(decode(t, `{"type":"result","subtype":"success"}`)).Next()
	next = next.Fold(decode(t, `{"type":"stream_event","parent_tool_use_id":"A","event":{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"more"}}}`))
	if len(next.Items) != 1 || next.Items[0].ID != "A:s/1" {
		t.Error(show(next))
	}
}

func TestFoldApproval(t *testing.T) {
	t.Parallel()
	asked := []string{
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"T","name":"Bash","input":{"command":"ls"}}]}}`,
		`{"type":"control_request","request_id":"R","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"T"}}`,
	}
	state := func(turn claude.Output) claude.ToolState { item, _ := turn.Tool("T"); return item.Tool.State }
	turn := foldAll(t, asked...)
	if state(turn) != claude.ToolAsked {
		t.Error(show(turn))
	}
	if got := state(turn.Fold(&claude.Decision{RequestID: "R", Allowed: true})); got != claude.ToolRunning {
		t.Errorf("allowed: %s", got)
	}
	if got := state(turn.Fold(&claude.Decision{RequestID: "R"})); got != claude.ToolDenied {
		t.Errorf("denied: %s", got)
	}
	if got := state(turn.Fold(decode(t, `{"type":"control_cancel_request","request_id":"R"}`))); got != claude.ToolRunning {
		t.Errorf("withdrawn: %s", got)
	}
	if got := state(turn.Fold(decode(t, `{"type":"result","subtype":"error_during_execution","terminal_reason":"aborted_tools"}`))); got != claude.ToolInterrupted {
		t.Errorf("interrupted: %s", got)
	}
	// Before 2.1.37 the request does not name the call.
	turn = foldAll(t, asked[0], `{"type":"control_request","request_id":"R","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"}}}`)
	if state(turn) != claude.ToolAsked || len(turn.Items) != 1 {
		t.Error(show(turn))
	}
}

func TestFoldLists(t *testing.T) {
	t.Parallel()
	turn := foldAll(t,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"T1","name":"TaskCreate","input":{"subject":"write","activeForm":"writing"}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"T1","content":"Task #1 created"}]},"tool_use_result":{"task":{"id":"1","subject":"write"}}}`,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"T2","name":"TaskUpdate","input":{"taskId":"1","status":"in_progress"}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"T2","content":"Updated"}]},"tool_use_result":{"success":true}}`,
		`{"type":"system","subtype":"task_started","task_id":"bg","task_type":"local_bash","description":"sleep"}`,
		`{"type":"system","subtype":"task_updated","task_id":"bg","patch":{"status":"completed"}}`,
		`{"type":"system","subtype":"task_notification","task_id":"bg","status":"completed","summary":"slept"}`)
	if want := []claude.Todo{{ID: "1", Text: "write", State: "in_progress"}}; !cmp.Equal(turn.Todos, want) {
		t.Errorf("todos %+v", turn.Todos)
	}
	if want := []claude.Task{{ID: "bg", State: "completed"}}; !cmp.Equal(turn.Tasks, want) {
		t.Errorf("tasks %+v", turn.Tasks)
	}
}

func TestFoldCutsResultsButNotTheirLength(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", claude.MaxResult)
	turn := foldAll(t,
		`{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"T","name":"Bash","input":{}}]}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"T","content":[{"type":"text","text":"`+long+`"}]}]}}`)
	item, _ := turn.Tool("T")
	if item.Tool.ResultBytes != len(long) || len(item.Tool.Result) != claude.MaxResult || !strings.HasPrefix(long, item.Tool.Result) {
		t.Errorf("%d bytes of %d", len(item.Tool.Result), item.Tool.ResultBytes)
	}
}

func TestFoldRetracts(t *testing.T) {
	t.Parallel()
	turn := foldAll(t,
		`{"type":"assistant","uuid":"a","message":{"id":"m1","content":[{"type":"text","text":"old"}]}}`,
		`{"type":"assistant","uuid":"b","supersedes":["a"],"message":{"id":"m2","content":[{"type":"text","text":"new"}]}}`)
	if turn.Text() != "new" {
		t.Error(show(turn))
	}
}

func FuzzFold(f *testing.F) {
	// Short stretches: what a fold does depends on few messages at a time.
	for _, c := range conversations(f) {
		for part := range slices.Chunk(slices.Collect(bytes.Lines(section(c, "stdout"))), 6) {
			f.Add(bytes.Join(part, nil))
		}
	}
	f.Add([]byte(`{"type":"stream_event","event":{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"x"}}}`))
	f.Fuzz(func(t *testing.T, lines []byte) {
		var a, b claude.Output
		n := 0
		for line := range bytes.Lines(lines) {
			if n++; n > 200 || len(line) > 1<<15 {
				break
			}
			m, err := claude.Decode(bytes.Clone(line))
			if err != nil {
				continue
			}
			before := len(a.Items)
			next := a.Fold(m)
			if len(a.Items) != before {
				t.Fatal("Fold changed its turn")
			}
			a, b = next, b.Fold(m)
			for _, item := range a.Items {
				if item.Tool != nil && item.Kind != claude.ItemToolUse || item.Tool == nil && item.Kind == claude.ItemToolUse {
					t.Fatalf("item %+v", item)
				}
			}
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("the same messages made two turns:\n%s", cmp.Diff(a, b, cmpopts.IgnoreUnexported(claude.Output{}, claude.Item{})))
		}
		_ = a.Text()
		_ = a.Next()
	})
}
