package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/policy"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// Edits of files are approved for a while by a grant for each file, which holds in the
// thread and covers writing exactly that file. It is given with the decision about a request
// for it; the others that wait for the same file in the turn are approved with it.

// oneFile is the file that a request would write, if further edits of it may be allowed
// with it; else "".
func oneFile(a store.Approval) string {
	if a.Status != store.ApprovalPending || !grantable(a) {
		return ""
	}
	name, _, _ := policy.OneFile(callOf(a))
	return name
}

// fileEdits are the files for which requests of an approval's turn wait that the person may
// decide about, in the order in which they were asked.
func (a *App) fileEdits(ctx context.Context, p person, about store.Approval) ([]render.FileEdits, error) {
	pending, err := a.c.Store.PendingApprovals(ctx, about.Thread)
	if err != nil {
		return nil, err
	}
	var out []render.FileEdits
	for _, ap := range pending {
		name := oneFile(ap)
		if ap.TurnID != about.TurnID || name == "" || a.mayDecide(ctx, p, ap) != nil {
			continue
		}
		i := slices.IndexFunc(out, func(f render.FileEdits) bool { return f.Name == name })
		if i < 0 {
			i, out = len(out), append(out, render.FileEdits{Name: name})
		}
		out[i].Approvals = append(out[i].Approvals, ap)
	}
	return out, nil
}

func (a *App) onApproveFilesClick(ctx context.Context, in *incoming, approval store.Approval) (outcome string, err error) {
	files, err := a.fileEdits(ctx, in.person(), approval)
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		if approval.Status != store.ApprovalPending {
			return a.openForm(ctx, in, approval, render.ApproveFiles(approval, files, a.rendering())) // which tells how it ended
		}
		if r := a.authoriseDecision(ctx, in.person(), approval); r != nil { // which is recorded
			a.answer(in, r.Sentence)
			return "refused", nil
		}
		a.answer(in, "Further edits of this file cannot be allowed: it is no plain file of the workspace any more, or programs take orders from it. Decide about the request alone.")
		return "not grantable", nil
	}
	return "asked for more", a.open(ctx, in, render.ApproveFiles(approval, files, a.rendering()))
}

// onApproveFilesSubmission approves the requests that wait for the chosen files, and gives
// the grant of each file with the first of them. Everything is looked at again: a file that
// has become something else since the modal was opened is not among those that wait.
func (a *App) onApproveFilesSubmission(ctx context.Context, in *incoming, approval store.Approval) (outcome string, err error) {
	files, err := a.fileEdits(ctx, in.person(), approval)
	if err != nil {
		return "", err
	}
	chosen, d, err := render.ParseFiles(files, in.submitted())
	if err != nil {
		return a.incomplete(in, err)
	}
	if len(chosen) == 0 {
		if r := a.authoriseDecision(ctx, in.person(), approval); r != nil {
			a.answer(in, r.Sentence)
			return "refused", nil
		}
		a.answer(in, "Nothing waits for these files any more, so nothing more was allowed.")
		return "too late", nil
	}
	approved, grants := 0, 0
	for _, f := range chosen {
		n, granted, err := a.approveFile(ctx, in.store.UserID, f, d)
		if err != nil {
			return "", err
		}
		approved += n
		if granted {
			grants++
		}
	}
	if grants < len(chosen) {
		a.answer(in, "Some of these requests were decided or changed meanwhile; for their files nothing more was allowed.")
	}
	a.log.Info("approved edits of files", zap.Int64("turn", approval.TurnID), zap.Int("files", grants), zap.Int("approved", approved), zap.Duration("for", d), zap.String("by", in.store.UserID))
	return fmt.Sprintf("%d allowed", approved), nil
}

// approveFile approves the requests for one file, the first of them with a grant.
func (a *App) approveFile(ctx context.Context, user string, f render.FileEdits, d time.Duration) (approved int, granted bool, err error) {
	for _, ap := range f.Approvals {
		decision := store.Decision{ApprovalID: ap.ID, Status: store.ApprovalAllowed, By: user, Via: "files"}
		if !granted {
			name, pattern, why := policy.OneFile(callOf(ap))
			if why != "" || name != f.Name {
				continue // it has become something else in this moment
			}
			decision.Grant = &store.NewGrant{Scope: store.GrantThread, Pattern: pattern.String(), For: d}
		}
		decided, err := a.agent.Decide(ctx, decision)
		switch {
		case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrVoted), errors.Is(err, store.ErrChanged):
		case err != nil:
			return approved, granted, err
		default:
			approved++
			granted = true
		}
		a.frontend.ShowApproval(decided)
	}
	return approved, granted, nil
}
