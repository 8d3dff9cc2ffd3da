package claude

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// system takes in the CLI's own events.
func (t *Output) system(m *System) {
	switch m.Subtype {
	case "init":
		t.Model = cmp.Or(m.Model, t.Model)
	case "status":
		t.Status = m.Status
		if m.Status == "requesting" {
			t.Status = "" // every call of the model begins like this
		}
	case "api_retry":
		t.Status = fmt.Sprintf("retrying (attempt %d)", m.Attempt)
		if m.MaxRetries > 0 {
			t.Status = fmt.Sprintf("retrying (attempt %d of %d)", m.Attempt, m.MaxRetries)
		}
	case "compact_boundary":
		text := compacted + "."
		if m.Compact.PreTokens > 0 && m.Compact.PostTokens > 0 {
			text = fmt.Sprintf("%s from %d to %d tokens.", compacted, m.Compact.PreTokens, m.Compact.PostTokens)
		}
		t.Status = ""
		t.notice(m.UUID, text, false)
	case "permission_denied":
		if i := t.tool(m.ToolUseID); i >= 0 {
			t.changeTool(i, func(tool *ToolUse) { tool.State, tool.RequestID = ToolDenied, "" })
		}
	case "api_error", "error", "session_writes_lost", "mirror_error":
		t.notice(m.UUID, cmp.Or(m.Text, "Claude Code reported an error: "+strings.ReplaceAll(m.Subtype, "_", " ")), true)
	case "informational", "notification", "model_refusal_fallback", "model_refusal_no_fallback":
		t.retract(m.Retracted)
		t.notice(m.UUID, m.Text, m.Level == "error")
	case "local_command", "local_command_output":
		text := m.Text
		if _, rest, ok := strings.Cut(text, "<local-command-stdout>"); ok {
			text, _, _ = strings.Cut(rest, "</local-command-stdout>")
		}
		if text = strings.TrimSpace(text); text != "" && t.find(m.UUID) < 0 {
			t.add(Item{Kind: ItemCommandOutput, ID: m.UUID, Text: text, Final: true, UUID: m.UUID})
		}
	case "hook_response":
		if m.Outcome == "error" {
			t.notice(m.UUID, "The hook "+m.HookName+" failed: "+cmp.Or(strings.TrimSpace(m.Stderr), strings.TrimSpace(m.Output)), true)
		}
	case "task_started", "task_progress", "task_updated", "task_notification":
		t.task(*m.Task)
	case "background_tasks_changed":
		for _, task := range m.Tasks {
			t.task(task)
		}
	}
}

// task takes in what an event tells about one task: fields that it does not
// carry stay as they are.
func (t *Output) task(news Task) {
	i := slices.IndexFunc(t.Tasks, func(old Task) bool { return old.ID == news.ID })
	if i < 0 {
		t.Tasks = append(slices.Clip(t.Tasks), news)
		return
	}
	t.Tasks = slices.Clone(t.Tasks)
	old := &t.Tasks[i]
	old.ToolUseID = cmp.Or(news.ToolUseID, old.ToolUseID)
	old.State = cmp.Or(news.State, old.State)
	old.Background = old.Background || news.Background
}
