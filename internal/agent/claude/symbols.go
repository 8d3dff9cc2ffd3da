package claude

// symbols are the names that recur on nearly every line, so that decoding them
// costs no allocation.
var symbols = func() map[string]string {
	m := make(map[string]string)
	for _, s := range []string{
		"system", "assistant", "user", "stream_event", "result", "control_request", "control_response",
		"control_cancel_request", "command_lifecycle", "conversation_reset", "transcript_mirror",
		"tool_use_summary", "streamlined_text", "streamlined_tool_use_summary", "tool_progress",
		"rate_limit_event", "prompt_suggestion", "auth_status", "keep_alive", "tool_use", "tool_result",
		"sdk_control_request", "control", "stream",
		"init", "status", "api_retry", "thinking_tokens", "task_started", "task_progress", "task_updated",
		"task_notification", "hook_started", "hook_response", "success", "error", "error_during_execution",
		"can_use_tool", "hook_callback", "mcp_message",
		"message_start", "content_block_start", "content_block_delta", "content_block_stop",
		"message_delta", "message_stop",
		"text_delta", "input_json_delta", "thinking_delta", "signature_delta", "citations_delta",
		"text", "thinking", "redacted_thinking", "image", "document", "message", "base64",
		"image/png", "image/jpeg", "image/gif", "image/webp",
		"end_turn", "max_tokens", "completed", "queued", "started", "cancelled", "requesting", "compacting",
		"running", "idle", "requires_action", "failed", "stopped",
		"default", "plan", "acceptEdits", "bypassPermissions", "dontAsk", "auto",
		"PreToolUse", "PostToolUse", "Stop", "UserPromptSubmit",
		"Task", "Agent", "Bash", "Edit", "Write", "Read", "Glob", "Grep", "TodoWrite", "WebFetch", "WebSearch",
		"Skill", "AskUserQuestion", "ExitPlanMode", "NotebookEdit",
	} {
		m[s] = s
	}
	return m
}()

// symbol returns the string of a known name. The few names that stand on every
// delta are compared before anything is hashed.
func symbol(raw []byte) (string, bool) {
	switch string(raw) {
	case "stream_event":
		return "stream_event", true
	case "content_block_delta":
		return "content_block_delta", true
	case "text_delta":
		return "text_delta", true
	case "input_json_delta":
		return "input_json_delta", true
	case "thinking_delta":
		return "thinking_delta", true
	}
	s, ok := symbols[string(raw)]
	return s, ok
}
