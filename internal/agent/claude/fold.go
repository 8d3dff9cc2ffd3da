package claude

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Fold returns t with one more message taken in. It is pure: t stays as it is,
// and the same messages always make the same turn. Messages that say nothing
// to a person leave it unchanged, as does a second result.
func (t Turn) Fold(m Message) Turn {
	if id := m.Head().SessionID; id != "" && id != t.SessionID {
		t.SessionID = id
	}
	switch m := m.(type) {
	case *StreamEvent:
		t.stream(m)
	case *Assistant:
		t.assistant(m)
	case *User:
		t.user(m)
	case *System:
		t.system(m)
	case *Result:
		t.end(m)
	case *CanUseTool:
		t.asked(m)
	case *CancelRequest:
		t.settle(m.RequestID, ToolRunning)
	case *Decision:
		state := ToolDenied
		if m.Allowed {
			state = ToolRunning
		}
		t.settle(m.RequestID, state)
	case *CommandLifecycle:
		t.lifecycle(m)
	case *ConversationReset:
		// The new session's id comes with its next message: what is announced
		// here is another one.
		t.Resets++
		t.Todos, t.Tasks = nil, nil
		t.notice(m.UUID, "The conversation starts anew.", false)
	case *ToolProgress:
		if i := t.tool(m.ToolUseID); i >= 0 {
			t.changeTool(i, func(tool *ToolUse) { tool.Seconds = m.Seconds })
		}
	case *Summary:
		if m.Type == "tool_use_summary" {
			for _, id := range m.ToolUseIDs {
				if i := t.tool(id); i >= 0 {
					t.changeTool(i, func(tool *ToolUse) { tool.Summary = m.Text })
				}
			}
		}
	case *RateLimit:
		if m.Status == "rejected" {
			t.notice(m.UUID, "The account's rate limit is reached.", true)
		}
	case *AuthStatus:
		if m.Error != "" {
			t.notice(m.UUID, m.Error, true)
		}
	}
	return t
}

// add appends an item; the slice may be shared with earlier turns, so that its
// spare capacity is never used.
func (t *Turn) add(item Item) {
	t.Items = append(t.Items[:len(t.Items):len(t.Items)], item)
}

// change copies the items and lets f change one of the copies.
func (t *Turn) change(i int, f func(*Item)) {
	t.Items = slices.Clone(t.Items)
	f(&t.Items[i])
}

func (t *Turn) changeTool(i int, f func(*ToolUse)) {
	t.change(i, func(item *Item) {
		tool := *item.Tool
		f(&tool)
		item.Tool = &tool
	})
}

// path returns the ID of the item of the call whose subagent a message comes
// from. The CLI names only the immediate parent; the path is put together from
// the parent's own.
func (t *Turn) path(parentToolUseID string) string {
	if parentToolUseID == "" {
		return ""
	}
	if i := t.tool(parentToolUseID); i >= 0 {
		return t.Items[i].ID
	}
	return parentToolUseID
}

func join(path, id string) string {
	if path == "" {
		return id
	}
	return path + ":" + id
}

// stream takes in the model's stream: drafts of text, thinking and inputs.
func (t *Turn) stream(m *StreamEvent) {
	t.prompts(m.PromptUUIDs)
	switch m.Event {
	case "message_start":
		t.Status = ""
		if m.ParentToolUseID == "" && m.Model != "" {
			t.Model = m.Model
		}
		t.ThinkingTokens = 0
		call := Call{MessageID: m.MessageID, Model: m.Model, ParentToolUseID: m.ParentToolUseID}
		if m.Usage != nil {
			call.Usage = *m.Usage
		}
		t.Calls = append(t.Calls[:len(t.Calls):len(t.Calls)], call)
	case "message_delta":
		if i := t.call(m); i >= 0 && m.Usage != nil {
			t.Calls = slices.Clone(t.Calls)
			t.Calls[i].Usage = t.Calls[i].Usage.update(*m.Usage)
			t.Calls[i].Done = true
		}
	case "content_block_start":
		t.open(m)
	case "content_block_delta":
		t.extend(m)
	}
}

// call finds the call of the model that an event belongs to.
func (t *Turn) call(m *StreamEvent) int {
	for i, c := range slices.Backward(t.Calls) {
		if c.ParentToolUseID == m.ParentToolUseID && (m.MessageID == "" || m.MessageID == c.MessageID) {
			return i
		}
	}
	return -1
}

// update takes in the usage of a message_delta: totals of the call, of which
// only those that it names are new.
func (u TokenUsage) update(v TokenUsage) TokenUsage {
	return TokenUsage{
		Input: max(u.Input, v.Input), Output: max(u.Output, v.Output), CacheRead: max(u.CacheRead, v.CacheRead),
		CacheWrite: max(u.CacheWrite, v.CacheWrite), CacheWrite5m: max(u.CacheWrite5m, v.CacheWrite5m),
		CacheWrite1h: max(u.CacheWrite1h, v.CacheWrite1h), WebSearches: max(u.WebSearches, v.WebSearches),
	}
}

// message names the API message that an event belongs to; up to 2.1.276 only
// message_start says so.
func (t *Turn) message(m *StreamEvent) string {
	if m.MessageID != "" {
		return m.MessageID
	}
	if i := t.call(m); i >= 0 {
		return t.Calls[i].MessageID
	}
	return ""
}

// open begins the draft of a content block.
func (t *Turn) open(m *StreamEvent) {
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

func (t *Turn) find(id string) int {
	for i, item := range slices.Backward(t.Items) {
		if item.ID == id {
			return i
		}
	}
	return -1
}

// extend adds a delta to its draft. A delta without a draft, as after a start
// that was lost, opens one.
func (t *Turn) extend(m *StreamEvent) {
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
func (t *Turn) assistant(m *Assistant) {
	t.Status = ""
	t.prompts(m.PromptUUIDs)
	t.retract(m.Supersedes)
	if m.ParentToolUseID == "" && m.Model != "" && m.Model != "<synthetic>" {
		t.Model = m.Model
	}
	if !slices.ContainsFunc(t.Calls, func(c Call) bool { return c.MessageID == m.MessageID }) && m.Usage != (TokenUsage{}) {
		// No stream was seen: this is all there is.
		t.Calls = append(t.Calls[:len(t.Calls):len(t.Calls)],
			Call{MessageID: m.MessageID, Model: m.Model, ParentToolUseID: m.ParentToolUseID, Usage: m.Usage, Done: true})
	}
	path := t.path(m.ParentToolUseID)
	for i, b := range m.Content {
		switch b.Type {
		case "text":
			t.finish(m, path, ItemText, b.Text, i)
		case "thinking", "redacted_thinking":
			t.finish(m, path, ItemThinking, b.Text, i)
		case "tool_use":
			t.called(m, path, b)
		case "image":
			t.add(Item{Kind: ItemImage, ID: join(path, m.UUID+"/"+strconv.Itoa(i)), ParentID: path,
				MediaType: b.MediaType, Data: b.Data, Final: true, UUID: m.UUID})
		}
	}
}

// finish makes a text final: in its draft, which is the first one of its API
// message that is still open, or as an item of its own.
func (t *Turn) finish(m *Assistant, path string, kind ItemKind, text string, block int) {
	failed := m.Error != ""
	for i, item := range t.Items {
		if item.Kind == kind && item.ParentID == path && item.message == m.MessageID && item.message != "" && !item.Final {
			t.change(i, func(item *Item) {
				item.Text, item.Final, item.UUID, item.Error, item.draft = text, true, m.UUID, failed, nil
			})
			return
		}
	}
	id := join(path, firstOf(m.UUID, m.MessageID)+"/"+strconv.Itoa(block))
	if t.find(id) >= 0 {
		return // a repetition
	}
	t.add(Item{Kind: kind, ID: id, ParentID: path, Text: text, Final: true, UUID: m.UUID, Error: failed})
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// called takes in a whole tool call.
func (t *Turn) called(m *Assistant, path string, b Block) {
	if i := t.tool(b.ID); i >= 0 {
		t.change(i, func(item *Item) {
			item.Final, item.UUID = true, m.UUID
			tool := *item.Tool
			tool.Name, tool.Input = b.Name, b.Input
			if tool.State == ToolStreaming {
				tool.State = ToolRunning
			}
			item.Tool = &tool
		})
	} else {
		t.add(Item{Kind: ItemToolUse, ID: join(path, b.ID), ParentID: path, Final: true, UUID: m.UUID,
			Tool: &ToolUse{ID: b.ID, Name: b.Name, Input: b.Input, State: ToolRunning}})
	}
	if b.Name == "TodoWrite" {
		t.todoWrite(b.Input)
	}
}

// retract drops what the CLI takes back.
func (t *Turn) retract(uuids []string) {
	if len(uuids) == 0 {
		return
	}
	t.Items = slices.DeleteFunc(slices.Clone(t.Items), func(item Item) bool {
		return item.UUID != "" && slices.Contains(uuids, item.UUID)
	})
}

// prompts notes prompts that this turn answers.
func (t *Turn) prompts(uuids []string) {
	for _, id := range uuids {
		if id != "" && !slices.Contains(t.PromptUUIDs, id) {
			t.PromptUUIDs = append(t.PromptUUIDs[:len(t.PromptUUIDs):len(t.PromptUUIDs)], id)
		}
		if slices.Contains(t.Queued, id) {
			t.Queued = slices.DeleteFunc(slices.Clone(t.Queued), func(q string) bool { return q == id })
		}
	}
}

func (t *Turn) lifecycle(m *CommandLifecycle) {
	switch m.State {
	case "queued":
		if m.PromptUUID != "" && !slices.Contains(t.Queued, m.PromptUUID) && !slices.Contains(t.PromptUUIDs, m.PromptUUID) {
			t.Queued = append(t.Queued[:len(t.Queued):len(t.Queued)], m.PromptUUID)
		}
	case "started":
		t.prompts([]string{m.PromptUUID})
	case "cancelled":
		t.Queued = slices.DeleteFunc(slices.Clone(t.Queued), func(q string) bool { return q == m.PromptUUID })
	}
}

// user takes in results of tools, the output of commands, and replays.
func (t *Turn) user(m *User) {
	path := t.path(m.ParentToolUseID)
	for i, b := range m.Content {
		switch {
		case b.Type == "tool_result":
			t.result(m, b)
		case b.Type == "text" && strings.Contains(b.Text, "<local-command-std"):
			t.command(m, path, b.Text, i)
		case b.Type == "text" && m.IsReplay && m.ParentToolUseID == "":
			t.prompts([]string{m.UUID})
		}
	}
}

// command shows what a slash command printed.
func (t *Turn) command(m *User, path, text string, block int) {
	id := join(path, m.UUID+"/"+strconv.Itoa(block))
	if t.find(id) >= 0 {
		return
	}
	for _, stream := range []string{"stdout", "stderr"} {
		_, rest, ok := strings.Cut(text, "<local-command-"+stream+">")
		if !ok {
			continue
		}
		out, _, _ := strings.Cut(rest, "</local-command-"+stream+">")
		if out = strings.TrimSpace(out); out != "" {
			t.add(Item{Kind: ItemCommandOutput, ID: id, ParentID: path, Text: out, Final: true, UUID: m.UUID, Error: stream == "stderr"})
			id += "/" + stream
		}
	}
}

// result joins a tool's result to its call.
func (t *Turn) result(m *User, b Block) {
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
		tool.Result, tool.ResultBytes = cutText(text.String(), MaxResult), text.Len()
		if len(m.ToolUseResult) <= MaxStructured {
			tool.StructuredResult = m.ToolUseResult
		}
		switch {
		case !b.IsError:
			tool.State = ToolDone
		case tool.State != ToolDenied:
			tool.State = ToolFailed
		}
	})
	for n, image := range images {
		t.add(Item{Kind: ItemImage, ID: parent + "/image" + strconv.Itoa(n), ParentID: t.Items[i].ParentID,
			MediaType: image.MediaType, Data: image.Data, Final: true, UUID: m.UUID})
	}
	if tool := t.Items[i].Tool; tool.State == ToolDone {
		t.taskTool(tool)
	}
}

// cutText cuts s to at most limit bytes, between runes.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xc0 == 0x80 {
		limit--
	}
	return strings.Clone(s[:limit])
}

// asked marks the call that waits for an approval.
func (t *Turn) asked(m *CanUseTool) {
	i := t.tool(m.ToolUseID)
	if i < 0 {
		// The call has not been shown, or the version does not name it.
		id := firstOf(m.ToolUseID, m.RequestID)
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
func (t *Turn) settle(requestID string, state ToolState) {
	for i, item := range slices.Backward(t.Items) {
		if item.Tool != nil && item.Tool.RequestID == requestID && requestID != "" {
			t.changeTool(i, func(tool *ToolUse) { tool.State, tool.RequestID = state, "" })
			return
		}
	}
}

// notice adds a line that the CLI tells the person.
func (t *Turn) notice(uuid, text string, failed bool) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	id := firstOf(uuid, "notice/"+strconv.Itoa(len(t.Items)))
	if t.find(id) < 0 {
		t.add(Item{Kind: ItemNotice, ID: id, Text: text, Final: true, UUID: uuid, Error: failed})
	}
}

// end takes in the result: what was still open is over.
func (t *Turn) end(m *Result) {
	if t.Result != nil {
		return
	}
	t.Result = m
	t.Status = ""
	t.prompts(m.PromptUUIDs)
	t.Calls = slices.Clone(t.Calls)
	for i, call := range t.Calls {
		// A call of a subagent in the background may still be on its way.
		t.Calls[i].Settled = call.Done || call.ParentToolUseID == ""
	}
	open := func(item Item) bool {
		if t.inBackground(item.ParentID) {
			return false
		}
		return !item.Final || item.Tool != nil && (item.Tool.State == ToolRunning || item.Tool.State == ToolAsked || item.Tool.State == ToolStreaming)
	}
	if slices.ContainsFunc(t.Items, open) {
		t.Items = slices.Clone(t.Items)
		for i := range t.Items {
			item := &t.Items[i]
			if !open(*item) {
				continue
			}
			item.Final, item.draft = true, nil
			if item.Tool != nil {
				tool := *item.Tool
				tool.RequestID, tool.State = "", ToolInterrupted
				item.Tool = &tool
			}
		}
	}
	for _, d := range m.PermissionDenials {
		if i := t.tool(d.ToolUseID); i >= 0 && t.Items[i].Tool.State != ToolDenied {
			t.changeTool(i, func(tool *ToolUse) { tool.State = ToolDenied })
		}
	}
}

// inBackground reports whether a path leads through a subagent that goes on
// after the turn.
func (t *Turn) inBackground(path string) bool {
	for id := range strings.SplitSeq(path, ":") {
		if id != "" && slices.ContainsFunc(t.Tasks, func(task Task) bool {
			return task.ToolUseID == id && task.Background && task.State == "running"
		}) {
			return true
		}
	}
	return false
}

// retrying puts a retry into words.
func (r *APIRetry) retrying() string {
	if r.Max > 0 {
		return fmt.Sprintf("retrying (attempt %d of %d)", r.Attempt, r.Max)
	}
	return fmt.Sprintf("retrying (attempt %d)", r.Attempt)
}
