package slackui

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// costs reads what a thread (if there is one), a person and the team have spent.
// Months are calendar months in UTC.
func (a *App) costs(ctx context.Context, key store.ThreadKey, user string) (render.CostsView, error) {
	var view render.CostsView
	if key.ThreadTS != "" {
		thread, err := a.c.Store.ThreadByKey(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return view, err
		}
		if err == nil {
			s, err := a.spend(ctx, "This thread", "since it began", store.CostScope{TeamID: key.TeamID, ThreadID: thread.ID})
			if err != nil {
				return view, err
			}
			view.Scopes = append(view.Scopes, s)
		}
	}
	month := monthStart(time.Now())
	for _, scope := range []struct {
		name string
		store.CostScope
	}{
		{"You", store.CostScope{TeamID: key.TeamID, UserID: user, Since: month}},
		{"The team", store.CostScope{TeamID: key.TeamID, Since: month}},
	} {
		s, err := a.spend(ctx, scope.name, "this month", scope.CostScope)
		if err != nil {
			return view, err
		}
		if scope.UserID != "" && key.ThreadTS != "" {
			s.Scope = a.people.name(ctx, user) // the answer stands in the thread, for all to see
		}
		view.Scopes = append(view.Scopes, s)
	}
	return view, nil
}

func (a *App) spend(ctx context.Context, name, period string, scope store.CostScope) (render.Spend, error) {
	models, err := a.c.Store.Costs(ctx, scope)
	return render.Spend{Scope: name, Period: period, Models: models}, err
}

func monthStart(now time.Time) time.Time {
	now = now.UTC()
	return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
}

func dayStart(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// homeDays is how far back the home tab lists threads.
const homeDays = 7

// showHome publishes the person's home tab: what they and the team spent, and the
// threads that they opened.
func (a *App) showHome(ctx context.Context, in *incoming) error {
	user := in.event.User
	who := in.person()
	who.ChannelID = "" // a tab is in no channel
	view := render.HomeView{BotUser: a.self.UserID}
	if r := a.authorise(ctx, who, ActSee); r != nil {
		view.Refused = r.sentence
	} else if err := a.fillHome(ctx, &view, user); err != nil {
		return err
	}
	request := slack.PublishViewContextRequest{UserID: user, View: render.Home(view)}
	a.publisher.Once(publish.Call{
		Method: publish.PublishView, Key: "home/" + user, Replace: true, Priority: publish.Normal, Group: user, What: "home tab",
		Do: func(ctx context.Context) error {
			_, err := a.api.PublishViewContext(ctx, request)
			return err
		},
	})
	return nil
}

func (a *App) fillHome(ctx context.Context, view *render.HomeView, user string) error {
	now := time.Now()
	team := a.self.TeamID
	for _, s := range []struct {
		into         *render.Spend
		name, period string
		user         string
		since        time.Time
	}{
		{&view.MineToday, "You", "today", user, dayStart(now)},
		{&view.MineMonth, "You", "this month", user, monthStart(now)},
		{&view.TeamToday, "The team", "today", "", dayStart(now)},
		{&view.TeamMonth, "The team", "this month", "", monthStart(now)},
	} {
		var err error
		if *s.into, err = a.spend(ctx, s.name, s.period, store.CostScope{TeamID: team, UserID: s.user, Since: s.since}); err != nil {
			return err
		}
	}
	threads, err := a.c.Store.RecentThreads(ctx, team, user, now.AddDate(0, 0, -homeDays), 15)
	if err != nil {
		return err
	}
	for _, t := range threads {
		state := "idle"
		switch {
		case t.Pending > 0:
			state = "waiting for approval"
		case t.Running:
			state = "working"
		}
		view.Threads = append(view.Threads, render.HomeThread{
			Project: t.Project, Channel: t.ChannelID, Permalink: a.permalink(t.ChannelID, t.ThreadTS),
			State: state, StartedBy: t.OwnerID, MicroUSD: t.MicroUSD,
		})
	}
	return nil
}

// permalink is the address of a message, as Slack forms it.
func (a *App) permalink(channel, ts string) string {
	if a.self.TeamURL == "" {
		return ""
	}
	return strings.TrimSuffix(a.self.TeamURL, "/") + "/archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")
}
