package claude

import "cmp"

// decodeSystem reads the many subtypes into one struct: a field that several of
// them use has one meaning in all.
func decodeSystem(line []byte) Message {
	var in struct {
		System
		State                  string
		Content, Message, Text string
		Error                  errorText
		Priority               string
		RetryAttempt           int
		Tasks                  []Task
	}
	fill(line, &in)
	m := &in.System
	m.Status = cmp.Or(m.Status, in.State)
	m.Text = cmp.Or(in.Content, in.Message, in.Text, string(in.Error))
	m.Level = cmp.Or(m.Level, in.Priority)
	m.Attempt = cmp.Or(m.Attempt, in.RetryAttempt)
	for _, t := range in.Tasks {
		t.State = cmp.Or(t.State, "running")
		t.Background = true
		m.Tasks = append(m.Tasks, t)
	}
	switch m.Subtype {
	case "task_started", "task_progress", "task_updated", "task_notification":
		m.Task = decodeTask(line)
		if m.Task.State == "" && m.Subtype != "task_updated" {
			m.Task.State = "running"
		}
	}
	return m
}

// decodeTask reads a task, with what a patch changes of it.
func decodeTask(line []byte) *Task {
	var in struct {
		*Task
		Patch *Task
	}
	in.Task = new(Task)
	in.Patch = in.Task
	fill(line, &in)
	return in.Task
}
