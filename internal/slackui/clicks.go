package slackui

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// decides are the buttons that change something: their envelopes are committed
// before they are acknowledged. The others only open something.
var decides = map[string]bool{
	render.ActionApprove: true, render.ActionApproveSession: true, render.ActionDeny: true, render.ActionAnswer: true,
	render.ActionStop: true, render.ActionRevoke: true, render.ActionBudgetModel: true, render.ActionBudgetLeave: true, render.ActionContinue: true,
	render.ActionSendNow: true, render.ActionDrop: true, render.ActionFeedback: true,
}

func (a *App) onClick(ctx context.Context, in *incoming) (outcome string, err error) {
	c := in.click
	action := c.ActionCallback.BlockActions[0]
	switch action.ActionID {
	case render.ActionStop:
		return a.onStopClick(ctx, in, action)
	case render.ActionViewPage, render.ActionViewPageNext:
		return a.turnPage(ctx, in, action)
	case render.ActionSteps, render.ActionStepsPage, render.ActionStepsNext, render.ActionStep, render.ActionStepsBack, render.ActionStepPage, render.ActionStepPageNext:
		return a.onStepsClick(ctx, in, action)
	case render.ActionSendNow, render.ActionDrop:
		return a.onQueueClick(ctx, in, action)
	case render.ActionFeedback:
		return a.onFeedbackClick(ctx, in, action)
	case render.ActionRevoke:
		return a.onRevokeClick(ctx, in, action)
	case render.ActionBudgetRaise, render.ActionBudgetModel, render.ActionBudgetLeave:
		return a.onBudgetClick(ctx, in, action)
	case render.ActionContinue:
		return a.onContinueClick(ctx, in, action)
	case render.ActionHomeWhose, render.ActionHomeState, render.ActionHomeProject, render.ActionHomeEarlier, render.ActionHomeLater:
		return a.onHomeClick(ctx, in, action)
	case render.ActionApprove, render.ActionApproveSession, render.ActionApproveAll, render.ActionAlways, render.ActionDeny, render.ActionAnswer, render.ActionEdit, render.ActionApproveFiles,
		render.ActionAnswerOther, render.ActionDenyReason, render.ActionViewInput:
	default:
		return "a menu", nil // read when its card's button is pressed
	}
	id, seen := render.ParseRef(action.Value)
	approval, err := a.c.Store.ApprovalByID(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		a.log.Warn("a click on an unknown approval", zap.String("user", c.User.ID))
		a.answer(in, "This request is not known here. Its card may be from another Deckhand.")
		return "unknown approval", nil
	}
	if err != nil {
		return "", err
	}
	// The id must come from its own card, or a copy of it: an id that was learnt elsewhere decides
	// nothing. A card's ts is not known yet while it is being posted.
	own := onHome(in, approval.ID) || c.Channel.ID == approval.Thread.ChannelID && (approval.MessageTS == "" || c.Container.MessageTs == approval.MessageTS)
	if !own {
		if own, err = a.isCopy(ctx, approval, c.Channel.ID, c.Container.MessageTs); err != nil {
			return "", err
		}
	}
	if !own {
		a.log.Warn("a click that is not from the approval's card", zap.String("approval", approval.ID), zap.String("user", c.User.ID), zap.String("channel", c.Channel.ID))
		a.answer(in, "This button does not belong to that request.")
		return "wrong card", nil
	}
	if onHome(in, approval.ID) && decides[action.ActionID] {
		defer func() {
			if err == nil { // they look at it
				err = a.publishHome(ctx, in.person(), homeChoice(in))
			}
		}()
	}
	d := store.Decision{ApprovalID: approval.ID, Status: store.ApprovalAllowed, By: c.User.ID, Via: "button", Seen: seen}
	switch action.ActionID {
	case render.ActionViewInput:
		who := in.person()
		who.ChannelID, who.Project = approval.Thread.ChannelID, approval.Project
		if r := a.authorise(ctx, who, access.See); r != nil {
			a.answer(in, r.Sentence)
			return "refused", nil
		}
		return "viewed", a.open(ctx, in, render.ApprovalInput(approval, 0, a.rendering()))
	case render.ActionDenyReason:
		return a.openForm(ctx, in, approval, render.DenyReason(approval, a.rendering()))
	case render.ActionAnswerOther:
		return a.openForm(ctx, in, approval, render.AnswerOther(approval, a.rendering()))
	case render.ActionApproveAll:
		return a.onApproveAllClick(ctx, in, approval)
	case render.ActionApproveFiles:
		return a.onApproveFilesClick(ctx, in, approval)
	case render.ActionAlways:
		return a.onAlwaysClick(ctx, in, approval)
	case render.ActionEdit:
		return a.onEditClick(ctx, in, approval)
	case render.ActionAnswer:
		if c.BlockActionState == nil {
			c.BlockActionState = &slack.BlockActionStates{}
		}
		if d.Answer, err = render.Answers(approval, c.BlockActionState.Values); err != nil {
			return a.incomplete(in, err)
		}
		return a.decide(ctx, in, approval, d)
	case render.ActionDeny:
		d.Status = store.ApprovalDenied
		return a.decide(ctx, in, approval, d)
	case render.ActionApproveSession:
		if d.Grants = sessionGrant(approval); len(d.Grants) == 0 {
			return "", fmt.Errorf("approval %s cannot be given for a session", approval.ID)
		}
	}
	if approval.Kind == store.ApprovalQuestion {
		return "", fmt.Errorf("approval %s is a question and cannot be approved without an answer", approval.ID)
	}
	if approval.Terms.Dangerous {
		// The second step: what the policy calls dangerous is never one click away.
		return a.openForm(ctx, in, approval, render.ConfirmModal(approval, a.rendering()))
	}
	return a.decide(ctx, in, approval, d)
}

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
	return "This is no longer asked for: the session was interrupted."
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
		return a.stop(ctx, thread.Key(), in.click.User.ID)
	}
	if running, err := a.agent.Stop(ctx, thread, in.click.User.ID); err != nil || !running {
		return "", err
	}
	return "stopped", nil
}

// submitted are the values of the modal that is submitted.
func (in *incoming) submitted() map[string]map[string]slack.BlockAction {
	if state := in.submission.View.State; state != nil {
		return state.Values
	}
	return nil
}

func (a *App) onSubmission(ctx context.Context, in *incoming) (outcome string, err error) {
	c := in.submission
	values := in.submitted()
	switch c.View.CallbackID {
	case render.CallbackAsk:
		return a.onAskSubmission(ctx, in)
	case render.CallbackFeedback:
		return a.onFeedbackSubmission(ctx, in)
	case render.CallbackBudget:
		return a.onBudgetSubmission(ctx, in)
	case render.CallbackApproveAll:
		return a.onApproveAllSubmission(ctx, in)
	case render.CallbackApproveFiles:
		return a.onApproveFilesSubmission(ctx, in)
	}
	id, seen := render.ParseRef(c.View.PrivateMetadata)
	approval, err := a.c.Store.ApprovalByID(ctx, id)
	if err != nil {
		return "", err
	}
	in.store.ChannelID, in.store.ThreadTS = approval.Thread.ChannelID, approval.Thread.ThreadTS // a modal is nowhere itself
	d := store.Decision{ApprovalID: approval.ID, By: c.User.ID, Via: "modal", Status: store.ApprovalAllowed, Seen: seen}
	switch c.View.CallbackID {
	case render.CallbackDenyReason:
		d.Status, d.Reason = store.ApprovalDenied, strings.TrimSpace(values[render.ReasonBlock][render.ReasonAction].Value)
	case render.CallbackAnswer:
		if d.Answer, err = render.Answers(approval, values); err != nil {
			return a.incomplete(in, err)
		}
	case render.CallbackConfirm:
		if !render.ParseConfirm(values) {
			a.answer(in, "Nothing was approved: the box was not ticked.")
			return "not confirmed", nil
		}
	case render.CallbackGrant:
		return a.onGrantSubmission(ctx, in, approval, d, values)
	case render.CallbackEdit:
		return a.onEditSubmission(ctx, in, approval, d, values)
	default:
		return "", fmt.Errorf("a modal %q that is not ours", c.View.CallbackID)
	}
	if approval.Terms.Dangerous && d.Status == store.ApprovalAllowed && c.View.CallbackID != render.CallbackConfirm {
		return "", fmt.Errorf("approval %s is dangerous and was not confirmed", approval.ID)
	}
	return a.decide(ctx, in, approval, d)
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
	p.ChannelID, p.Project = approval.Thread.ChannelID, approval.Project
	if r := a.authorise(ctx, p, access.See); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	if a.mayDecide(ctx, p, approval) != nil && !a.isThere(ctx, p.UserID, approval.Thread.ChannelID, approval.RequestedBy) {
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
