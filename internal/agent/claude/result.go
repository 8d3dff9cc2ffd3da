package claude

import "encoding/json"

// Result ends a turn. Judge it by IsError and Interrupted, not by its Subtype.
type Result struct {
	Meta
	// IsError is true when the turn failed, whatever its subtype: success with
	// IsError is a failed login or a failed call of the model.
	IsError bool
	// Text is the model's last text, or the CLI's explanation.
	Text string
	// Errors are the CLI's explanations of an error_during_execution.
	Errors []string
	// TerminalReason is completed, aborted_streaming, aborted_tools, api_error,
	// max_turns, budget_exhausted …; empty up to 2.1.37.
	TerminalReason string
	StopReason     string
	// NumTurns counts calls of the model; the durations are in milliseconds.
	NumTurns                  int
	DurationMS, APIDurationMS int64
	// APIErrorStatus is the HTTP status of a failed call of the model; or 0.
	APIErrorStatus int
	// Running is the running total of the epoch, not of the turn; see [Meter].
	Running Usage
	// Usage counts the main loop of this turn only: no subagents, no helpers.
	Usage TokenUsage
	// PermissionDenials are the calls that were refused.
	PermissionDenials []PermissionDenial
	// PromptUUIDs are the prompts that the turn answered, where the CLI says it.
	PromptUUIDs []string
	// QueuedTurns is how many prompts still wait in the CLI; another result
	// follows when it is not 0.
	QueuedTurns int
	// LocalCommand is the slash command that the turn was, if it was one.
	LocalCommand string
	// StructuredOutput is the answer to a JSON schema; nil without one.
	StructuredOutput json.RawMessage
}

// PermissionDenial is a call that was refused during the turn.
type PermissionDenial struct {
	ToolName, ToolUseID string
	ToolInput           json.RawMessage
}

// Interrupted reports whether somebody stopped the turn: that is no failure.
func (r *Result) Interrupted() bool {
	switch r.TerminalReason {
	case "aborted_streaming", "aborted_tools":
		return true
	case "":
		// Up to 2.1.37 an interrupted turn says so only by this.
		return r.Subtype == "error_during_execution" && !r.IsError
	}
	return false
}

func (d *Decoder) result(c *cursor, m *Result) {
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "is_error", "isError":
			m.IsError = c.boolean()
		case "result":
			if c.peek() == '"' {
				m.Text = c.str()
			} else {
				c.skip()
			}
		case "error":
			if c.peek() == '"' {
				m.Errors = append(m.Errors, c.str())
				break
			}
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				if string(k) == "message" {
					m.Errors = append(m.Errors, c.str())
				} else {
					c.skip()
				}
			}
		case "errors":
			m.Errors = append(m.Errors, c.strings()...)
		case "terminal_reason", "terminalReason":
			m.TerminalReason = c.sym()
		case "stop_reason", "stopReason":
			m.StopReason = c.sym()
		case "num_turns", "numTurns":
			m.NumTurns = int(c.integer())
		case "duration_ms", "durationMs":
			m.DurationMS = c.integer()
		case "duration_api_ms", "durationApiMs":
			m.APIDurationMS = c.integer()
		case "api_error_status", "apiErrorStatus":
			m.APIErrorStatus = int(c.integer())
		case "total_cost_usd", "totalCostUsd", "totalCostUSD":
			m.Running.TotalMicroUSD = microUSD(c.float())
		case "modelUsage", "model_usage":
			m.Running.Models = c.modelUsage()
		case "usage":
			m.Usage = c.tokenUsage()
		case "permission_denials", "permissionDenials":
			for ok := c.firstElem(); ok; ok = c.nextElem() {
				m.PermissionDenials = append(m.PermissionDenials, c.permissionDenial())
			}
		case "user_message_uuids", "userMessageUuids":
			m.PromptUUIDs = c.strings()
		case "user_message_uuid":
			if id := c.str(); id != "" && m.PromptUUIDs == nil {
				m.PromptUUIDs = []string{id}
			}
		case "queued_turn_count", "queuedTurnCount":
			m.QueuedTurns = int(c.integer())
		case "local_command":
			m.LocalCommand = c.str()
		case "structured_output", "structuredOutput":
			m.StructuredOutput = c.raw()
		default:
			d.meta(c, k, &m.Meta)
		}
	}
}

func (c *cursor) permissionDenial() PermissionDenial {
	var p PermissionDenial
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "tool_name":
			p.ToolName = c.str()
		case "tool_use_id":
			p.ToolUseID = c.str()
		case "tool_input":
			p.ToolInput = c.raw()
		default:
			c.skip()
		}
	}
	return p
}
