package slackui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/report"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// costPlace is where a question about costs is asked.
type costPlace struct {
	channel, threadTS string
	thread            store.Thread // zero where nobody works
	// slash: by the slash command, whose answers only the person sees.
	slash bool
}

// private reports whether only the person sees an answer there, whatever it says.
func (p costPlace) private() bool { return p.slash || access.IsDirect(p.channel) }

// longestCosts is how many words may follow "costs" in something that is no question
// about them: what is longer and makes no sense as one is work for the agent.
const (
	longestCosts      = 12
	longestCostsMaybe = 6 // when it begins like a question, and no more is understood
	longestCostsOdd   = 3 // when it does not even do that
)

// costsBegin are words that a question about costs goes on with.
var costsBegin = strings.Fields("by per for this last since from between with as to in until today yesterday project model user channel")

// meansCosts reports whether words that begin with "costs" are meant for us, and not
// for the agent: "costs last moth" is, "costs are too high, make it cheaper" is not.
func (a *App) meansCosts(words string) bool {
	if strings.Contains(strings.TrimSpace(words), "\n") {
		return false
	}
	_, err := a.parseCosts(words, report.Context{Now: time.Now(), Asker: "U0", ThreadID: 1, Projects: a.c.Access.ProjectNames()})
	wrong, ok := errors.AsType[*report.ParseError](err)
	if !ok {
		return true
	}
	said := strings.Fields(strings.ToLower(words))
	switch n := len(said); {
	case n <= longestCostsOdd:
		return true
	case slices.Contains(costsBegin, said[0]):
		return n <= longestCostsMaybe || wrong.Understood != "" && n <= longestCosts
	}
	return wrong.Understood != "" && len(said) <= longestCosts
}

func (a *App) parseCosts(words string, c report.Context) (report.Question, error) {
	return report.Parse(strings.TrimRight(words, ".!? "), c)
}

// costContext is what a person's words are understood by.
func (a *App) costContext(ctx context.Context, who person, at costPlace) (report.Context, error) {
	models, err := a.c.Store.Costs(ctx, store.CostQuery{TeamID: a.self.TeamID, By: store.ByModel, Limit: 200})
	if err != nil {
		return report.Context{}, err
	}
	c := report.Context{
		Now: time.Now(), Location: a.zoneOf(ctx, who.UserID), Asker: who.UserID, ThreadID: at.thread.ID,
		Projects: a.c.Access.ProjectNames(), Models: []string{},
	}
	for _, l := range models.Lines {
		c.Models = append(c.Models, l.Key)
	}
	return c, nil
}

// zoneOf is the time zone that a person's days begin in: the team's, or their own
// where the team wants that.
func (a *App) zoneOf(ctx context.Context, user string) *time.Location {
	zone := a.c.Store.TimeZone()
	if !a.c.AskersTimeZone {
		return zone
	}
	u, err := a.people.User(ctx, user)
	if err != nil || u.TZ == "" || u.TZ == "Local" {
		return zone
	}
	if own, err := time.LoadLocation(u.TZ); err == nil {
		return own
	}
	return zone
}

// onCosts answers a question about costs: to all in the thread where it holds plain
// totals, to the person alone where it is about people or not understood.
func (a *App) onCosts(ctx context.Context, who person, at costPlace, words string) (outcome string, err error) {
	words = strings.TrimSpace(words)
	c, err := a.costContext(ctx, who, at)
	if err != nil {
		return "", err
	}
	asker := askerOf(who, at)
	q, err := a.parseCosts(words, c)
	if err != nil {
		c.Projects = a.usable(ctx, asker) // the sentence lists them
		if _, again := a.parseCosts(words, c); again != nil {
			err = again
		}
		wrong, ok := errors.AsType[*report.ParseError](err)
		if !ok {
			return "", err
		}
		a.whisper(at.channel, at.threadTS, who.UserID, render.Sentence(wrong.Sentence))
		return "not understood", nil
	}
	q, allowed := a.mayAsk(ctx, asker, q)
	if !allowed.Allowed {
		r := a.recordRefusal(ctx, who, access.Costs, &allowed.Refusal)
		a.whisper(at.channel, at.threadTS, who.UserID, render.Sentence(r.Sentence))
		return "refused", nil
	}
	private := at.private() || namesPeople(q)
	answer, err := a.askCosts(ctx, q, allowed.People && private)
	if err != nil {
		return "", err
	}
	switch {
	case allowed.Narrow:
		answer.SumUp(a.shows(ctx, asker))
	case !private:
		answer.SumUp(func(channel string) bool { return !access.IsDirect(channel) }) // all can read it
	}
	view := render.CostReportView{Answer: answer, Link: a.threadLink, Notes: allowed.Notes}
	if view.Beside, err = a.costsBeside(ctx, who, at, words == "", private, c); err != nil {
		return "", err
	}
	view.Names = a.costNames(ctx, answer, q.CSV, at.channel, allowed.People && private)
	if zone := c.Location; zone.String() != a.c.Store.TimeZone().String() {
		view.Notes = append(view.Notes, "Days are those of "+zone.String()+".")
	}
	d := delivery{view: view, channel: at.channel, threadTS: at.threadTS}
	if at.slash || private && !access.IsDirect(at.channel) {
		d.to = who.UserID
	}
	if q.CSV {
		d.csv, err = costCSV(view)
		if err != nil {
			return "", err
		}
	}
	a.deliver(d, func(err error) {
		if err != nil {
			a.log.Error("show an answer about costs", zap.String("user", who.UserID), zap.Error(err))
		}
	})
	return "costs", nil
}

// namesPeople reports whether an answer says what some person spent.
func namesPeople(q report.Question) bool { return q.By == store.ByUser || len(q.Users) > 0 }

// askCosts puts a question to the ledger. One that leaves the grouping open is
// broken down by the first of a few that has more than one line; people are among
// them only where they may be named.
func (a *App) askCosts(ctx context.Context, q report.Question, people bool) (report.Answer, error) {
	if q.By != store.ByNothing || people {
		return report.Ask(ctx, a.c.Store, q, a.self.TeamID)
	}
	for _, by := range []store.CostGroup{store.ByProject, store.ByChannel, store.ByModel} {
		q.By = by
		r, err := a.c.Store.Costs(ctx, store.CostQuery{
			TeamID: a.self.TeamID, From: q.Period.From, To: q.Period.To, ThreadID: q.ThreadID,
			Users: q.Users, Channels: q.Channels, Projects: q.Projects, Models: q.Models, By: by, Limit: 2,
		})
		if err != nil {
			return report.Answer{}, err
		}
		if len(r.Lines) > 1 || r.Total.Entries == 0 {
			break
		}
	}
	answer, err := report.Ask(ctx, a.c.Store, q, a.self.TeamID)
	answer.Question.By = store.ByNothing // which it was
	return answer, err
}

// costsBeside are the sums that people expect when they ask for nothing special.
func (a *App) costsBeside(ctx context.Context, who person, at costPlace, plain, private bool, c report.Context) ([]render.CostBeside, error) {
	if !plain {
		return nil, nil
	}
	var out []render.CostBeside
	add := func(name, says string, q store.CostQuery) error {
		q.TeamID = a.self.TeamID
		sum, err := a.c.Store.Costs(ctx, q)
		if err != nil {
			return err
		}
		out = append(out, render.CostBeside{Name: name, Says: says, Sum: report.Line{CostLine: sum.Total}})
		return nil
	}
	if at.thread.ID != 0 {
		if err := add("This thread", "since it began", store.CostQuery{ThreadID: at.thread.ID}); err != nil {
			return nil, err
		}
	}
	if private {
		month, err := report.Parse("this month", c)
		if err != nil {
			return nil, err
		}
		if err := add("You", "this month", store.CostQuery{Users: []string{who.UserID}, From: month.Period.From, To: month.Period.To}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// costNames looks up who and what an answer shows, and no more than that: the lines of
// its table, or all of them for a file. Private channels are named where the answer is
// shown in them, and to an admin alone.
func (a *App) costNames(ctx context.Context, answer report.Answer, file bool, here string, admin bool) report.Names {
	lines := render.CostRows(answer.By)
	if file {
		lines = 0
	}
	people, channels := answer.IDs(lines)
	return a.people.Names(ctx, people, channels, func(id string) bool { return admin || id == here })
}

func (a *App) threadLink(k store.ThreadKey) string { return a.permalink(k.ChannelID, k.ThreadTS) }

// costCSV is an answer as a file.
func costCSV(v render.CostReportView) (*attachment, error) {
	var b bytes.Buffer
	if err := report.CSV(&b, v.Answer, v.Names); err != nil {
		return nil, err
	}
	return &attachment{
		name: costFile(v.Answer, "csv"), title: render.CostTitle(v.Answer, v.Names), content: b.Bytes(),
	}, nil
}

// costChartFile is an answer's chart as a picture.
func costChartFile(v render.CostReportView) (*attachment, error) {
	var b bytes.Buffer
	if err := report.PNG(&b, v.Answer, v.Names, false); err != nil {
		return nil, err
	}
	return &attachment{
		name: costFile(v.Answer, "png"), title: render.CostTitle(v.Answer, v.Names), content: b.Bytes(),
		alt: strings.Join(append([]string{"A bar chart."}, v.Answer.Summary()...), " "),
	}, nil
}

func costFile(a report.Answer, ending string) string {
	p := a.Question.Period
	return fmt.Sprintf("costs-%s-to-%s-by-%s.%s", p.From.Format(time.DateOnly), p.LastDay().Format(time.DateOnly), a.By, ending)
}
