package claude

import (
	"encoding/base64"
	"encoding/json"
)

func (d *Decoder) assistant(c *cursor, m *Assistant) {
	var lone Block
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "message":
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				switch string(k) {
				case "id":
					d.message = c.cached(d.message)
					m.MessageID = d.message
				case "model":
					m.Model = c.sym()
				case "content":
					m.Content = c.blocks(0)
				case "stop_reason":
					m.StopReason = c.sym()
				case "usage":
					m.Usage = c.tokenUsage()
				default:
					c.skip()
				}
			}
		case "error":
			m.Error = c.str()
		case "aborted":
			m.Aborted = c.boolean()
		case "agent_id":
			m.AgentID = c.str()
		case "subagent_type":
			m.SubagentType = c.str()
		case "user_message_uuids":
			m.PromptUUIDs = c.strings()
		case "supersedes":
			m.Supersedes = c.strings()
		case "id":
			lone.ID = c.str()
		case "name":
			lone.Name = c.str()
		case "input":
			lone.Input = c.raw()
		default:
			d.meta(c, k, &m.Meta)
		}
	}
	if m.Type == "tool_use" {
		lone.Type = "tool_use"
		m.Content = []Block{lone}
	}
}

func (d *Decoder) user(c *cursor, m *User) {
	var lone Block
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "message":
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				if string(k) == "content" {
					m.Content = c.blocks(0)
				} else {
					c.skip()
				}
			}
		case "tool_use_result", "toolUseResult":
			m.ToolUseResult = c.raw()
		case "isReplay", "is_replay":
			m.IsReplay = c.boolean()
		case "isSynthetic", "is_synthetic":
			m.IsSynthetic = c.boolean()
		case "agent_id":
			m.AgentID = c.str()
		case "tool_use_id":
			lone.ToolUseID = c.str()
		case "result", "content":
			lone.Content = c.blocks(0)
		case "is_error":
			lone.IsError = c.boolean()
		default:
			d.meta(c, k, &m.Meta)
		}
	}
	if m.Type == "tool_result" {
		lone.Type = "tool_result"
		m.Content = []Block{lone}
	}
}

func (d *Decoder) streamEvent(c *cursor, m *StreamEvent) {
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "event":
			if c.peek() == '"' {
				// The dialect of type "stream": the event is a name.
				if m.Event = c.str(); m.Event == "delta" {
					m.Event, m.Delta = "content_block_delta", "text_delta"
				}
				break
			}
			d.event(c, m)
		case "text", "delta":
			m.Text = c.str()
		case "api_message_id":
			d.message = c.cached(d.message)
			m.MessageID = d.message
		case "user_message_uuids":
			m.PromptUUIDs = c.strings()
		case "uuid":
			// A delta's own id is of no use, and there are many.
			c.skip()
		default:
			d.meta(c, k, &m.Meta)
		}
	}
}

func (d *Decoder) event(c *cursor, m *StreamEvent) {
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "type":
			m.Event = c.sym()
		case "index":
			m.Index = int(c.integer())
		case "delta":
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				switch string(k) {
				case "type":
					m.Delta = c.sym()
				case "text", "partial_json", "thinking", "signature":
					m.Text = c.str()
				case "citation":
					m.Text = string(c.raw())
				case "stop_reason":
					m.StopReason = c.sym()
				default:
					c.skip()
				}
			}
		case "content_block":
			b := c.block(0)
			m.Block = &b
		case "message":
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				switch string(k) {
				case "id":
					d.message = c.cached(d.message)
					m.MessageID = d.message
				case "model":
					m.Model = c.sym()
				case "usage":
					u := c.tokenUsage()
					m.Usage = &u
				default:
					c.skip()
				}
			}
		case "usage":
			u := c.tokenUsage()
			m.Usage = &u
		default:
			c.skip()
		}
	}
}

// blocks takes content: an array of blocks, one block, or a string that stands
// for one text block.
func (c *cursor) blocks(depth int) []Block {
	switch c.peek() {
	case '"':
		return []Block{Text(c.str())}
	case '{':
		return []Block{c.block(depth)}
	}
	var out []Block
	for ok := c.firstElem(); ok; ok = c.nextElem() {
		if c.peek() == '"' {
			out = append(out, Text(c.str()))
			continue
		}
		out = append(out, c.block(depth))
	}
	return out
}

// block takes one content block. Results hold blocks themselves; deeper than
// real messages nest them, they are skipped.
func (c *cursor) block(depth int) Block {
	var b Block
	c.space()
	start := c.i
	if depth > 4 {
		c.skip()
		return b
	}
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "type":
			b.Type = c.sym()
		case "text", "thinking":
			b.Text = c.str()
		case "id":
			b.ID = c.str()
		case "name":
			b.Name = c.sym()
		case "input":
			b.Input = c.raw()
		case "tool_use_id":
			b.ToolUseID = c.str()
		case "content":
			b.Content = c.blocks(depth + 1)
		case "is_error":
			b.IsError = c.boolean()
		case "source":
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				switch string(k) {
				case "media_type":
					b.MediaType = c.sym()
				case "data":
					b.Data = c.str()
				default:
					c.skip()
				}
			}
		default:
			c.skip()
		}
	}
	switch b.Type {
	case "text", "thinking", "tool_use", "tool_result", "image", "document":
	default:
		if !c.bad {
			b.Raw = json.RawMessage(c.b[start:c.i:c.i])
		}
	}
	return b
}

func encode64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
