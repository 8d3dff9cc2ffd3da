package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent/claude"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
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

// viewer shows what turns did.
type viewer struct {
	*Chat
	readers chan struct{} // holds one for each conversation that is being read
}

// onStepsClick opens the window about a turn's steps, or shows another state of it.
func (a *viewer) onStepsClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	page, ok := view.ParseStepsPage(in.Click.Value)
	if !ok {
		return "", fmt.Errorf("the button's value is no page of steps: %q", in.Click.Value)
	}
	thread, refused, err := prompter{a.Chat}.ofTurn(ctx, in, page.Turn, access.See)
	if err != nil || refused != "" {
		return refused, err
	}
	shown := view.Steps{Page: page}
	n, limit := page.First, view.StepsOnPage
	if page.Step > 0 {
		n, limit = page.Step-1, 1
	}
	if shown.Steps, err = a.c.Store.TurnSteps(ctx, page.Turn, n, limit, claude.ToolsOfList()); err != nil {
		return "", err
	}
	shown.Workspace = thread.Workspace
	open := in.Click.Window
	if open.ID == "" { // the trigger is not kept waiting for what may take long to be read
		open, err = a.screen.Open(ctx, in, shown)
		if err != nil || open.ID == "" {
			return "viewed", err
		}
	}
	a.findResults(ctx, &shown)
	return "viewed", a.screen.Update(ctx, in, open, shown)
}

// onDiffClick opens the window with the diff of a turn's commits, or shows another page of it.
func (a *viewer) onDiffClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	page, ok := view.ParseDiffPage(in.Click.Value)
	if !ok {
		return "", fmt.Errorf("the button's value is no page of a diff: %q", in.Click.Value)
	}
	if _, refused, err := (prompter{a.Chat}).ofTurn(ctx, in, page.Turn, access.See); err != nil || refused != "" {
		return refused, err
	}
	push, err := a.c.Store.Diff(ctx, page.Turn)
	if errors.Is(err, pg.ErrNotFound) {
		a.Answer(in, "There is no diff of this turn: it is being made, was not kept, or is too old. Try again in a moment, or ask for it in the thread.")
		return "no diff", nil
	}
	if err != nil {
		return "", err
	}
	shown := view.TurnDiff{Page: page, Push: push}
	if in.Click.Window.ID != "" {
		return "viewed", a.screen.Update(ctx, in, in.Click.Window, shown)
	}
	return "viewed", a.open(ctx, in, shown)
}

// ofTurn is the thread of a turn, for whoever presses a button below it or in a window about it, or
// sends a form about it, if they may do that. Else they are told why not, and refused says so.
func (a prompter) ofTurn(ctx context.Context, in *Incoming, turnID int64, act access.Act) (t threads.Thread, refused string, err error) {
	t, err = a.c.Store.ThreadOfTurn(ctx, turnID)
	window := in.Click != nil && in.Click.Window.ID != ""
	// A number of a turn that was learnt elsewhere gives no right to it; work is given in the thread itself.
	elsewhere := in.Click != nil && !window && (t.ChannelID != in.Row.ChannelID || act == access.Prompt && t.ThreadTS != in.Row.ThreadTS)
	switch {
	case errors.Is(err, pg.ErrNotFound), err == nil && elsewhere:
		a.Answer(in, "This button does not belong to a turn here.")
		return t, "refused", nil
	case err != nil:
		return t, "", err
	case in.Submission != nil:
		in.Row.ChannelID, in.Row.ThreadTS = t.ChannelID, t.ThreadTS // a form is nowhere itself
	}
	who := in.at(t)
	who.ChannelID = t.ChannelID
	r := a.authorise(ctx, who, act)
	if r == nil && window && !a.isThere(ctx, who.UserID, t.ChannelID, t.OwnerID) { // they may have left the channel since
		r = a.recordRefusal(ctx, who, act, notThere)
	}
	if r != nil {
		a.Answer(in, r.Sentence+a.typed(in))
		return t, "refused", nil
	}
	return t, "", nil
}

// notThere is what whoever clicks in a window is told that shows something of a channel.
var notThere = &access.Refusal{
	Sentence: "Slack does not say that you are in the channel of this turn. If you are, try again in a minute.", Reason: "not in the turn's channel",
}

// isThere reports whether a person can read a channel, or has a direct message for their own.
func (a *Chat) isThere(ctx context.Context, user, channel, owner string) bool {
	if access.IsDirect(channel) {
		return user == owner
	}
	return a.people.Reads(ctx, user, channel)
}

// findResults looks for the results of the steps that a window shows. That it failed is
// shown there.
func (a *viewer) findResults(ctx context.Context, shown *view.Steps) {
	ctx, cancel := context.WithTimeout(ctx, readResults)
	defer cancel()
	select {
	case a.readers <- struct{}{}:
		defer func() { <-a.readers }()
	case <-ctx.Done():
		shown.Unread = true
		return
	}
	bySession := map[string][]string{}
	for _, s := range shown.Steps.List {
		bySession[s.SessionID] = append(bySession[s.SessionID], s.ToolUseID)
	}
	all := transcript.Found{Results: map[string]transcript.Result{}}
	for session, uses := range bySession {
		found, err := transcript.Results(ctx, a.c.Store, session, uses)
		if err != nil {
			a.c.Log.Error("look for what tools gave back", zap.Int64("turn", shown.Page.Turn), zap.String("session", session), zap.Error(err))
			shown.Unread = true
			return
		}
		all.Add(found)
	}
	shown.Found = &all
}
