package slackui

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// decides are the buttons that change something: their envelopes are committed
// before they are acknowledged. The others only open something.
var decides = map[string]bool{
	render.ActionApprove: true, render.ActionDeny: true, render.ActionAnswer: true, render.ActionStop: true,
}

func (a *App) onClick(ctx context.Context, in *incoming) (outcome string, err error) {
	c := in.click
	action := c.ActionCallback.BlockActions[0]
	switch action.ActionID {
	case render.ActionStop:
		return a.onStopClick(ctx, in, action)
	case render.ActionViewPage, render.ActionViewPageNext:
		return a.turnPage(ctx, in, action)
	case render.ActionApprove, render.ActionDeny, render.ActionAnswer, render.ActionAnswerOther, render.ActionDenyReason, render.ActionViewInput:
	default:
		return "a menu", nil // read when its card's button is pressed
	}
	approval, err := a.c.Store.ApprovalByID(ctx, action.Value)
	if errors.Is(err, store.ErrNotFound) {
		a.log.Warn("a click on an unknown approval", zap.String("user", c.User.ID))
		a.answer(in, "This request is not known here. Its card may be from another Deckhand.")
		return "unknown approval", nil
	}
	if err != nil {
		return "", err
	}
	// The id must come from its own card: an id that was learnt elsewhere decides
	// nothing. A card's ts is not known yet while it is being posted.
	if c.Channel.ID != approval.Thread.ChannelID || (approval.MessageTS != "" && c.Container.MessageTs != approval.MessageTS) {
		a.log.Warn("a click that is not from the approval's card", zap.String("approval", approval.ID), zap.String("user", c.User.ID), zap.String("channel", c.Channel.ID))
		a.answer(in, "This button does not belong to that request.")
		return "wrong card", nil
	}
	switch action.ActionID {
	case render.ActionViewInput:
		if r := a.authorise(ctx, in.person(), ActSee); r != nil {
			a.answer(in, r.sentence)
			return "refused", nil
		}
		return "viewed", a.open(ctx, in, render.ApprovalInput(approval, 0, a.rendering()))
	case render.ActionDenyReason, render.ActionAnswerOther:
		if r := a.mayDecide(ctx, in.person(), approval); r != nil {
			a.answer(in, r.sentence)
			return "refused", nil
		}
		view := render.DenyReason(approval, a.rendering())
		if action.ActionID == render.ActionAnswerOther {
			view = render.AnswerOther(approval, a.rendering())
		}
		return "asked for more", a.open(ctx, in, view)
	case render.ActionAnswer:
		if c.BlockActionState == nil {
			c.BlockActionState = &slack.BlockActionStates{}
		}
		input, err := render.Answers(approval, c.BlockActionState.Values)
		if err != nil {
			return a.incomplete(in, err)
		}
		return a.decide(ctx, in, approval, store.Decision{
			ApprovalID: approval.ID, Status: store.ApprovalAllowed, By: c.User.ID, Via: "button", Answer: input,
		})
	}
	d := store.Decision{ApprovalID: approval.ID, Status: store.ApprovalAllowed, By: c.User.ID, Via: "button"}
	if action.ActionID == render.ActionDeny {
		d.Status = store.ApprovalDenied
	}
	if approval.Kind == store.ApprovalQuestion && d.Status == store.ApprovalAllowed {
		return "", fmt.Errorf("approval %s is a question and cannot be approved without an answer", approval.ID)
	}
	return a.decide(ctx, in, approval, d)
}

// mayDecide is authorise with what an approval adds: the rule about the person
// who asked. A question is put to the person who asked, so any user may answer.
func (a *App) mayDecide(ctx context.Context, p person, approval store.Approval) *refusal {
	p.ChannelID = approval.Thread.ChannelID
	act := ActApprove
	if approval.Kind == store.ApprovalQuestion {
		act = ActPrompt
	}
	if r := a.authorise(ctx, p, act); r != nil {
		return r
	}
	if act == ActApprove && p.UserID == approval.RequestedBy && !a.c.Policy.RequesterMayApprove {
		r := &refusal{sentence: "You asked for this work, so somebody else has to decide about it.", reason: "the requester"}
		a.log.Warn("refused", zap.String("act", string(act)), zap.String("user", p.UserID), zap.String("reason", r.reason))
		return r
	}
	return nil
}

// decide resolves first and renders second: the worker shows the card as it
// ended, and a click that came too late is told how.
func (a *App) decide(ctx context.Context, in *incoming, approval store.Approval, d store.Decision) (outcome string, err error) {
	if r := a.mayDecide(ctx, in.person(), approval); r != nil {
		a.answer(in, r.sentence)
		return "refused", nil
	}
	decided, err := a.agent.Decide(ctx, d)
	if errors.Is(err, store.ErrEnded) {
		a.answer(in, a.howItEnded(ctx, decided))
		a.frontend.ShowApproval(decided) // an old card may still show buttons
		return "too late", nil
	}
	if err != nil {
		return "", err
	}
	a.frontend.ShowApproval(decided)
	a.log.Info("decided", zap.String("approval", d.ApprovalID), zap.String("status", string(d.Status)), zap.String("by", d.By), zap.String("via", d.Via))
	return string(d.Status), nil
}

func (a *App) howItEnded(ctx context.Context, ap store.Approval) string {
	switch ap.Status {
	case store.ApprovalAllowed, store.ApprovalDenied:
		verb := "approved"
		if ap.Status == store.ApprovalDenied {
			verb = "denied"
		}
		return "This was " + verb + " already by " + a.people.name(ctx, ap.DecidedBy) + "."
	case store.ApprovalExpired, store.ApprovalPending:
		return "The time to decide about this has run out. Write “continue” in the thread to be asked again."
	case store.ApprovalCancelled:
		return "This is no longer needed: the turn was stopped or has ended."
	}
	return "This is no longer asked for: the session was interrupted."
}

func (a *App) onStopClick(ctx context.Context, in *incoming, action *slack.BlockAction) (outcome string, err error) {
	if r := a.authorise(ctx, in.person(), ActStop); r != nil {
		a.answer(in, r.sentence)
		return "refused", nil
	}
	turnID, err := strconv.ParseInt(action.Value, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the Stop button's value is not a turn: %w", err)
	}
	thread, err := a.c.Store.ThreadOfRunningTurn(ctx, turnID)
	if errors.Is(err, store.ErrNotFound) || (err == nil && thread.ChannelID != in.click.Channel.ID) {
		a.answer(in, "This turn has ended already.")
		return "nothing to stop", nil
	}
	if err != nil {
		return "", err
	}
	return a.stop(ctx, thread.Key(), in.click.User.ID)
}

func (a *App) onSubmission(ctx context.Context, in *incoming) (outcome string, err error) {
	c := in.submission
	approval, err := a.c.Store.ApprovalByID(ctx, c.View.PrivateMetadata)
	if err != nil {
		return "", err
	}
	in.store.ChannelID, in.store.ThreadTS = approval.Thread.ChannelID, approval.Thread.ThreadTS // a modal is nowhere itself
	values := map[string]map[string]slack.BlockAction{}
	if c.View.State != nil {
		values = c.View.State.Values
	}
	d := store.Decision{ApprovalID: approval.ID, By: c.User.ID, Via: "modal"}
	switch c.View.CallbackID {
	case render.CallbackDenyReason:
		d.Status, d.Reason = store.ApprovalDenied, strings.TrimSpace(values[render.ReasonBlock][render.ReasonAction].Value)
	case render.CallbackAnswer:
		d.Status = store.ApprovalAllowed
		if d.Answer, err = render.Answers(approval, values); err != nil {
			return a.incomplete(in, err)
		}
	default:
		return "", fmt.Errorf("a modal %q that is not ours", c.View.CallbackID)
	}
	return a.decide(ctx, in, approval, d)
}

// incomplete tells what is missing in an answer.
func (a *App) incomplete(in *incoming, err error) (outcome string, _ error) {
	var wrong *render.AnswerError
	if !errors.As(err, &wrong) {
		return "", err
	}
	a.answer(in, wrong.Sentence)
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
	p.ChannelID = approval.Thread.ChannelID
	if r := a.authorise(ctx, p, ActSee); r != nil {
		return "refused", nil // whoever sees the modal was allowed to a moment ago
	}
	_, err = a.api.UpdateViewContext(ctx, render.ApprovalInput(approval, page.Page, a.rendering()), "", in.click.View.Hash, in.click.View.ID)
	if err != nil {
		return "", fmt.Errorf("turn a page: %w", err)
	}
	return "viewed", nil
}

// open shows a modal. A trigger lives for three seconds, so it does not queue.
func (a *App) open(ctx context.Context, in *incoming, view slack.ModalViewRequest) error {
	if _, err := a.api.OpenViewContext(ctx, in.click.TriggerID, view); err != nil {
		return fmt.Errorf("open a modal: %w", err)
	}
	return nil
}

// answer tells the person who clicked, and nobody else.
func (a *App) answer(in *incoming, sentence string) {
	thread := in.store.ThreadTS
	if in.store.ChannelID == "" {
		return
	}
	a.whisper(in.store.ChannelID, thread, in.store.UserID, render.Sentence(sentence))
}
