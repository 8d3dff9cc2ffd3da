package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// request is the body of POST /v1/messages, as far as this server reads it.
type request struct {
	Model     string          `json:"model"`
	MaxTokens int             `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	System    content         `json:"system"`
	Messages  []message       `json:"messages"`
	Tools     []toolDef       `json:"tools"`
	Metadata  metadata        `json:"metadata"`
	Output    *outputConfig   `json:"output_config"`
	Format    json.RawMessage `json:"output_format"`
}

type metadata struct {
	UserID string `json:"user_id"`
}

// outputConfig carries the JSON schema that helper calls ask their answer in.
type outputConfig struct {
	Format json.RawMessage `json:"format"`
}

// toolDef is one tool offered by the client; raw is kept for counting tokens.
type toolDef struct {
	Name string `json:"name"`
	raw  json.RawMessage
	ttl  string
}

// UnmarshalJSON keeps the raw definition beside its name.
func (t *toolDef) UnmarshalJSON(data []byte) error {
	var v struct {
		Name  string        `json:"name"`
		Cache *cacheControl `json:"cache_control"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return fmt.Errorf("decode tool: %w", err)
	}
	t.Name, t.raw, t.ttl = v.Name, append(json.RawMessage(nil), data...), v.Cache.lifetime()
	return nil
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// content is a list of blocks; a plain string is one text block.
type content []block

// UnmarshalJSON accepts a string, a list of blocks or null.
func (c *content) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err == nil {
		if s != "" {
			*c = content{{Type: "text", Text: s}}
		}
		return nil
	}
	var blocks []block
	if err := json.Unmarshal(data, &blocks); err != nil {
		return fmt.Errorf("decode content: %w", err)
	}
	*c = blocks
	return nil
}

// text joins the text blocks of c with newlines.
func (c content) text() string {
	var parts []string
	for _, b := range c {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// block is one content block of any kind.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   content         `json:"content"`
	Thinking  string          `json:"thinking"`
	Cache     *cacheControl   `json:"cache_control"`
	size      int
	raw       json.RawMessage // of an image or a document
}

// UnmarshalJSON also notes the size of the block, for blocks whose kind this
// server does not know (images, documents, tool references).
func (b *block) UnmarshalJSON(data []byte) error {
	type plain block
	var v plain
	if err := json.Unmarshal(data, &v); err != nil {
		// A block of an unknown shape still counts with its size.
		var kind struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(data, &kind); err != nil {
			return fmt.Errorf("decode block: %w", err)
		}
		v = plain{Type: kind.Type}
	}
	*b = block(v)
	b.size = len(data)
	if b.Type == "image" || b.Type == "document" {
		b.raw = bytes.Clone(data)
	}
	return nil
}

type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl"`
}

// lifetime is "5m", "1h", or empty when the block is no cache breakpoint.
func (c *cacheControl) lifetime() string {
	switch {
	case c == nil:
		return ""
	case c.TTL == "1h":
		return "1h"
	default:
		return "5m"
	}
}

var sessionSuffix = regexp.MustCompile(`_session_([0-9a-fA-F-]{36})$`)

// sessionOf is the session a call belongs to, from the header or, for CLIs
// before 2.1.150, from the request's metadata. Empty when neither says.
func sessionOf(header, userID string) string {
	if header != "" {
		return header
	}
	if g := sessionSuffix.FindStringSubmatch(userID); g != nil {
		return g[1]
	}
	var v struct {
		SessionID string `json:"session_id"`
	}
	if json.Unmarshal([]byte(userID), &v) == nil {
		return v.SessionID
	}
	return ""
}
