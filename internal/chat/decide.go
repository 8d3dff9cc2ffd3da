package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
)

// openForm opens a form that leads to a decision, for somebody who may decide now; at
// its submission they are checked again.
func (a decider) openForm(ctx context.Context, in *Incoming, approval approvals.Approval, form view.Form) (outcome string, err error) {
	if r := a.authoriseDecision(ctx, in.person(), approval); r != nil {
		a.Answer(in, r.Sentence)
		return "refused", nil
	}
	if approval.Status != approvals.Pending {
		a.Answer(in, a.howItEnded(ctx, approval))
		cards{a.posts}.showApproval(approval)
		return "too late", nil
	}
	return "asked for more", a.open(ctx, in, form)
}

func (a decider) onApproveClick(ctx context.Context, in *Incoming, approval approvals.Approval, d approvals.Decision) (outcome string, err error) {
	if approval.Kind == approvals.Question {
		return "", fmt.Errorf("approval %s is a question and cannot be approved without an answer", approval.ID)
	}
	if approval.Terms.Dangerous {
		// The second step: what the policy calls dangerous is never one click away.
		facts, err := a.mergeObstacles(ctx, approval)
		if err != nil {
			return "", err
		}
		return a.openForm(ctx, in, approval, view.Confirm{Approval: approval, Facts: facts})
	}
	return a.decide(ctx, in, approval, d)
}

// mergeObstacles is what speaks against a merge now, as its pull request's message has it: its card stays as it was asked.
func (a decider) mergeObstacles(ctx context.Context, approval approvals.Approval) ([]string, error) {
	if approval.Push == nil || approval.Push.Pull == nil || approval.Push.Pull.Head == "" {
		return nil, nil
	}
	p, err := a.c.Store.PullAt(ctx, approval.ThreadID, approval.Push.Repository, approval.Push.Pull.Number)
	switch {
	case errors.Is(err, pg.ErrNotFound):
		return []string{"How it stands now is not known here."}, nil
	case err != nil:
		return nil, err
	}
	return view.MergeFacts(p, approval.Push.Pull.Head), nil
}

func (a decider) onDenyClick(ctx context.Context, in *Incoming, approval approvals.Approval, d approvals.Decision) (outcome string, err error) {
	d.Status = approvals.Denied
	return a.decide(ctx, in, approval, d)
}

// answered takes the answers to a question from a click or a form.
func (a decider) answered(inputs func(*Incoming) view.Inputs) func(context.Context, *Incoming, approvals.Approval, approvals.Decision) (string, error) {
	return func(ctx context.Context, in *Incoming, approval approvals.Approval, d approvals.Decision) (outcome string, err error) {
		if d.Answer, err = view.Answers(approval, inputs(in)); err != nil {
			return a.incomplete(in, err)
		}
		return a.decide(ctx, in, approval, d)
	}
}

func (a decider) onReasonSubmission(ctx context.Context, in *Incoming, approval approvals.Approval, d approvals.Decision) (outcome string, err error) {
	d.Status, d.Reason = approvals.Denied, strings.TrimSpace(in.Submission.Inputs[view.ReasonBlock][view.ReasonAction].Value)
	return a.decide(ctx, in, approval, d)
}

func (a decider) onConfirmSubmission(ctx context.Context, in *Incoming, approval approvals.Approval, d approvals.Decision) (outcome string, err error) {
	if !view.ParseConfirm(in.Submission.Inputs) {
		a.Answer(in, "Nothing was approved: the box was not ticked.")
		return "not confirmed", nil
	}
	d.Confirmed = true
	return a.decide(ctx, in, approval, d)
}

// decide commits the decision, and then has the card shown as the database has it. Whoever
// clicks too late is told how it ended.
func (a decider) decide(ctx context.Context, in *Incoming, approval approvals.Approval, d approvals.Decision) (outcome string, err error) {
	if r := a.authoriseDecision(ctx, in.person(), approval); r != nil {
		a.Answer(in, r.Sentence+a.typed(in))
		return "refused", nil
	}
	decided, err := a.agent.Decide(ctx, d)
	switch {
	case errors.Is(err, approvals.ErrVoted):
		a.Answer(in, "You have approved this already. "+stillNeeded(decided))
		return "voted already", nil
	case errors.Is(err, approvals.ErrChanged):
		a.Answer(in, a.people.Name(ctx, decided.Edited.By)+" changed this meanwhile. Read it on its card as it stands now, and decide again."+a.typed(in))
		cards{a.posts}.showApproval(decided)
		return "changed meanwhile", nil
	case errors.Is(err, pg.ErrEnded):
		a.Answer(in, a.howItEnded(ctx, decided)+a.typed(in))
		cards{a.posts}.showApproval(decided) // an old card may still show buttons
		return "too late", nil
	case err != nil:
		return "", err
	}
	cards{a.posts}.showApproval(decided)
	switch {
	case decided.Status != approvals.Pending:
	case d.Edit != nil && len(decided.Votes) == 0:
		a.Answer(in, "Your change is on the card. Since it is yours, somebody else has to approve it before it runs.")
	default:
		a.Answer(in, "Your approval is noted. "+stillNeeded(decided))
	}
	a.c.Log.Info("decided", zap.String("approval", d.ApprovalID), zap.String("status", string(decided.Status)), zap.String("by", d.By), zap.String("via", d.Via))
	return string(decided.Status), nil
}

// stillNeeded says how many more people must approve.
func stillNeeded(a approvals.Approval) string {
	votes := 0
	for _, v := range a.Votes {
		if v.Allow {
			votes++
		}
	}
	if n := a.Terms.Quorum - votes; n > 1 {
		return fmt.Sprintf("%d more people have to approve it before it runs.", n)
	}
	return "One more person has to approve it before it runs."
}

func (a decider) howItEnded(ctx context.Context, ap approvals.Approval) string {
	switch ap.Status {
	case approvals.Allowed:
		return "This was approved already by " + a.people.Name(ctx, ap.DecidedBy) + "."
	case approvals.Denied:
		return "This was denied already by " + a.people.Name(ctx, ap.DecidedBy) + "."
	case approvals.Expired, approvals.Pending:
		return "The time to decide about this has run out. Write “continue” in the thread to be asked again."
	case approvals.Cancelled:
		return "This is no longer needed: the turn was stopped or has ended."
	}
	return "Nobody asks for this any more: the session was interrupted."
}

// incomplete tells what is missing in an answer.
func (a *Chat) incomplete(in *Incoming, err error) (outcome string, _ error) {
	wrong, ok := errors.AsType[*view.AnswerError](err)
	if !ok {
		return "", err
	}
	a.Answer(in, wrong.Sentence+a.typed(in))
	return "incomplete answer", nil
}
