package claude

import "encoding/json"

// Message is one line that the CLI printed, decoded. The concrete types are
// the exported structs of this file and of request.go and result.go; a line of
// a type that this package does not know is an [*Unknown], never an error.
//
// A Message is not changed after it was handed out and may be kept, shared and
// folded by any number of goroutines.
type Message interface {
	// Head returns what every message carries.
	Head() *Meta
}

// Meta is what every message carries; fields that a message lacks are zero.
type Meta struct {
	// Type and Subtype say what the line is, as the CLI wrote them.
	Type, Subtype string
	// UUID is the message's own id.
	UUID string
	// SessionID is the session that the CLI says it belongs to.
	SessionID string
	// ParentToolUseID is the Task call whose subagent it comes from; empty for
	// the main conversation. Only the immediate parent is named.
	ParentToolUseID string
	// Raw is the line itself; nil for deltas of streamed text, of which there
	// are too many to keep.
	Raw json.RawMessage `json:"-"`
}

// Head returns m itself.
func (m *Meta) Head() *Meta { return m }

// System is a message of type "system". Subtype names one of many events, and
// the list grows with every release; the fields below hold what the known ones
// carry, and Raw the rest.
type System struct {
	Meta
	// Model is set for "init", which opens every turn.
	Model string
	// Status is the state named by "status" (requesting, compacting, …; empty
	// for none) and by "session_state_changed" (idle, running,
	// requires_action).
	Status string
	// Text is what "informational", "notification", "local_command",
	// "local_command_output", "permission_denied", "error", "api_error" and the
	// like have to say.
	Text string `json:"-"`
	// Level is how much it matters: info, notice, suggestion, warning; or the
	// priority of a notification.
	Level string
	// Attempt and MaxRetries are set for "api_retry": a call of the model failed and will be
	// made again.
	Attempt, MaxRetries int
	// HookName, Outcome (success, error or cancelled), Stderr and Output are set for
	// "hook_response".
	HookName, Outcome, Stderr, Output string
	// Task is set for "task_started", "task_progress", "task_updated" and
	// "task_notification".
	Task *Task `json:"-"`
	// Tasks is set for "background_tasks_changed": all that still run.
	Tasks []Task `json:"-"`
	// Compact is set for "compact_boundary": the context's size before and after.
	Compact struct{ PreTokens, PostTokens int64 } `json:"compact_metadata"`
	// ToolUseID names the call that a "permission_denied" is about.
	ToolUseID string
	// Retracted names messages that a "model_refusal_fallback" takes back.
	Retracted []string `json:"retracted_message_uuids"`
}

// MCPServer is one server in an mcp_status answer.
type MCPServer struct {
	Name string `json:"name"`
	// Status is connected, failed, needs-auth, pending or disabled.
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
	// Tools are the names of its tools, within the server.
	Tools []string `json:"tools,omitempty"`
}

// Task is a subagent's or a background command's state. Fields that an event
// does not carry are zero.
type Task struct {
	ID        string `json:"task_id"`
	ToolUseID string
	// State is running, completed, failed, stopped, killed or paused.
	State      string `json:"status"`
	Background bool   `json:"is_backgrounded"`
}

// Assistant is a message of the model: the authority over the deltas before
// it. The CLI prints one per content block.
type Assistant struct {
	Meta
	MessageID string
	Model     string
	Content   []Block
	// Error names why the CLI made the message itself: authentication_failed,
	// billing_error, rate_limit …; empty for the model's own words.
	Error string
	// Supersedes are earlier messages that it replaces.
	Supersedes []string
}

// User is a message in the user's role: tool results, replays of prompts, the
// output of slash commands, and what the CLI tells the model.
type User struct {
	Meta
	Content []Block
	// ToolUseResult is the structured result of the tool, whose shape depends
	// on the tool: stdout, structuredPatch, file …; nil where there is none.
	ToolUseResult json.RawMessage
}

// StreamEvent is one event of the model's stream, present with
// --include-partial-messages.
type StreamEvent struct {
	Meta
	// Event is message_start, content_block_start, content_block_delta,
	// content_block_stop, message_delta or message_stop.
	Event string
	// MessageID is known on message_start, and on all from 2.1.329 on.
	MessageID string
	// Index numbers the content block within its message.
	Index int
	// Delta is text_delta, input_json_delta, thinking_delta, signature_delta or
	// citations_delta, and Text what the first and the third add. Deltas that waited in the
	// queue are merged: Text is then the sum.
	Delta, Text string
	// Block is what content_block_start opens.
	Block *Block
	// Model is set on message_start.
	Model string
}

// Block is one content block of a message.
type Block struct {
	// Type is text, thinking, redacted_thinking, tool_use, tool_result, image,
	// document, server_tool_use, …
	Type string
	// Text is the text of text and thinking blocks.
	Text string
	// ID, Name and Input describe a tool_use; Input is as the CLI wrote it.
	ID, Name string
	Input    json.RawMessage
	// ToolUseID, Content and IsError describe a tool_result.
	ToolUseID string
	Content   []Block
	IsError   bool
	// MediaType and Data describe an image or document: base64, as written. A document may
	// have a Title, and is its Text where it has no Data.
	MediaType, Data, Title string
}

// Text returns a text block to send.
func Text(text string) Block { return Block{Type: "text", Text: text} }

// TextDocument returns a document block to send that is a text.
func TextDocument(title, text string) Block {
	return Block{Type: "document", Title: title, Text: text}
}

// CommandLifecycle follows one prompt through the CLI's queue. Versions up to
// 2.1.150 do not print it: there only replays say what was taken up.
type CommandLifecycle struct {
	Meta
	// PromptUUID is the uuid given to [Process.Prompt].
	PromptUUID string `json:"command_uuid"`
	// State is queued, started, completed or cancelled.
	State string
}

// ConversationReset says that the conversation starts anew under another
// session id, as after /clear. The running totals of costs restart too.
type ConversationReset struct{ Meta }

// ToolProgress says that a tool still runs.
type ToolProgress struct {
	Meta
	ToolUseID string
}

// RateLimit reports the account's limits.
type RateLimit struct {
	Meta
	// Status is allowed, allowed_warning or rejected.
	Status string
}

// AuthStatus reports a login in progress.
type AuthStatus struct {
	Meta
	Error string
}

// KeepAlive says only that the CLI lives.
type KeepAlive struct{ Meta }

// Unknown is a message of a type that this package does not know; see Raw.
type Unknown struct{ Meta }

// CancelRequest withdraws a request of the CLI's: a pending approval is to be
// dropped, and no answer is due.
type CancelRequest struct {
	Meta
	RequestID string
}

// controlResponse answers a request of ours. It is resolved by the reader and
// never handed out.
type controlResponse struct {
	Meta
	requestID string
	err       string
	failed    bool
	response  json.RawMessage
}
