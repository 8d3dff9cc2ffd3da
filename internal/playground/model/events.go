package model

// The events, with their members in Anthropic's order.
type (
	startEvent struct {
		Type    string       `json:"type"`
		Message startMessage `json:"message"`
	}
	startMessage struct {
		Model        string   `json:"model"`
		ID           string   `json:"id"`
		Type         string   `json:"type"`
		Role         string   `json:"role"`
		Content      []string `json:"content"`
		StopReason   *string  `json:"stop_reason"`
		StopSequence *string  `json:"stop_sequence"`
		Usage        usage    `json:"usage"`
	}
	blockStart struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block any    `json:"content_block"`
	}
	blockDelta struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Delta any    `json:"delta"`
	}
	blockStop struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
	}
	plainEvent struct {
		Type string `json:"type"`
	}
	textStart struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingStart struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	toolStart struct {
		Type  string   `json:"type"`
		ID    string   `json:"id"`
		Name  string   `json:"name"`
		Input struct{} `json:"input"`
	}
	textDelta struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingDelta struct {
		Type     string `json:"type"`
		Thinking string `json:"thinking"`
	}
	signatureDelta struct {
		Type      string `json:"type"`
		Signature string `json:"signature"`
	}
	inputDelta struct {
		Type        string `json:"type"`
		PartialJSON string `json:"partial_json"`
	}
	messageDelta struct {
		Type  string     `json:"type"`
		Delta stopDelta  `json:"delta"`
		Usage deltaUsage `json:"usage"`
	}
	stopDelta struct {
		StopReason   string  `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
	}
	deltaUsage struct {
		InputTokens              int            `json:"input_tokens"`
		CacheCreationInputTokens int            `json:"cache_creation_input_tokens"`
		CacheReadInputTokens     int            `json:"cache_read_input_tokens"`
		OutputTokens             int            `json:"output_tokens"`
		ServerToolUse            *serverToolUse `json:"server_tool_use,omitempty"`
	}
)
