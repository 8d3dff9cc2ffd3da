package costs

import (
	"context"
	"errors"
	"slices"
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

// longest is how many words may follow "costs" in something that is no question
// about them: what is longer and makes no sense as one is work for the agent.
const (
	longest      = 12
	longestMaybe = 6 // when it begins like a question, and no more is understood
	longestOdd   = 3 // when it does not even do that
)

// begins are words that a question about costs goes on with.
var begins = strings.Fields("by per for this last since from between with as to in until today yesterday project model user channel")

// Meant reports whether words that begin with "costs" are meant for us, and not
// for the agent: "costs last moth" is, "costs are too high, make it cheaper" is not.
func (a *Accountant) Meant(words string) bool {
	if strings.Contains(strings.TrimSpace(words), "\n") {
		return false
	}
	_, err := a.parse(words, report.Context{Now: time.Now(), Asker: "U0", ThreadID: 1, Projects: a.c.Access.ProjectNames()})
	wrong, ok := errors.AsType[*report.ParseError](err)
	if !ok {
		return true
	}
	said := strings.Fields(strings.ToLower(words))
	switch n := len(said); {
	case n <= longestOdd:
		return true
	case slices.Contains(begins, said[0]):
		return n <= longestMaybe || wrong.Understood != "" && n <= longest
	}
	return wrong.Understood != "" && len(said) <= longest
}

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
