package costs

import (
	"context"
	"time"

	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/store/ledger"
)

// FillHome fills in what the person spent, what was spent on the projects that they
// may use, and for admins the team's projects with how they changed.
func (a *Accountant) FillHome(ctx context.Context, home *view.Home, user string, now time.Time) error {
	asker := askerOf(user, view.Place{})
	c := report.Context{Now: now, Location: a.zoneOf(ctx, user), Asker: user}
	for _, period := range []string{"today", "this month", "last month"} {
		q, err := report.Parse(period, c)
		if err != nil {
			return err
		}
		mine := q
		mine.Users = []string{user}
		spent, err := a.spend(ctx, period, mine)
		if err != nil {
			return err
		}
		home.Mine = append(home.Mine, spent)
		team, allowed := a.mayAsk(ctx, asker, q)
		if !allowed.Allowed {
			continue // they see their own
		}
		if spent, err = a.spend(ctx, period, team); err != nil {
			return err
		}
		home.Team = append(home.Team, spent)
		home.TeamNotes = allowed.Notes
		if period != "this month" || !allowed.People {
			continue
		}
		team.By = ledger.ByProject
		answer, err := report.Ask(ctx, a.c.Store, team, a.c.Team)
		if err != nil {
			return err
		}
		home.Projects = &answer
	}
	return nil
}

// spend sums up a question by model.
func (a *Accountant) spend(ctx context.Context, period string, q report.Question) (view.Spend, error) {
	r, err := a.c.Store.Costs(ctx, ledger.CostQuery{
		TeamID: a.c.Team, From: q.Period.From, To: q.Period.To,
		Users: q.Users, Channels: q.Channels, Projects: q.Projects, Models: q.Models, By: ledger.ByModel,
	})
	return view.Spend{Period: period, Total: report.Line{CostLine: r.Total}, Models: r.Lines}, err
}
