package slackui

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent/claude"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
	"deckhand/internal/transcript"
)

// What a turn's uses of tools were given and gave back is shown in a window to whoever may
// see the turn. The database is the source: which steps there were is in the approvals,
// what became of them in the audit, and their results in the copies of the conversation. So
// any replica shows it, after a restart too, up to the copies' retention.

const (
	// readResults bounds the reading of a conversation's copies, of which readAtOnce are
	// read by a replica at a time: each may be as large as transcripts.limit.
	readResults = 20 * time.Second
	readAtOnce  = 2
)

// onStepsClick opens the window about a turn's steps, or shows another state of it.
func (a *App) onStepsClick(ctx context.Context, in *incoming, action *slack.BlockAction) (outcome string, err error) {
	page, ok := render.ParseStepsPage(action.Value)
	if !ok {
		return "", fmt.Errorf("the button's value is no page of steps: %q", action.Value)
	}
	thread, seen, err := a.turnSeen(ctx, in, page.Turn)
	if err != nil || !seen {
		return "refused", err
	}
	view := render.StepsView{Page: page}
	n, limit := page.First, render.StepsOnPage
	if page.Step > 0 {
		n, limit = page.Step-1, 1
	}
	if view.Steps, err = a.c.Store.TurnSteps(ctx, page.Turn, n, limit, claude.ToolsOfList()); err != nil {
		return "", err
	}
	o := a.rendering()
	o.Workspace = thread.Workspace
	if in.click.View.ID != "" { // no trigger is needed, so that there is time
		a.findResults(ctx, &view)
		return "viewed", a.updateModal(ctx, in, render.Steps(view, o))
	}
	// The trigger is not kept waiting for what may take long to be read.
	opened, err := a.openView(ctx, in, render.Steps(view, o))
	if err != nil || opened == nil {
		return "viewed", err
	}
	a.findResults(ctx, &view)
	filled := render.Steps(view, o)
	err = a.showModal(filled, func(v slack.ModalViewRequest) error {
		_, err := a.api.UpdateViewContext(ctx, v, "", opened.Hash, opened.ID)
		return err
	})
	if refusedAs(err, "hash_conflict") || refusedAs(err, "not_found") {
		err = nil // it was closed, or shows something else already
	}
	return "viewed", a.explainModal(in, filled, err)
}

// onDiffClick opens the window with the diff of a turn's commits, or shows another page of it.
func (a *App) onDiffClick(ctx context.Context, in *incoming, action *slack.BlockAction) (outcome string, err error) {
	page, ok := render.ParseDiffPage(action.Value)
	if !ok {
		return "", fmt.Errorf("the button's value is no page of a diff: %q", action.Value)
	}
	if _, seen, err := a.turnSeen(ctx, in, page.Turn); err != nil || !seen {
		return "refused", err
	}
	push, err := a.c.Store.Diff(ctx, page.Turn)
	if errors.Is(err, store.ErrNotFound) {
		a.answer(in, "There is no diff of this turn: it is being made, was not kept, or is too old. Try again in a moment, or ask for it in the thread.")
		return "no diff", nil
	}
	if err != nil {
		return "", err
	}
	view := render.TurnDiff(page.Turn, push, page.Page, a.rendering())
	if in.click.View.ID != "" {
		return "viewed", a.updateModal(ctx, in, view)
	}
	return "viewed", a.open(ctx, in, view)
}

// turnSeen is the thread of a turn that somebody wants to look into; whoever may not is told.
func (a *App) turnSeen(ctx context.Context, in *incoming, turnID int64) (thread store.Thread, ok bool, err error) {
	thread, err = a.c.Store.ThreadOfTurn(ctx, turnID)
	// A click must come from the turn's own channel, or from the window that one has opened.
	if errors.Is(err, store.ErrNotFound) || err == nil && in.click.View.ID == "" && thread.ChannelID != in.store.ChannelID {
		a.answer(in, "This button does not belong to a turn here.")
		return thread, false, nil
	}
	if err != nil {
		return thread, false, err
	}
	if refused := a.mayNotSeeSteps(ctx, in, thread); refused != nil {
		a.answer(in, refused.Sentence)
		return thread, false, nil
	}
	return thread, true, nil
}

// mayNotSeeSteps is why a person may not see what a thread's tools gave back; nil if they
// may. Whoever clicks in a window is asked again: they may have left the channel since.
func (a *App) mayNotSeeSteps(ctx context.Context, in *incoming, thread store.Thread) *access.Refusal {
	who := in.person()
	who.ChannelID, who.Project = thread.ChannelID, thread.Project
	if r := a.authorise(ctx, who, access.See); r != nil {
		return r
	}
	if in.click.View.ID == "" || a.isThere(ctx, who.UserID, thread.ChannelID, thread.OwnerID) {
		return nil
	}
	return a.recordRefusal(ctx, who, access.See, notThere)
}

// notThere is what whoever clicks in a window is told that shows something of a channel.
var notThere = &access.Refusal{
	Sentence: "Slack does not say that you are in the channel of this turn. If you are, try again in a minute.", Reason: "not in the turn's channel",
}

// isThere reports whether a person can read a channel, or has a direct message for their own.
func (a *App) isThere(ctx context.Context, user, channel, owner string) bool {
	if access.IsDirect(channel) {
		return user == owner
	}
	return a.people.Reads(ctx, user, channel)
}

// findResults looks for the results of the steps that a window shows. That it failed is
// shown there.
func (a *App) findResults(ctx context.Context, view *render.StepsView) {
	ctx, cancel := context.WithTimeout(ctx, readResults)
	defer cancel()
	select {
	case a.readers <- struct{}{}:
		defer func() { <-a.readers }()
	case <-ctx.Done():
		view.Unread = true
		return
	}
	bySession := map[string][]string{}
	for _, s := range view.Steps.List {
		bySession[s.SessionID] = append(bySession[s.SessionID], s.ToolUseID)
	}
	all := transcript.Found{Results: map[string]transcript.Result{}}
	for session, uses := range bySession {
		found, err := transcript.Results(ctx, a.c.Store, session, uses)
		if err != nil {
			a.log.Error("look for what tools gave back", zap.Int64("turn", view.Page.Turn), zap.String("session", session), zap.Error(err))
			view.Unread = true
			return
		}
		all.Add(found)
	}
	view.Found = &all
}
