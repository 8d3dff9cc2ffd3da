package claude

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MCPStatus returns the state of all MCP servers.
func (p *Process) MCPStatus(ctx context.Context) ([]MCPServer, error) {
	var out struct {
		MCPServers []MCPServer `json:"mcpServers"`
	}
	err := p.ask(ctx, "mcp_status", nil, &out)
	return out.MCPServers, err
}

// MCPServerConfig says how the CLI reaches a server: Type stdio (or empty) with
// Command, Args and Env, or http or sse with URL and Headers.
type MCPServerConfig struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// Name is set by this package for in-process servers (type sdk).
	Name string `json:"name,omitempty"`
}

// MCPSetServersResponse says what changed.
type MCPSetServersResponse struct {
	Added   []string          `json:"added"`
	Removed []string          `json:"removed"`
	Errors  map[string]string `json:"errors"`
}

// MCPSetServers replaces the servers that were set dynamically: those that the
// CLI reaches itself, and those served by this process.
func (p *Process) MCPSetServers(ctx context.Context, servers map[string]MCPServerConfig, local map[string]*mcp.Server) (MCPSetServersResponse, error) {
	all := make(map[string]any, len(servers)+len(local))
	for name, config := range servers {
		all[name] = config
		if config.Type == "stdio" || config.Type == "" {
			// The CLI takes this one by itself only when args is there.
			type stdio MCPServerConfig
			all[name] = struct {
				stdio
				Args []string `json:"args"`
			}{stdio(config), append([]string{}, config.Args...)}
		}
	}
	if err := p.mcp.add(local); err != nil {
		return MCPSetServersResponse{}, fmt.Errorf("mcp_set_servers: %w", err)
	}
	for name := range local {
		all[name] = MCPServerConfig{Type: "sdk", Name: name}
	}
	var out MCPSetServersResponse
	// The CLI connects to the servers before it answers.
	err := p.askWithin(ctx, p.o.InitializeTimeout, "mcp_set_servers", map[string]any{"servers": all}, &out)
	return out, err
}

// connectTimeout is longer than the half minute after which the CLI gives a server up.
const connectTimeout = 45 * time.Second

// MCPReconnect connects a server again.
func (p *Process) MCPReconnect(ctx context.Context, server string) error {
	return p.askWithin(ctx, connectTimeout, "mcp_reconnect", map[string]any{"serverName": server}, nil)
}

// MCPToggle switches a server on or off.
func (p *Process) MCPToggle(ctx context.Context, server string, enabled bool) error {
	return p.askWithin(ctx, connectTimeout, "mcp_toggle", map[string]any{"serverName": server, "enabled": enabled}, nil)
}
