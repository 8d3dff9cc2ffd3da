package slackui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/slackui/render/mrkdwn"
	"deckhand/internal/store"
)

// ShowBudget implements [agent.Frontend].
func (f *frontend) ShowBudget(n agent.BudgetAlert) { f.showBudget(n, nil) }

// showBudget tells of a budget wherever it is not told of yet; noted are the messages that
// stand.
func (f *frontend) showBudget(n agent.BudgetAlert, noted []store.PostedMessage) {
	end := f.app.outbox.showing(store.Shown{Kind: store.WordBudget, NoticeID: n.ID, UpTo: n.Word})
	places := append([]string{""}, n.Status.Tell...)
	all := together(len(places), end)
	view := render.BudgetView{Notice: n}
	if n.Share == 100 && n.Status.Ask {
		view.Admins = f.app.raisers(store.BudgetNotice{BudgetWindow: store.BudgetWindow{Scope: n.Status.Scope, Key: n.Status.Key}, Thread: n.Thread, Project: n.Project})
	}
	for _, channel := range places {
		ts := ""
		if channel == "" {
			channel, ts = n.Thread.ChannelID, n.Thread.ThreadTS
		} else {
			view.Link = f.app.permalink(n.Thread.ChannelID, n.Thread.ThreadTS)
		}
		if !slices.ContainsFunc(noted, func(m store.PostedMessage) bool { return m.ChannelID == channel }) {
			f.postBudget(n, channel, ts, render.Budget(view), all)
		} else if all != nil {
			all(nil)
		}
	}
}

// showBudgetAgain tells of a budget, or how it was decided, what no other process has.
func (f *frontend) showBudgetAgain(noticeID string) {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	f.refresh("budget word/"+noticeID, func(ctx context.Context) (func(), error) {
		n, err := f.app.c.Store.BudgetNoticeByID(ctx, noticeID)
		if err != nil {
			return nil, err
		}
		noted, err := f.app.c.Store.BudgetMessages(ctx, noticeID)
		if err != nil {
			return nil, err
		}
		return func() {
			if n.DecidedBy == "" || len(noted) == 0 {
				f.showBudget(f.app.budgetOf(n), noted)
				return
			}
			f.editBudgets(n, noted)
		}, nil
	})
}

// postBudget posts a notice once, and remembers where.
func (f *frontend) postBudget(n agent.BudgetAlert, channel, threadTS string, page render.Page, end func(error)) {
	f.app.publisher.Show(publish.Message{
		Key: "budget/" + n.ID + "/" + channel + "/" + threadTS, Channel: channel, ThreadTS: threadTS, Group: threadTS,
		Page: page, Priority: publish.Normal, Final: true, OnEnd: end,
		Posting: func(ctx context.Context, post func() error) error {
			err := f.app.c.Store.TellOfBudget(ctx, n.ID, post)
			if errors.Is(err, store.ErrEnded) {
				return publish.ErrNotWanted // more was told of the budget meanwhile
			}
			return err
		},
		OnPosted: func(ts string) {
			f.save("budget", func(ctx context.Context) error {
				return f.app.c.Store.SaveBudgetMessage(ctx, n.ID, store.PostedMessage{ChannelID: channel, TS: ts})
			})
			if n.Share == 100 && n.Status.Ask {
				f.showDecided(n.ID) // it may have been, while this was on its way
			}
		},
		OnError: func(err error) { f.app.log.Error("tell of a budget", zap.Error(err)) },
	})
}

// showDecided edits the notice wherever it stands, once somebody has decided.
func (f *frontend) showDecided(noticeID string) {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	f.refresh("budget/"+noticeID, func(ctx context.Context) (func(), error) {
		n, err := f.app.c.Store.BudgetNoticeByID(ctx, noticeID)
		if err != nil || n.DecidedBy == "" {
			return nil, err
		}
		posted, err := f.app.c.Store.BudgetMessages(ctx, noticeID)
		if err != nil {
			return nil, err
		}
		return func() { f.editBudgets(n, posted) }, nil
	})
}

// editBudgets shows how a budget was decided wherever its notice stands.
func (f *frontend) editBudgets(n store.BudgetNotice, posted []store.PostedMessage) {
	end := f.app.outbox.showing(store.Shown{Kind: store.WordBudget, NoticeID: n.ID, UpTo: n.Word})
	if end != nil && len(posted) == 0 {
		end(nil)
	}
	all := together(len(posted), end)
	for _, m := range posted {
		f.editBudget(n, m, all)
	}
}

func (f *frontend) editBudget(n store.BudgetNotice, m store.PostedMessage, end func(error)) {
	view := render.BudgetView{Notice: f.app.budgetOf(n), Decided: &n}
	if m.ChannelID != n.Thread.ChannelID {
		view.Link = f.app.permalink(n.Thread.ChannelID, n.Thread.ThreadTS)
	}
	f.app.publisher.Show(publish.Message{
		Key: "budget/" + n.ID + "/" + m.ChannelID + "/" + m.TS + "/decided", Channel: m.ChannelID, Group: n.Thread.ThreadTS, TS: m.TS,
		Page: render.Budget(view), Priority: publish.High, Final: true, OnEnd: end,
		OnError: func(err error) { f.app.log.Error("show how a budget was decided", zap.Error(err)) },
	})
}

// ShowWait implements [agent.Frontend]. What it says is read from the database, so that
// it is right whichever replica knows what became of the prompt.
func (f *frontend) ShowWait(inboxID int64) {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	key := "wait/" + strconv.FormatInt(inboxID, 10)
	f.refresh(key, func(ctx context.Context) (func(), error) {
		w, err := f.app.c.Store.BudgetWaitByPrompt(ctx, inboxID)
		if err != nil {
			return nil, err
		}
		view := render.BudgetWaitView{Wait: w, Status: f.app.budgetOf(w.Notice).Status}
		if w.Waits {
			view.Who = f.app.names(ctx, f.app.raisers(w.Notice))
			view.Link = f.app.permalink(w.Notice.Thread.ChannelID, w.Notice.Thread.ThreadTS)
			posted, err := f.app.c.Store.BudgetMessages(ctx, w.Notice.ID)
			if err != nil {
				return nil, err
			}
			for _, m := range posted {
				if m.ChannelID == w.Notice.Thread.ChannelID {
					view.Link = f.app.permalink(m.ChannelID, m.TS)
				}
			}
		}
		return func() { f.showWait(key, view) }, nil
	})
}

// showWait posts or edits the sentence. f.cardsMu is held.
func (f *frontend) showWait(key string, view render.BudgetWaitView) {
	w := view.Wait
	if !w.Waits && w.MessageTS == "" && !f.waiting[w.InboxID] {
		if end := f.app.outbox.showing(store.Shown{Kind: store.WordWait, InboxID: w.InboxID, UpTo: w.Word}); end != nil {
			end(nil)
		}
		return // it was never said, or is being said by a replica that looks again then
	}
	if f.waiting[w.InboxID] = w.Waits; !w.Waits {
		delete(f.waiting, w.InboxID)
	}
	mark := metadata(waitType, "prompt", number(w.InboxID))
	f.app.publisher.Show(publish.Message{
		Metadata: mark, Find: f.find(w.Thread, w.Since, mark), Doubtful: w.MessageTS == "",
		OnEnd: f.app.outbox.showing(store.Shown{Kind: store.WordWait, InboxID: w.InboxID, UpTo: w.Word}),
		Key:   key, Channel: w.Thread.ChannelID, ThreadTS: w.Thread.ThreadTS, Group: w.Thread.ThreadTS, TS: w.MessageTS,
		Page: render.BudgetWait(view), Priority: publish.High, Final: !w.Waits,
		OnPosted: func(ts string) {
			f.save("wait", func(ctx context.Context) error { return f.app.c.Store.SaveWaitMessage(ctx, w.InboxID, ts) })
			f.ShowWait(w.InboxID) // it may be over
		},
		OnError: func(err error) { f.app.log.Error("say what a prompt waits for", zap.Error(err)) },
	})
}

// budgetOf is a stored notice as it is shown.
func (a *App) budgetOf(n store.BudgetNotice) agent.BudgetAlert {
	out := agent.BudgetAlert{ID: n.ID, Word: n.Word, Share: n.Share, Thread: n.Thread, Project: n.Project, Status: agent.BudgetStatus{
		Key: n.Key, From: n.From, To: n.To, SpentMicroUSD: n.SpentMicroUSD, LimitMicroUSD: n.LimitMicroUSD,
	}}
	out.Status.Budget = agent.Budget{Scope: n.Scope, Period: n.Period}
	for _, b := range a.c.Budgets {
		if b.Scope == n.Scope && b.Period == n.Period && (len(b.Only) == 0 || slices.Contains(b.Only, n.Key)) {
			out.Status.Budget = b
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
			a.frontend.showDecided(n.ID)
			return "too late", nil
		}
		return "asked for more", a.open(ctx, in, render.BudgetModal(n, render.BudgetForm{NoticeID: n.ID, ChannelID: in.store.ChannelID, ThreadTS: in.store.ThreadTS}))
	case render.ActionBudgetModel:
		model := a.budgetOf(n).Status.CheaperModel
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
		if wrong := render.WrongEdit(in.submitted()); wrong != "" {
			return map[string]string{render.EditInput: wrong}
		}
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
	a.frontend.showDecided(n.ID)
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
