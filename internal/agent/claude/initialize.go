package claude

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// InitializeRequest is what a host tells the CLI before anything else.
type InitializeRequest struct {
	// PreToolUse registers a callback for every tool; each call then comes as a
	// [HookCallback] before anything else is asked, and what the CLI does not
	// get an answer to does not run.
	PreToolUse bool
	// Hooks registers callbacks for further events, by the event's name.
	Hooks map[string][]HookMatcher
	// MCPServers are served by this process, by the name that their tools
	// appear under: mcp__<name>__<tool>.
	MCPServers map[string]*mcp.Server
	// Agents are subagents that the model may have work, by their names, beside the CLI's own.
	Agents map[string]Agent
}

// Agent is a kind of subagent.
type Agent struct {
	// Description says when it is to be used, and Prompt is its system prompt.
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	// Tools are those that it is offered; none is all that the session has.
	Tools []string `json:"tools,omitempty"`
	// Model is one of the CLI's names; empty is the session's.
	Model string `json:"model,omitempty"`
}

// HookMatcher registers callbacks for one event.
type HookMatcher struct {
	// Matcher is a regular expression over tool names; empty matches all.
	Matcher     string   `json:"matcher,omitempty"`
	CallbackIDs []string `json:"hookCallbackIds"`
	// Timeout is in seconds; 0 leaves the CLI's default.
	Timeout int `json:"timeout,omitempty"`
	// OnFailure "block" refuses the tool when the callback fails, where the
	// version knows it.
	OnFailure string `json:"onFailure,omitempty"`
}

// Initialize must be the first request; prompts may be sent without waiting
// for its answer, which it returns as the CLI wrote it.
func (p *Process) Initialize(ctx context.Context, r InitializeRequest) (json.RawMessage, error) {
	hooks := maps.Clone(r.Hooks)
	if r.PreToolUse {
		if hooks == nil {
			hooks = make(map[string][]HookMatcher)
		}
		every := HookMatcher{CallbackIDs: []string{"deckhand-pre-tool-use"}, OnFailure: "block", Timeout: 24 * 60 * 60}
		hooks["PreToolUse"] = append([]HookMatcher{every}, hooks["PreToolUse"]...)
	}
	fields := map[string]any{}
	if len(hooks) > 0 {
		fields["hooks"] = hooks
	}
	if len(r.MCPServers) > 0 {
		if err := p.mcp.add(r.MCPServers); err != nil {
			return nil, fmt.Errorf("initialize: %w", err)
		}
		fields["sdkMcpServers"] = slices.Sorted(maps.Keys(r.MCPServers))
	}
	if len(r.Agents) > 0 {
		fields["agents"] = r.Agents
	}
	raw, err := p.request(ctx, p.o.InitializeTimeout, "initialize", fields)
	if err != nil {
		return nil, err
	}
	p.learned(raw)
	return raw, nil
}
