package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Baseline returns the running total that this process starts from; ask after
// [Process.Initialize] and before the first prompt. Versions that cannot say
// always start at zero, which is what it returns for them; any other failure
// is an error, since a wrong baseline would be a wrong bill.
func (p *Process) Baseline(ctx context.Context) (Usage, error) {
	u, err := p.GetUsage(ctx)
	if errors.Is(err, ErrUnsupported) {
		return Usage{}, nil
	}
	return u, err
}

// GetUsage returns the process's running total (2.1.250 on).
func (p *Process) GetUsage(ctx context.Context) (Usage, error) {
	raw, err := p.request(ctx, p.o.RequestTimeout, "get_usage", nil)
	if err != nil {
		return Usage{}, err
	}
	var in struct {
		Session *struct {
			TotalCostUSD float64
			ModelUsage   map[string]ModelUsage
		}
	}
	if err := unmarshal(raw, &in); err != nil || in.Session == nil {
		return Usage{}, errors.New("get_usage: the answer has no session")
	}
	return Usage{TotalMicroUSD: microUSD(in.Session.TotalCostUSD), Models: in.Session.ModelUsage}, nil
}

// Interrupt ends the turn; its [Result] says so. A pending approval is
// withdrawn by the CLI.
func (p *Process) Interrupt(ctx context.Context) error {
	return p.ask(ctx, "interrupt", nil, nil)
}

// SetPermissionMode sets default, acceptEdits, plan or another mode of the
// CLI's. bypassPermissions is refused unless it was launched for it.
func (p *Process) SetPermissionMode(ctx context.Context, mode string) error {
	return p.ask(ctx, "set_permission_mode", map[string]any{"mode": mode}, nil)
}

// SetModel sets the model for the turns to come; empty is the default one.
func (p *Process) SetModel(ctx context.Context, model string) error {
	var m any
	if model != "" {
		m = model
	}
	return p.ask(ctx, "set_model", map[string]any{"model": m}, nil)
}

// SetEffort sets how much the model thinks in the turns to come: low, medium, high and more,
// as [Model.EffortLevels] has them; empty is the model's own. Other settings stay.
func (p *Process) SetEffort(ctx context.Context, level string) error {
	var l any
	if level != "" {
		l = level
	}
	return p.ask(ctx, "apply_flag_settings", map[string]any{"settings": map[string]any{"effortLevel": l}}, nil)
}

// RewindFilesResponse says what a rewind changes, or would.
type RewindFilesResponse struct {
	CanRewind    bool     `json:"canRewind"`
	Error        string   `json:"error"`
	FilesChanged []string `json:"filesChanged"`
	Insertions   int      `json:"insertions"`
	Deletions    int      `json:"deletions"`
}

// RewindFiles puts files back to what they were at the prompt promptUUID; a dry
// run only says what that would change. The CLI needs
// CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1 in its environment.
func (p *Process) RewindFiles(ctx context.Context, promptUUID string, dryRun bool) (RewindFilesResponse, error) {
	var out RewindFilesResponse
	err := p.ask(ctx, "rewind_files", map[string]any{"user_message_id": promptUUID, "dry_run": dryRun}, &out)
	return out, err
}

// ContextUsage is how full the model's context is.
type ContextUsage struct {
	Model       string            `json:"model"`
	TotalTokens int64             `json:"totalTokens"`
	MaxTokens   int64             `json:"maxTokens"`
	Percentage  float64           `json:"percentage"`
	Categories  []ContextCategory `json:"categories"`
	Raw         json.RawMessage   `json:"-"`
}

// ContextCategory is one use of the context.
type ContextCategory struct {
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
	// Kind is used, free, buffer or deferred, where the version says it.
	Kind string `json:"kind"`
}

// GetContextUsage returns how full the context is.
func (p *Process) GetContextUsage(ctx context.Context) (ContextUsage, error) {
	raw, err := p.request(ctx, p.o.InitializeTimeout, "get_context_usage", nil)
	if err != nil {
		return ContextUsage{}, err
	}
	out := ContextUsage{Raw: raw}
	if err := unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("get_context_usage: read answer: %w", err)
	}
	return out, nil
}

// GetWorkspaceDiff returns the changes of the working directory's repository,
// as the CLI gives them.
func (p *Process) GetWorkspaceDiff(ctx context.Context) (json.RawMessage, error) {
	return p.request(ctx, p.o.InitializeTimeout, "get_workspace_diff", nil)
}

// GenerateSessionTitle has a small model name the session from a description;
// persist also stores the title with the session.
func (p *Process) GenerateSessionTitle(ctx context.Context, description string, persist bool) (string, error) {
	var out struct {
		Title string `json:"title"`
	}
	err := p.askWithin(ctx, p.o.InitializeTimeout, "generate_session_title",
		map[string]any{"description": description, "persist": persist}, &out)
	return out.Title, err
}

// ListModels returns the models to choose from.
func (p *Process) ListModels(ctx context.Context) ([]Model, error) {
	var out struct {
		Models []Model `json:"models"`
	}
	err := p.askWithin(ctx, p.o.InitializeTimeout, "list_models", nil, &out)
	return out.Models, err
}

// StopTask stops a background task.
func (p *Process) StopTask(ctx context.Context, taskID string) error {
	return p.ask(ctx, "stop_task", map[string]any{"task_id": taskID}, nil)
}

// CancelAsyncMessage takes a prompt back that still waits in the CLI; false
// when it was taken up already.
func (p *Process) CancelAsyncMessage(ctx context.Context, promptUUID string) (bool, error) {
	var out struct {
		Cancelled bool `json:"cancelled"`
	}
	err := p.ask(ctx, "cancel_async_message", map[string]any{"message_uuid": promptUUID}, &out)
	return out.Cancelled, err
}

// SideQuestion asks the model beside the conversation, also while a turn runs,
// without leaving a trace in it.
func (p *Process) SideQuestion(ctx context.Context, question string) (string, error) {
	var out struct {
		Response string `json:"response"`
	}
	err := p.askWithin(ctx, 6*p.o.RequestTimeout, "side_question", map[string]any{"question": question}, &out)
	return out.Response, err
}

// EndSession asks the CLI to exit; [Process.Stop] is what a host wants.
func (p *Process) EndSession(ctx context.Context) error {
	return p.ask(ctx, "end_session", nil, nil)
}

// Request sends a control request that has no method of its own; fields are its
// members beside the subtype. The answer is decoded into out unless that is
// nil.
func (p *Process) Request(ctx context.Context, subtype string, fields map[string]any, out any) error {
	return p.ask(ctx, subtype, fields, out)
}
