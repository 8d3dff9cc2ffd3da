package costs

import (
	"cmp"
	"context"
	"time"

	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/store/ledger"
)

// Asks reports whether a message is a question about costs, and not work; see [report.Asks].
func (a *Accountant) Asks(ctx context.Context, user string, at view.Place, words string) (bool, error) {
	c, err := a.understanding(ctx, user, at)
	return err == nil && report.Asks(words, c), err
}

// understanding is what a person's words are understood by.
func (a *Accountant) understanding(ctx context.Context, user string, at view.Place) (report.Context, error) {
	models, err := a.c.Store.Costs(ctx, ledger.CostQuery{TeamID: a.c.Team, By: ledger.ByModel, Limit: 200})
	if err != nil {
		return report.Context{}, err
	}
	c := report.Context{
		Now: time.Now(), Location: a.zoneOf(ctx, user), Asker: user, ThreadID: at.Thread.ID,
		Channel: at.Channel, Project: cmp.Or(at.Thread.Project, a.c.Access.Places.Project(at.Channel)),
		Projects: a.c.Access.ProjectNames(), Teams: a.c.Teams, Models: []string{},
	}
	for _, l := range models.Lines {
		c.Models = append(c.Models, l.Key)
	}
	return c, nil
}

// zoneOf is the time zone that a person's days begin in: the team's, or their own
// where the team wants that.
func (a *Accountant) zoneOf(ctx context.Context, user string) *time.Location {
	zone := a.c.Store.TimeZone()
	if !a.c.AskersTimeZone {
		return zone
	}
	name := a.c.People.Zone(ctx, user)
	if own, err := time.LoadLocation(name); err == nil && name != "" && name != "Local" {
		return own
	}
	return zone
}
