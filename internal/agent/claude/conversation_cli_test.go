package claude_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"deckhand/internal/agent/claude"
	"deckhand/internal/playground/model"
)

// row is one thing that the protocol can do, shown on a real CLI.
type row struct {
	name string
	// since is the oldest version, of those that are tried, that can do it.
	since string
	run   func(*testing.T, program)
}

// rows are shown on the pinned CLI by TestCLI, and on every version that we
// know by TestCLIVersions.
var rows = slices.Concat(conversationRows, approvalRows, requestRows, processRows, moneyRows)

func TestCLI(t *testing.T) {
	cli := theCLI(t)
	if cli.version == pinned { // of the others each row is told apart in the table
		cli.plain, cli.hooked = &pool{t: t}, &pool{t: t}
	}
	t.Cleanup(func() { checkWitnessed(t) })
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(t, cli)
		})
	}
}

var conversationRows = []row{
	{"text and deltas", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.prompt("say: Hello there, this is the answer.")
		r := s.result()
		if r.IsError || s.turn.Text() != "Hello there, this is the answer." || r.Text != s.turn.Text() {
			t.Errorf("turn %s, result %q", show(s.turn), r.Text)
		}
		deltas := ""
		for _, m := range s.log {
			if e, ok := m.(*claude.StreamEvent); ok && e.Delta == "text_delta" {
				deltas += e.Text
			}
		}
		if deltas != r.Text {
			t.Errorf("deltas %q, result %q", deltas, r.Text)
		}
		if s.p.SessionID() != s.id || s.turn.Model == "" {
			t.Errorf("session %q, model %q", s.p.SessionID(), s.turn.Model)
		}
		if corrupt, noise := s.p.Corrupt(); corrupt+noise != 0 {
			t.Errorf("%d corrupt lines, %d lines of noise", corrupt, noise)
		}
	}},
	{"thinking", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli, func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
			o.Env = withEnv(o.Env, "MAX_THINKING_TOKENS=2000")
		})
		turn := s.run("think: Let me think about that.", "say: Done thinking.")
		if len(turn.Items) != 2 || turn.Items[0].Kind != claude.ItemThinking || !strings.Contains(turn.Items[0].Text, "Let me think") {
			t.Error(show(turn))
		}
	}},
	{"every queued prompt is accounted for", "2.1.276", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		first := s.prompt("slow: 60", "say: "+strings.Repeat("slowly ", 20))
		s.until("the first delta", isDelta)
		second, third := s.prompt("say: two"), s.prompt("say: three")
		answered := map[string]bool{}
		s.until("all to be answered", func(m claude.Message) bool {
			if m, ok := m.(*claude.CommandLifecycle); ok && m.State == "completed" {
				answered[m.PromptUUID] = true
			}
			return answered[first] && answered[second] && answered[third]
		})
	}},
	{"command_lifecycle", "2.1.276", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		id := s.prompt("say: hi")
		var states []string
		s.until("completed", func(m claude.Message) bool {
			if m, ok := m.(*claude.CommandLifecycle); ok && m.PromptUUID == id {
				states = append(states, m.State)
				return m.State == "completed"
			}
			return false
		})
		if len(states) < 2 {
			t.Errorf("states %v", states)
		}
	}},
	{"image in", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.must(s.p.Prompt(uuid.NewString(), claude.Text("say: I saw it."), picture(t)))
		if r := s.result(); r.IsError || r.Text != "I saw it." {
			t.Errorf("result %+v", r)
		}
		if cli.version != pinned { // documents were seen to arrive from 2.1.276 on
			return
		}
		page := claude.Block{Type: "document", Title: "a.pdf", MediaType: "application/pdf", Data: "JVBERi0xLjQK"}
		s.must(s.p.Prompt(uuid.NewString(), picture(t), page, claude.TextDocument("a.md", "# The plan"), claude.Text("Look.")))
		want := "You said: “Look.”, and attached a picture of 8 × 8 pixels (image/png); the document “a.pdf” (application/pdf, 9 bytes); the text “a.md” (# The plan)."
		if r := s.result(); r.IsError || !strings.HasPrefix(r.Text, want) {
			t.Errorf("result %+v", r)
		}
	}},
	{"image out", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		path := filepath.Join(s.dir, "dot.png")
		s.must(os.WriteFile(path, smallPNG(t), 0o600))
		turn := s.run("tool: Read "+mustJSON(t, map[string]string{"file_path": path}), "say: A dot.")
		i := slices.IndexFunc(turn.Items, func(item claude.Item) bool { return item.Kind == claude.ItemImage })
		if i < 0 || turn.Items[i].Data == "" {
			t.Error(show(turn))
		}
	}},
	{"subagent", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		sub := "tool: Bash " + mustJSON(t, map[string]string{"command": "touch by-the-sub", "description": "touch"}) + "\nsay: from the subagent"
		s.prompt("tool: Task "+mustJSON(t, map[string]any{
			"description": "a job", "prompt": sub, "subagent_type": "general-purpose", "run_in_background": false,
		}), "say: The subagent is done.")
		var inner claude.Item
		s.until("the subagent's call to end", func(claude.Message) bool {
			for _, item := range s.turn.Items {
				if item.ParentID != "" && item.Tool != nil && item.Tool.State == claude.ToolDone {
					inner = item
					return true
				}
			}
			return false
		})
		parent, ok := s.turn.Tool(inner.ParentID)
		if !ok || inner.ID != parent.ID+":"+inner.Tool.ID || !strings.HasPrefix(inner.ID, parent.ID) {
			t.Errorf("inner %+v below %+v", inner, parent)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "by-the-sub")); err != nil {
			t.Error(err)
		}
	}},
	{"agents of the host", "2.1.329", func(t *testing.T, cli program) {
		var asked []*claude.CanUseTool
		s := begin(t, cli, func(_ *session, _ *claude.Options, r *claude.InitializeRequest) {
			r.Agents = map[string]claude.Agent{"careful-checker": {Description: "Checks with care.", Prompt: "You are the checker of this team.", Tools: []string{"Bash", "Read"}}}
		})
		s.onAsk = func(m *claude.CanUseTool) {
			asked = append(asked, m)
			s.must(s.p.Allow(m.RequestID, m.Input))
		}
		sub := bash(t, "touch by-the-checker") + "\nsay: checked"
		s.prompt("tool: Agent "+mustJSON(t, map[string]any{
			"description": "a job", "prompt": sub, "subagent_type": "careful-checker", "run_in_background": false,
		}), "say: The checker is done.")
		s.result()
		if agents := last[[]string](s, "agents"); !slices.Contains(agents, "careful-checker") {
			t.Errorf("agents %q", agents)
		}
		if len(asked) != 1 || asked[0].AgentID == "" || asked[0].ToolName != "Bash" {
			t.Errorf("asked %+v", asked)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "by-the-checker")); err != nil {
			t.Error(err)
		}
	}},
	{"task events", "2.1.150", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.prompt("tool: Bash "+mustJSON(t, map[string]any{"command": "sleep 0.3; echo in the background", "description": "bg", "run_in_background": true}),
			"say: Started it.")
		s.until("the task to end", func(m claude.Message) bool {
			if m, ok := m.(*claude.System); ok && m.Subtype == "task_notification" {
				if m.Task.State != "completed" || m.Task.ID == "" {
					t.Errorf("task %+v", m.Task)
				}
				return true
			}
			return false
		})
	}},
	{"todo list", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli, func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
			o.Env = withEnv(o.Env, "CLAUDE_CODE_ENABLE_TASKS=1", "CLAUDE_CODE_ENABLE_TODO_TOOLS=1")
		})
		s.run("say: hi")
		if slices.Contains(last[[]string](s, "tools"), "TodoWrite") {
			turn := s.run("tool: TodoWrite "+mustJSON(t, map[string]any{"todos": []map[string]string{
				{"content": "read", "status": "completed", "activeForm": "reading"},
				{"content": "write", "status": "in_progress", "activeForm": "writing"},
			}}), "say: listed")
			if len(turn.Todos) != 2 || turn.Todos[1].State != "in_progress" {
				t.Errorf("todos %+v in %s", turn.Todos, show(turn))
			}
			return
		}
		turn := s.run("tool: TaskCreate "+mustJSON(t, map[string]string{"subject": "write", "description": "write it", "activeForm": "writing"}),
			`tool: TaskUpdate {"taskId":"1","status":"in_progress"}`, "say: listed")
		if len(turn.Todos) != 1 || turn.Todos[0].Text != "write" || turn.Todos[0].State != "in_progress" {
			t.Errorf("todos %+v in %s", turn.Todos, show(turn))
		}
	}},
	{"slash command", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		turn := s.run("/cost")
		shown := slices.ContainsFunc(turn.Items, func(i claude.Item) bool { return i.Text != "" })
		if turn.Result.IsError || !shown && turn.Result.Text == "" {
			t.Errorf("%s result %q", show(turn), turn.Result.Text)
		}
	}},
	{"clear", "2.1.276", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.run("say: before")
		totals := claude.NewTotals(claude.Usage{})
		totals.Observe(s.turn.Result.Running)
		s.run("/clear")
		if _, reset := totals.Observe(s.turn.Result.Running); !reset {
			t.Errorf("no reset at %s", s.turn.Result.Raw)
		}
		if s.p.SessionID() == s.id {
			t.Errorf("session %s, as before", s.id)
		}
		s.run("say: after")
		if spent, _ := totals.Observe(s.turn.Result.Running); spent.After == spent.Before || spent.After-spent.Before != s.turn.Result.Running.TotalMicroUSD {
			t.Errorf("spent %+v", spent)
		}
		s.must(s.p.Stop(s.ctx))
		s.id = s.p.SessionID()
		s.start(resumed)
		if turn := s.run("say: resumed"); turn.Result.IsError {
			t.Errorf("resume after clear: %+v", turn.Result)
		}
	}},
	{"compaction", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.run("say: " + strings.Repeat("a long story ", 50))
		s.run("say: and more")
		s.prompt("/compact")
		s.until("a boundary", func(m claude.Message) bool {
			sys, ok := m.(*claude.System)
			return ok && sys.Subtype == "compact_boundary"
		})
		s.result()
	}},
	{"api_retry", "2.1.150", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.prompt("error: 529", "say: after all")
		s.until("a retry", func(m claude.Message) bool {
			sys, ok := m.(*claude.System)
			return ok && sys.Subtype == "api_retry" && sys.Attempt == 1
		})
		if !strings.HasPrefix(s.turn.Status, "retrying (attempt 1") {
			t.Errorf("status %q", s.turn.Status)
		}
		if r := s.result(); r.IsError || s.turn.Status != "" || s.turn.Text() != "after all" {
			t.Errorf("%s status %q", show(s.turn), s.turn.Status)
		}
	}},
	{"failed call of the model", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.model.SetFaults([]model.Fault{{Status: 400, Message: "bad luck"}})
		s.prompt("say: never")
		r := s.result()
		if !r.IsError || r.Interrupted() || s.turn.Text() == "" {
			t.Errorf("result %s\n%s", r.Raw, show(s.turn))
		}
	}},
	{"plan mode", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli, func(_ *session, o *claude.Options, _ *claude.InitializeRequest) { o.PermissionMode = "plan" })
		asked := false
		s.onAsk = func(m *claude.CanUseTool) {
			if m.ToolName == "ExitPlanMode" {
				asked = true
				if mode := last[string](s, "permissionMode"); mode != "plan" {
					t.Errorf("mode %q while planning", mode)
				}
			}
			s.must(s.p.Allow(m.RequestID, m.Input))
		}
		s.run("tool: Write "+`{"file_path":"{{plan_file}}","content":"# Plan\n1. do it"}`, `tool: ExitPlanMode {"plan":"# Plan\n1. do it"}`, "say: Planned.")
		if !asked {
			t.Errorf("ExitPlanMode was not asked: %s", show(s.turn))
		}
		if mode := last[string](s, "permissionMode"); cli.version == pinned && mode != "default" {
			t.Errorf("mode %q after the plan was accepted", mode)
		}
	}},
	{"question to the person", "2.1.37", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		question := "Which colour?"
		input := map[string]any{"questions": []map[string]any{{
			"question": question, "header": "Colour", "multiSelect": false,
			"options": []map[string]string{{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}},
		}}}
		s.onAsk = func(m *claude.CanUseTool) {
			var in map[string]any
			s.must(json.Unmarshal(m.Input, &in))
			in["answers"] = map[string]string{question: "Blue"}
			s.must(s.p.Allow(m.RequestID, json.RawMessage(mustJSON(t, in))))
		}
		turn := s.run("tool: AskUserQuestion "+mustJSON(t, input), "say: Thanks.")
		if tool := s.tool(turn, "AskUserQuestion"); tool.State != claude.ToolDone || !strings.Contains(tool.Result, "Blue") {
			t.Errorf("%+v", tool)
		}
	}},
}

func resumed(_ *session, o *claude.Options, _ *claude.InitializeRequest) { o.Resume = true }

func isDelta(m claude.Message) bool {
	e, ok := m.(*claude.StreamEvent)
	return ok && e.Delta == "text_delta"
}

func withEnv(env []string, more ...string) []string { return append(slices.Clone(env), more...) }

func picture(t *testing.T) claude.Block {
	t.Helper()
	return claude.Block{Type: "image", MediaType: "image/png", Data: base64.StdEncoding.EncodeToString(smallPNG(t))}
}

func smallPNG(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 8, 8))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func isUnsupported(err error) bool {
	return errors.Is(err, claude.ErrUnsupported)
}
