package claude_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/agent/claude"
)

var requestRows = []row{
	{"set_permission_mode", "2.0.0", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.must(s.p.SetPermissionMode(s.ctx, "acceptEdits"))
		note(t, "→ set_permission_mode")
		s.onAsk = func(m *claude.CanUseTool) {
			t.Errorf("asked for an edit: %s", m.Raw)
			s.must(s.p.Allow(m.RequestID, m.Input))
		}
		turn := s.run("tool: Write "+mustJSON(t, map[string]string{"file_path": filepath.Join(s.dir, "new.txt"), "content": "x"}), "say: Written.")
		if tool := s.tool(turn, "Write"); tool.State != claude.ToolDone || turn.PermissionMode != "acceptEdits" {
			t.Errorf("mode %q, %+v", turn.PermissionMode, tool)
		}
	}},
	{"bypassPermissions is refused", "2.1.150", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		if err := s.p.SetPermissionMode(s.ctx, "bypassPermissions"); err == nil || isUnsupported(err) {
			t.Errorf("bypassPermissions: %v", err)
		}
	}},
	{"set_model", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.must(s.p.SetModel(s.ctx, "claude-sonnet-4-5"))
		note(t, "→ set_model")
		if turn := s.run("say: hi"); turn.Model != "claude-sonnet-4-5" {
			t.Errorf("model %q", turn.Model)
		}
		s.must(s.p.SetModel(s.ctx, ""))
		if turn := s.run("say: hi"); cli.version == pinned && turn.Model == "claude-sonnet-4-5" {
			t.Errorf("model %q after the default was restored", turn.Model)
		}
	}},
	{"set_max_thinking_tokens", "2.1.37", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.must(s.p.SetMaxThinkingTokens(s.ctx, 4000))
		s.must(s.p.SetMaxThinkingTokens(s.ctx, -1))
		note(t, "→ set_max_thinking_tokens")
	}},
	{"get_usage", "2.1.276", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.run("say: hi")
		u, err := s.p.GetUsage(s.ctx)
		s.must(err)
		note(t, "→ get_usage")
		if u.TotalMicroUSD != s.turn.Result.Running.TotalMicroUSD || u.TotalMicroUSD == 0 || len(u.Models) == 0 {
			t.Errorf("usage %+v, result %+v", u, s.turn.Result.Running)
		}
	}},
	{"get_context_usage", "2.1.150", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.run("say: hi")
		u, err := s.p.GetContextUsage(s.ctx)
		s.must(err)
		note(t, "→ get_context_usage")
		if u.MaxTokens == 0 || len(u.Categories) == 0 || u.Model == "" {
			t.Errorf("%+v", u)
		}
	}},
	{"get_workspace_diff", "2.1.276", func(t *testing.T, cli program) {
		s := prepare(t, cli)
		git(t, s.dir, "init", "-q")
		s.must(os.WriteFile(filepath.Join(s.dir, "a.txt"), []byte("one\n"), 0o600))
		git(t, s.dir, "add", ".")
		git(t, s.dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "first")
		s.must(os.WriteFile(filepath.Join(s.dir, "a.txt"), []byte("two\n"), 0o600))
		s.start()
		raw, err := s.p.GetWorkspaceDiff(s.ctx)
		s.must(err)
		note(t, "→ get_workspace_diff")
		if !strings.Contains(string(raw), "a.txt") {
			t.Errorf("diff %s", raw)
		}
	}},
	{"generate_session_title", "2.1.150", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		title, err := s.p.GenerateSessionTitle(s.ctx, "Fix the failing login test", false)
		s.must(err)
		note(t, "→ generate_session_title")
		if cli.version == pinned && title == "" {
			t.Error("no title")
		}
	}},
	{"list_models", "2.1.276", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		models, err := s.p.ListModels(s.ctx)
		s.must(err)
		note(t, "→ list_models")
		if len(models) == 0 || models[0].Value == "" {
			t.Errorf("%+v", models)
		}
	}},
	{"side_question", "2.1.150", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.run("say: hi")
		answer, err := s.p.SideQuestion(s.ctx, "say: beside the point")
		s.must(err)
		note(t, "→ side_question")
		if answer == "" {
			t.Error("no answer")
		}
	}},
	{"cancel_async_message", "2.1.150", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.prompt("slow: 20", "say: "+strings.Repeat("busy ", 20))
		s.until("the first delta", isDelta)
		waiting := s.prompt("say: never")
		done, err := s.p.CancelAsyncMessage(s.ctx, waiting)
		s.must(err)
		note(t, "→ cancel_async_message")
		if !done {
			t.Error("not cancelled")
		}
		if r := s.result(); r.QueuedTurns != 0 || slices.Contains(s.turn.PromptUUIDs, waiting) {
			t.Errorf("result %s", r.Raw)
		}
	}},
	{"stop_task", "2.1.150", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.prompt("tool: Bash "+mustJSON(t, map[string]any{"command": "sleep 600", "description": "bg", "run_in_background": true}), "say: Started.")
		m := s.until("the task", func(m claude.Message) bool {
			sys, ok := m.(*claude.System)
			return ok && sys.Subtype == "task_started"
		})
		id := m.(*claude.System).Task.ID
		s.must(s.p.StopTask(s.ctx, id))
		note(t, "→ stop_task")
		s.until("its end", func(claude.Message) bool {
			return slices.ContainsFunc(s.turn.Tasks, func(task claude.Task) bool { return task.ID == id && task.State != "running" })
		})
	}},
	{"rewind_files", "2.1.37", func(t *testing.T, cli program) {
		s := begin(t, cli, func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
			o.Env = withEnv(o.Env, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1")
		})
		file := filepath.Join(s.dir, "new.txt")
		id := s.prompt("tool: Write "+mustJSON(t, map[string]string{"file_path": file, "content": "a line\n"}), "say: Written.")
		s.result()
		dry, err := s.p.RewindFiles(s.ctx, id, true)
		s.must(err)
		if !dry.CanRewind || len(dry.FilesChanged) != 1 {
			t.Errorf("dry run %+v", dry)
		}
		if _, err := os.Stat(file); err != nil {
			t.Error("the dry run removed the file")
		}
		_, err = s.p.RewindFiles(s.ctx, id, false)
		s.must(err)
		note(t, "→ rewind_files")
		if _, err := os.Stat(file); err == nil {
			t.Error("the file is still there")
		}
	}},
	{"in-process MCP server", "2.0.0", func(t *testing.T, cli program) {
		server, called := addServer(), make(chan string, 4)
		addTool(server, "greet", func(_ context.Context, name string) string { called <- name; return "Hello, " + name })
		s := begin(t, cli, func(_ *session, _ *claude.Options, r *claude.InitializeRequest) {
			r.MCPServers = map[string]*mcp.Server{"house": server}
		})
		turn := s.run(`tool: mcp__house__greet {"name":"Ada"}`, "say: Greeted.")
		tool := s.tool(turn, "mcp__house__greet")
		if tool.State != claude.ToolDone || tool.Result != "Hello, Ada" || <-called != "Ada" {
			t.Errorf("%+v", tool)
		}
		note(t, "mcp_message (served)")
		servers, err := s.p.MCPStatus(s.ctx)
		s.must(err)
		note(t, "→ mcp_status")
		if len(servers) != 1 || servers[0].Name != "house" || servers[0].Status != "connected" {
			t.Errorf("status %+v", servers)
		}
	}},
	{"mcp_set_servers", "2.1.37", func(t *testing.T, cli program) {
		s := begin(t, cli)
		server := addServer()
		addTool(server, "late", func(context.Context, string) string { return "in time" })
		out, err := s.p.MCPSetServers(s.ctx, map[string]claude.MCPServerConfig{"outside": mcpProgram(t)}, map[string]*mcp.Server{"house": server})
		s.must(err)
		note(t, "→ mcp_set_servers")
		if len(out.Errors) != 0 || !slices.Contains(out.Added, "outside") {
			t.Errorf("%+v", out)
		}
		turn := s.run(`tool: mcp__house__late {"name":"x"}`, `tool: mcp__outside__echo {"name":"y"}`, "say: Done.")
		if a, b := s.tool(turn, "mcp__house__late"), s.tool(turn, "mcp__outside__echo"); a.Result != "in time" || b.Result != "echo y" {
			t.Errorf("%s", show(turn))
		}
		_, err = s.p.MCPSetServers(s.ctx, nil, nil)
		s.must(err)
	}},
	{"mcp_toggle and mcp_reconnect", "2.1.37", func(t *testing.T, cli program) {
		s := begin(t, cli, func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
			o.MCPConfig = mustJSON(t, map[string]any{"mcpServers": map[string]any{"outside": mcpProgram(t)}})
		})
		status := func() string {
			servers, err := s.p.MCPStatus(s.ctx)
			s.must(err)
			if len(servers) != 1 {
				t.Fatalf("servers %+v", servers)
			}
			return servers[0].Status
		}
		eventually(s.ctx, t, func() bool { return status() == "connected" })
		s.must(s.p.MCPToggle(s.ctx, "outside", false))
		if got := status(); got != "disabled" {
			t.Errorf("toggled off: %s", got)
		}
		s.must(s.p.MCPToggle(s.ctx, "outside", true))
		s.must(s.p.MCPReconnect(s.ctx, "outside"))
		eventually(s.ctx, t, func() bool { return status() == "connected" })
		note(t, "→ mcp_toggle")
		note(t, "→ mcp_reconnect")
	}},
	{"a server's notification", "2.1.276", func(t *testing.T, cli program) {
		server := addServer()
		addTool(server, "first", func(context.Context, string) string { return "one" })
		s := begin(t, cli, func(_ *session, _ *claude.Options, r *claude.InitializeRequest) {
			r.MCPServers = map[string]*mcp.Server{"house": server}
		})
		s.run(`tool: mcp__house__first {"name":"x"}`, "say: Done.")
		// A tool that is added later is announced by the server itself.
		addTool(server, "second", func(context.Context, string) string { return "two" })
		eventually(s.ctx, t, func() bool {
			servers, err := s.p.MCPStatus(s.ctx)
			s.must(err)
			return len(servers) == 1 && len(servers[0].Tools) == 2
		})
		note(t, "→ mcp_message")
	}},
	{"elicitation is declined", "2.1.150", func(t *testing.T, cli program) {
		s := begin(t, cli, func(_ *session, o *claude.Options, _ *claude.InitializeRequest) {
			o.MCPConfig = mustJSON(t, map[string]any{"mcpServers": map[string]any{"outside": mcpProgram(t)}})
		})
		turn := s.run(`tool: mcp__outside__elicit {"name":"x"}`, "say: Done.")
		if tool := s.tool(turn, "mcp__outside__elicit"); tool.Result != "decline" {
			t.Errorf("%+v", tool)
		}
		if !slices.ContainsFunc(s.log, func(m claude.Message) bool { r, ok := m.(*claude.RefusedRequest); return ok && r.Text == "May I?" }) {
			t.Errorf("not handed out: %s", s.said())
		}
	}},
	{"an unknown request", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		ctx, answers := s.ctx, cli.version != "2.0.0" && cli.version != "2.1.37"
		if !answers {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(s.ctx, 2*time.Second)
			defer cancel()
		}
		err := s.p.Request(ctx, "deckhand_nonsense", nil, nil)
		if answers && !isUnsupported(err) {
			t.Errorf("got %v, want unsupported", err)
		}
		if err == nil {
			t.Error("answered")
		}
	}},
	{"end_session", "2.1.150", func(t *testing.T, cli program) {
		s := begin(t, cli)
		s.run("say: hi")
		s.must(s.p.EndSession(s.ctx))
		note(t, "→ end_session")
		s.must(s.p.Stop(s.ctx))
		if exit := s.exit(); exit.Reason != claude.ExitClean {
			t.Errorf("%v", exit)
		}
	}},
	{"a prompt without a uuid is not sent", "2.0.0", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		if err := s.p.Prompt("not-a-uuid", claude.Text("x")); err == nil {
			t.Error("a prompt without a uuid was sent")
		}
		if err := s.p.Prompt(uuid.NewString()); err == nil {
			t.Error("an empty prompt was sent")
		}
	}},
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// eventually polls a state that only the CLI's own time can bring about.
func eventually(ctx context.Context, t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never came to that: %v", context.Cause(ctx))
		}
	}
}
