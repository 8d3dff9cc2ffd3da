package costs

import (
	"context"
	"strings"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/report"
	"deckhand/internal/store"
)

// Place is where a question about costs is asked.
type Place struct {
	Channel  string
	ThreadTS string       // empty outside of threads
	Thread   store.Thread // zero where nobody works
	// Slash: by the slash command, whose answers only the person sees.
	Slash bool
}

// private reports whether only the person sees an answer there, whatever it says.
func (p Place) private() bool { return p.Slash || access.IsDirect(p.Channel) }

func (a *Accountant) parse(words string, c report.Context) (report.Question, error) {
	return report.Parse(strings.TrimRight(words, ".!? "), c)
}

// understanding is what a person's words are understood by.
func (a *Accountant) understanding(ctx context.Context, user string, at Place) (report.Context, error) {
	models, err := a.c.Books.Costs(ctx, store.CostQuery{TeamID: a.c.Team, By: store.ByModel, Limit: 200})
	if err != nil {
		return report.Context{}, err
	}
	c := report.Context{
		Now: time.Now(), Location: a.zoneOf(ctx, user), Asker: user, ThreadID: at.Thread.ID,
		Projects: a.c.Access.ProjectNames(), Models: []string{},
	}
	for _, l := range models.Lines {
		c.Models = append(c.Models, l.Key)
	}
	return c, nil
}

// zoneOf is the time zone that a person's days begin in: the team's, or their own
// where the team wants that.
func (a *Accountant) zoneOf(ctx context.Context, user string) *time.Location {
	zone := a.c.Books.TimeZone()
	if !a.c.AskersTimeZone {
		return zone
	}
	u, err := a.c.People.User(ctx, user)
	if err != nil || u.TZ == "" || u.TZ == "Local" {
		return zone
	}
	if own, err := time.LoadLocation(u.TZ); err == nil {
		return own
	}
	return zone
}
