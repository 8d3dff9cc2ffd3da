package claude_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
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
		if tool := s.tool(turn, "Write"); tool.State != claude.ToolDone {
			t.Errorf("%+v", tool)
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
		var init struct {
			Models []struct {
				Value    string `json:"value"`
				Resolved string `json:"resolvedModel"`
			} `json:"models"`
		}
		s.must(json.Unmarshal(s.init, &init))
		for _, m := range init.Models { // of whose price people are told
			if got := claude.ModelOf(m.Value); cli.version == pinned && m.Value != "default" && got != m.Resolved {
				t.Errorf("%s is taken for %s, and is %s", m.Value, got, m.Resolved)
			}
		}
	}},
	{"apply_flag_settings", "2.1.329", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.must(s.p.SetEffort(s.ctx, "high"))
		s.must(s.p.SetEffort(s.ctx, ""))
		note(t, "→ apply_flag_settings")
	}},
	{"get_usage", "2.1.276", func(t *testing.T, cli program) {
		s := share(t, cli, cli.plain)
		s.run("say: hi")
		u, err := s.p.Baseline(s.ctx)
		s.must(err)
		note(t, "→ get_usage")
		if u.TotalMicroUSD != s.turn.Result.Running.TotalMicroUSD || u.TotalMicroUSD == 0 || len(u.Models) == 0 {
			t.Errorf("usage %+v, result %+v", u, s.turn.Result.Running)
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
		if !slices.ContainsFunc(s.log, func(m claude.Message) bool { _, ok := m.(*claude.RefusedRequest); return ok }) {
			t.Errorf("not handed out: %s", s.said())
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
