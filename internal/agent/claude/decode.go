package claude

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrCorrupt is returned for a line that starts like JSON and is none.
var ErrCorrupt = errors.New("corrupt JSON")

// Decode turns one line of the CLI's output into a message, which keeps nothing
// of the line's own bytes. The only error is [ErrCorrupt]; what is valid JSON and
// not understood is an [*Unknown].
func Decode(line []byte) (Message, error) {
	// Deltas are nearly all of the lines: they are not read twice to find out what
	// they are, and their bytes are not kept.
	if bytes.HasPrefix(line, []byte(`{"type":"stream_event",`)) {
		m, err := decodeStreamEvent(line)
		if err != nil {
			return nil, err
		}
		if m.Delta == "" {
			m.Raw = bytes.Clone(line)
		}
		return m, nil
	}
	var head Meta
	if jsontext.Value(line).Kind() != '{' || unmarshal(line, &head) != nil {
		return nil, ErrCorrupt
	}
	m := decodeType(head, line)
	m.Head().Raw = bytes.Clone(line)
	return m, nil
}

// decodeType decodes a line by its type.
func decodeType(head Meta, line []byte) Message {
	switch head.Type {
	case "assistant", "tool_use":
		return decodeAssistant(line)
	case "user", "tool_result":
		return decodeUser(line)
	case "stream_event", "stream":
		m, _ := decodeStreamEvent(line) // it is no corrupt line
		return m
	case "result":
		return decodeResult(line)
	case "system":
		return decodeSystem(line)
	case "control_request", "sdk_control_request", "control":
		return decodeControlRequest(head, line)
	case "control_response":
		return decodeControlResponse(line)
	case "control_cancel_request":
		return decodeInto(line, new(CancelRequest))
	case "command_lifecycle":
		return decodeInto(line, new(CommandLifecycle))
	case "conversation_reset":
		return &ConversationReset{Meta: head}
	case "tool_progress":
		return decodeInto(line, new(ToolProgress))
	case "rate_limit_event":
		var in struct {
			Meta
			Info RateLimit `json:"rate_limit_info"`
		}
		fill(line, &in)
		in.Info.Meta = in.Meta
		return &in.Info
	case "auth_status":
		return decodeInto(line, new(AuthStatus))
	case "keep_alive":
		return &KeepAlive{Meta: head}
	}
	return &Unknown{Meta: head}
}

func decodeInto(line []byte, m Message) Message {
	fill(line, m)
	return m
}
