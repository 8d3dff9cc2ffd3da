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
