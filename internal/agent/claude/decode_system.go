package claude

// system decodes the many subtypes into one struct: a field that several of
// them use has one meaning in all.
func (d *Decoder) system(c *cursor, m *System) {
	start := c.i
	subtype := ""
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		if string(k) == "subtype" {
			subtype = c.sym()
			break
		}
		c.skip()
	}
	if c.bad {
		return
	}
	c.i = start

	// These stay on the stack: most events have none of them.
	var retry APIRetry
	var hook HookRun
	var task Task
	var init Init
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "status":
			s := c.sym()
			m.Status, task.State = s, s
		case "state":
			m.Status = c.sym()
		case "permissionMode", "permission_mode":
			m.PermissionMode = c.sym()
			init.PermissionMode = m.PermissionMode
		case "content", "message", "text":
			m.Text = c.str()
		case "level", "priority":
			m.Level = c.sym()
		case "tool_name":
			m.ToolName = c.str()
		case "tool_use_id":
			m.ToolUseID = c.str()
			task.ToolUseID = m.ToolUseID
		case "estimated_tokens":
			m.ThinkingTokens = c.integer()
		case "duration_ms", "durationMs":
			m.DurationMS = c.integer()
		case "request_id":
			m.RequestID = c.str()
		case "user_message_uuids":
			m.PromptUUIDs = c.strings()
		case "retracted_message_uuids":
			m.Retracted = c.strings()
		case "error":
			s := c.errorText()
			m.Text, retry.Error, task.Error = s, s, s
		case "attempt", "retryAttempt":
			retry.Attempt = int(c.integer())
		case "max_retries", "maxRetries":
			retry.Max = int(c.integer())
		case "retry_delay_ms", "retryInMs":
			retry.DelayMS = c.integer()
		case "error_status":
			retry.Status = int(c.integer())
		case "hook_id":
			hook.ID = c.str()
		case "hook_name":
			hook.Name = c.str()
		case "hook_event":
			hook.Event = c.str()
		case "stdout":
			hook.Stdout = c.str()
		case "stderr":
			hook.Stderr = c.str()
		case "output":
			hook.Output = c.str()
		case "outcome":
			hook.Outcome = c.str()
		case "exit_code":
			hook.ExitCode = int(c.integer())
		case "task_id", "task_type", "subagent_type", "description", "summary", "last_tool_name",
			"output_file", "usage", "is_backgrounded", "ambient":
			c.taskField(string(k), &task)
		case "patch":
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				c.taskField(string(k), &task)
			}
		case "tasks":
			for ok := c.firstElem(); ok; ok = c.nextElem() {
				t := Task{State: "running", Background: true}
				for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
					c.taskField(string(k), &t)
				}
				m.Tasks = append(m.Tasks, t)
			}
		case "compact_metadata", "compactMetadata", "microcompact_metadata", "microcompactMetadata":
			m.Compact = c.compact()
		case "commands":
			m.Commands = c.commands()
		default:
			if subtype != "init" || !c.initField(string(k), &init) {
				d.meta(c, k, &m.Meta)
			}
		}
	}
	switch subtype {
	case "init":
		m.Init = new(Init)
		*m.Init = init
	case "api_retry", "control_request_progress":
		m.Retry = new(APIRetry)
		*m.Retry = retry
	case "hook_started", "hook_progress", "hook_response":
		m.Hook = new(HookRun)
		*m.Hook = hook
	case "task_started", "task_progress", "task_updated", "task_notification":
		if task.State == "" && subtype != "task_updated" {
			task.State = "running"
		}
		m.Task = new(Task)
		*m.Task = task
	case "compact_boundary", "microcompact_boundary":
		if m.Compact == nil {
			m.Compact = new(Compact)
		}
	}
}

func (c *cursor) errorText() string {
	if c.peek() != '{' {
		return c.str()
	}
	var s string
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		if string(k) == "message" {
			s = c.str()
		} else {
			c.skip()
		}
	}
	return s
}

func (c *cursor) initField(key string, m *Init) bool {
	switch key {
	case "cwd":
		m.Cwd = c.str()
	case "model":
		m.Model = c.sym()
	case "claude_code_version":
		m.Version = c.str()
	case "output_style":
		m.OutputStyle = c.str()
	case "apiKeySource":
		m.APIKeySource = c.str()
	case "tools":
		m.Tools = c.names()
	case "slash_commands":
		m.SlashCommands = c.names()
	case "agents":
		m.Agents = c.names()
	case "skills":
		m.Skills = c.names()
	case "mcp_servers":
		for ok := c.firstElem(); ok; ok = c.nextElem() {
			var s MCPServer
			for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
				switch string(k) {
				case "name":
					s.Name = c.str()
				case "status":
					s.Status = c.str()
				default:
					c.skip()
				}
			}
			m.MCPServers = append(m.MCPServers, s)
		}
	default:
		return false
	}
	return true
}

// names takes an array of names, or of objects that have one.
func (c *cursor) names() []string {
	var out []string
	for ok := c.firstElem(); ok; ok = c.nextElem() {
		if c.peek() == '"' {
			out = append(out, c.sym())
			continue
		}
		for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
			if string(k) == "name" {
				out = append(out, c.str())
			} else {
				c.skip()
			}
		}
	}
	return out
}

func (c *cursor) taskField(key string, t *Task) {
	switch key {
	case "task_id":
		t.ID = c.str()
	case "task_type":
		t.Kind = c.sym()
	case "subagent_type":
		t.Subagent = c.str()
	case "description":
		t.Description = c.str()
	case "summary":
		t.Summary = c.str()
	case "last_tool_name":
		t.LastTool = c.str()
	case "output_file":
		t.OutputFile = c.str()
	case "status":
		t.State = c.sym()
	case "error":
		t.Error = c.errorText()
	case "is_backgrounded":
		t.Background = c.boolean()
	case "ambient":
		t.Ambient = c.boolean()
	case "usage":
		for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
			switch string(k) {
			case "total_tokens":
				t.Tokens = c.integer()
			case "tool_uses":
				t.ToolUses = c.integer()
			case "duration_ms":
				t.DurationMS = c.integer()
			default:
				c.skip()
			}
		}
	default:
		c.skip()
	}
}

func (c *cursor) compact() *Compact {
	m := new(Compact)
	for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
		switch string(k) {
		case "trigger":
			m.Trigger = c.str()
		case "pre_tokens", "preTokens":
			m.PreTokens = c.integer()
		case "post_tokens", "postTokens":
			m.PostTokens = c.integer()
		default:
			c.skip()
		}
	}
	return m
}

func (c *cursor) commands() []Command {
	var out []Command
	for ok := c.firstElem(); ok; ok = c.nextElem() {
		var cmd Command
		for k, ok := c.firstKey(); ok; k, ok = c.nextKey() {
			c.commandField(string(k), &cmd)
		}
		out = append(out, cmd)
	}
	return out
}

func (c *cursor) commandField(key string, cmd *Command) {
	switch key {
	case "name":
		cmd.Name = c.str()
	case "description":
		cmd.Description = c.str()
	case "argumentHint":
		cmd.ArgumentHint = c.str()
	case "aliases":
		cmd.Aliases = c.strings()
	default:
		c.skip()
	}
}
