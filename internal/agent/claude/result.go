package claude

// Result ends a turn. Judge it by IsError and Interrupted, not by its Subtype.
type Result struct {
	Meta
	// IsError is true when the turn failed, whatever its subtype: success with
	// IsError is a failed login or a failed call of the model.
	IsError bool
	// Text is the model's last text, or the CLI's explanation.
	Text string `json:"result"`
	// Errors are the CLI's explanations of an error_during_execution.
	Errors []string
	// TerminalReason is completed, aborted_streaming, aborted_tools, api_error,
	// max_turns, budget_exhausted …; empty up to 2.1.37.
	TerminalReason string
	// NumTurns counts calls of the model.
	NumTurns int
	// APIErrorStatus is the HTTP status of a failed call of the model; or 0.
	APIErrorStatus int
	// Running is the running total of the epoch, not of the turn; see [Totals].
	Running Usage `json:"-"`
	// PermissionDenials are the calls that were refused.
	PermissionDenials []struct{ ToolUseID string }
	// QueuedTurns is how many prompts still wait in the CLI; another result
	// follows when it is not 0.
	QueuedTurns int `json:"queued_turn_count"`
}

// Interrupted reports whether somebody stopped the turn: that is no failure.
func (r *Result) Interrupted() bool {
	switch r.TerminalReason {
	case "aborted_streaming", "aborted_tools":
		return true
	case "":
		// Up to 2.1.37 an interrupted turn says so only by this.
		return r.Subtype == "error_during_execution" && !r.IsError
	}
	return false
}

func decodeResult(line []byte) Message {
	var in struct {
		Result
		Error errorText
		costs
	}
	fill(line, &in)
	m := &in.Result
	if in.Error != "" {
		m.Errors = append([]string{string(in.Error)}, m.Errors...)
	}
	m.Running = in.usage()
	return m
}
