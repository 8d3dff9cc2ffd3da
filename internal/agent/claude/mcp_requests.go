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
