package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/ask"
	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/pulls"
	"deckhand/internal/store"
)

// stopped is what the model is told of a call in a turn that is being stopped.
const stopped = "The turn is being stopped."

// over is what it is told of one that waits when its turn has ended.
const over = "The turn is over."

// onHook decides a tool call before it runs, by rule or by grant (see grants.go), or has
// the CLI ask a person. A decision is committed before the CLI learns of it.
func (w *worker) onHook(ctx context.Context, h *claude.HookCallback) error {
	switch {
	case w.turn == nil:
		return w.refuseHook(h, "No turn is running in this thread, so nobody can be asked. Wait for the next message.")
	case w.turn.stopping():
		return w.refuseHook(h, stopped)
	case h.Event != "PreToolUse":
		return w.tellChange(h)
	}
	call := w.call(h.ToolName, h.ToolInput, h.Cwd)
	d := w.decide(call)
	if d.Verdict != policy.Allow && d.Verdict != policy.Deny {
		return w.checkGrants(ctx, &check{requestID: h.RequestID, toolUseID: h.ToolUseID, cwd: h.Cwd, call: call, decision: d})
	}
	a, err := w.decideByRule(ctx, h.RequestID, h.ToolUseID, call, d)
	if err != nil {
		return err
	}
	if d.Contained && !claude.ToolKeepsList(call.Tool) {
		w.turn.contained++
	}
	if a.Status == store.ApprovalDenied {
		return w.reply(w.session.proc.AnswerPreToolUse(h.RequestID, claude.HookDeny, a.Reason))
	}
	w.begins(h.ToolUseID, call, nil)
	return w.reply(w.session.proc.AnswerPreToolUse(h.RequestID, claude.HookAllow, a.Terms.Rule))
}

// refuseHook refuses a call before it runs; one that has run is past it.
func (w *worker) refuseHook(h *claude.HookCallback, why string) error {
	if h.Event != "PreToolUse" {
		return w.reply(w.session.proc.AnswerHook(h.RequestID, claude.HookAnswer{}))
	}
	return w.reply(w.session.proc.AnswerPreToolUse(h.RequestID, claude.HookDeny, why))
}

// decide is what the policy says of a call. A fault in reading it is logged, with the call:
// it is asked, and somebody has to mend what failed.
func (w *worker) decide(c policy.Call) policy.Decision {
	d := w.policy.Decide(c)
	if d.Fault != "" {
		w.log.Error("the policy failed while reading a call, which is asked: please report it", zap.String("tool", c.Tool), zap.ByteString("input", c.Input), zap.String("fault", d.Fault))
	}
	return d
}

// call is a tool call as the policy sees it. cwd is where a command runs; empty
// means where the session works.
func (w *worker) call(tool string, input json.RawMessage, cwd string) policy.Call {
	return policy.Call{
		Tool: tool, Input: input, Workspace: w.thread.Workspace, Dir: cmp.Or(cwd, w.project.Folder(w.thread.Workspace)), Project: w.project.Name, Channel: w.thread.ChannelID,
		Home: w.place.Home(w.threadID),
	}
}

// request is a new approval of the running turn, as the policy wants it.
func (w *worker) request(requestID, toolUseID string, c policy.Call, d policy.Decision) store.Approval {
	if ask.KindOf(c.Tool) == store.ApprovalQuestion {
		// It is put to the person who asked; whoever may give work may answer.
		d.Terms = policy.Terms{Quorum: 1, RequesterMayApprove: true, Timeout: d.Terms.Timeout, OnTimeout: d.Terms.OnTimeout, Because: d.Terms.Because}
	}
	return store.Approval{
		ID: ask.NewID(), SessionID: w.session.id, TurnID: w.turn.row.ID, Kind: ask.KindOf(c.Tool),
		RequestID: requestID, ToolUseID: toolUseID, ToolName: c.Tool, Input: c.Input, RequestedBy: w.turn.row.RequestedBy,
		Terms: ask.TermsOf(d), Dir: c.Dir, ExpiresAt: time.Now().Add(d.Terms.Timeout),
	}
}

func (w *worker) decideByRule(ctx context.Context, requestID, toolUseID string, c policy.Call, d policy.Decision) (store.Approval, error) {
	a := w.request(requestID, toolUseID, c, d)
	a.Kind, a.Status, a.DecidedBy, a.DecidedVia = store.ApprovalTool, store.ApprovalAllowed, "rule", "rule"
	if d.Verdict == policy.Deny {
		a.Status = store.ApprovalDenied
		a.Reason = "This team's policy does not allow it (" + strings.TrimSuffix(d.Rule+": "+a.Terms.Because, ": ") + "). Do not try to get around it; say what you would have needed it for."
	}
	return w.record(ctx, a)
}

// record writes a request of the running turn to the database, which may hold a decision about
// it already.
func (w *worker) record(ctx context.Context, a store.Approval) (store.Approval, error) {
	out, err := w.store.Ask(ctx, w.heldLease(), a)
	if err == nil && !claude.ToolKeepsList(a.ToolName) {
		w.turn.steps++
	}
	return out, err
}

// onCanUseTool asks a person, unless a rule denies the call or the process that
// this turn continues was given the decision already.
func (w *worker) onCanUseTool(ctx context.Context, r *claude.CanUseTool) error {
	t := w.turn
	if t == nil || t.stopping() {
		return w.reply(w.session.proc.Deny(r.RequestID, stopped, true))
	}
	call := w.call(r.ToolName, r.Input, t.cwd[r.ToolUseID])
	d := w.decide(call)
	if d.Verdict == policy.Deny {
		a, err := w.decideByRule(ctx, r.RequestID, r.ToolUseID, call, d)
		if err != nil {
			return err
		}
		return w.reply(w.session.proc.Deny(r.RequestID, a.Reason, false))
	}
	if d.Contained { // the hook was told so, and Claude Code wants to be told again
		if !w.turn.running.HasWith(r.ToolUseID, r.Input) { // else that decision is recorded
			if _, err := w.decideByRule(ctx, r.RequestID, r.ToolUseID, call, d); err != nil {
				return err
			}
		}
		w.begins(r.ToolUseID, call, nil)
		return w.reply(w.session.proc.Allow(r.RequestID, r.Input))
	}
	if why := w.unseen(call); why != "" {
		if err := w.denyUnseen(ctx, w.request(r.RequestID, r.ToolUseID, call, d), why); err != nil {
			return err
		}
		return w.reply(w.session.proc.Deny(r.RequestID, why, false))
	}
	a := w.request(r.RequestID, r.ToolUseID, call, d)
	a.DecisionReason = r.DecisionReason
	if r.AgentID != "" {
		t.ofAgents[r.RequestID] = true
	}
	if leaves, looked := pulls.Source(call, w.thread.Branch); looked && w.pulls != nil {
		return w.askAboutPull(ctx, a, call, leaves)
	}
	if push, _ := policy.Pushes(call); push && w.project.ReachesForge() {
		return w.askAboutPush(ctx, a, call)
	}
	return w.ask(ctx, a, call, nil)
}

// ask puts a call to people, unless the process that this turn continues was given the
// decision already. about is the host, if it is a call of policy.NetworkTool.
func (w *worker) ask(ctx context.Context, a store.Approval, call policy.Call, about *ask.Host) error {
	t := w.turn
	if a.CardID, a.Said = t.openCard(), saidBefore(t.content.Items, a.ToolUseID); a.Push != nil {
		a.CardID = "" // its card is about nothing else
	}
	for _, risk := range policy.Assess(call) {
		a.Risks = append(a.Risks, string(risk))
	}
	a.Touches = ask.Touched(call)
	a, err := w.record(ctx, a)
	if err != nil {
		return err
	}
	t.asked[a.ID] = a
	w.waiting.add(a.ID)
	if about != nil {
		about.Asked(a.ID)
	}
	if a.Status != store.ApprovalPending {
		return w.onDecided(ctx, a.ID, nil) // decided while the process was gone
	}
	t.putOnCard(a)
	w.show() // what led to the question, above it
	if a.Push != nil {
		t.carded = -1 // nothing else joins its card
	}
	w.front.ShowApproval(a)
	return nil
}

// onDecided answers the CLI for an approval that has ended by a decision. The
// right to answer is claimed in the database first, and it is given once: with the
// decision, when that was made on this replica, else now.
func (w *worker) onDecided(ctx context.Context, id string, decided *store.Approval) error {
	requested, ok := w.asked(id)
	if !ok {
		return nil // its process is gone, or it was cancelled: it is bound when asked again
	}
	about := w.turn.hosts.Of(id)
	var a store.Approval
	var err error
	switch {
	case decided != nil && decided.Delivered:
		a = *decided
	case about != nil && !about.Waits():
		// Whoever asked has left. It counts as delivered when somebody waits for it again,
		// in a process that goes on with this turn.
		if a, err = w.store.ApprovalByID(ctx, id); err == nil && a.Status != store.ApprovalAllowed && a.Status != store.ApprovalDenied {
			return w.onUndecided(ctx, id)
		}
	default:
		a, err = w.store.Deliver(ctx, w.heldLease(), id)
		if errors.Is(err, store.ErrNotFound) {
			return w.onUndecided(ctx, id) // it ended otherwise
		}
	}
	if err != nil {
		return err
	}
	w.forget(a)
	if about != nil {
		w.answerHost(about, a, requested)
	} else if err := w.answer(a, requested); err != nil {
		return err
	}
	w.show()
	w.front.ShowApproval(a)
	return nil
}

// asked is an approval that the CLI waits for now.
func (w *worker) asked(id string) (store.Approval, bool) {
	if w.turn == nil {
		return store.Approval{}, false
	}
	a, ok := w.turn.asked[id]
	return a, ok
}

func (w *worker) answer(a, requested store.Approval) error {
	proc := w.session.proc
	w.turn.content = w.turn.content.Fold(&claude.Decision{RequestID: requested.RequestID, Allowed: a.Status == store.ApprovalAllowed, Input: a.Edited.Input})
	if w.turn.stopping() {
		return w.reply(proc.Deny(requested.RequestID, stopped, true)) // whatever was decided: somebody stopped it
	}
	if a.Status == store.ApprovalDenied {
		return w.reply(proc.Deny(requested.RequestID, ask.Denial(a), false))
	}
	// What runs is what was asked for, and what was asked for is what was shown.
	if sum := sha256.Sum256(requested.Input); sum != a.InputSHA256 || sum != sha256.Sum256(a.Input) {
		w.log.Error("an approval does not match its request", zap.String("approval", a.ID))
		return w.reply(proc.Deny(requested.RequestID, "The approval does not match this request. Ask again.", false))
	}
	input := a.ToRun()
	if a.Kind == store.ApprovalQuestion && a.Answer != nil {
		input = a.Answer
	}
	call := w.call(requested.ToolName, input, w.turn.cwd[requested.ToolUseID])
	if a.Edited.Times > 0 && (a.Edited.SHA256 != sha256.Sum256(input) || w.decide(call).Verdict == policy.Deny) {
		w.log.Error("a changed input is not what was decided about, or not allowed any more", zap.String("approval", a.ID))
		return w.reply(proc.Deny(requested.RequestID, "A person changed this call before it was approved, and the policy does not allow the changed one now. Nothing ran. Ask again.", false))
	}
	if a.Edited.Times > 0 {
		w.turn.changed[requested.ToolUseID] = ask.ChangeNote(a)
	}
	w.begins(requested.ToolUseID, call, a.Push)
	return w.reply(proc.Allow(requested.RequestID, input))
}

// onUndecided answers the CLI for an approval whose time has run out. Silence is
// not a denial: unless the policy says otherwise the turn is paused, since the work
// must not go on as if somebody had refused.
func (w *worker) onUndecided(ctx context.Context, id string) error {
	a, err := w.store.ApprovalByID(ctx, id)
	if err != nil {
		return err
	}
	if a.Status != store.ApprovalExpired {
		return nil
	}
	requested, about := w.turn.asked[id], w.turn.hosts.Of(id)
	w.forget(a)
	w.show()
	w.front.ShowApproval(a)
	waited := ask.TimeToDecide(a)
	if about != nil {
		w.hostUndecided(ctx, about, a, waited)
		return nil
	}
	if a.Terms.OnTimeout == store.TimeoutDeny {
		w.sayExpired(ctx, a)
		w.show()
		return w.reply(w.session.proc.Deny(requested.RequestID,
			fmt.Sprintf("Nobody decided within %s, and this team's policy takes that as a no. Do not try to get around it; go on without it, or say why it is needed.", waited), false))
	}
	w.turn.expired = true
	w.mustStop()
	return w.reply(w.session.proc.Deny(requested.RequestID, fmt.Sprintf("Nobody decided within %s. The turn is paused.", waited), true))
}

// sayExpired says that nobody has decided, which the policy takes as a no.
func (w *worker) sayExpired(ctx context.Context, a store.Approval) {
	what, so := a.ToolName, "it did not run"
	switch {
	case what == policy.NetworkTool:
		what, so = ask.HostOf(a), "it is not reached"
	case a.Kind == store.ApprovalQuestion:
		what, so = "its question", "it was not answered"
	case a.Kind == store.ApprovalPlan:
		what, so = "the plan", "work on it did not start"
	}
	w.say(ctx, fmt.Sprintf("Nobody decided about %s within %s. The policy takes that as a no, so %s and the work goes on without it.", what, ask.TimeToDecide(a), so))
}

// onCancelRequest drops an approval that the CLI no longer waits for.
func (w *worker) onCancelRequest(ctx context.Context, requestID string) error {
	w.session.dropCheck(requestID)
	if w.turn == nil {
		return nil
	}
	for id, q := range w.turn.asked {
		if q.RequestID != requestID {
			continue
		}
		a, ok, err := w.store.CancelApproval(ctx, w.heldLease(), id)
		if err != nil {
			return err
		}
		if !ok { // it was decided in this moment
			if a, err = w.store.ApprovalByID(ctx, id); err != nil {
				return err
			}
		}
		w.forget(a)
		w.front.ShowApproval(a)
	}
	return nil
}

// forget notes how an approval has ended that the CLI does not wait for any more.
func (w *worker) forget(a store.Approval) {
	w.waiting.remove(a.ID)
	delete(w.turn.asked, a.ID)
	w.turn.noteEnd(a)
}

func (w *worker) showEnded(ended []store.Approval) {
	for _, a := range ended {
		w.front.ShowApproval(a)
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
