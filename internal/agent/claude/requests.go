package claude

import (
	"context"
	"errors"
)

// Baseline returns the running total that this process starts from; ask after
// [Process.Initialize] and before the first prompt. Versions that cannot say
// always start at zero, which is what it returns for them; any other failure
// is an error, since a wrong baseline would be a wrong bill.
func (p *Process) Baseline(ctx context.Context) (Usage, error) {
	var in struct{ Session *costs }
	switch err := p.ask(ctx, "get_usage", nil, &in); {
	case errors.Is(err, ErrUnsupported):
		return Usage{}, nil
	case err != nil:
		return Usage{}, err
	case in.Session == nil:
		return Usage{}, errors.New("get_usage: the answer has no session")
	}
	return in.Session.usage(), nil
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

// SetEffort sets how much the model thinks in the turns to come: low, medium, high and more;
// empty is the model's own. Other settings stay.
func (p *Process) SetEffort(ctx context.Context, level string) error {
	var l any
	if level != "" {
		l = level
	}
	return p.ask(ctx, "apply_flag_settings", map[string]any{"settings": map[string]any{"effortLevel": l}}, nil)
}
