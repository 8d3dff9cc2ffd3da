package claude

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Fold returns t with one more message taken in. It is pure: t stays as it is,
// and the same messages always make the same turn. Messages that say nothing
// to a person leave it unchanged, as does a second result.
func (t Output) Fold(m Message) Output {
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
		t.settle(m.RequestID, ToolRunning, nil)
	case *Decision:
		state := ToolDenied
		if m.Allowed {
			state = ToolRunning
		}
		t.settle(m.RequestID, state, m.Input)
	case *ConversationReset:
		// The new session's id comes with its next message: what is announced
		// here is another one.
		t.Todos, t.Tasks = nil, nil
		t.notice(m.UUID, "The conversation starts anew.", false)
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
func (t *Output) add(item Item) {
	t.Items = append(slices.Clip(t.Items), item)
}

// change copies the items and lets f change one of the copies.
func (t *Output) change(i int, f func(*Item)) {
	t.Items = slices.Clone(t.Items)
	f(&t.Items[i])
}

func (t *Output) changeTool(i int, f func(*ToolUse)) {
	t.change(i, func(item *Item) {
		tool := *item.Tool
		f(&tool)
		item.Tool = &tool
	})
}

// path returns the ID of the item of the call whose subagent a message comes
// from. The CLI names only the immediate parent; the path is put together from
// the parent's own.
func (t *Output) path(parentToolUseID string) string {
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

// user takes in results of tools and the output of commands.
func (t *Output) user(m *User) {
	path := t.path(m.ParentToolUseID)
	for i, b := range m.Content {
		switch {
		case b.Type == "tool_result":
			t.result(m, b)
		case b.Type == "text" && strings.Contains(b.Text, "<local-command-std"):
			t.command(m, path, b.Text, i)
		}
	}
}

// IsCommandOutput reports whether a message is what a slash command printed. The CLI says so
// of a request of the host's, too, such as set_model.
func IsCommandOutput(m Message) bool {
	switch m := m.(type) {
	case *User:
		return slices.ContainsFunc(m.Content, func(b Block) bool { return b.Type == "text" && strings.Contains(b.Text, "<local-command-std") })
	case *System:
		return m.Subtype == "local_command" || m.Subtype == "local_command_output"
	}
	return false
}

// compacted is how the notice of a compaction begins.
const compacted = "The conversation was compacted"

// command shows what a slash command printed.
func (t *Output) command(m *User, path, text string, block int) {
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
		if out = strings.TrimSpace(out); out == "Compacted" && len(t.Items) > 0 && strings.HasPrefix(t.Items[len(t.Items)-1].Text, compacted) {
			continue // a notice has said so
		}
		if out != "" {
			t.add(Item{Kind: ItemCommandOutput, ID: id, ParentID: path, Text: out, Final: true, UUID: m.UUID, Error: stream == "stderr"})
			id += "/" + stream
		}
	}
}

// notice adds a line that the CLI tells the person.
func (t *Output) notice(uuid, text string, failed bool) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	id := cmp.Or(uuid, "notice/"+strconv.Itoa(len(t.Items)))
	if t.find(id) < 0 {
		t.add(Item{Kind: ItemNotice, ID: id, Text: text, Final: true, UUID: uuid, Error: failed})
	}
}

// end takes in the result: what was still open is over.
func (t *Output) end(m *Result) {
	if t.Result != nil {
		return
	}
	t.Result = m
	t.Status = ""
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
