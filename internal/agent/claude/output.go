package claude

import (
	"encoding/json"
	"slices"
	"strings"
)

// Output is one turn of the conversation as a plain value: what a person should
// see of it. It is made by [Output.Fold] alone; an Output that was handed out never
// changes, and shares with its successors what did not change between them.
// The zero value is a turn of which nothing is known yet.
type Output struct {
	// Items are what was said and done, in the order of appearance.
	Items []Item
	// Status is what the CLI is busy with beside the items, for people, such as
	// "compacting" or "retrying (attempt 2 of 10)"; empty when that is over.
	Status string
	// Result ends the turn; nil while it runs.
	Result *Result
	// Model is that of the main conversation.
	Model string
	// Todos is the model's list of work as it stands.
	Todos []Todo
	// Tasks are subagents and commands, in the order of their start; newer
	// versions list those of the foreground too.
	Tasks []Task

	// streaming are the API messages that the model is writing, at most one for
	// each conversation.
	streaming []streamed
	// below are the API messages that subagents have written.
	below []streamed
}

// AnswersBelow are the ids of the API messages that a subagent has written, and that its own
// subagents have, by the ID of the item that started it.
func (t Output) AnswersBelow(itemID string) (ids []string) {
	for _, s := range t.below {
		if s.parent == itemID || strings.HasPrefix(s.parent, itemID+":") {
			ids = append(ids, s.id)
		}
	}
	return ids
}

// streamed is an API message. parent is the call whose subagent writes it, or of one that
// has come its path; empty for the main conversation.
type streamed struct{ parent, id string }

// ItemKind says what an item is.
type ItemKind string

// The kinds of items.
const (
	ItemText     ItemKind = "text"
	ItemThinking ItemKind = "thinking"
	ItemToolUse  ItemKind = "tool use"
	// ItemNotice is something that the CLI tells the person.
	ItemNotice ItemKind = "notice"
	// ItemCommandOutput is what a slash command printed.
	ItemCommandOutput ItemKind = "command output"
	// ItemImage is an image that a tool returned.
	ItemImage ItemKind = "image"
)

// Item is one thing in a turn.
type Item struct {
	Kind ItemKind
	// ID is unique within the turn. For what a subagent did it is the path of
	// the calls that led there and its own id, joined by colons.
	ID string
	// ParentID is the ID of the call whose subagent this comes from; empty for
	// the main conversation.
	ParentID string
	// Text is the text so far.
	Text string
	// Final says that the authoritative message has come: the text will not
	// change again.
	Final bool
	// Tool is set for ItemToolUse.
	Tool *ToolUse
	// Data (base64) is set for ItemImage.
	Data string
	// Error marks a notice about a failure, and text that the CLI made up
	// because of one.
	Error bool
	// UUID is the id of the message that made it final.
	UUID string

	// message and index are the API message and content block of a draft, and
	// draft its growing text. A call keeps its message.
	message string
	index   int
	draft   *draft
}

// CalledWith reports whether two items are calls of one answer.
func (it Item) CalledWith(other Item) bool {
	return it.Tool != nil && other.Tool != nil && it.message != "" && it.message == other.message && it.ParentID == other.ParentID
}

// ToolState is how far a tool call has come.
type ToolState string

// The states of a tool call.
const (
	// ToolStreaming means that its input is still being written.
	ToolStreaming ToolState = "streaming"
	ToolAsked     ToolState = "asked"
	ToolRunning   ToolState = "running"
	ToolDone      ToolState = "done"
	ToolFailed    ToolState = "failed"
	ToolDenied    ToolState = "denied"
	// ToolInterrupted means that the turn ended before it did.
	ToolInterrupted ToolState = "interrupted"
)

// ToolUse is one call of a tool and what came of it. Its own fields are never
// changed once it was handed out.
type ToolUse struct {
	// ID is the call's own id, without a path.
	ID, Name string
	// Input is nil until it is complete.
	Input json.RawMessage
	State ToolState
	// RequestID is the approval that is due while it is asked.
	RequestID string
	// Result is what the model reads as the result: its text, cut to
	// maxResult bytes; ResultBytes is its whole length.
	Result      string
	ResultBytes int
	// StructuredResult is the tool's own result, whose shape depends on the
	// tool; nil where there is none or it is over maxStructured bytes.
	StructuredResult json.RawMessage
}

// What an Output keeps of a tool's result.
const (
	maxResult     = 64 << 10
	maxStructured = 256 << 10
)

// Todo is one entry of the model's list of work.
type Todo struct {
	// ID is the task's id; empty for lists that have none.
	ID   string
	Text string
	// State is pending, in_progress or completed.
	State string
}

// Decision is what a host folds into a turn when it has answered a
// [CanUseTool], since the CLI itself does not say so.
type Decision struct {
	Meta
	RequestID string
	Allowed   bool
	Input     json.RawMessage // what runs instead of what was asked for; nil where it is the same
}

// Next returns the turn that follows t: empty, but for what outlives a turn.
func (t Output) Next() Output {
	next := Output{Model: t.Model, Todos: t.Todos}
	for _, s := range t.streaming {
		// A subagent in the background may still be writing.
		if s.parent != "" {
			next.streaming = append(next.streaming, s)
		}
	}
	for _, task := range t.Tasks {
		if task.State == "running" && task.Background {
			next.Tasks = append(next.Tasks, task)
		}
	}
	return next
}

// Tool returns the item of a tool call by the call's own id.
func (t Output) Tool(toolUseID string) (Item, bool) {
	if i := t.tool(toolUseID); i >= 0 {
		return t.Items[i], true
	}
	return Item{}, false
}

// tool finds a call's item; the latest ones are the likeliest.
func (t *Output) tool(id string) int {
	if id == "" {
		return -1
	}
	for i, item := range slices.Backward(t.Items) {
		if item.Tool != nil && item.Tool.ID == id {
			return i
		}
	}
	return -1
}
