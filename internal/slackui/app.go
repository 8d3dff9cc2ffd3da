package slackui

import (
	"context"
	"sync"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/chat/costs"
	"deckhand/internal/chat/view"
	"deckhand/internal/jobs"
	costscreen "deckhand/internal/slackui/costs"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/slackui/publish"
)

// Config is what the app needs, beside what every chat needs.
type Config struct {
	chat.Config
	// Costs is the database as questions about costs need it.
	Costs costs.Store
	// Digests are reports on costs that are posted again and again.
	Digests []costs.Digest
	// Teams are the teams that projects belong to, by project.
	Teams map[string]string
	// AskersTimeZone counts days in answers about costs in the zone of the person who
	// asks, as Slack has it, instead of the store's.
	AskersTimeZone bool
}

// App is the bot in one Slack workspace. Create it with [New], hand
// [chat.Chat.Frontend] to a supervisor, and call [App.Run].
type App struct {
	*chat.Chat
	*files
	screen   screen
	client   *slack.Client // for its sockets
	costs    *costs.Accountant
	features func(context.Context) []Feature // of the workspace; nil: nobody asks
}

// screen implements [chat.Screen].
type screen struct {
	*poster
	*turnScreen
	*sessions
	*windows
	*record
}

var _ chat.Screen = screen{}

// New is the app of a workspace that has let us in.
func New(w *Workspace, c Config) *App {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Redact == nil {
		c.Redact = func(s string) string { return s }
	}
	a := newApp(c, w.client, w.self)
	a.features = w.Features
	return a
}

// newApp is an app whose tokens are known to be good.
func newApp(c Config, client *slack.Client, self identity) *App {
	p := &poster{api: client, self: self, people: directory.New(client, c.Log.Named("directory"))}
	p.publisher = publish.New(client, publish.Options{Log: c.Log.Named("publish")})
	a := &App{client: client, files: &files{p}}
	c.Access.Places.Bound = func() map[string]string { return a.Bound() } // for what is no part of the Chat
	a.costs = costs.New(costs.Config{
		Team: self.TeamID, Store: c.Costs, Access: c.Access, People: people{p.people},
		Screen: costscreen.Screen{API: client, Publisher: p.publisher, Log: c.Log.Named("costs"), Say: func(channel, threadTS string, page view.Page) {
			p.Say(chat.Where{Channel: channel, Thread: threadTS}, page)
		}},
		Whisper: func(at view.Place, user string, page view.Page) {
			p.Whisper(chat.Where{Channel: at.Channel, Thread: at.ThreadTS}, user, page, nil)
		},
		Permalink: p.Permalink, Redact: c.Redact, Log: c.Log.Named("costs"),
		Digests: c.Digests, Teams: c.Teams, AskersTimeZone: c.AskersTimeZone,
	})
	f := newTurnScreen(p)
	a.screen = screen{p, f, f.sessions, &windows{p}, &record{p}}
	a.Chat = chat.New(c.Config, chat.Self{Team: self.TeamID, User: self.UserID}, a.screen, people{p.people}, a.costs)
	p.chat, p.c = a.Chat, a.Settings()
	return a
}

// JobHandlers do the jobs that the app schedules. They need what [App.Run] sends.
func (a *App) JobHandlers() []jobs.Handler { return a.costs.JobHandlers() }

// TeamID is the Slack workspace that the tokens belong to.
func (a *App) TeamID() string { return a.screen.self.TeamID }

// Run takes what Slack delivers until ctx ends, and sends what there is to show
// until publishing ends: a supervisor that stops in between still has its last
// words shown. Whatever Slack refuses is logged and tried again; [chat.Chat.Connected]
// tells.
func (a *App) Run(ctx, publishing context.Context, supervisor *agent.Supervisor) {
	a.Begin(supervisor)
	var publisher sync.WaitGroup
	publisher.Go(func() { a.publish(publishing) })
	var keeping sync.WaitGroup
	keeping.Go(func() { a.costs.KeepDigestsScheduled(ctx) })
	keeping.Go(func() { a.Chat.Run(ctx) })
	keeping.Go(func() { a.learnFeatures(ctx) })
	a.listen(ctx)
	keeping.Wait()
	a.Wait()
	publisher.Wait()
}

// publish sends what there is to show until ctx ends, and then its last state.
func (a *App) publish(ctx context.Context) {
	sending, enough := context.WithCancel(context.WithoutCancel(ctx))
	var keeping sync.WaitGroup
	keeping.Go(func() { a.KeepShowing(ctx, enough) })
	if err := a.screen.publisher.Run(sending); err != nil {
		a.screen.c.Log.Warn("the last messages to Slack", zap.Error(err))
	}
	keeping.Wait()
	a.Outbox.Close()
}
