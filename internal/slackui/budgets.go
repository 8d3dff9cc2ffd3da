package slackui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent/spend"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// readBudget reads a notice, and how it was decided.
func (f *frontend) readBudget(ctx context.Context, id string) (show func(), err error) {
	n, err := f.app.c.Store.BudgetNoticeByID(ctx, id)
	if err != nil {
		return nil, err
	}
	posts, err := f.app.c.Store.Posts(ctx, store.BudgetPost, id)
	return func() { f.showBudget(n, posts) }, err
}

// showBudget tells of a budget where it is not told of yet, or how it was decided where its
// notice stands.
func (f *frontend) showBudget(n store.BudgetNotice, posts []store.PostedMessage) {
	view := render.BudgetView{Notice: n, Status: f.app.budgetOf(n)}
	if n.DecidedBy == "" || len(posts) == 0 {
		posts = untold(view, posts)
	}
	if view.Asks() {
		view.Admins = f.app.raisers(n)
	}
	end := f.app.outbox.showing(store.Shown{Kind: store.OutboxBudget, Subject: n.ID, UpTo: n.OutboxID})
	if end != nil && len(posts) == 0 {
		end(nil)
	}
	all := together(len(posts), end)
	for _, p := range posts {
		if view.Link = ""; p.Audience != "" {
			view.Link = f.app.permalink(n.Thread.ChannelID, n.Thread.ThreadTS)
		}
		f.showNotice(view, p, all)
	}
}

// untold are the messages that are to tell of a budget, in its thread and where it says, but
// for those that do.
func untold(v render.BudgetView, told []store.PostedMessage) (out []store.PostedMessage) {
	for _, channel := range append([]string{""}, v.Status.Tell...) {
		if !slices.ContainsFunc(told, func(p store.PostedMessage) bool { return p.Audience == channel }) {
			out = append(out, store.PostedMessage{Kind: store.BudgetPost, Subject: v.Notice.ID, Audience: channel, ChannelID: cmp.Or(channel, v.Notice.Thread.ChannelID)})
		}
	}
	return out
}

// showNotice posts a notice once, or edits it when it is decided.
func (f *frontend) showNotice(view render.BudgetView, p store.PostedMessage, end func(error)) {
	n := view.Notice
	m := publish.Message{
		Key: "budget/" + n.ID + "/" + p.Audience + "/" + p.TS, Channel: p.ChannelID, Group: n.Thread.ThreadTS, TS: p.TS,
		Page: render.Budget(view), Priority: publish.Answer, Final: true, OnEnd: end,
		Wanted: func(ctx context.Context) (bool, error) { return f.app.c.Store.BudgetNoticeStands(ctx, n.ID) },
		OnPosted: func(ts string) {
			p.TS = ts
			f.note(p)
			if view.Asks() {
				f.Show(store.BudgetPost, n.ID) // it may have been decided, while this was on its way
			}
		},
		OnError: func(err error) { f.app.log.Error("tell of a budget", zap.Error(err)) },
	}
	if p.Audience == "" {
		m.ThreadTS = n.Thread.ThreadTS
	}
	if p.TS != "" {
		m.Priority = publish.Click
	}
	f.app.publisher.Show(m)
}

// readWait reads what a prompt waits for: it is right whichever replica knows what became of
// the prompt.
func (f *frontend) readWait(ctx context.Context, id string) (show func(), err error) {
	w, err := f.app.c.Store.BudgetWaitByPrompt(ctx, numbered(id))
	if err != nil {
		return nil, err
	}
	view := render.BudgetWaitView{Wait: w, Status: f.app.budgetOf(w.Notice)}
	if w.Waits {
		view.Who = f.app.names(ctx, f.app.raisers(w.Notice))
		view.Link = f.app.permalink(w.Notice.Thread.ChannelID, w.Notice.Thread.ThreadTS)
		notices, err := f.app.c.Store.Posts(ctx, store.BudgetPost, w.Notice.ID)
		if err != nil {
			return nil, err
		}
		for _, p := range notices {
			if p.ChannelID == w.Notice.Thread.ChannelID {
				view.Link = f.app.permalink(p.ChannelID, p.TS)
			}
		}
	}
	ts, err := f.app.postedAs(ctx, store.WaitPost, id)
	return func() { f.showWait(view, ts) }, err
}

// showWait posts or edits the sentence. f.cardsMu is held.
func (f *frontend) showWait(view render.BudgetWaitView, ts string) {
	w, id := view.Wait, number(view.Wait.InboxID)
	end := f.app.outbox.showing(store.Shown{Kind: store.OutboxWait, Subject: id, UpTo: w.OutboxID})
	if !w.Waits && ts == "" && !f.waiting[w.InboxID] {
		if end != nil {
			end(nil)
		}
		return // it was never said, or is being said by a replica that looks again then
	}
	if f.waiting[w.InboxID] = w.Waits; !w.Waits {
		delete(f.waiting, w.InboxID)
	}
	mark, priority := metadata(waitType, "prompt", id), publish.Answer
	if !w.Waits {
		priority = publish.Normal
	}
	f.app.publisher.Show(publish.Message{
		Metadata: mark, Find: f.find(w.ThreadKey, w.Since, mark), Doubtful: ts == "", OnEnd: end,
		Key: "wait/" + id, Channel: w.ChannelID, ThreadTS: w.ThreadTS, Group: w.ThreadTS, TS: ts,
		Page: render.BudgetWait(view), Priority: priority, Final: !w.Waits,
		OnPosted: func(ts string) {
			f.note(store.PostedMessage{Kind: store.WaitPost, Subject: id, ChannelID: w.ChannelID, TS: ts})
			f.Show(store.WaitPost, id) // it may be over
		},
		OnError: func(err error) { f.app.log.Error("say what a prompt waits for", zap.Error(err)) },
	})
}

// budgetOf is the budget of a notice, as it stood then: of several for the same spend the one
// whose limit the notice names, or, where that was raised, the next below it.
func (a *App) budgetOf(n store.BudgetNotice) spend.Status {
	out := spend.Status{
		Budget: spend.Budget{Scope: n.Scope, Period: n.Period},
		Key:    n.Key, From: n.From, To: n.To, SpentMicroUSD: n.SpentMicroUSD, LimitMicroUSD: n.LimitMicroUSD,
	}
	found := false
	for _, b := range a.c.Budgets {
		if b.Scope != n.Scope || b.Period != n.Period || len(b.Only) > 0 && !slices.Contains(b.Only, n.Key) {
			continue
		}
		closer := b.LimitMicroUSD <= n.LimitMicroUSD && (b.LimitMicroUSD > out.Budget.LimitMicroUSD || out.Budget.LimitMicroUSD > n.LimitMicroUSD)
		if !found || closer {
			out.Budget, found = b, true
		}
	}
	return out
}

// atBudget puts a person where a budget was noticed, for authorise; see
// [access.ReachOfBudget].
func (a *App) atBudget(p person, n store.BudgetNotice) person {
	p.ChannelID, p.Project, p.Reach = n.Thread.ChannelID, n.Project, access.ReachOfBudget(string(n.Scope))
	if n.Scope == store.BudgetProject {
		p.Project = n.Key
	}
	return p
}

// raisers are the users and groups who may decide about a budget.
func (a *App) raisers(n store.BudgetNotice) []string {
	at := a.atBudget(person{}, n)
	return a.c.Access.Administrators(at.Reach, at.Project, at.ChannelID)
}

// names are what users, and the members of groups, are called, without calling them.
func (a *App) names(ctx context.Context, ids []string) []string {
	var out []string
	err := a.eachUser(ctx, ids, func(user string) {
		if name := a.people.Name(ctx, user); len(out) < remindedMost && !slices.Contains(out, name) {
			out = append(out, name)
		}
	})
	if err != nil {
		a.log.Warn("find those who may decide about a budget", zap.Error(err))
	}
	return out
}

// onBudgetClick is an admin's answer to a limit that is reached.
func (a *App) onBudgetClick(ctx context.Context, in *incoming, action *slack.BlockAction) (outcome string, err error) {
	n, err := a.c.Store.BudgetNoticeByID(ctx, action.Value)
	if errors.Is(err, store.ErrNotFound) {
		a.answer(in, "This budget's notice is not known here.")
		return "unknown notice", nil
	}
	if err != nil {
		return "", err
	}
	if r := a.authorise(ctx, a.atBudget(in.person(), n), access.Administer); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	switch action.ActionID {
	case render.ActionBudgetRaise:
		if n.DecidedBy != "" {
			a.answer(in, a.howBudgetEnded(ctx, n))
			a.frontend.Show(store.BudgetPost, n.ID)
			return "too late", nil
		}
		return "asked for more", a.open(ctx, in, render.BudgetModal(n, render.BudgetForm{NoticeID: n.ID, ChannelID: in.store.ChannelID, ThreadTS: in.store.ThreadTS}))
	case render.ActionBudgetModel:
		model := a.budgetOf(n).CheaperModel
		if model == "" {
			return "", fmt.Errorf("the budget of notice %s has no cheaper model any more", n.ID)
		}
		return a.decideBudget(ctx, in, n, store.BudgetDecision{Model: model})
	}
	return a.decideBudget(ctx, in, n, store.BudgetDecision{Leave: true})
}

// wrongValues are the mistakes in a modal that is submitted, by input: it stays open and
// shows them. nil is for all others.
func (a *App) wrongValues(in *incoming) map[string]string {
	if in.submission != nil && in.submission.View.CallbackID == render.CallbackAsk {
		return a.wrongAsk(in)
	}
	if in.submission != nil && in.submission.View.CallbackID == render.CallbackEdit {
		return render.WrongEdit(in.submitted())
	}
	if in.submission == nil || in.submission.View.CallbackID != render.CallbackBudget {
		return nil
	}
	_, err := render.ParseBudget(in.submitted())
	var wrong *render.AnswerError
	if !errors.As(err, &wrong) {
		return nil
	}
	return map[string]string{render.BudgetAmount: wrong.Sentence}
}

// onBudgetSubmission raises a budget by the amount in the modal.
func (a *App) onBudgetSubmission(ctx context.Context, in *incoming) (outcome string, err error) {
	form, ok := render.ParseBudgetForm(in.submission.View.PrivateMetadata)
	if !ok {
		return "", fmt.Errorf("a budget's modal about %q", in.submission.View.PrivateMetadata)
	}
	in.store.ChannelID, in.store.ThreadTS = form.ChannelID, form.ThreadTS // a modal is nowhere itself
	n, err := a.c.Store.BudgetNoticeByID(ctx, form.NoticeID)
	if err != nil {
		return "", err
	}
	if r := a.authorise(ctx, a.atBudget(in.person(), n), access.Administer); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	amount, err := render.ParseBudget(in.submitted())
	if err != nil {
		return a.incomplete(in, err)
	}
	return a.decideBudget(ctx, in, n, store.BudgetDecision{RaiseMicroUSD: amount})
}

// decideBudget resolves first and shows second. What waits is woken by the decision.
func (a *App) decideBudget(ctx context.Context, in *incoming, n store.BudgetNotice, d store.BudgetDecision) (outcome string, err error) {
	decided, err := a.c.Store.DecideBudget(ctx, n.ID, d, in.store.UserID)
	if err != nil && !errors.Is(err, store.ErrEnded) {
		return "", err
	}
	a.frontend.Show(store.BudgetPost, n.ID)
	if err != nil {
		a.answer(in, a.howBudgetEnded(ctx, decided))
		return "too late", nil
	}
	a.log.Info("decided about a budget", zap.String("notice", n.ID), zap.String("by", in.store.UserID))
	return "decided", nil
}

func (a *App) howBudgetEnded(ctx context.Context, n store.BudgetNotice) string {
	return "This was decided already by " + a.people.Name(ctx, n.DecidedBy) + "."
}

// onContinueClick goes on with a turn that a budget stopped, for whoever may give work
// in the thread: the click becomes a prompt, once.
func (a *App) onContinueClick(ctx context.Context, in *incoming, action *slack.BlockAction) (outcome string, err error) {
	turnID, err := strconv.ParseInt(action.Value, 10, 64)
	if err != nil {
		return "", fmt.Errorf("the Continue button's value is not a turn: %w", err)
	}
	thread, err := a.c.Store.ThreadOfTurn(ctx, turnID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", err
	}
	if err != nil || thread.ChannelID != in.store.ChannelID || thread.ThreadTS != in.store.ThreadTS {
		a.answer(in, "This button does not belong to a turn here.")
		return "wrong turn", nil
	}
	who := in.person()
	who.Project = thread.Project
	if r := a.authorise(ctx, who, access.Prompt); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	_, ok, err := a.c.Store.AcceptPrompt(ctx, store.NewPrompt{
		InboxID: in.store.ID, Thread: thread.Key(), Project: thread.Project, UserID: in.store.UserID, UUID: uuid.NewString(), Continues: turnID,
		Text: fmt.Sprintf("[%s pressed Continue: a budget had stopped you, go on where you were.]", mrkdwn.OneLine(a.people.Name(ctx, in.store.UserID))),
	})
	if errors.Is(err, store.ErrEnded) {
		a.answer(in, "This thread has gone on already.")
		a.frontend.CloseOffer(turnID)
		return "too late", nil
	}
	if err != nil {
		return "", err
	}
	a.frontend.CloseOffer(turnID)
	if ok {
		a.agent.Wake(thread.ID)
	}
	return "accepted", nil
}
