package slackui

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"deckhand/internal/access"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

// homeDays is how far back the home tab lists threads.
const homeDays = 7

// publishHome publishes the person's home tab: what they and the team spent, what
// waits for their decision, the threads that they opened, and the grants.
func (a *App) publishHome(ctx context.Context, who person) error {
	user := who.UserID
	who.ChannelID = "" // a tab is in no channel
	view := render.HomeView{BotUser: a.self.UserID, Redact: a.c.Redact}
	if r := a.authorise(ctx, who, access.See); r != nil {
		view.Refused = r.Sentence
	} else if err := a.fillHome(ctx, &view, who); err != nil {
		return err
	}
	request := slack.PublishViewContextRequest{UserID: user, View: render.Home(view)}
	a.publisher.Once(publish.Call{
		Method: publish.PublishView, Key: "home/" + user, Replace: true, Priority: publish.Normal, Group: user, What: "home tab",
		Do: func(ctx context.Context) error {
			return a.homePages(ctx, request)
		},
	})
	return nil
}

func (a *App) fillHome(ctx context.Context, view *render.HomeView, who person) error {
	now, user := time.Now(), who.UserID
	team := a.self.TeamID
	if err := a.costs.FillHome(ctx, view, user, now); err != nil {
		return err
	}
	if err := a.fillDecisions(ctx, view, who); err != nil {
		return err
	}
	view.Sandboxes = a.sandboxes(ctx, user)
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

// sandboxes says of the projects that the person may use what shuts their agents in.
func (a *App) sandboxes(ctx context.Context, user string) []render.HomeSandbox {
	var projects []string
	a.people.Establish(ctx, a.self.TeamID, user, "", func(f access.Facts) access.Answer {
		var need access.Need
		projects, need = a.c.Access.Usable(access.Asker{User: user}, f)
		return access.Answer{Need: need}
	})
	var out []render.HomeSandbox
	for _, p := range projects {
		if s := a.c.Sandboxes[p]; s != "" {
			out = append(out, render.HomeSandbox{Project: p, InForce: s})
		}
	}
	return out
}

// homePending is how many open approvals are looked at for one person's tab.
const homePending = 100

// fillDecisions lists what waits for this person's decision, and the grants.
func (a *App) fillDecisions(ctx context.Context, view *render.HomeView, who person) error {
	pending, err := a.c.Store.TeamPending(ctx, a.self.TeamID, homePending)
	if err != nil {
		return err
	}
	for _, p := range pending {
		if a.mayDecide(ctx, who, p) == nil {
			view.Waiting = append(view.Waiting, render.HomeApproval{
				Approval: p, Permalink: a.permalink(p.Thread.ChannelID, cmp.Or(p.MessageTS, p.Thread.ThreadTS)),
			})
		}
	}
	view.Grants, view.GrantsMore, err = a.grantLines(ctx, who, nil)
	return err
}

// permalink is the address of a message, as Slack forms it.
func (a *App) permalink(channel, ts string) string {
	if a.self.TeamURL == "" {
		return ""
	}
	return strings.TrimSuffix(a.self.TeamURL, "/") + "/archives/" + channel + "/p" + strings.ReplaceAll(ts, ".", "")
}
