package claude

import (
	"cmp"
	"slices"
	"strconv"
)

// stream takes in the model's stream: drafts of text, thinking and inputs. [Output.Fold] hands it each
// StreamEvent.
func (t *Output) stream(m *StreamEvent) {
	switch m.Event {
	case "message_start":
		t.Status = ""
		if m.ParentToolUseID == "" && m.Model != "" {
			t.Model = m.Model
		}
		t.stopped(m.ParentToolUseID)
		t.streaming = append(slices.Clip(t.streaming), streamed{parent: m.ParentToolUseID, id: m.MessageID})
	case "message_stop":
		t.stopped(m.ParentToolUseID)
	case "content_block_start":
		t.open(m)
	case "content_block_delta":
		t.extend(m)
	}
}

// stopped forgets the message that a conversation was writing.
func (t *Output) stopped(parentToolUseID string) {
	is := func(s streamed) bool { return s.parent == parentToolUseID }
	if slices.ContainsFunc(t.streaming, is) {
		t.streaming = slices.DeleteFunc(slices.Clone(t.streaming), is)
	}
}

// message names the API message that an event belongs to; up to 2.1.276 only
// message_start says so.
func (t *Output) message(m *StreamEvent) string {
	if m.MessageID != "" {
		return m.MessageID
	}
	for _, s := range t.streaming {
		if s.parent == m.ParentToolUseID {
			return s.id
		}
	}
	return ""
}

// open begins the draft of a content block.
func (t *Output) open(m *StreamEvent) {
	if m.Block == nil {
		return
	}
	path, message := t.path(m.ParentToolUseID), t.message(m)
	item := Item{ParentID: path, message: message, index: m.Index}
	switch m.Block.Type {
	case "text":
		item.Kind, item.ID, item.Text = ItemText, join(path, message+"/"+strconv.Itoa(m.Index)), m.Block.Text
	case "thinking", "redacted_thinking":
		item.Kind, item.ID, item.Text = ItemThinking, join(path, message+"/"+strconv.Itoa(m.Index)), m.Block.Text
	case "tool_use":
		if t.tool(m.Block.ID) >= 0 {
			return
		}
		item.Kind, item.ID = ItemToolUse, join(path, m.Block.ID)
		item.Tool = &ToolUse{ID: m.Block.ID, Name: m.Block.Name, State: ToolStreaming}
	default:
		return
	}
	if t.find(item.ID) < 0 {
		t.add(item)
	}
}

func (t *Output) find(id string) int {
	for i, item := range slices.Backward(t.Items) {
		if item.ID == id {
			return i
		}
	}
	return -1
}

// extend adds a delta to its draft. A delta without a draft, as after a start
// that was lost, opens one.
func (t *Output) extend(m *StreamEvent) {
	kind := ItemText
	switch m.Delta {
	case "text_delta":
	case "thinking_delta":
		kind = ItemThinking
	default:
		// The pieces of an input mean nothing until it is whole.
		return
	}
	message := t.message(m)
	path := t.path(m.ParentToolUseID)
	at := -1
	for i, item := range slices.Backward(t.Items) {
		if item.message == message && item.index == m.Index && item.ParentID == path && item.Kind == kind {
			at = i
			break
		}
	}
	if at < 0 {
		t.add(Item{Kind: kind, ID: join(path, message+"/"+strconv.Itoa(m.Index)), ParentID: path, message: message, index: m.Index})
		at = len(t.Items) - 1
	}
	if t.Items[at].Final || m.Text == "" {
		return
	}
	t.change(at, func(item *Item) { item.draft, item.Text = item.draft.extend(item.Text, m.Text) })
}

// assistant takes in an authoritative message: its blocks replace their drafts.
func (t *Output) assistant(m *Assistant) {
	t.Status = ""
	t.retract(m.Supersedes)
	if m.ParentToolUseID == "" && m.Model != "" && m.Model != "<synthetic>" {
		t.Model = m.Model
	}
	path := t.path(m.ParentToolUseID)
	if s := (streamed{parent: path, id: m.MessageID}); path != "" && m.MessageID != "" && !slices.Contains(t.below, s) {
		t.below = append(slices.Clip(t.below), s)
	}
	for i, b := range m.Content {
		switch b.Type {
		case "text":
			t.finish(m, path, ItemText, b.Text, i)
		case "thinking", "redacted_thinking":
			t.finish(m, path, ItemThinking, b.Text, i)
		case "tool_use":
			t.called(m, path, b)
		case "image":
			t.add(Item{
				Kind: ItemImage, ID: join(path, m.UUID+"/"+strconv.Itoa(i)), ParentID: path,
				Data: b.Data, Final: true, UUID: m.UUID,
			})
		}
	}
}

// finish makes a text final: in its draft, which is the first one of its API
// message that is still open, or as an item of its own.
func (t *Output) finish(m *Assistant, path string, kind ItemKind, text string, block int) {
	failed := m.Error != ""
	for i, item := range t.Items {
		if item.Kind == kind && item.ParentID == path && item.message == m.MessageID && item.message != "" && !item.Final {
			t.change(i, func(item *Item) {
				item.Text, item.Final, item.UUID, item.Error, item.draft = text, true, m.UUID, failed, nil
			})
			return
		}
	}
	id := join(path, cmp.Or(m.UUID, m.MessageID)+"/"+strconv.Itoa(block))
	if t.find(id) >= 0 {
		return // a repetition
	}
	t.add(Item{Kind: kind, ID: id, ParentID: path, Text: text, Final: true, UUID: m.UUID, Error: failed})
}
