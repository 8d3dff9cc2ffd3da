package claude_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/agent/claude"
)

// play runs this test binary as one of the programs that tests need.
func play(role string) int {
	switch role {
	case "mcp":
		return playMCP()
	case "bot":
		return playBot()
	case "fake":
		return playFake(os.Getenv("DECKHAND_TEST_SCRIPT"))
	}
	fmt.Fprintln(os.Stderr, "unknown role", role)
	return 2
}

type named struct {
	Name string `json:"name"`
}

func addServer() *mcp.Server {
	return mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}})
}

func addTool(server *mcp.Server, name string, f func(context.Context, string) string) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: "for a test"},
		func(ctx context.Context, _ *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: f(ctx, in.Name)}}}, nil, nil
		})
}

// mcpProgram is this test binary as an MCP server on stdio.
func mcpProgram(t *testing.T) map[string]any {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"type": "stdio", "command": exe, "env": map[string]string{"DECKHAND_TEST_ROLE": "mcp"}}
}

func playMCP() int {
	// Newer protocols no longer let a server ask while it serves a call.
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}, SupportedProtocolVersions: []string{"2025-06-18"}})
	addTool(server, "echo", func(_ context.Context, name string) string { return "echo " + name })
	mcp.AddTool(server, &mcp.Tool{Name: "elicit", Description: "for a test"},
		func(ctx context.Context, r *mcp.CallToolRequest, _ named) (*mcp.CallToolResult, any, error) {
			answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "May I?", RequestedSchema: map[string]any{
				"type": "object", "properties": map[string]any{"ok": map[string]any{"type": "boolean"}},
			}})
			text := "no answer"
			switch {
			case err != nil:
				text = err.Error()
			case answer != nil:
				text = answer.Action
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// playBot starts a CLI as a bot does, has it run a command that leaves children
// in sessions of their own, says so, and waits to be killed.
func playBot() int {
	ctx := context.Background()
	p, err := claude.Start(ctx, claude.Options{
		Command: strings.Split(os.Getenv("DECKHAND_TEST_COMMAND"), "\n"), Dir: os.Getenv("DECKHAND_TEST_DIR"),
		SessionID: "11111111-2222-4333-8444-555555555555",
		Env:       append(os.Environ(), "DECKHAND_TEST_ROLE=fake"),
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for {
		m, err := p.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		if m.Head().Type == "ready" {
			fmt.Printf("ready %d %d\n", p.ReaperPID(), p.PID())
		}
	}
}
