package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/policy"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
	"deckhand/internal/transcript"
)

// Edits of files are approved for a while by a grant for each file, which holds in the
// thread and covers writing exactly that file. It is given with the decision about a request
// for it; the others that wait for the same file in the turn are approved with it.
//
// The CLI asks for one use of a tool after the other, also where the model has announced many
// in one answer. So the form also offers the files that the answer goes on to write: their
// grants are given with the decision about a request that waits.

// oneFile is the file that a request would write, if further edits of it may be allowed
// with it; else "".
func oneFile(a store.Approval) string {
	if a.Status != store.ApprovalPending || !grantable(a) {
		return ""
	}
	name, _, _ := policy.OneFile(callOf(a))
	if len(name) > nameMost {
		return ""
	}
	return name
}

// nameMost is the longest name, in bytes, of a file whose edits may be allowed: a form has room
// for it.
const nameMost = 1000

// fileEdits are the files for which requests of an approval's turn wait that the person may
// decide about, in the order in which they were asked, and those that its answer goes on to
// write; these are looked for within a time, and left out after it.
func (a *App) fileEdits(ctx context.Context, p person, about store.Approval, within time.Duration) (out render.FilesView, err error) {
	pending, err := a.c.Store.PendingApprovals(ctx, about.Thread)
	if err != nil {
		return out, err
	}
	pending = slices.DeleteFunc(pending, func(ap store.Approval) bool { return ap.TurnID != about.TurnID })
	for _, ap := range pending {
		if name := oneFile(ap); name != "" && a.mayDecide(ctx, p, ap) == nil {
			out.Waiting = render.AddEdit(out.Waiting, name, ap)
		}
	}
	if len(out.Waiting) > 0 { // else there is nothing that they could be given with
		out.Further = a.furtherEdits(ctx, p, about, pending, out.Waiting, within)
	}
	return out, nil
}

// readFurther bounds the search for what an answer goes on to write before a form is opened,
// whose trigger lives for three seconds. When it is sent there is time (readResults).
const readFurther = 1500 * time.Millisecond

// furtherEdits are the files that the answer which asks for an approval's call goes on to
// write, as far as it is known and nobody was asked about them yet: each may be granted with
// a request that waits, and to nobody who could not decide about a request for it now.
func (a *App) furtherEdits(ctx context.Context, p person, about store.Approval, pending []store.Approval, waiting []render.FileEdits, within time.Duration) (out []render.FileEdits) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	uses := a.announced(ctx, about)
	// They are asked about in their order: what comes before one that was asked about was
	// decided, whether its result is copied yet or not.
	for i, u := range slices.Backward(uses) {
		if slices.ContainsFunc(pending, func(ap store.Approval) bool { return ap.ToolUseID == u.ID }) {
			uses = uses[i+1:]
			break
		}
	}
	room := furtherBytes
	for _, u := range uses[:min(len(uses), furtherMost)] {
		if len(u.Input) > room {
			continue
		}
		room -= len(u.Input)
		ap, asked := a.agent.Foresee(about, u.ID, u.Name, u.Input)
		if !asked || !grantedWith(ap, waiting) {
			continue
		}
		name := oneFile(ap)
		if name == "" || slices.ContainsFunc(waiting, func(f render.FileEdits) bool { return f.Name == name }) || a.mayDecide(ctx, p, ap) != nil {
			continue
		}
		out = render.AddEdit(out, name, ap)
	}
	return out
}

// An answer's uses of tools are looked at up to furtherMost of them, with inputs of up to
// furtherBytes together, which no model writes: what a session has put into the kept
// conversation in its place costs no more than they do.
const (
	furtherMost  = 100
	furtherBytes = 1 << 20
)

// announced are the uses of tools for which the answer that asks for an approval's call asks
// after it: as the model writes them, where its turn runs in this process, and else as the
// kept conversation has them, once the answer is whole.
func (a *App) announced(ctx context.Context, about store.Approval) []claude.ToolUse {
	if uses, ok := a.frontend.running(about.TurnID).Content.AskedNext(about.ToolUseID); ok {
		return uses
	}
	select {
	case a.readers <- struct{}{}:
		defer func() { <-a.readers }()
	case <-ctx.Done():
		return nil
	}
	uses, err := transcript.Announced(ctx, a.c.Store, about.SessionID, about.ToolUseID)
	if err != nil {
		a.log.Warn("look for what an answer goes on to write", zap.String("approval", about.ID), zap.Error(err))
	}
	return uses
}

// grantedWith reports whether a grant of what a request asks for can be given with one that
// waits: a grant holds for what the same people decide about.
func grantedWith(a store.Approval, waiting []render.FileEdits) bool {
	return slices.ContainsFunc(waiting, func(f render.FileEdits) bool {
		return slices.ContainsFunc(f.Approvals, func(w store.Approval) bool { return slices.Equal(w.Terms.Approvers, a.Terms.Approvers) })
	})
}

func (a *App) onApproveFilesClick(ctx context.Context, in *incoming, approval store.Approval) (outcome string, err error) {
	files, err := a.fileEdits(ctx, in.person(), approval, readFurther)
	if err != nil {
		return "", err
	}
	if len(files.Waiting) == 0 {
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
// has become something else since the modal was opened is not among those that wait, nor
// among those that follow.
func (a *App) onApproveFilesSubmission(ctx context.Context, in *incoming) (outcome string, err error) {
	ref := render.ParseFilesRef(in.submission.View.PrivateMetadata)
	approval, err := a.c.Store.ApprovalByID(ctx, ref.ApprovalID)
	if err != nil {
		return "", err
	}
	in.store.ChannelID, in.store.ThreadTS = approval.Thread.ChannelID, approval.Thread.ThreadTS // a modal is nowhere itself
	files, err := a.fileEdits(ctx, in.person(), approval, readResults)
	if err != nil {
		return "", err
	}
	choice, err := render.ParseFiles(files, ref, in.submitted())
	if err != nil {
		return a.incomplete(in, err)
	}
	if len(choice.Waiting) == 0 {
		if r := a.authoriseDecision(ctx, in.person(), approval); r != nil {
			a.answer(in, r.Sentence)
			return "refused", nil
		}
		a.answer(in, "These requests do not wait any more, so nothing more was allowed. If the model asks for these files again, the new card has the same button.")
		return "too late", nil
	}
	approved, grants, further := 0, 0, choice.Further
	for _, f := range choice.Waiting {
		n, given, err := a.approveFile(ctx, in.store.UserID, f, further, choice.For)
		if err != nil {
			return "", err
		}
		approved += n
		grants += len(given)
		further = slices.DeleteFunc(further, func(f render.FileEdits) bool { return slices.Contains(given, f.Name) })
	}
	if grants < choice.Chosen {
		a.answer(in, "Some of these requests were decided or changed meanwhile; for their files nothing more was allowed.")
	}
	a.log.Info("approved edits of files", zap.Int64("turn", approval.TurnID), zap.Int("files", grants), zap.Int("approved", approved), zap.Duration("for", choice.For), zap.String("by", in.store.UserID))
	return fmt.Sprintf("%d allowed", approved), nil
}

// approveFile approves the requests for one file, the first of them with its grant, and with
// those of the further files that can be given with it. given are the names of the files that
// have one then.
func (a *App) approveFile(ctx context.Context, user string, f render.FileEdits, further []render.FileEdits, d time.Duration) (approved int, given []string, err error) {
	for _, ap := range f.Approvals {
		decision := store.Decision{ApprovalID: ap.ID, Status: store.ApprovalAllowed, By: user, Via: "files"}
		var names []string
		if len(given) == 0 {
			if names, decision.Grants = grantsOfFiles(ap, f, further, d); len(names) == 0 {
				continue // it has become something else in this moment
			}
		}
		decided, err := a.agent.Decide(ctx, decision)
		switch {
		case errors.Is(err, store.ErrEnded), errors.Is(err, store.ErrVoted), errors.Is(err, store.ErrChanged):
		case err != nil:
			return approved, given, err
		default:
			approved++
			given = append(given, names...)
		}
		a.frontend.ShowApproval(decided)
	}
	return approved, given, nil
}

// grantsOfFiles are the grants that are given with a request for a file: its own, and those
// of further files that the same people decide about. There are none if the request is not
// for the file any more.
func grantsOfFiles(ap store.Approval, f render.FileEdits, further []render.FileEdits, d time.Duration) (names []string, out []store.NewGrant) {
	add := func(ap store.Approval, name string) {
		if is, pattern, why := policy.OneFile(callOf(ap)); why == "" && is == name {
			names = append(names, name)
			out = append(out, store.NewGrant{Scope: store.GrantThread, Pattern: pattern.String(), For: d})
		}
	}
	if add(ap, f.Name); len(names) == 0 {
		return nil, nil
	}
	for _, f := range further {
		if i := slices.IndexFunc(f.Approvals, func(w store.Approval) bool { return slices.Equal(w.Terms.Approvers, ap.Terms.Approvers) }); i >= 0 {
			add(f.Approvals[i], f.Name)
		}
	}
	return names, out
}
