package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
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

// decide resolves first and renders second: the worker shows the card as it
// ended, and a click that came too late is told how.
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
	case approvals.Allowed, approvals.Denied:
		verb := "approved"
		if ap.Status == approvals.Denied {
			verb = "denied"
		}
		return "This was " + verb + " already by " + a.people.Name(ctx, ap.DecidedBy) + "."
	case approvals.Expired, approvals.Pending:
		return "The time to decide about this has run out. Write “continue” in the thread to be asked again."
	case approvals.Cancelled:
		return "This is no longer needed: the turn was stopped or has ended."
	}
	return "Nobody asks for this any more: the session was interrupted."
}

func (a prompter) onStopClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	turnID, err := strconv.ParseInt(in.Click.Value, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the Stop button's value is not a turn: %w", err)
	}
	thread, err := a.c.Store.ThreadOfRunningTurn(ctx, turnID)
	gone := errors.Is(err, pg.ErrNotFound) || (err == nil && thread.ChannelID != in.Row.ChannelID)
	var here agent.TurnView
	if err != nil && !gone {
		// The database is away. What runs here can be stopped all the same.
		if here = a.screen.Running(turnID); here.ID == 0 || here.Thread.ChannelID != in.Row.ChannelID {
			return "", err
		}
		thread = threads.Thread{ID: here.ThreadID, Project: here.Project}
	}
	if a.refuses(ctx, in, in.at(thread), access.Stop) {
		return "refused", nil
	}
	if gone {
		a.Answer(in, "This turn has ended already.")
		return "nothing to stop", nil
	}
	if here.ID == 0 {
		return a.stop(ctx, thread.Key(), in.Row.UserID, "")
	}
	if running, err := a.agent.Stop(ctx, thread, in.Row.UserID); err != nil || !running {
		return "", err
	}
	return "stopped", nil
}

// incomplete tells what is missing in an answer.
func (a *Chat) incomplete(in *Incoming, err error) (outcome string, _ error) {
	var wrong *view.AnswerError
	if !errors.As(err, &wrong) {
		return "", err
	}
	a.Answer(in, wrong.Sentence+a.typed(in))
	return "incomplete answer", nil
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
	p := in.person()
	p.ChannelID, p.Project = approval.ChannelID, approval.Project
	if a.refuses(ctx, in, p, access.See) {
		return "refused", nil
	}
	if a.mayDecide(ctx, p, approval) != nil && !a.isThere(ctx, p.UserID, approval.ChannelID, approval.RequestedBy) {
		a.Answer(in, a.recordRefusal(ctx, p, access.See, notThere).Sentence)
		return "refused", nil
	}
	return "viewed", a.screen.Update(ctx, in, in.Click.Window, view.WholeInput{Approval: approval, Page: page.Page})
}

// open opens a window for who clicked.
func (a *Chat) open(ctx context.Context, in *Incoming, form view.Form) error {
	_, err := a.screen.Open(ctx, in, form)
	return err
}

// reply answers the person who said or clicked something where they did, so that nobody else sees
// it.
func (a *Chat) reply(in *Incoming, page view.Page) {
	a.screen.Whisper(Where{in.Row.ChannelID, in.Row.ThreadTS}, in.Row.UserID, page, nil)
}

// Answer tells the person who said or clicked something, and nobody else: when the
// envelope is finished, where it is one that lasts, so that it is told whatever happens.
func (a *Chat) Answer(in *Incoming, sentence string) {
	switch {
	case in.Row.ChannelID == "" && in.Click == nil:
	case in.Row.ChannelID == "": // on the home tab, or in a modal
		a.screen.Direct(in.Row.UserID, view.Sentence(sentence))
	case in.Lasts:
		in.Told = append(in.Told, inbox.Whisper{ChannelID: in.Row.ChannelID, ThreadTS: in.Row.ThreadTS, UserID: in.Row.UserID, Sentence: sentence})
	default:
		a.reply(in, view.Sentence(sentence))
	}
}

// onNativeStop stops a thread's turn for whoever pressed Slack's own Stop button, if they
// may press ours.
func (a router) onNativeStop(ctx context.Context, in *Incoming) (outcome string, err error) {
	key := in.Row.Key()
	who, err := a.personHere(ctx, in)
	if err != nil {
		return "", err
	}
	if a.refuses(ctx, in, who, access.Stop) {
		return "refused", nil
	}
	outcome, err = a.stop(ctx, key, in.Row.UserID, "")
	if outcome == "nothing to stop" {
		a.screen.Left(key) // the button was a dead process's
	}
	return outcome, err
}
