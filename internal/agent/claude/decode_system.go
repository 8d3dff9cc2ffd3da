package claude

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"
)

// decodeSystem reads the many subtypes into one struct: a field that several of
// them use has one meaning in all.
func decodeSystem(line []byte) Message {
	var in struct {
		System
		State                                 string
		Content, Message, Text                string
		Error                                 errorText
		Priority                              string
		CompactMetadata, MicrocompactMetadata *Compact
		Tasks                                 []Task
	}
	fill(line, &in)
	m := &in.System
	m.Status = cmp.Or(m.Status, in.State)
	m.Text = cmp.Or(in.Content, in.Message, in.Text, string(in.Error))
	m.Level = cmp.Or(m.Level, in.Priority)
	m.Compact = cmp.Or(in.CompactMetadata, in.MicrocompactMetadata)
	for _, t := range in.Tasks {
		t.State = cmp.Or(t.State, "running")
		t.Background = true
		m.Tasks = append(m.Tasks, t)
	}
	switch m.Subtype {
	case "init":
		m.Init = new(Init)
		fill(line, m.Init)
	case "api_retry", "control_request_progress":
		m.Retry = decodeRetry(line)
	case "hook_started", "hook_progress", "hook_response":
		m.Hook = new(HookRun)
		fill(line, m.Hook)
	case "task_started", "task_progress", "task_updated", "task_notification":
		m.Task = new(Task)
		fill(line, m.Task)
		if m.Task.State == "" && m.Subtype != "task_updated" {
			m.Task.State = "running"
		}
	case "compact_boundary", "microcompact_boundary":
		if m.Compact == nil {
			m.Compact = new(Compact)
		}
	}
	return m
}

func decodeRetry(line []byte) *APIRetry {
	var in struct {
		Attempt, RetryAttempt, MaxRetries, ErrorStatus int
		RetryDelayMS, RetryInMS                        int64
		Error                                          errorText
	}
	fill(line, &in)
	return &APIRetry{
		Attempt: cmp.Or(in.Attempt, in.RetryAttempt), Max: in.MaxRetries, DelayMS: cmp.Or(in.RetryDelayMS, in.RetryInMS),
		Status: in.ErrorStatus, Error: string(in.Error),
	}
}

// readTask takes a task, with what a patch changes of it.
func readTask(dec *jsontext.Decoder, t *Task) error {
	type fields struct {
		TaskID, ToolUseID, TaskType, SubagentType, Description, Status, Summary, LastToolName, OutputFile string

		Error                   errorText
		Usage                   struct{ TotalTokens, ToolUses, DurationMS int64 }
		IsBackgrounded, Ambient bool
	}
	var in struct {
		fields
		Patch *fields
	}
	in.Patch = &in.fields
	err := unmarshalNext(dec, &in)
	*t = Task{
		ID: in.TaskID, ToolUseID: in.ToolUseID, Kind: in.TaskType, Subagent: in.SubagentType, Description: in.Description,
		State: in.Status, Summary: in.Summary, LastTool: in.LastToolName, OutputFile: in.OutputFile, Error: string(in.Error),
		Tokens: in.Usage.TotalTokens, ToolUses: in.Usage.ToolUses, DurationMS: in.Usage.DurationMS,
		Background: in.IsBackgrounded, Ambient: in.Ambient,
	}
	return err
}
