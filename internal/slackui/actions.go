package slackui

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// action is what a button does. Exactly one of do and about is set.
type action struct {
	// lasts says that it changes something: its envelope is committed before it is
	// acknowledged. The others only open something.
	lasts bool
	// do acts on the button.
	do func(a *App, ctx context.Context, in *incoming, button *slack.BlockAction) (outcome string, err error)
	// about acts on the approval that the button's value names, which stands on the card, or
	// a copy of it, on which the button was. d is the decision that the button could make.
	about func(a *App, ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error)
}

// modalForm is what sending a form does. Exactly one of do and about is set.
type modalForm struct {
	do func(a *App, ctx context.Context, in *incoming) (outcome string, err error)
	// about acts on the approval that the form's metadata names.
	about func(a *App, ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error)
	// reply is what to reply in the thread instead, with the approval's code at %s, where Slack
	// does not show the form.
	reply string
}

// actions and forms are all buttons and forms of ours: a new one is an entry here, and how it
// looks in render. What is not among the actions does nothing by itself, and is read when another button is pressed.
var (
	actions map[string]action
	forms   map[string]modalForm
)

func init() { // what the handlers call reads the tables
	actions = map[string]action{
		render.ActionApprove:       {lasts: true, about: (*App).onApproveClick},
		render.ActionApproveTicked: {lasts: true, about: (*App).onBatchClick},
		render.ActionDeny:          {lasts: true, about: (*App).onDenyClick},
		render.ActionDenyAll:       {lasts: true, about: (*App).onBatchClick},
		render.ActionAnswer:        {lasts: true, about: (*App).onAnswerClick},
		render.ActionDenyReason:    {about: opens(render.DenyReason)},
		render.ActionAnswerOther:   {about: opens(render.AnswerOther)},
		render.ActionEdit:          {about: (*App).onEditClick},
		render.ActionAlways:        {about: (*App).onAlwaysClick},
		render.ActionEditsBelow:    {about: (*App).onAlwaysClick},
		render.ActionViewInput:     {about: (*App).onViewClick},
		render.ActionViewPage:      {do: (*App).turnPage},

		render.ActionStop:        {lasts: true, do: (*App).onStopClick},
		render.ActionContinue:    {lasts: true, do: (*App).onContinueClick},
		render.ActionOpenPull:    {lasts: true, do: (*App).onOpenPullClick},
		render.ActionAddressPull: {lasts: true, do: (*App).onPullClick},
		render.ActionMergePull:   {lasts: true, do: (*App).onPullClick},
		render.ActionConnect:     {do: (*App).onConnectClick},
		render.ActionDisconnect:  {lasts: true, do: (*App).onDisconnectClick},
		render.ActionSendNow:     {lasts: true, do: (*App).onQueueClick},
		render.ActionDrop:        {lasts: true, do: (*App).onQueueClick},
		render.ActionSay:         {lasts: true, do: (*App).onSayClick},
		render.ActionPickProject: {lasts: true, do: (*App).onPickClick},
		render.ActionInstead:     {lasts: true, do: (*App).onInsteadClick},
		render.ActionFeedback:    {lasts: true, do: (*App).onFeedbackClick},
		render.ActionDiff:        {do: (*App).onDiffClick},
		render.ActionDiffPage:    {do: (*App).onDiffClick},
		render.ActionSteps:       {do: (*App).onStepsClick},
		render.ActionStepsPage:   {do: (*App).onStepsClick},
		render.ActionStep:        {do: (*App).onStepsClick},
		render.ActionStepsBack:   {do: (*App).onStepsClick},
		render.ActionStepPage:    {do: (*App).onStepsClick},

		render.ActionRevoke:      {lasts: true, do: (*App).onRevokeClick},
		render.ActionBudgetRaise: {do: (*App).onBudgetClick},
		render.ActionBudgetModel: {lasts: true, do: (*App).onBudgetClick},
		render.ActionBudgetLeave: {lasts: true, do: (*App).onBudgetClick},
		render.ActionHomeWhose:   {do: (*App).onHomeClick},
		render.ActionHomeState:   {do: (*App).onHomeClick},
		render.ActionHomeProject: {do: (*App).onHomeClick},
		render.ActionHomeEarlier: {do: (*App).onHomeClick},
		render.ActionHomeLater:   {do: (*App).onHomeClick},
	}
	forms = map[string]modalForm{
		render.CallbackAsk:        {do: (*App).onAskSubmission},
		render.CallbackConnect:    {do: (*App).onConnectSubmission},
		render.CallbackFeedback:   {do: (*App).onFeedbackSubmission},
		render.CallbackBudget:     {do: (*App).onBudgetSubmission},
		render.CallbackDenyReason: {about: (*App).onReasonSubmission, reply: "deny %s and your reason"},
		render.CallbackAnswer:     {about: (*App).onAnswerSubmission, reply: "deny %s and your answer"},
		render.CallbackConfirm:    {about: (*App).onConfirmSubmission, reply: "approve %s"},
		render.CallbackGrant:      {about: (*App).onGrantSubmission, reply: "approve %s"},
		render.CallbackEdit:       {about: (*App).onEditSubmission},
	}
}

// opens has a button open a form about its approval.
func opens(view func(store.Approval, render.Options) slack.ModalViewRequest) func(*App, context.Context, *incoming, store.Approval, store.Decision) (string, error) {
	return func(a *App, ctx context.Context, in *incoming, approval store.Approval, _ store.Decision) (string, error) {
		return a.openForm(ctx, in, approval, view(approval, a.rendering()))
	}
}

func (a *App) onClick(ctx context.Context, in *incoming) (outcome string, err error) {
	c := in.click
	button := c.ActionCallback.BlockActions[0]
	act, ok := actions[render.ActionOf(button.ActionID)]
	switch {
	case !ok:
		return "an input", nil
	case act.do != nil:
		return act.do(a, ctx, in, button)
	}
	ref, _, _ := strings.Cut(button.Value, " ")
	id, seen := render.ParseRef(ref)
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
	own := onHome(in, approval.ID) || c.Channel.ID == approval.ChannelID && (approval.MessageTS == "" || c.Container.MessageTs == approval.MessageTS)
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
	if onHome(in, approval.ID) && act.lasts {
		defer func() {
			if err == nil { // they look at it
				err = a.publishHome(ctx, in.person(), homeChoice(in))
			}
		}()
	}
	return act.about(a, ctx, in, approval, store.Decision{ApprovalID: approval.ID, Status: store.ApprovalAllowed, By: c.User.ID, Via: "button", Seen: seen})
}

func (a *App) onSubmission(ctx context.Context, in *incoming) (outcome string, err error) {
	c := in.submission
	sent, ok := forms[c.View.CallbackID]
	switch {
	case !ok:
		return "", fmt.Errorf("a modal %q that is not ours", c.View.CallbackID)
	case sent.do != nil:
		return sent.do(a, ctx, in)
	}
	id, seen := render.ParseRef(c.View.PrivateMetadata)
	approval, err := a.c.Store.ApprovalByID(ctx, id)
	if err != nil {
		return "", err
	}
	in.store.ChannelID, in.store.ThreadTS = approval.ChannelID, approval.ThreadTS // a modal is nowhere itself
	return sent.about(a, ctx, in, approval, store.Decision{ApprovalID: approval.ID, By: c.User.ID, Via: "modal", Status: store.ApprovalAllowed, Seen: seen})
}

// submitted are the values of the modal that is submitted.
func (in *incoming) submitted() map[string]map[string]slack.BlockAction {
	if state := in.submission.View.State; state != nil {
		return state.Values
	}
	return nil
}

func (a *App) onApproveClick(ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error) {
	if approval.Kind == store.ApprovalQuestion {
		return "", fmt.Errorf("approval %s is a question and cannot be approved without an answer", approval.ID)
	}
	if approval.Terms.Dangerous {
		// The second step: what the policy calls dangerous is never one click away.
		return a.openForm(ctx, in, approval, render.ConfirmModal(approval, a.rendering()))
	}
	return a.decide(ctx, in, approval, d)
}

func (a *App) onDenyClick(ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error) {
	d.Status = store.ApprovalDenied
	return a.decide(ctx, in, approval, d)
}

func (a *App) onAnswerClick(ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error) {
	var values map[string]map[string]slack.BlockAction
	if in.click.BlockActionState != nil {
		values = in.click.BlockActionState.Values
	}
	if d.Answer, err = render.Answers(approval, values); err != nil {
		return a.incomplete(in, err)
	}
	return a.decide(ctx, in, approval, d)
}

func (a *App) onViewClick(ctx context.Context, in *incoming, approval store.Approval, _ store.Decision) (outcome string, err error) {
	who := in.person()
	who.ChannelID, who.Project = approval.ChannelID, approval.Project
	if r := a.authorise(ctx, who, access.See); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	return "viewed", a.open(ctx, in, render.ApprovalInput(approval, 0, a.rendering()))
}

func (a *App) onReasonSubmission(ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error) {
	d.Status, d.Reason = store.ApprovalDenied, strings.TrimSpace(in.submitted()[render.ReasonBlock][render.ReasonAction].Value)
	return a.decide(ctx, in, approval, d)
}

func (a *App) onAnswerSubmission(ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error) {
	if d.Answer, err = render.Answers(approval, in.submitted()); err != nil {
		return a.incomplete(in, err)
	}
	return a.decide(ctx, in, approval, d)
}

func (a *App) onConfirmSubmission(ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error) {
	if !render.ParseConfirm(in.submitted()) {
		a.answer(in, "Nothing was approved: the box was not ticked.")
		return "not confirmed", nil
	}
	d.Confirmed = true
	return a.decide(ctx, in, approval, d)
}
