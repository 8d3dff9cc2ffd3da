package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Prompt sends one message of the user. uuid names it in the CLI's answers and
// must be new; content is text, images and documents. It returns when the CLI's
// input has taken it: while a turn runs, the CLI queues it.
func (p *Process) Prompt(uuid string, content ...Block) error {
	if !isUUID(uuid) {
		return fmt.Errorf("send prompt: %q is no UUID", uuid)
	}
	if len(content) == 0 {
		return errors.New("send prompt: no content")
	}
	blocks := make([]any, len(content))
	for i, b := range content {
		block, err := b.outgoing()
		if err != nil {
			return fmt.Errorf("send prompt: %w", err)
		}
		blocks[i] = block
	}
	type message struct {
		Role    string `json:"role"`
		Content []any  `json:"content"`
	}
	line, err := json.Marshal(struct {
		Type            string  `json:"type"`
		Message         message `json:"message"`
		ParentToolUseID *string `json:"parent_tool_use_id"`
		SessionID       string  `json:"session_id"`
		UUID            string  `json:"uuid"`
	}{"user", message{"user", blocks}, nil, p.SessionID(), uuid})
	if err != nil {
		return fmt.Errorf("send prompt: %w", err)
	}
	p.life.prompted(time.Now())
	if err := p.send(line); err != nil {
		return fmt.Errorf("send prompt: %w", err)
	}
	return nil
}

// send writes a line and waits until it is written.
func (p *Process) send(line []byte) error {
	err := p.in.write(line)
	if err == nil {
		return nil
	}
	select {
	case <-p.done:
		return p.exit
	default:
		return err
	}
}

// outgoing returns the block as the Messages API takes it.
func (b Block) outgoing() (any, error) {
	switch b.Type {
	case "text":
		return struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", b.Text}, nil
	case "image", "document":
		type source struct {
			Type      string `json:"type"`
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
		}
		s := source{"base64", b.MediaType, b.Data}
		if b.Type == "document" && b.Text != "" && b.Data == "" {
			s = source{"text", "text/plain", b.Text}
		}
		if s.MediaType == "" || s.Data == "" {
			return nil, fmt.Errorf("%s block without data", b.Type)
		}
		return struct {
			Type   string `json:"type"`
			Title  string `json:"title,omitempty"`
			Source source `json:"source"`
		}{b.Type, b.Title, s}, nil
	}
	return nil, fmt.Errorf("block of type %q cannot be sent", b.Type)
}
