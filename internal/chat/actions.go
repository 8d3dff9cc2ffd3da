package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
)

// action is what a button does. Exactly one of do and about is set.
type action struct {
	// lasts says that it changes something: its envelope is committed before it is
	// acknowledged. The others only open something.
	lasts bool
	// prompt says that its click is work, like a message: its row of the inbox has to be there first.
	prompt bool
	do     handler
	// about acts on the approval that the button's value names, which stands on the card, or
	// a copy of it, on which the button was. d is the decision that the button could make.
	about decision
}

type (
	handler  func(ctx context.Context, in *Incoming) (outcome string, err error)
	decision func(ctx context.Context, in *Incoming, approval approvals.Approval, d approvals.Decision) (outcome string, err error)
)

// sentForm is what sending a form does. Exactly one of do and about is set.
type sentForm struct {
	do handler
	// about acts on the approval that the form was given to keep.
	about decision
	// wrong are the mistakes in it, by input: it stays open and shows them; nil for none.
	wrong func(s *Submission) map[string]string
}

// replies say by form what to reply in the thread instead, with the approval's code at %s, where the chat
// does not show it.
var replies = map[string]string{
	view.CallbackDenyReason: "deny %s and your reason", view.CallbackAnswer: "deny %s and your answer",
	view.CallbackConfirm: "approve %s", view.CallbackGrant: "approve %s",
}

// InsteadOf says how to do what a form is for without it; state is what it was given to keep.
func InsteadOf(form, state string) string {
	if reply := replies[form]; reply != "" {
		return "Reply “" + fmt.Sprintf(reply, strings.ToUpper(state[:min(5, len(state))])) + "” in the request's thread."
	}
	return ""
}

// table is all that people can say and press: a new button is an id in view/actions.go, where Stays and Asks
// tell what else is to be known of it, an entry here, and how it looks, in slackui/render.
// What is not among the actions does nothing by itself, and is read when another one is pressed.
type table struct {
	commands commands
	actions  map[string]action
	forms    map[string]sentForm
}

// Changes reports whether a button changes something; the others only open something.
func (a *Chat) Changes(action string) bool { return a.table.actions[action].lasts }

// IsPrompt reports whether a button's click is work; see action.
func (a *Chat) IsPrompt(action string) bool { return a.table.actions[action].prompt }

func newTable(a *Chat) table {
	d, w, s, b, p, h, c := decider{a}, prompter{a}, &viewer{a, make(chan struct{}, readAtOnce)}, budgeter{a}, puller{a}, tab{a}, connector{a}
	actions := map[string]action{
		view.ActionApprove:       {lasts: true, about: d.onApproveClick},
		view.ActionApproveTicked: {lasts: true, about: d.onBatchClick},
		view.ActionDeny:          {lasts: true, about: d.onDenyClick},
		view.ActionDenyAll:       {lasts: true, about: d.onBatchClick},
		view.ActionAnswer:        {lasts: true, about: d.answered(func(in *Incoming) view.Inputs { return in.Click.Inputs })},
		view.ActionDenyReason:    {about: d.opens(func(ap approvals.Approval) view.Form { return view.DenyReason{Approval: ap} })},
		view.ActionAnswerOther:   {about: d.opens(func(ap approvals.Approval) view.Form { return view.AnswerOther{Approval: ap} })},
		view.ActionEdit:          {about: d.onEditClick},
		view.ActionAlways:        {about: d.onAlwaysClick},
		view.ActionEditsBelow:    {about: d.onAlwaysClick},
		view.ActionViewInput:     {about: d.onViewClick},
		view.ActionViewPage:      {do: d.turnPage},

		view.ActionStop:        {lasts: true, do: w.onStopClick},
		view.ActionContinue:    {lasts: true, prompt: true, do: w.onContinueClick},
		view.ActionSendNow:     {lasts: true, do: w.onQueueClick},
		view.ActionDrop:        {lasts: true, do: w.onQueueClick},
		view.ActionSay:         {lasts: true, prompt: true, do: router{a}.onSayClick},
		view.ActionPickProject: {lasts: true, do: w.onPickClick},
		view.ActionInstead:     {lasts: true, do: w.onInsteadClick},
		view.ActionFeedback:    {lasts: true, do: rater{a}.onFeedbackClick},
		view.ActionDiff:        {do: s.onDiffClick},
		view.ActionDiffPage:    {do: s.onDiffClick},
		view.ActionSteps:       {do: s.onStepsClick},
		view.ActionStepsPage:   {do: s.onStepsClick},
		view.ActionStep:        {do: s.onStepsClick},
		view.ActionStepsBack:   {do: s.onStepsClick},
		view.ActionStepPage:    {do: s.onStepsClick},

		view.ActionOpenPull:    {lasts: true, prompt: true, do: p.onOpenPullClick},
		view.ActionAddressPull: {lasts: true, prompt: true, do: p.onPullClick},
		view.ActionMergePull:   {lasts: true, prompt: true, do: p.onPullClick},
		view.ActionConnect:     {do: c.onConnectClick},
		view.ActionDisconnect:  {lasts: true, do: c.onDisconnectClick},
		view.ActionRevoke:      {lasts: true, do: granter{a}.onRevokeClick},
		view.ActionBudgetRaise: {do: b.onBudgetClick},
		view.ActionBudgetModel: {lasts: true, do: b.onBudgetClick},
		view.ActionBudgetLeave: {lasts: true, do: b.onBudgetClick},
		view.ActionHomeWhose:   {do: h.onHomeClick},
		view.ActionHomeState:   {do: h.onHomeClick},
		view.ActionHomeProject: {do: h.onHomeClick},
		view.ActionHomeEarlier: {do: h.onHomeClick},
		view.ActionHomeLater:   {do: h.onHomeClick},
	}
	forms := map[string]sentForm{
		view.CallbackAsk:        {do: w.onAskSubmission, wrong: w.wrongAsk},
		view.CallbackConnect:    {do: c.onConnectSubmission, wrong: wrongToken},
		view.CallbackFeedback:   {do: rater{a}.onFeedbackSubmission},
		view.CallbackBudget:     {do: b.onBudgetSubmission, wrong: wrongBudget},
		view.CallbackDenyReason: {about: d.onReasonSubmission},
		view.CallbackAnswer:     {about: d.answered(func(in *Incoming) view.Inputs { return in.Submission.Inputs })},
		view.CallbackConfirm:    {about: d.onConfirmSubmission},
		view.CallbackGrant:      {about: d.onGrantSubmission},
		view.CallbackEdit:       {about: d.onEditSubmission, wrong: func(s *Submission) map[string]string { return view.WrongEdit(s.Inputs) }},
	}
	return table{commands: allCommands(a), actions: actions, forms: forms}
}

// opens has a button open a form about its approval.
func (a decider) opens(form func(approvals.Approval) view.Form) decision {
	return func(ctx context.Context, in *Incoming, approval approvals.Approval, _ approvals.Decision) (string, error) {
		return a.openForm(ctx, in, approval, form(approval))
	}
}

func (a router) onClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	act, ok := a.table.actions[in.Click.Action]
	switch {
	case !ok:
		return "an input", nil
	case act.do != nil:
		return act.do(ctx, in)
	}
	ref, _, _ := strings.Cut(in.Click.Value, " ")
	id, seen := view.ParseRef(ref)
	approval, err := a.c.Store.ApprovalByID(ctx, id)
	if errors.Is(err, pg.ErrNotFound) {
		a.c.Log.Warn("a click on an unknown approval", zap.String("user", in.Row.UserID))
		a.Answer(in, "This request is not known here. Its card may be from another Deckhand.")
		return "unknown approval", nil
	}
	if err != nil {
		return "", err
	}
	// The id must come from its own card, or a copy of it: an id that was learnt elsewhere decides
	// nothing. A card's ts is not known yet while it is being posted.
	onHome := in.Click.OnHome && in.Row.ChannelID == "" && in.Click.Block == view.HomeBlock(approval.ID)
	own := onHome || in.Row.ChannelID == approval.ChannelID && (approval.MessageTS == "" || in.Row.TS == approval.MessageTS)
	if !own {
		if own, err = a.isCopy(ctx, approval, in.Row.ChannelID, in.Row.TS); err != nil {
			return "", err
		}
	}
	if !own {
		a.c.Log.Warn("a click that is not from the approval's card", zap.String("approval", approval.ID), zap.String("user", in.Row.UserID), zap.String("channel", in.Row.ChannelID))
		a.Answer(in, "This button does not belong to that request.")
		return "wrong card", nil
	}
	if onHome && act.lasts {
		defer func() {
			if err == nil { // they look at it
				err = tab(a).publishHome(ctx, in.person(), homeChoice(in))
			}
		}()
	}
	return act.about(ctx, in, approval, approvals.Decision{ApprovalID: approval.ID, Status: approvals.Allowed, By: in.Row.UserID, Via: "button", Seen: seen})
}

func (a router) onSubmission(ctx context.Context, in *Incoming) (outcome string, err error) {
	sent, ok := a.table.forms[in.Submission.Form]
	switch {
	case !ok:
		return "", fmt.Errorf("a form %q that is not ours", in.Submission.Form)
	case sent.do != nil:
		return sent.do(ctx, in)
	}
	id, seen := view.ParseRef(in.Submission.State)
	approval, err := a.c.Store.ApprovalByID(ctx, id)
	if err != nil {
		return "", err
	}
	in.Row.ChannelID, in.Row.ThreadTS = approval.ChannelID, approval.ThreadTS // a form is nowhere itself
	return sent.about(ctx, in, approval, approvals.Decision{ApprovalID: approval.ID, By: in.Row.UserID, Via: "modal", Status: approvals.Allowed, Seen: seen})
}

func (a decider) onViewClick(ctx context.Context, in *Incoming, approval approvals.Approval, _ approvals.Decision) (outcome string, err error) {
	if a.refuses(ctx, in, in.person().at(approval.ChannelID, approval.Project), access.See) {
		return "refused", nil
	}
	return "viewed", a.open(ctx, in, view.WholeInput{Approval: approval})
}

// turnPage shows another part of a request's input in the modal that shows one.
func (a decider) turnPage(ctx context.Context, in *Incoming) (outcome string, err error) {
	page, ok := view.ParseInputPage(in.Click.Value)
	if !ok {
		return "", fmt.Errorf("the button's value is not a page: %q", in.Click.Value)
	}
	approval, err := a.c.Store.ApprovalByID(ctx, page.ApprovalID)
	if err != nil {
		return "", err
	}
	p := in.person().at(approval.ChannelID, approval.Project)
	if a.refuses(ctx, in, p, access.See) {
		return "refused", nil
	}
	if a.mayDecide(ctx, p, approval) != nil && !a.isThere(ctx, p.UserID, approval.ChannelID, approval.RequestedBy) {
		a.Answer(in, a.recordRefusal(ctx, p, access.See, notThere).Sentence)
		return "refused", nil
	}
	return "viewed", a.screen.Update(ctx, in, in.Click.Window, view.WholeInput{Approval: approval, Page: page.Page})
}
