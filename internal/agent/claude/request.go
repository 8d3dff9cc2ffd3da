package claude

import "encoding/json"

// CanUseTool asks whether a tool may run. It waits for [Process.Allow] or
// [Process.Deny] with its RequestID, for as long as that takes, unless a
// [CancelRequest] withdraws it.
type CanUseTool struct {
	Meta
	RequestID string
	ToolName  string
	// Input is the tool's input, byte for byte as the CLI sent it. What is
	// allowed is what runs: pass on exactly the input that was shown.
	Input json.RawMessage
	// ToolUseID joins it to the call; empty before 2.1.37.
	ToolUseID string
	// DecisionReason says why the CLI asks.
	DecisionReason string
	// AgentID is the subagent that asks; empty for the main conversation.
	AgentID string
}

// HookCallback asks one of the hooks registered by [Process.Initialize]. Answer
// PreToolUse with [Process.AnswerPreToolUse] and the others with
// [Process.AnswerHook].
type HookCallback struct {
	Meta
	RequestID string
	// Event is PreToolUse, PostToolUse, Stop, UserPromptSubmit …
	Event     string `json:"hook_event_name"`
	ToolName  string
	ToolInput json.RawMessage
	ToolUseID string
	Cwd       string
}

// mcpRequest carries a JSON-RPC message for an in-process MCP server. It is served
// and never handed out.
type mcpRequest struct {
	Meta
	RequestID  string
	ServerName string
	Message    json.RawMessage
}

// RefusedRequest is a request that the package has already answered by itself,
// handed out so that people can be told: an elicitation of an MCP server
// (declined), a dialog of the CLI's (cancelled), or one of an unknown subtype
// (an error).
type RefusedRequest struct {
	Meta
	RequestID string
}
