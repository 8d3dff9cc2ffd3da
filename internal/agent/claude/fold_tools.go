package claude

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// called takes in a whole tool call.
func (t *Output) called(m *Assistant, path string, b Block) {
	if i := t.tool(b.ID); i >= 0 {
		t.change(i, func(item *Item) {
			item.Final, item.UUID, item.message = true, m.UUID, m.MessageID
			// Its approval may have come first, and does not say whose it is.
			item.ID, item.ParentID = join(path, b.ID), path
			tool := *item.Tool
			tool.Name, tool.Input = b.Name, b.Input
			if tool.State == ToolStreaming {
				tool.State = ToolRunning
			}
			item.Tool = &tool
		})
	} else {
		t.add(Item{
			Kind: ItemToolUse, ID: join(path, b.ID), ParentID: path, Final: true, UUID: m.UUID, message: m.MessageID,
			Tool: &ToolUse{ID: b.ID, Name: b.Name, Input: b.Input, State: ToolRunning},
		})
	}
	if b.Name == "TodoWrite" {
		t.todoWrite(b.Input)
	}
}

// retract drops what the CLI takes back.
func (t *Output) retract(uuids []string) {
	if len(uuids) == 0 {
		return
	}
	t.Items = slices.DeleteFunc(slices.Clone(t.Items), func(item Item) bool {
		return item.UUID != "" && slices.Contains(uuids, item.UUID)
	})
}

// result joins a tool's result to its call.
func (t *Output) result(m *User, b Block) {
	i := t.tool(b.ToolUseID)
	if i < 0 {
		return // of a turn that this one does not know
	}
	var text strings.Builder
	var images []Block
	for _, part := range b.Content {
		switch part.Type {
		case "text":
			if text.Len() > 0 {
				text.WriteByte('\n')
			}
			text.WriteString(part.Text)
		case "image":
			images = append(images, part)
		}
	}
	parent := t.Items[i].ID
	t.changeTool(i, func(tool *ToolUse) {
		tool.RequestID = ""
		tool.Result, tool.ResultBytes = cutText(text.String()), text.Len()
		if len(m.ToolUseResult) <= maxStructured {
			tool.StructuredResult = m.ToolUseResult
		}
		switch {
		case !b.IsError:
			tool.State = ToolDone
		case tool.State != ToolDenied && stopped(tool.Result):
			tool.State = ToolInterrupted
		case tool.State != ToolDenied:
			tool.State = ToolFailed
		}
	})
	for n, image := range images {
		t.add(Item{
			Kind: ItemImage, ID: parent + "/image" + strconv.Itoa(n), ParentID: t.Items[i].ParentID,
			Data: image.Data, Final: true, UUID: m.UUID,
		})
	}
	if tool := t.Items[i].Tool; tool.State == ToolDone {
		t.taskTool(tool)
	}
}

// stopped reports whether a result is what the CLI itself says of a call that ran when the turn was
// interrupted: one that a person denied has the bot's words.
func stopped(result string) bool {
	return strings.HasPrefix(result, "The user doesn't want to proceed with this tool use.") ||
		strings.HasPrefix(result, "The user doesn't want to take this action right now.") ||
		strings.HasSuffix(result, "[Request interrupted by user for tool use]") || // before 2.1.276
		strings.HasSuffix(result, "<error>Command was aborted before completion</error>")
}

// cutText cuts s to at most maxResult bytes, between runes.
func cutText(s string) string {
	if len(s) <= maxResult {
		return s
	}
	limit := maxResult
	for limit > 0 && s[limit]&0xc0 == 0x80 {
		limit--
	}
	return strings.Clone(s[:limit])
}

// asked marks the call that waits for an approval.
func (t *Output) asked(m *CanUseTool) {
	i := t.tool(m.ToolUseID)
	if i < 0 {
		// The call has not been shown, or the version does not name it.
		id := cmp.Or(m.ToolUseID, m.RequestID)
		for j, item := range slices.Backward(t.Items) {
			if m.ToolUseID == "" && item.Tool != nil && item.Tool.Name == m.ToolName && item.Tool.State == ToolRunning {
				i = j
				break
			}
		}
		if i < 0 {
			t.add(Item{Kind: ItemToolUse, ID: id, Tool: &ToolUse{ID: id, Name: m.ToolName, Input: m.Input}})
			i = len(t.Items) - 1
		}
	}
	t.changeTool(i, func(tool *ToolUse) { tool.State, tool.RequestID = ToolAsked, m.RequestID })
}

// settle ends the wait for an approval.
func (t *Output) settle(requestID string, state ToolState, instead json.RawMessage) {
	for i, item := range slices.Backward(t.Items) {
		if item.Tool != nil && item.Tool.RequestID == requestID && requestID != "" {
			t.changeTool(i, func(tool *ToolUse) {
				if tool.State, tool.RequestID = state, ""; instead != nil {
					tool.Input = instead
				}
			})
			return
		}
	}
}

// inBackground reports whether a path leads through a subagent that goes on
// after the turn.
func (t *Output) inBackground(path string) bool {
	for id := range strings.SplitSeq(path, ":") {
		if id != "" && slices.ContainsFunc(t.Tasks, func(task Task) bool {
			return task.ToolUseID == id && task.Background && task.State == "running"
		}) {
			return true
		}
	}
	return false
}
