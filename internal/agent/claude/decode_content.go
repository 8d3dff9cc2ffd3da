package claude

import (
	"cmp"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

func decodeAssistant(line []byte) Message {
	var in struct {
		Assistant
		Message struct {
			ID, Model string
			Content   []Block
		}
		// A tool_use that stands alone.
		ID, Name string
		Input    json.RawMessage
	}
	fill(line, &in)
	m := &in.Assistant
	m.MessageID, m.Model, m.Content = in.Message.ID, in.Message.Model, in.Message.Content
	if m.Type == "tool_use" {
		m.Content = []Block{{Type: "tool_use", ID: in.ID, Name: in.Name, Input: in.Input}}
	}
	return m
}

func decodeUser(line []byte) Message {
	var in struct {
		User
		Message struct{ Content []Block }
		// A tool_result that stands alone.
		ToolUseID       string
		Result, Content []Block
		IsError         bool
	}
	fill(line, &in)
	m := &in.User
	m.Content = in.Message.Content
	if m.Type == "tool_result" {
		m.Content = []Block{{Type: "tool_result", ToolUseID: in.ToolUseID, Content: append(in.Result, in.Content...), IsError: in.IsError}}
	}
	return m
}

func decodeStreamEvent(line []byte) (*StreamEvent, error) {
	var in struct {
		Meta
		APIMessageID string
		Event        struct {
			Type         string
			Index        int
			Delta        struct{ Type, Text, Thinking string }
			ContentBlock *Block
			Message      struct{ ID, Model string }
		}
	}
	if err := unmarshal(line, &in); err != nil {
		return nil, err
	}
	e := &in.Event
	m := &StreamEvent{
		Meta: in.Meta, Event: e.Type, MessageID: cmp.Or(in.APIMessageID, e.Message.ID), Index: e.Index,
		Delta: e.Delta.Type, Text: cmp.Or(e.Delta.Text, e.Delta.Thinking), Block: e.ContentBlock, Model: e.Message.Model,
	}
	if m.Event != "" {
		return m, nil
	}
	// In one dialect the event is a name.
	var named struct{ Event, Text, Delta string }
	fill(line, &named)
	m.Event, m.Text = named.Event, cmp.Or(m.Text, named.Text, named.Delta)
	if m.Event == "delta" {
		m.Event, m.Delta = "content_block_delta", "text_delta"
	}
	return m, nil
}

// maxNesting is how deep blocks nest in blocks that are read.
const maxNesting = 16

// readBlock takes one content block.
func readBlock(dec *jsontext.Decoder, b *Block) error {
	*b = Block{}
	if dec.StackDepth() > maxNesting {
		return dec.SkipValue()
	}
	var in struct {
		Type, Text, Thinking, ID, Name, ToolUseID string
		Input                                     json.RawMessage
		Content                                   []Block
		IsError                                   bool
		Source                                    struct{ MediaType, Data string }
	}
	if err := unmarshalNext(dec, &in); err != nil {
		return err
	}
	*b = Block{
		Type: in.Type, Text: in.Text + in.Thinking, ID: in.ID, Name: in.Name, Input: in.Input,
		ToolUseID: in.ToolUseID, Content: in.Content, IsError: in.IsError, MediaType: in.Source.MediaType, Data: in.Source.Data,
	}
	return nil
}

// readBlocks takes content: an array of blocks, one block, or a text that stands
// for a block.
func readBlocks(dec *jsontext.Decoder, blocks *[]Block) error {
	*blocks = nil
	one := func() error {
		var b Block
		var err error
		if dec.PeekKind() == '"' {
			b.Type = "text"
			err = unmarshalNext(dec, &b.Text)
		} else {
			err = unmarshalNext(dec, &b)
		}
		*blocks = append(*blocks, b)
		return err
	}
	if kind := dec.PeekKind(); kind == '"' || kind == '{' {
		return one()
	}
	return eachElement(dec, one)
}
