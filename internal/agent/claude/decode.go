package claude

import (
	"bytes"
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
		if b := m.Block; b != nil && (len(b.Content) > 0 || b.Raw != nil || len(b.Input) > 0) {
			// They alias the line: take them from the copy.
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

// deltaPrefix is how the lines begin of which there are most.
var deltaPrefix = []byte(`{"type":"stream_event",`)

// messageType finds the type of a line without decoding the rest of it. It is
// usually the first key, but key order is not fixed: result lines of 2.1.329
// have it near the end.
func messageType(line []byte) string {
	if bytes.HasPrefix(line, deltaPrefix) {
		return "stream_event"
	}
	c := cursor{b: line}
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		if string(k) == "type" {
			return c.sym()
		}
		c.skip()
	}
	return ""
}
