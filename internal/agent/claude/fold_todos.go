package claude

import (
	"cmp"
	"encoding/json"
	"slices"
)

// ToolsOfList are the tools that do nothing but keep the model's list of work.
func ToolsOfList() []string {
	return []string{"TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"}
}

// ToolKeepsList reports whether a tool is one of [ToolsOfList].
func ToolKeepsList(tool string) bool { return slices.Contains(ToolsOfList(), tool) }

// todoWrite takes in the whole list that TodoWrite sets.
func (t *Output) todoWrite(input json.RawMessage) {
	var in struct {
		Todos []struct {
			ID      string `json:"id"`
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	if json.Unmarshal(input, &in) != nil {
		return // the tool itself will refuse it
	}
	t.Todos = make([]Todo, len(in.Todos))
	for i, todo := range in.Todos {
		t.Todos[i] = Todo{ID: todo.ID, Text: todo.Content, State: todo.Status}
	}
}

// taskTool takes in the tools that keep the list one entry at a time, once they
// have done so.
func (t *Output) taskTool(tool *ToolUse) {
	var in struct {
		TaskID  string `json:"taskId"`
		Subject string `json:"subject"`
		Status  string `json:"status"`
	}
	switch tool.Name {
	case "TaskCreate":
		var out struct {
			Task struct {
				ID json.RawMessage `json:"id"`
			} `json:"task"`
		}
		if json.Unmarshal(tool.Input, &in) != nil || json.Unmarshal(tool.StructuredResult, &out) != nil {
			return
		}
		id := trimQuotes(out.Task.ID)
		if slices.ContainsFunc(t.Todos, func(todo Todo) bool { return todo.ID == id && id != "" }) {
			return
		}
		t.Todos = append(slices.Clip(t.Todos), Todo{ID: id, Text: in.Subject, State: "pending"})
	case "TaskUpdate":
		if json.Unmarshal(tool.Input, &in) != nil {
			return
		}
		i := slices.IndexFunc(t.Todos, func(todo Todo) bool { return todo.ID == in.TaskID })
		if i < 0 {
			return
		}
		t.Todos = slices.Clone(t.Todos)
		if in.Status == "deleted" {
			t.Todos = slices.Delete(t.Todos, i, i+1)
			return
		}
		todo := &t.Todos[i]
		todo.Text = cmp.Or(in.Subject, todo.Text)
		todo.State = cmp.Or(in.Status, todo.State)
	}
}

// trimQuotes reads an id that may be a string or a number.
func trimQuotes(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}
