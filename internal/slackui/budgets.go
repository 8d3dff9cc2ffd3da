package slackui

import (
	"context"
	"errors"
	"fmt"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// ShowBudget implements [agent.Frontend].
func (f *frontend) ShowBudget(n agent.BudgetAlert) {
	_, admins := f.app.c.Access.In("", n.Thread.ChannelID).Members(access.Administer)
	view := render.BudgetView{Notice: n}
	if n.Share == 100 && n.Status.Ask {
		view.Admins = admins
	}
	f.app.say(n.Thread.ChannelID, n.Thread.ThreadTS, render.Budget(view))
	view.Link = f.app.permalink(n.Thread.ChannelID, n.Thread.ThreadTS)
	for _, channel := range n.Status.Tell {
		f.app.say(channel, "", render.Budget(view))
	}
}

// budgetOf is a stored notice as it is shown.
func (a *App) budgetOf(n store.BudgetNotice) agent.BudgetAlert {
	out := agent.BudgetAlert{ID: n.ID, Share: n.Share, Thread: n.Thread, Status: agent.BudgetStatus{
		Key: n.Key, From: n.From, To: n.To, SpentMicroUSD: n.SpentMicroUSD, LimitMicroUSD: n.LimitMicroUSD,
	}}
	out.Status.Budget = agent.Budget{Scope: n.Scope, Period: n.Period}
	for _, b := range a.c.Budgets {
		if b.Scope == n.Scope && b.Period == n.Period {
			out.Status.Budget = b
		}
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
			return "too late", nil
		}
		return "asked for more", a.open(ctx, in, render.BudgetModal(n))
	case render.ActionBudgetModel:
		model := a.budgetOf(n).Status.CheaperModel
		if model == "" {
			return "", fmt.Errorf("the budget of notice %s has no cheaper model any more", n.ID)
		}
		return a.decideBudget(ctx, in, n, store.BudgetDecision{Model: model})
	}
	return a.decideBudget(ctx, in, n, store.BudgetDecision{Leave: true})
}

// onBudgetSubmission raises a budget by the amount in the modal.
func (a *App) onBudgetSubmission(ctx context.Context, in *incoming, values map[string]map[string]slack.BlockAction) (outcome string, err error) {
	n, err := a.c.Store.BudgetNoticeByID(ctx, in.submission.View.PrivateMetadata)
	if err != nil {
		return "", err
	}
	in.store.ChannelID, in.store.ThreadTS = n.Thread.ChannelID, n.Thread.ThreadTS // a modal is nowhere itself
	if r := a.authorise(ctx, a.atBudget(in.person(), n), access.Administer); r != nil {
		a.answer(in, r.Sentence)
		return "refused", nil
	}
	amount, err := render.ParseBudget(values)
	if err != nil {
		return a.incomplete(in, err)
	}
	return a.decideBudget(ctx, in, n, store.BudgetDecision{RaiseMicroUSD: amount})
}

// atBudget puts a person where a budget was noticed, for authorise. About the team's
// and a person's budget only the team's own admins decide.
func (a *App) atBudget(p person, n store.BudgetNotice) person {
	p.ChannelID = n.Thread.ChannelID
	p.TeamWide = n.Scope == store.BudgetWorkspace || n.Scope == store.BudgetPerson
	return p
}

func (a *App) decideBudget(ctx context.Context, in *incoming, n store.BudgetNotice, d store.BudgetDecision) (outcome string, err error) {
	decided, err := a.c.Store.DecideBudget(ctx, n.ID, d, in.store.UserID)
	if errors.Is(err, store.ErrEnded) {
		a.answer(in, a.howBudgetEnded(ctx, decided))
		return "too late", nil
	}
	if err != nil {
		return "", err
	}
	a.log.Info("decided about a budget", zap.String("notice", n.ID), zap.String("by", in.store.UserID))
	a.agent.Reconsider(ctx)
	page := render.Budget(render.BudgetView{Notice: a.budgetOf(decided), Decided: &decided})
	if in.click != nil {
		a.publisher.Show(publish.Message{
			Key: "budget/" + n.ID, Channel: in.store.ChannelID, Group: in.store.ThreadTS, TS: in.click.Container.MessageTs,
			Page: page, Priority: publish.High, Final: true,
			OnError: func(err error) { a.log.Error("show how a budget was decided", zap.Error(err)) },
		})
	} else {
		a.say(n.Thread.ChannelID, n.Thread.ThreadTS, page)
	}
	return "decided", nil
}

func (a *App) howBudgetEnded(ctx context.Context, n store.BudgetNotice) string {
	return "This was decided already by " + a.people.Name(ctx, n.DecidedBy) + "."
}
