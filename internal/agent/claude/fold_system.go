package claude

import (
	"fmt"
	"slices"
	"strings"
)

// system takes in the CLI's own events.
func (t *Output) system(m *System) {
	t.prompts(m.PromptUUIDs)
	if m.PermissionMode != "" {
		t.PermissionMode = m.PermissionMode
	}
	switch m.Subtype {
	case "init":
		t.Init = m.Init
		t.Model = firstOf(m.Init.Model, t.Model)
	case "status":
		t.Status = m.Status
		if m.Status == "requesting" {
			t.Status = "" // every call of the model begins like this
		}
	case "api_retry":
		t.Status = m.Retry.retrying()
	case "thinking_tokens":
		t.ThinkingTokens = m.ThinkingTokens
	case "compact_boundary":
		text := "The conversation was compacted."
		if m.Compact.PreTokens > 0 && m.Compact.PostTokens > 0 {
			text = fmt.Sprintf("The conversation was compacted from %d to %d tokens.", m.Compact.PreTokens, m.Compact.PostTokens)
		}
		t.Status = ""
		t.notice(m.UUID, text, false)
	case "permission_denied":
		if i := t.tool(m.ToolUseID); i >= 0 {
			t.changeTool(i, func(tool *ToolUse) { tool.State, tool.RequestID = ToolDenied, "" })
		}
	case "api_error", "error", "session_writes_lost", "mirror_error":
		t.notice(m.UUID, firstOf(m.Text, "Claude Code reported an error: "+strings.ReplaceAll(m.Subtype, "_", " ")), true)
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
		if m.Hook.Outcome == "error" {
			t.notice(m.UUID, "The hook "+m.Hook.Name+" failed: "+firstOf(strings.TrimSpace(m.Hook.Stderr), strings.TrimSpace(m.Hook.Output)), true)
		}
	case "task_started", "task_progress", "task_updated", "task_notification":
		t.task(*m.Task)
	case "background_tasks_changed":
		t.background(m.Tasks)
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
	for _, f := range []struct{ old, news *string }{
		{&old.ToolUseID, &news.ToolUseID},
		{&old.Kind, &news.Kind},
		{&old.Subagent, &news.Subagent},
		{&old.Description, &news.Description},
		{&old.State, &news.State},
		{&old.Summary, &news.Summary},
		{&old.LastTool, &news.LastTool},
		{&old.OutputFile, &news.OutputFile},
		{&old.Error, &news.Error},
	} {
		if *f.news != "" {
			*f.old = *f.news
		}
	}
	old.Tokens = max(old.Tokens, news.Tokens)
	old.ToolUses = max(old.ToolUses, news.ToolUses)
	old.DurationMS = max(old.DurationMS, news.DurationMS)
	old.Background = old.Background || news.Background
	old.Ambient = old.Ambient || news.Ambient
}

// background takes in the list of background tasks that still run.
func (t *Output) background(running []Task) {
	for _, task := range running {
		t.task(task)
	}
}
