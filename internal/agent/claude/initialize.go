package claude

import (
	"context"
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

// PreToolUseCallback is the CallbackID of the callback that PreToolUse of
// [InitializeRequest] registers.
const PreToolUseCallback = "deckhand-pre-tool-use"

// HookMatcher registers callbacks for one event.
type HookMatcher struct {
	// Matcher is a regular expression over tool names; empty matches all.
	Matcher string `json:"matcher,omitempty"`
	// CallbackIDs are handed out as [HookCallback.CallbackID].
	CallbackIDs []string `json:"hookCallbackIds"`
	// Timeout is in seconds; 0 leaves the CLI's default.
	Timeout int `json:"timeout,omitempty"`
	// OnFailure "block" refuses the tool when the callback fails, where the
	// version knows it.
	OnFailure string `json:"onFailure,omitempty"`
}

// InitializeResponse is what the CLI can do.
type InitializeResponse struct {
	Commands []Command `json:"commands"`
	Models   []Model   `json:"models"`
	// Version is the CLI's; empty where it does not say.
	Version string `json:"claude_code_version"`
	// PID is the CLI's own process id, as it sees it; 0 up to 2.1.37, which are
	// also the versions that do not answer unknown requests.
	PID int `json:"pid"`
}

// Command is a slash command; send its name with a slash as a prompt.
type Command struct {
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	ArgumentHint string   `json:"argumentHint"`
	Aliases      []string `json:"aliases,omitempty"`
}

// Model is one of the models to choose from; Value is what SetModel takes.
type Model struct {
	Value       string `json:"value"`
	Resolved    string `json:"resolvedModel"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
}

// Initialize must be the first request; prompts may be sent without waiting
// for its answer.
func (p *Process) Initialize(ctx context.Context, r InitializeRequest) (*InitializeResponse, error) {
	hooks := maps.Clone(r.Hooks)
	if r.PreToolUse {
		if hooks == nil {
			hooks = make(map[string][]HookMatcher)
		}
		every := HookMatcher{CallbackIDs: []string{PreToolUseCallback}, OnFailure: "block", Timeout: 24 * 60 * 60}
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
	out := new(InitializeResponse)
	if len(raw) > 0 {
		if err := unmarshal(raw, out); err != nil {
			return nil, fmt.Errorf("initialize: read answer: %w", err)
		}
	}
	p.learned(out)
	return out, nil
}
