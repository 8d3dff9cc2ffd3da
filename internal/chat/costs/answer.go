package costs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/report"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
)

// Answer answers a question about costs: to all in the thread where it holds plain
// totals, to the person alone where it is about people or not understood. It says in
// a word what came of it, or that the person may not ask this, which it tells nobody.
// They may see costs there, says authorise.
func (a *Accountant) Answer(ctx context.Context, user string, at view.Place, words string) (outcome string, refused *access.Refusal, err error) {
	words = strings.TrimSpace(words)
	c, err := a.understanding(ctx, user, at)
	if err != nil {
		return "", nil, err
	}
	asker := askerOf(user, at)
	q, err := report.Parse(words, c)
	if err != nil {
		c.Projects = a.usable(ctx, asker) // the sentence lists them, and their teams
		c.Teams = maps.Clone(c.Teams)
		maps.DeleteFunc(c.Teams, func(project, _ string) bool { return !slices.Contains(c.Projects, project) })
		if _, again := report.Parse(words, c); again != nil {
			err = again
		}
		wrong, ok := errors.AsType[*report.ParseError](err)
		if !ok {
			return "", nil, err
		}
		var nearest []view.Choice
		for _, q := range wrong.Nearest {
			say := "costs " + q.String()
			nearest = append(nearest, view.Choice{Say: say, Label: a.forPeople(ctx, say, q, user, at.Channel)})
		}
		a.c.Whisper(at, user, view.AskBack{Sentence: wrong.Sentence, Choices: nearest, TS: at.TS})
		return "asked back", nil, nil
	}
	q, allowed := a.mayAsk(ctx, asker, q)
	if !allowed.Allowed {
		return "", &allowed.Refusal, nil
	}
	private := at.Private() || namesPeople(q)
	answer, err := a.ask(ctx, q, allowed.People && private)
	if err != nil {
		return "", nil, err
	}
	switch {
	case allowed.Narrow:
		answer.SumUp(a.shows(ctx, asker))
	case !private:
		answer.SumUp(func(channel string) bool { return !access.IsDirect(channel) }) // all can read it
	}
	shown := view.CostReport{Answer: answer, Link: a.threadLink, Notes: allowed.Notes}
	if shown.Beside, err = a.beside(ctx, user, at, words == "", private, c); err != nil {
		return "", nil, err
	}
	shown.Names = a.names(ctx, answer, q.CSV, at.Channel, allowed.People && private)
	shown.Titles = a.titles(ctx, answer, at.Channel)
	if zone := c.Location; zone.String() != a.c.Store.TimeZone().String() {
		shown.Notes = append(shown.Notes, "Days are those of "+zone.String()+".")
	}
	d := view.CostDelivery{Report: shown, Channel: at.Channel, Thread: at.ThreadTS, CSV: q.CSV}
	if at.Slash || private && !access.IsDirect(at.Channel) {
		d.To = user
	}
	a.c.Screen.Deliver(d, func(err error) {
		if err != nil {
			a.c.Log.Error("show an answer about costs", zap.String("user", user), zap.Error(err))
		}
	})
	return "costs", nil, nil
}

// forPeople is a question in words with the names of whom and where it is about.
func (a *Accountant) forPeople(ctx context.Context, words string, q report.Question, user, here string) string {
	for _, u := range q.Users {
		name := "me"
		if u != user {
			name = "@" + a.c.People.Name(ctx, u)
		}
		words = strings.ReplaceAll(words, "<@"+u+">", name)
	}
	return strings.ReplaceAll(words, "<#"+here+">", "this channel")
}

// namesPeople reports whether an answer says what some person spent.
func namesPeople(q report.Question) bool { return q.By == ledger.ByUser || len(q.Users) > 0 }

// ask puts a question to the ledger. One that leaves the grouping open is
// broken down by the first of a few that has more than one line; people are among
// them only where they may be named.
func (a *Accountant) ask(ctx context.Context, q report.Question, people bool) (report.Answer, error) {
	if q.By != ledger.ByNothing || people {
		return report.Ask(ctx, a.c.Store, q, a.c.Team)
	}
	for _, by := range []ledger.CostGroup{ledger.ByProject, ledger.ByChannel, ledger.ByModel} {
		q.By = by
		r, err := a.c.Store.Costs(ctx, ledger.CostQuery{
			TeamID: a.c.Team, From: q.Period.From, To: q.Period.To, ThreadID: q.ThreadID,
			Users: q.Users, Channels: q.Channels, Projects: q.Projects, Models: q.Models, By: by, Limit: 2,
		})
		if err != nil {
			return report.Answer{}, err
		}
		if len(r.Lines) > 1 || r.Total.Entries == 0 {
			break
		}
	}
	answer, err := report.Ask(ctx, a.c.Store, q, a.c.Team)
	answer.Question.By = ledger.ByNothing // which it was
	return answer, err
}

// beside are the sums that people expect when they ask for nothing special.
func (a *Accountant) beside(ctx context.Context, user string, at view.Place, plain, private bool, c report.Context) ([]view.CostBeside, error) {
	if !plain {
		return nil, nil
	}
	var out []view.CostBeside
	add := func(name, says string, q ledger.CostQuery) error {
		q.TeamID = a.c.Team
		sum, err := a.c.Store.Costs(ctx, q)
		if err != nil {
			return err
		}
		out = append(out, view.CostBeside{Name: name, Says: says, Sum: report.Line{CostLine: sum.Total}})
		return nil
	}
	if at.Thread.ID != 0 {
		if err := add("This thread", "since it began", ledger.CostQuery{ThreadID: at.Thread.ID}); err != nil {
			return nil, err
		}
	}
	if private {
		month, err := report.Parse("this month", c)
		if err != nil {
			return nil, err
		}
		if err := add("You", "this month", ledger.CostQuery{Users: []string{user}, From: month.Period.From, To: month.Period.To}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// names looks up who and what an answer shows, and no more than that: the lines of
// its table, or all of them for a file. Private channels are named where the answer is
// shown in them, and to an admin alone.
func (a *Accountant) names(ctx context.Context, answer report.Answer, file bool, here string, admin bool) report.Names {
	lines := view.CostRows(answer.By)
	if file {
		lines = 0
	}
	people, channels := answer.IDs(lines)
	return a.c.People.Names(ctx, people, channels, func(id string) bool { return admin || id == here })
}

// titles are those of the threads that an answer names in the channel where it is shown:
// whoever sees it can read them there. Of other channels' threads it says where they are.
func (a *Accountant) titles(ctx context.Context, answer report.Answer, here string) map[threads.ThreadKey]string {
	out := map[threads.ThreadKey]string{}
	lines := answer.Threads
	if answer.By == ledger.ByThread {
		lines, _, _ = answer.Top(view.CostRows(answer.By))
	}
	for _, l := range lines {
		if l.ThreadKey.ChannelID != here || here == "" {
			continue
		}
		t, err := a.c.Store.ThreadByKey(ctx, l.ThreadKey)
		if err != nil {
			a.c.Log.Warn("read a thread's title", zap.Error(err))
			break
		}
		out[l.ThreadKey] = a.c.Redact(t.Title)
	}
	return out
}

func (a *Accountant) threadLink(k threads.ThreadKey) string {
	return a.c.Permalink(k.ChannelID, k.ThreadTS)
}
