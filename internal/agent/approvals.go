package agent

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/store"
)

// asked is an approval that the CLI waits for now.
type asked struct {
	approval store.Approval
	deadline *time.Timer
}

// newApprovalID is what a button carries: 128 random bits, nothing else.
func newApprovalID() string { return rand.Text() }

// onHook decides a tool call before it runs, by rule, or has the CLI ask a
// person. A rule's decision is committed before the CLI hears of it.
func (w *worker) onHook(ctx context.Context, h *claude.HookCallback) error {
	if h.Event != "PreToolUse" {
		return w.reply(w.session.proc.AnswerPreToolUse(h.RequestID, claude.HookNone, ""))
	}
	if w.turn == nil {
		return w.reply(w.session.proc.AnswerPreToolUse(h.RequestID, claude.HookDeny, "No turn is running in this thread, so nobody can be asked. Wait for the next message."))
	}
	verdict, rule := w.s.c.Policy.Decide(h.ToolName, h.ToolInput, w.thread.Workspace)
	if verdict == Ask {
		return w.reply(w.session.proc.AnswerPreToolUse(h.RequestID, claude.HookAsk, ""))
	}
	a, err := w.decideByRule(ctx, h.RequestID, h.ToolUseID, h.ToolName, h.ToolInput, verdict, rule)
	if err != nil {
		return err
	}
	if a.Status == store.ApprovalDenied {
		return w.reply(w.session.proc.AnswerPreToolUse(h.RequestID, claude.HookDeny, a.Reason))
	}
	return w.reply(w.session.proc.AnswerPreToolUse(h.RequestID, claude.HookAllow, rule))
}

func (w *worker) decideByRule(ctx context.Context, requestID, toolUseID, tool string, input json.RawMessage, v Verdict, rule string) (store.Approval, error) {
	a := store.Approval{
		ID: newApprovalID(), SessionID: w.session.id, TurnID: w.turn.row.ID, Kind: store.ApprovalTool,
		RequestID: requestID, ToolUseID: toolUseID, ToolName: tool, Input: input,
		RequestedBy: w.turn.row.RequestedBy, Rule: rule, ExpiresAt: time.Now(),
		Status: store.ApprovalAllowed, DecidedBy: "rule", DecidedVia: "rule",
	}
	if v == Deny {
		a.Status = store.ApprovalDenied
		a.Reason = "This team's policy does not allow it (" + rule + "). Do not try to get around it; say what you would have needed it for."
	}
	return w.s.c.Store.Ask(ctx, w.heldLease(), a)
}

// onCanUseTool asks a person, unless a rule denies the call or the process that
// this turn continues was given the decision already.
func (w *worker) onCanUseTool(ctx context.Context, r *claude.CanUseTool) error {
	t := w.turn
	if t == nil || t.stoppedBy != "" {
		return w.reply(w.session.proc.Deny(r.RequestID, "The turn is being stopped.", true))
	}
	verdict, rule := w.s.c.Policy.Decide(r.ToolName, r.Input, w.thread.Workspace)
	if verdict == Deny {
		a, err := w.decideByRule(ctx, r.RequestID, r.ToolUseID, r.ToolName, r.Input, Deny, rule)
		if err != nil {
			return err
		}
		return w.reply(w.session.proc.Deny(r.RequestID, a.Reason, false))
	}
	a, err := w.s.c.Store.Ask(ctx, w.heldLease(), store.Approval{
		ID: newApprovalID(), SessionID: w.session.id, TurnID: t.row.ID, Kind: approvalKind(r.ToolName),
		RequestID: r.RequestID, ToolUseID: r.ToolUseID, ToolName: r.ToolName, Input: r.Input,
		RequestedBy: t.row.RequestedBy, Rule: rule, DecisionReason: r.DecisionReason,
		ExpiresAt: time.Now().Add(w.s.c.Policy.Timeout),
	})
	if err != nil {
		return err
	}
	id := a.ID
	t.asked[id] = &asked{approval: a, deadline: time.AfterFunc(time.Until(a.ExpiresAt), func() {
		w.box.put(letter{kind: letterExpired, id: id})
	})}
	w.s.waiting.add(id)
	if a.Status != store.ApprovalPending {
		return w.onDecided(ctx, id, nil) // decided while the process was gone
	}
	w.show() // what led to the question, above it
	if n := len(t.content.Items); len(t.breaks) == 0 || t.breaks[len(t.breaks)-1] != n {
		t.breaks = append(t.breaks, n)
	}
	w.s.c.Frontend.ShowApproval(a)
	return nil
}

func approvalKind(tool string) store.ApprovalKind {
	switch tool {
	case "AskUserQuestion":
		return store.ApprovalQuestion
	case "ExitPlanMode":
		return store.ApprovalPlan
	}
	return store.ApprovalTool
}

// onDecided answers the CLI for an approval that has ended by a decision. The
// right to answer is claimed in the database first, and it is given once: with the
// decision, when that was made on this replica, else now.
func (w *worker) onDecided(ctx context.Context, id string, decided *store.Approval) error {
	if w.turn == nil || w.turn.asked[id] == nil {
		return nil // its process is gone, or it was cancelled: it is bound when asked again
	}
	requested := w.turn.asked[id].approval
	var a store.Approval
	if decided != nil && decided.Delivered {
		a = *decided
	} else {
		var err error
		a, err = w.s.c.Store.Deliver(ctx, w.heldLease(), id)
		if errors.Is(err, store.ErrNotFound) {
			return nil // ended without a decision, or delivered
		}
		if err != nil {
			return err
		}
	}
	w.forget(id)
	if err := w.answer(a, requested); err != nil {
		return err
	}
	w.s.c.Frontend.ShowApproval(a)
	w.show()
	return nil
}

func (w *worker) answer(a, requested store.Approval) error {
	proc := w.session.proc
	w.turn.content = w.turn.content.Fold(&claude.Decision{RequestID: requested.RequestID, Allowed: a.Status == store.ApprovalAllowed})
	if a.Status == store.ApprovalDenied {
		return w.reply(proc.Deny(requested.RequestID, denial(a), false))
	}
	// What runs is what was asked for, and what was asked for is what was shown.
	if sum := sha256.Sum256(requested.Input); sum != a.InputSHA256 || sum != sha256.Sum256(a.Input) {
		w.log.Error("an approval does not match its request", zap.String("approval", a.ID))
		return w.reply(proc.Deny(requested.RequestID, "The approval does not match this request. Ask again.", false))
	}
	input := a.Input
	if a.Kind == store.ApprovalQuestion && a.Answer != nil {
		input = a.Answer
	}
	return w.reply(proc.Allow(requested.RequestID, input))
}

// denial is what the model is told: the person's reason steers it.
func denial(a store.Approval) string {
	switch {
	case a.Kind == store.ApprovalQuestion:
		return strings.TrimSpace("The person does not want to answer this. " + a.Reason)
	case a.Kind == store.ApprovalPlan && a.Reason != "":
		return "The person wants you to keep planning: " + a.Reason
	case a.Kind == store.ApprovalPlan:
		return "The person did not accept the plan. Ask what to change."
	case a.Reason != "":
		return "The person denied this, and said: " + a.Reason
	}
	return "The person denied this. Do not try to get around it; say what you would have done, or ask."
}

// onExpired pauses the turn: silence is not a denial, and the work must not go on
// as if it were.
func (w *worker) onExpired(ctx context.Context, id string) error {
	if w.turn == nil || w.turn.asked[id] == nil {
		return nil
	}
	requested := w.turn.asked[id].approval
	a, ok, err := w.s.c.Store.EndApproval(ctx, w.heldLease(), id, store.ApprovalExpired)
	if err != nil {
		return err
	}
	if !ok {
		return w.onDecided(ctx, id, nil) // somebody was quicker
	}
	w.forget(id)
	w.turn.expired = true
	w.s.c.Frontend.ShowApproval(a)
	return w.reply(w.session.proc.Deny(requested.RequestID,
		fmt.Sprintf("Nobody decided within %s. The turn is paused.", w.s.c.Policy.Timeout), true))
}

// onCancelRequest drops an approval that the CLI no longer waits for.
func (w *worker) onCancelRequest(ctx context.Context, requestID string) error {
	if w.turn == nil {
		return nil
	}
	for id, q := range w.turn.asked {
		if q.approval.RequestID != requestID {
			continue
		}
		a, ok, err := w.s.c.Store.EndApproval(ctx, w.heldLease(), id, store.ApprovalCancelled)
		if err != nil {
			return err
		}
		w.forget(id)
		if ok {
			w.s.c.Frontend.ShowApproval(a)
		}
	}
	return nil
}

func (w *worker) forget(id string) {
	w.turn.asked[id].deadline.Stop()
	w.s.waiting.remove(id)
	delete(w.turn.asked, id)
}

func (w *worker) showEnded(ended []store.Approval) {
	for _, a := range ended {
		w.s.c.Frontend.ShowApproval(a)
	}
}

// reply drops the error of a write to a process that has ended: onExit follows
// and tells of it.
func (w *worker) reply(err error) error {
	if err != nil {
		w.log.Warn("answer the CLI", zap.Error(err))
	}
	return nil
}
