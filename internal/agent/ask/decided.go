package ask

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
)

// Decided answers the CLI for an approval that has ended by a decision. The
// right to answer is claimed in the database first, and it is given once: with the
// decision, when that was made on this replica, else now.
func (d *Desk) Decided(ctx context.Context, id string, decided *approvals.Approval) error {
	requested, ok := d.asked[id]
	if !ok {
		return nil // its process is gone, or it was cancelled: it is bound when asked again
	}
	about := d.hosts.Of(id)
	var a approvals.Approval
	var err error
	switch {
	case decided != nil && decided.Delivered:
		a = *decided
	case about != nil && about.question == nil:
		// Whoever asked has left. It counts as delivered when somebody waits for it again,
		// in a process that goes on with this turn.
		if a, err = d.Store.ApprovalByID(ctx, id); err == nil && a.Status != approvals.Allowed && a.Status != approvals.Denied {
			return d.onUndecided(ctx, id)
		}
	default:
		a, err = d.Store.Deliver(ctx, d.Worker.Lease(), id)
		if errors.Is(err, pg.ErrNotFound) {
			return d.onUndecided(ctx, id) // it ended otherwise
		}
	}
	if err != nil {
		return err
	}
	d.forget(a)
	if about != nil {
		d.answerHost(about, a, requested)
	} else if err := d.answer(a, requested); err != nil {
		return err
	}
	d.Worker.Show()
	d.Front.ShowApproval(a)
	return nil
}

func (d *Desk) answer(a, requested approvals.Approval) error {
	proc := d.Process
	*d.Content = d.Content.Fold(&claude.Decision{RequestID: requested.RequestID, Allowed: a.Status == approvals.Allowed, Input: a.Edited.Input})
	if d.Worker.Stopping() {
		return d.reply(proc.Deny(requested.RequestID, Stopped, true)) // whatever was decided: somebody stopped it
	}
	if a.Status == approvals.Denied {
		return d.reply(proc.Deny(requested.RequestID, Denial(a), false))
	}
	// What runs is what was asked for, and what was asked for is what was shown.
	if !d.matches(a, requested) {
		return d.reply(proc.Deny(requested.RequestID, "The approval does not match this request. Ask again.", false))
	}
	input := a.ToRun()
	if a.Kind == approvals.Question && a.Answer != nil {
		input = a.Answer
	}
	call := d.call(requested.ToolName, input, d.cwd[requested.ToolUseID])
	if a.Edited.Times > 0 && (a.Edited.SHA256 != sha256.Sum256(input) || d.decide(call).Verdict == policy.Deny) {
		d.Log.Error("a changed input is not what was decided about, or not allowed any more", zap.String("approval", a.ID))
		return d.reply(proc.Deny(requested.RequestID, "A person changed this call before it was approved, and the policy does not allow the changed one now. Nothing ran. Ask again.", false))
	}
	if a.Edited.Times > 0 {
		d.changed[requested.ToolUseID] = ChangeNote(a)
	}
	d.begins(requested.ToolUseID, call, a.Push)
	return d.reply(proc.Allow(requested.RequestID, input))
}

// onUndecided answers the CLI for an approval whose time has run out. Silence is
// not a denial: unless the policy says otherwise the turn is paused, since the work
// must not go on as if somebody had refused.
func (d *Desk) onUndecided(ctx context.Context, id string) error {
	a, err := d.Store.ApprovalByID(ctx, id)
	if err != nil {
		return err
	}
	if a.Status != approvals.Expired {
		return nil
	}
	requested, about := d.asked[id], d.hosts.Of(id)
	d.forget(a)
	d.Worker.Show()
	d.Front.ShowApproval(a)
	waited := TimeToDecide(a)
	if about != nil {
		d.hostUndecided(ctx, about, a, waited)
		return nil
	}
	if a.Terms.OnTimeout == approvals.TimeoutDeny {
		SayExpired(ctx, d.Worker.Say, a)
		d.Worker.Show()
		return d.reply(d.Process.Deny(requested.RequestID,
			fmt.Sprintf("Nobody decided within %s, %s", waited, takenAsNo), false))
	}
	d.Worker.Expire(ctx, true)
	return d.reply(d.Process.Deny(requested.RequestID, fmt.Sprintf("Nobody decided within %s. The turn is paused.", waited), true))
}

// takenAsNo tells the model what it means that nobody decided in time.
const takenAsNo = "and this team's policy takes that as a no. Do not try to get around it; go on without it, or say why it is needed."

// SayExpired says that nobody has decided, which the policy takes as a no.
func SayExpired(ctx context.Context, say func(context.Context, string), a approvals.Approval) {
	what, so := a.ToolName, "it did not run"
	switch {
	case what == policy.NetworkTool:
		what, so = HostOf(a), "it is not reached"
	case a.Kind == approvals.Question:
		what, so = "its question", "it was not answered"
	case a.Kind == approvals.Plan:
		what, so = "the plan", "work on it did not start"
	}
	say(ctx, fmt.Sprintf("Nobody decided about %s within %s. The policy takes that as a no, so %s and the work goes on without it.", what, TimeToDecide(a), so))
}

// Withdrawn drops an approval that the CLI no longer waits for.
func (d *Desk) Withdrawn(ctx context.Context, requestID string) error {
	d.drop(requestID)
	for id, q := range d.asked {
		if q.RequestID != requestID {
			continue
		}
		a, ok, err := d.Store.CancelApproval(ctx, d.Worker.Lease(), id)
		if err != nil {
			return err
		}
		if !ok { // it was decided in this moment
			if a, err = d.Store.ApprovalByID(ctx, id); err != nil {
				return err
			}
		}
		d.forget(a)
		d.Front.ShowApproval(a)
	}
	return nil
}

// forget notes how an approval has ended that the CLI does not wait for any more.
func (d *Desk) forget(a approvals.Approval) {
	d.Waiting.Delete(a.ID)
	delete(d.asked, a.ID)
	d.noteEnd(a)
}

// Missed acts on decisions of which a notice was lost.
func (d *Desk) Missed(ctx context.Context) error {
	for id := range d.asked {
		a, err := d.Store.ApprovalByID(ctx, id)
		if err != nil {
			return err
		}
		if a.Status != approvals.Pending {
			if err := d.Decided(ctx, id, nil); err != nil {
				return err
			}
		}
	}
	return nil
}
