package claude

import (
	"encoding/base64"
	"encoding/json"
	"errors"
)

// ErrCorrupt is returned for a line that starts like JSON and is none.
var ErrCorrupt = errors.New("corrupt JSON")

// Decode turns one line of the CLI's output into a message. The message keeps
// line in its Raw and must be given bytes of its own. The only error is
// [ErrCorrupt]; what is valid JSON and not understood is an [*Unknown].
func Decode(line []byte) (Message, error) {
	var d Decoder
	return d.decode(line, true)
}

// Decoder decodes the lines of one process. It keeps the ids that repeat from
// line to line, so that they are not allocated for every delta. The zero value
// is ready; it is not safe for concurrent use.
type Decoder struct {
	session, parent, message string
}

// Decode is [Decode] for a line in a buffer that will be used again: bytes that
// the message keeps are copied.
func (d *Decoder) Decode(line []byte) (Message, error) { return d.decode(line, false) }

func (d *Decoder) decode(line []byte, owned bool) (Message, error) {
	c := cursor{b: line}
	if c.peek() != '{' {
		return nil, ErrCorrupt
	}
	kind := messageType(line)
	if kind == "stream_event" {
		// Deltas are nearly all of the lines and keep none of their bytes.
		m := new(StreamEvent)
		d.streamEvent(&c, m)
		if !c.end() {
			return nil, ErrCorrupt
		}
		if m.Delta != "" {
			return m, nil
		}
		if !owned {
			line = append([]byte(nil), line...)
		}
		if m.Block != nil {
			// Its Input and Raw alias the line: take them from the copy.
			c = cursor{b: line}
			m = new(StreamEvent)
			d.streamEvent(&c, m)
		}
		m.Raw = line
		return m, nil
	}
	if !owned {
		line = append([]byte(nil), line...)
		c.b = line
	}
	m := d.typed(&c, kind)
	if !c.end() {
		return nil, ErrCorrupt
	}
	m.Head().Raw = line
	return m, nil
}

// typed decodes a whole line of the given type.
func (d *Decoder) typed(c *cursor, kind string) Message {
	switch kind {
	case "assistant", "tool_use":
		m := new(Assistant)
		d.assistant(c, m)
		return m
	case "user", "tool_result":
		m := new(User)
		d.user(c, m)
		return m
	case "result":
		m := new(Result)
		d.result(c, m)
		return m
	case "system":
		m := new(System)
		d.system(c, m)
		return m
	case "control_request", "sdk_control_request", "control":
		return d.controlRequest(c)
	case "control_response":
		m := new(controlResponse)
		d.controlResponse(c, m)
		return m
	case "stream":
		m := new(StreamEvent)
		d.streamEvent(c, m)
		return m
	}
	return d.smallMessage(c, kind)
}

// smallMessage decodes the types that are a handful of fields each.
func (d *Decoder) smallMessage(c *cursor, kind string) Message {
	switch kind {
	case "control_cancel_request":
		m := new(CancelRequest)
		d.fields(c, &m.Meta, func(k string) bool {
			if k == "request_id" {
				m.RequestID = c.str()
				return true
			}
			return false
		})
		return m
	case "command_lifecycle":
		m := new(CommandLifecycle)
		d.fields(c, &m.Meta, func(k string) bool {
			switch k {
			case "command_uuid":
				m.PromptUUID = c.str()
			case "state":
				m.State = c.sym()
			default:
				return false
			}
			return true
		})
		return m
	case "conversation_reset":
		m := new(ConversationReset)
		d.fields(c, &m.Meta, func(k string) bool {
			switch k {
			case "new_conversation_id", "new_session_id":
				m.NewSessionID = c.str()
			case "trigger":
				m.Trigger = c.str()
			default:
				return false
			}
			return true
		})
		return m
	case "transcript_mirror":
		m := new(TranscriptMirror)
		d.fields(c, &m.Meta, func(k string) bool {
			switch k {
			case "filePath", "file_path":
				m.FilePath = c.str()
			case "entries":
				for ok := c.firstElem(); ok; ok = c.nextElem() {
					m.Entries = append(m.Entries, c.raw())
				}
			default:
				return false
			}
			return true
		})
		return m
	case "tool_progress":
		m := new(ToolProgress)
		d.fields(c, &m.Meta, func(k string) bool {
			switch k {
			case "tool_use_id":
				m.ToolUseID = c.str()
			case "tool_name":
				m.ToolName = c.str()
			case "elapsed_time_seconds":
				m.Seconds = c.float()
			default:
				return false
			}
			return true
		})
		return m
	case "tool_use_summary", "streamlined_text", "streamlined_tool_use_summary", "prompt_suggestion":
		m := new(Summary)
		d.fields(c, &m.Meta, func(k string) bool {
			switch k {
			case "summary", "text", "suggestion", "tool_summary":
				m.Text = c.str()
			case "preceding_tool_use_ids":
				m.ToolUseIDs = c.strings()
			default:
				return false
			}
			return true
		})
		return m
	case "rate_limit_event":
		m := new(RateLimit)
		d.fields(c, &m.Meta, func(k string) bool {
			if k == "rate_limit_info" {
				c.rateLimit(m)
				return true
			}
			return false
		})
		return m
	case "auth_status":
		m := new(AuthStatus)
		d.fields(c, &m.Meta, func(k string) bool {
			switch k {
			case "isAuthenticating":
				m.Authenticating = c.boolean()
			case "output":
				m.Output = c.strings()
			case "error":
				m.Error = c.str()
			default:
				return false
			}
			return true
		})
		return m
	case "keep_alive":
		m := new(KeepAlive)
		d.fields(c, &m.Meta, func(string) bool { return false })
		return m
	}
	m := new(Unknown)
	d.fields(c, &m.Meta, func(string) bool { return false })
	return m
}

func (c *cursor) rateLimit(m *RateLimit) {
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "status":
			m.Status = c.str()
		case "rateLimitType":
			m.Kind = c.str()
		case "resetsAt":
			m.ResetsAt = c.integer()
		case "utilization":
			m.Utilization = c.float()
		default:
			c.skip()
		}
	}
}

// fields walks a message; known takes the value of a key and says so, and what
// it leaves is read as one of the common fields or skipped.
func (d *Decoder) fields(c *cursor, m *Meta, known func(key string) bool) {
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		if !known(string(k)) {
			d.meta(c, k, m)
		}
	}
}

// meta takes the value of a key that any message may have, or skips it.
func (d *Decoder) meta(c *cursor, key []byte, m *Meta) {
	switch string(key) {
	case "type":
		m.Type = c.sym()
	case "subtype":
		m.Subtype = c.sym()
	case "uuid":
		m.UUID = c.str()
	case "session_id", "sessionId":
		d.session = c.cached(d.session)
		m.SessionID = d.session
	case "parent_tool_use_id", "parentToolUseId":
		if c.peek() == '"' {
			d.parent = c.cached(d.parent)
			m.ParentToolUseID = d.parent
		} else {
			c.skip()
		}
	default:
		c.skip()
	}
}

// messageType finds the type of a line without decoding the rest of it. It is
// usually the first key, but key order is not fixed: result lines of 2.1.329
// have it near the end.
func messageType(line []byte) string {
	c := cursor{b: line}
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		if string(k) == "type" {
			return c.sym()
		}
		c.skip()
	}
	return ""
}

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
