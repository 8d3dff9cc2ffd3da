package slackui

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// openForm opens a form that leads to a decision, for somebody who may decide now; at
// its submission they are checked again.
func (a *App) openForm(ctx context.Context, in *incoming, approval store.Approval, view slack.ModalViewRequest) (outcome string, err error) {
	if r := a.authoriseDecision(ctx, in.person(), approval); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	if approval.Status != store.ApprovalPending {
		a.answer(in, a.howItEnded(ctx, approval))
		a.frontend.ShowApproval(approval)
		return "too late", nil
	}
	return "asked for more", a.open(ctx, in, view)
}

// decide resolves first and renders second: the worker shows the card as it
// ended, and a click that came too late is told how.
func (a *App) decide(ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error) {
	if r := a.authoriseDecision(ctx, in.person(), approval); r != nil {
		a.answer(in, r.Sentence+a.typed(in))
		return "refused", nil
	}
	decided, err := a.agent.Decide(ctx, d)
	switch {
	case errors.Is(err, store.ErrVoted):
		a.answer(in, "You have approved this already. "+stillNeeded(decided))
		return "voted already", nil
	case errors.Is(err, store.ErrChanged):
		a.answer(in, a.people.Name(ctx, decided.Edited.By)+" changed this meanwhile. Read it on its card as it stands now, and decide again."+a.typed(in))
		a.frontend.ShowApproval(decided)
		return "changed meanwhile", nil
	case errors.Is(err, store.ErrEnded):
		a.answer(in, a.howItEnded(ctx, decided)+a.typed(in))
		a.frontend.ShowApproval(decided) // an old card may still show buttons
		return "too late", nil
	case err != nil:
		return "", err
	}
	a.frontend.ShowApproval(decided)
	switch {
	case decided.Status != store.ApprovalPending:
	case d.Edit != nil && len(decided.Votes) == 0:
		a.answer(in, "Your change is on the card. Since it is yours, somebody else has to approve it before it runs.")
	default:
		a.answer(in, "Your approval is noted. "+stillNeeded(decided))
	}
	a.log.Info("decided", zap.String("approval", d.ApprovalID), zap.String("status", string(decided.Status)), zap.String("by", d.By), zap.String("via", d.Via))
	return string(decided.Status), nil
}

// stillNeeded says how many more people must approve.
func stillNeeded(a store.Approval) string {
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

func (a *App) howItEnded(ctx context.Context, ap store.Approval) string {
	switch ap.Status {
	case store.ApprovalAllowed, store.ApprovalDenied:
		verb := "approved"
		if ap.Status == store.ApprovalDenied {
			verb = "denied"
		}
		return "This was " + verb + " already by " + a.people.Name(ctx, ap.DecidedBy) + "."
	case store.ApprovalExpired, store.ApprovalPending:
		return "The time to decide about this has run out. Write “continue” in the thread to be asked again."
	case store.ApprovalCancelled:
		return "This is no longer needed: the turn was stopped or has ended."
	}
	return "Nobody asks for this any more: the session was interrupted."
}

func (a *App) onStopClick(ctx context.Context, in *incoming, action *slack.BlockAction) (outcome string, err error) {
	turnID, err := strconv.ParseInt(action.Value, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the Stop button's value is not a turn: %w", err)
	}
	thread, err := a.c.Store.ThreadOfRunningTurn(ctx, turnID)
	gone := errors.Is(err, store.ErrNotFound) || (err == nil && thread.ChannelID != in.click.Channel.ID)
	var here agent.TurnView
	if err != nil && !gone {
		// The database is away. What runs here can be stopped all the same.
		if here = a.frontend.running(turnID); here.ID == 0 || here.Thread.ChannelID != in.click.Channel.ID {
			return "", err
		}
		thread = store.Thread{ID: here.ThreadID, Project: here.Project}
	}
	who := in.person()
	who.Project = thread.Project
	if r := a.authorise(ctx, who, access.Stop); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	if gone {
		a.answer(in, "This turn has ended already.")
		return "nothing to stop", nil
	}
	if here.ID == 0 {
		return a.stop(ctx, thread.Key(), in.click.User.ID, "")
	}
	if running, err := a.agent.Stop(ctx, thread, in.click.User.ID); err != nil || !running {
		return "", err
	}
	return "stopped", nil
}

// incomplete tells what is missing in an answer.
func (a *App) incomplete(in *incoming, err error) (outcome string, _ error) {
	var wrong *render.AnswerError
	if !errors.As(err, &wrong) {
		return "", err
	}
	a.answer(in, wrong.Sentence+a.typed(in))
	return "incomplete answer", nil
}

// turnPage shows another part of a request's input in the modal that shows one.
func (a *App) turnPage(ctx context.Context, in *incoming, action *slack.BlockAction) (outcome string, err error) {
	page, ok := render.ParseInputPage(action.Value)
	if !ok {
		return "", fmt.Errorf("the button's value is not a page: %q", action.Value)
	}
	approval, err := a.c.Store.ApprovalByID(ctx, page.ApprovalID)
	if err != nil {
		return "", err
	}
	p := in.person()
	p.ChannelID, p.Project = approval.ChannelID, approval.Project
	if r := a.authorise(ctx, p, access.See); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	if a.mayDecide(ctx, p, approval) != nil && !a.isThere(ctx, p.UserID, approval.ChannelID, approval.RequestedBy) {
		a.answer(in, a.recordRefusal(ctx, p, access.See, notThere).Sentence)
		return "refused", nil
	}
	return "viewed", a.updateModal(ctx, in, render.ApprovalInput(approval, page.Page, a.rendering()))
}

// answer tells the person who said or clicked something, and nobody else: when the
// envelope is finished, where it is one that lasts, so that it is told whatever happens.
func (a *App) answer(in *incoming, sentence string) {
	switch {
	case in.store.ChannelID == "" && in.click == nil:
	case in.store.ChannelID == "": // on the home tab, or in a modal
		a.direct(in.store.UserID, render.Sentence(sentence))
	case in.lasts:
		in.told = append(in.told, store.Whisper{ChannelID: in.store.ChannelID, ThreadTS: in.store.ThreadTS, UserID: in.store.UserID, Sentence: sentence})
	default:
		a.reply(in, render.Sentence(sentence))
	}
}
