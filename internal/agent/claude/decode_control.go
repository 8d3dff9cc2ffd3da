package claude

import (
	"cmp"
	"encoding/json"
)

// decodeControlRequest decodes what the CLI asks of its host. Some hosts'
// dialects put request_id inside request, call can_use_tool "permission", or
// nest nothing.
func decodeControlRequest(meta Meta, line []byte) Message {
	var outer, inner struct {
		Subtype, RequestID string
		Request            json.RawMessage
	}
	fill(line, &outer) // it has been read before, and so has what it holds
	request := outer.Request
	if request == nil {
		request = line
	}
	fill(request, &inner)
	meta.Subtype = inner.Subtype
	id := cmp.Or(outer.RequestID, inner.RequestID)
	switch inner.Subtype {
	case "can_use_tool", "permission":
		return decodeCanUseTool(meta, id, request)
	case "hook_callback":
		return decodeHookCallback(meta, id, request)
	case "mcp_message":
		var m mcpRequest
		fill(request, &m)
		m.Meta, m.RequestID = meta, id
		return &m
	}
	return &RefusedRequest{Meta: meta, RequestID: id}
}

func decodeCanUseTool(meta Meta, id string, request []byte) *CanUseTool {
	var in struct {
		CanUseTool
		ToolInput json.RawMessage
	}
	fill(request, &in)
	m := &in.CanUseTool
	m.Meta, m.RequestID = meta, id
	if m.Input == nil {
		m.Input = in.ToolInput
	}
	return m
}

func decodeHookCallback(meta Meta, id string, request []byte) *HookCallback {
	var outer struct {
		ToolUseID string
		Input     json.RawMessage
	}
	fill(request, &outer)
	m := new(HookCallback)
	fill(outer.Input, m)
	m.Meta, m.RequestID = meta, id
	m.ToolUseID = cmp.Or(outer.ToolUseID, m.ToolUseID)
	return m
}

func decodeControlResponse(line []byte) Message {
	var in struct {
		Meta
		Response struct {
			Subtype, RequestID string
			Error, Response    json.RawMessage
		}
	}
	fill(line, &in)
	r := &in.Response
	m := &controlResponse{Meta: in.Meta, requestID: r.RequestID, failed: r.Subtype == "error", response: r.Response, err: string(r.Error)}
	fill(r.Error, &m.err) // it stays as it is written if it is no text
	return m
}
