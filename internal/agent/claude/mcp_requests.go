package claude

import (
	"context"
	"time"
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
