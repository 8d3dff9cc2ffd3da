package ask

import (
	"context"
	"path/filepath"
	"strings"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/store/approvals"
)

// Hook decides a tool call before it runs, by rule or by grant (see grants.go), or has
// the CLI ask a person. A decision is committed before the CLI learns of it.
func (d *Desk) Hook(ctx context.Context, h *claude.HookCallback) error {
	switch {
	case d.Worker.Stopping():
		return d.reply(RefuseHook(d.Process, h, Stopped))
	case h.Event != "PreToolUse":
		return d.tellChange(h)
	}
	if err := d.lookAtTool(ctx, h.ToolName); err != nil {
		return err
	}
	call := d.call(h.ToolName, h.ToolInput, h.Cwd)
	by := d.decide(call)
	if by.Verdict != policy.Allow && by.Verdict != policy.Deny {
		return d.checkGrants(ctx, &check{requestID: h.RequestID, toolUseID: h.ToolUseID, cwd: h.Cwd, call: call, decision: by})
	}
	a, err := d.decideByRule(ctx, h.RequestID, h.ToolUseID, call, by)
	if err != nil {
		return err
	}
	if by.Contained && !claude.ToolKeepsList(call.Tool) {
		d.contained++
	}
	if a.Status == approvals.Denied {
		return d.reply(d.Process.AnswerPreToolUse(h.RequestID, claude.HookDeny, a.Reason))
	}
	d.begins(h.ToolUseID, call, nil)
	return d.reply(d.Process.AnswerPreToolUse(h.RequestID, claude.HookAllow, a.Terms.Rule))
}

// RefuseHook refuses a call before it runs; one that has run is past it.
func RefuseHook(p Process, h *claude.HookCallback, why string) error {
	if h.Event != "PreToolUse" {
		return p.AnswerHook(h.RequestID, nil)
	}
	return p.AnswerPreToolUse(h.RequestID, claude.HookDeny, why)
}

func (d *Desk) decideByRule(ctx context.Context, requestID, toolUseID string, c policy.Call, by policy.Decision) (approvals.Approval, error) {
	a := d.request(requestID, toolUseID, c, by)
	a.Kind, a.Status, a.DecidedBy, a.DecidedVia = approvals.Tool, approvals.Allowed, "rule", "rule"
	if by.Verdict == policy.Deny {
		a.Status = approvals.Denied
		a.Reason = "This team's policy does not allow it (" + strings.TrimSuffix(by.Rule+": "+a.Terms.Because, ": ") + "). Do not try to get around it; say what you would have needed it for."
	}
	return d.record(ctx, a)
}

// Permission asks a person, unless a rule denies the call or the process that
// this turn continues was given the decision already.
func (d *Desk) Permission(ctx context.Context, r *claude.CanUseTool) error {
	if d.Worker.Stopping() {
		return d.reply(d.Process.Deny(r.RequestID, Stopped, true))
	}
	if err := d.lookAtTool(ctx, r.ToolName); err != nil {
		return err
	}
	call := d.call(r.ToolName, r.Input, d.cwd[r.ToolUseID])
	by := d.decide(call)
	if by.Verdict == policy.Deny {
		a, err := d.decideByRule(ctx, r.RequestID, r.ToolUseID, call, by)
		if err != nil {
			return err
		}
		return d.reply(d.Process.Deny(r.RequestID, a.Reason, false))
	}
	if by.Contained { // the hook was told so, and Claude Code wants to be told again
		if !d.running.HasWith(r.ToolUseID, r.Input) { // else that decision is recorded
			if _, err := d.decideByRule(ctx, r.RequestID, r.ToolUseID, call, by); err != nil {
				return err
			}
		}
		d.begins(r.ToolUseID, call, nil)
		return d.reply(d.Process.Allow(r.RequestID, r.Input))
	}
	if why := d.unseen(call); why != "" {
		if err := d.denyUnseen(ctx, d.request(r.RequestID, r.ToolUseID, call, by), why); err != nil {
			return err
		}
		return d.reply(d.Process.Deny(r.RequestID, why, false))
	}
	a := d.request(r.RequestID, r.ToolUseID, call, by)
	a.DecisionReason = r.DecisionReason
	if r.AgentID != "" {
		d.ofAgents[r.RequestID] = true
	}
	if d.Pulls != nil {
		if leaves, folder, looked := d.Pulls.Source(call, d.Thread.Branch); looked {
			return d.askAboutPull(ctx, a, call, leaves, filepath.Join(d.Thread.Workspace, folder))
		}
	}
	if push, _ := policy.Pushes(call); push && d.ReachesForge {
		return d.askAboutPush(ctx, a, call)
	}
	return d.ask(ctx, a, call, nil)
}

// ask puts a call to people, unless the process that this turn continues was given the
// decision already. about is the host, if it is a call of policy.NetworkTool.
func (d *Desk) ask(ctx context.Context, a approvals.Approval, call policy.Call, about *Host) error {
	alone := a.Push != nil || a.ToolChange != nil
	if a.CardID, a.Said = d.openCard(), saidBefore(d.Content.Items, a.ToolUseID); alone {
		a.CardID = "" // its card is about nothing else
	}
	for _, risk := range policy.Assess(call) {
		a.Risks = append(a.Risks, string(risk))
	}
	a.Touches = Touched(call)
	a, err := d.record(ctx, a)
	if err != nil {
		return err
	}
	d.asked[a.ID] = a
	d.Waiting.Store(a.ID, nil)
	if about != nil {
		about.approval = a.ID
	}
	if a.Status != approvals.Pending {
		return d.Decided(ctx, a.ID, nil) // decided while the process was gone
	}
	d.putOnCard(a)
	d.Worker.Show() // what led to the question, above it
	if alone {
		d.carded = -1 // nothing else joins its card
	}
	d.Front.ShowApproval(a)
	return nil
}

// AfterChanges registers the hooks by which the model is told what ran: the CLI shows it the
// call as it wrote it, with the result of what people have made of it.
func AfterChanges() map[string][]claude.HookMatcher {
	every := []claude.HookMatcher{{Matcher: "Bash|Edit|Write|NotebookEdit", CallbackIDs: []string{"deckhand-changed"}}}
	return map[string][]claude.HookMatcher{"PostToolUse": every, "PostToolUseFailure": every}
}

// tellChange tells the model with a call's result that another input ran than it wrote.
func (d *Desk) tellChange(h *claude.HookCallback) error {
	var answer map[string]any
	if told, ok := d.changed[h.ToolUseID]; ok {
		delete(d.changed, h.ToolUseID)
		answer = map[string]any{"hookEventName": h.Event, "additionalContext": told}
	}
	return d.reply(d.Process.AnswerHook(h.RequestID, answer))
}
