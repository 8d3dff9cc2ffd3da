package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent/spend"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
)

// BudgetOf is the budget of a notice, as it stood then: of several for the same spend the one
// whose limit the notice names, or, where that was raised, the next below it.
func (a *gate) BudgetOf(n ledger.BudgetNotice) spend.Status {
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
func (a *gate) atBudget(p person, n ledger.BudgetNotice) person {
	p.ChannelID, p.Project, p.Reach = n.Thread.ChannelID, n.Project, access.ReachOfBudget(string(n.Scope))
	if n.Scope == ledger.BudgetProject {
		p.Project = n.Key
	}
	return p
}

// raisers are the users and groups who may decide about a budget.
func (a *gate) raisers(n ledger.BudgetNotice) []string {
	at := a.atBudget(person{}, n)
	return a.c.Access.Administrators(at.Reach, at.Project, at.ChannelID)
}

// names are what users, and the members of groups, are called, without calling them.
func (a *gate) names(ctx context.Context, ids []string) []string {
	var out []string
	err := a.EachUser(ctx, ids, func(user string) {
		if name := a.people.Name(ctx, user); len(out) < remindedMost && !slices.Contains(out, name) {
			out = append(out, name)
		}
	})
	if err != nil {
		a.c.Log.Warn("find those who may decide about a budget", zap.Error(err))
	}
	return out
}

// onBudgetClick is an admin's answer to a limit that is reached.
func (a budgeter) onBudgetClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	n, err := a.c.Store.BudgetNoticeByID(ctx, in.Click.Value)
	if errors.Is(err, pg.ErrNotFound) {
		a.Answer(in, "This budget's notice is not known here.")
		return "unknown notice", nil
	}
	if err != nil {
		return "", err
	}
	if a.refuses(ctx, in, a.atBudget(in.person(), n), access.Administer) {
		return "refused", nil
	}
	switch in.Click.Action {
	case view.ActionBudgetRaise:
		if n.DecidedBy != "" {
			a.Answer(in, a.howBudgetEnded(ctx, n))
			a.posts.Show(outbox.BudgetPost, n.ID)
			return "too late", nil
		}
		return "asked for more", a.open(ctx, in, view.Raise{Notice: n, About: view.BudgetForm{NoticeID: n.ID, ChannelID: in.Row.ChannelID, ThreadTS: in.Row.ThreadTS}})
	case view.ActionBudgetModel:
		model := a.BudgetOf(n).CheaperModel
		if model == "" {
			return "", fmt.Errorf("the budget of notice %s has no cheaper model any more", n.ID)
		}
		return a.decideBudget(ctx, in, n, ledger.BudgetDecision{Model: model})
	}
	return a.decideBudget(ctx, in, n, ledger.BudgetDecision{Leave: true})
}

// onBudgetSubmission raises a budget by the amount in the modal.
func (a budgeter) onBudgetSubmission(ctx context.Context, in *Incoming) (outcome string, err error) {
	form, ok := view.ParseBudgetForm(in.Submission.State)
	if !ok {
		return "", fmt.Errorf("a budget's modal about %q", in.Submission.State)
	}
	in.Row.ChannelID, in.Row.ThreadTS = form.ChannelID, form.ThreadTS // a modal is nowhere itself
	n, err := a.c.Store.BudgetNoticeByID(ctx, form.NoticeID)
	if err != nil {
		return "", err
	}
	if a.refuses(ctx, in, a.atBudget(in.person(), n), access.Administer) {
		return "refused", nil
	}
	amount, err := view.ParseBudget(in.Submission.Inputs)
	if err != nil {
		return a.incomplete(in, err)
	}
	return a.decideBudget(ctx, in, n, ledger.BudgetDecision{RaiseMicroUSD: amount})
}

// decideBudget resolves first and shows second. What waits is woken by the decision.
func (a budgeter) decideBudget(ctx context.Context, in *Incoming, n ledger.BudgetNotice, d ledger.BudgetDecision) (outcome string, err error) {
	decided, err := a.c.Store.DecideBudget(ctx, n.ID, d, in.Row.UserID)
	if err != nil && !errors.Is(err, pg.ErrEnded) {
		return "", err
	}
	a.posts.Show(outbox.BudgetPost, n.ID)
	if err != nil {
		a.Answer(in, a.howBudgetEnded(ctx, decided))
		return "too late", nil
	}
	a.c.Log.Info("decided about a budget", zap.String("notice", n.ID), zap.String("by", in.Row.UserID))
	return "decided", nil
}

func (a budgeter) howBudgetEnded(ctx context.Context, n ledger.BudgetNotice) string {
	return "This was decided already by " + a.people.Name(ctx, n.DecidedBy) + "."
}

// onContinueClick goes on with a turn that a budget stopped, for whoever may give work
// in the thread: the click becomes a prompt. The button stays until that has a turn, as the
// budget may refuse it.
func (a prompter) onContinueClick(ctx context.Context, in *Incoming) (outcome string, err error) {
	turnID := ParseID(in.Click.Value)
	thread, refused, err := a.ofTurn(ctx, in, turnID, access.Prompt)
	if err != nil || refused != "" {
		return refused, err
	}
	outcome, err = a.give(ctx, in, thread, inbox.NewPrompt{
		Continues: turnID, Text: fmt.Sprintf("[%s pressed Continue: a budget had stopped you, go on where you were.]", a.nameOf(ctx, in)),
	})
	if errors.Is(err, pg.ErrEnded) {
		a.Answer(in, "This thread has gone on already.")
		outcome, err = "too late", nil
	}
	return outcome, err
}

// wrongBudget says what is wrong with an amount.
func wrongBudget(s *Submission) map[string]string {
	_, err := view.ParseBudget(s.Inputs)
	if wrong, ok := errors.AsType[*view.AnswerError](err); ok {
		return map[string]string{view.BudgetAmount: wrong.Sentence}
	}
	return nil
}
