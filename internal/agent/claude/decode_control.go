package claude

import "encoding/json"

// controlRequest decodes what the CLI asks of its host. Some hosts' dialects
// put request_id inside request and call can_use_tool "permission".
func (d *Decoder) controlRequest(c *cursor) Message {
	var meta Meta
	var id string
	var request json.RawMessage
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "request_id", "requestId":
			id = c.str()
		case "request":
			request = c.raw()
		default:
			d.meta(c, k, &meta)
		}
	}
	if c.bad {
		return &Unknown{Meta: meta}
	}
	if request == nil {
		request = c.b // the dialect that nests nothing
	}
	inner := cursor{b: request}
	subtype := ""
	for k, ok := inner.firstKey(); ok; k, ok = inner.nextKey() {
		switch string(k) {
		case "subtype":
			subtype = inner.sym()
		case "request_id":
			if inner.peek() == '"' && id == "" {
				id = inner.str()
			} else {
				inner.skip()
			}
		default:
			inner.skip()
		}
	}
	meta.Subtype = subtype
	r := cursor{b: request}
	switch subtype {
	case "can_use_tool", "permission":
		m := &CanUseTool{Meta: meta, RequestID: id}
		r.canUseTool(m)
		return m
	case "hook_callback":
		m := &HookCallback{Meta: meta, RequestID: id}
		r.hookCallback(m)
		return m
	case "mcp_message":
		m := &MCPRequest{Meta: meta, RequestID: id}
		for k, ok := r.firstKey(); ok; k, ok = r.nextKey() {
			switch string(k) {
			case "server_name", "serverName":
				m.ServerName = r.str()
			case "message":
				m.Message = r.raw()
			default:
				r.skip()
			}
		}
		return m
	}
	m := &RefusedRequest{Meta: meta, RequestID: id}
	for k, ok := r.firstKey(); ok; k, ok = r.nextKey() {
		switch string(k) {
		case "message", "dialog_kind":
			m.Text = r.str()
		default:
			r.skip()
		}
	}
	return m
}

func (c *cursor) canUseTool(m *CanUseTool) {
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "tool_name", "toolName":
			m.ToolName = c.str()
		case "input", "tool_input":
			m.Input = c.raw()
		case "tool_use_id", "toolUseId":
			m.ToolUseID = c.str()
		case "permission_suggestions":
			raw := c.raw()
			// A suggestion of a shape that we do not know is no reason to lose
			// the request.
			if json.Unmarshal(raw, &m.Suggestions) != nil {
				m.Suggestions = nil
			}
		case "blocked_path", "blocked_paths":
			m.BlockedPath = c.str()
		case "decision_reason":
			m.DecisionReason = c.str()
		case "decision_reason_type":
			m.DecisionReasonType = c.str()
		case "title":
			m.Title = c.str()
		case "display_name":
			m.DisplayName = c.str()
		case "description":
			m.Description = c.str()
		case "agent_id":
			m.AgentID = c.str()
		case "requires_user_interaction":
			m.RequiresUserInteraction = c.boolean()
		case "suppress_always_allow_rule":
			m.SuppressAlwaysAllow = c.boolean()
		case "default_to_no":
			m.DefaultToNo = c.boolean()
		default:
			c.skip()
		}
	}
}

func (c *cursor) hookCallback(m *HookCallback) {
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "callback_id":
			m.CallbackID = c.str()
		case "tool_use_id":
			if id := c.str(); id != "" {
				m.ToolUseID = id
			}
		case "input":
			m.Input = c.raw()
		default:
			c.skip()
		}
	}
	in := cursor{b: m.Input}
	for k, ok := in.firstKey(); ok; k, ok = in.nextKey() {
		switch string(k) {
		case "hook_event_name":
			m.Event = in.sym()
		case "tool_name":
			m.ToolName = in.str()
		case "tool_input":
			m.ToolInput = in.raw()
		case "tool_response":
			m.ToolResponse = in.raw()
		case "tool_use_id":
			if id := in.str(); m.ToolUseID == "" {
				m.ToolUseID = id
			}
		case "cwd":
			m.Cwd = in.str()
		case "permission_mode":
			m.PermissionMode = in.str()
		case "transcript_path":
			m.TranscriptPath = in.str()
		case "agent_id":
			m.AgentID = in.str()
		case "prompt":
			m.Prompt = in.str()
		case "stop_hook_active":
			m.StopHookActive = in.boolean()
		default:
			in.skip()
		}
	}
}

func (d *Decoder) controlResponse(c *cursor, m *controlResponse) {
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		if string(k) != "response" {
			d.meta(c, k, &m.Meta)
			continue
		}
		for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
			switch string(k) {
			case "subtype":
				m.failed = c.sym() == "error"
			case "request_id":
				m.requestID = c.str()
			case "error":
				if c.peek() == '"' {
					m.err = c.str()
				} else {
					m.err = string(c.raw())
				}
			case "response":
				m.response = c.raw()
			default:
				c.skip()
			}
		}
	}
}
