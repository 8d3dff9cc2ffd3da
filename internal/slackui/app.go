package slackui

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/jobs"
	"deckhand/internal/slackui/costs"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

// Config is what the app needs, beside what every chat needs.
type Config struct {
	chat.Config
	// Costs is the database as questions about costs need it.
	Costs costs.Store
	// Digests are reports on costs that are posted again and again.
	Digests []costs.Digest
	// AskersTimeZone counts days in answers about costs in the zone of the person who
	// asks, as Slack has it, instead of the store's.
	AskersTimeZone bool
}

// App is the bot in one Slack workspace. Create it with [New], hand
// [App.Frontend] to a supervisor, and call [App.Run]. It implements [chat.Screen].
type App struct {
	*chat.Chat
	c         *chat.Config  // the chat's
	client    *slack.Client // for its sockets
	api       webAPI
	self      identity
	publisher *publish.Scheduler
	people    *directory.Directory
	frontend  *frontend
	sessions  *sessions
	costs     *costs.Accountant
	features  func(context.Context) []Feature // of the workspace; nil: nobody asks
}

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
	a := &App{c: &c.Config, client: client, api: client, self: self}
	c.Access.Places.Bound = func() map[string]string { return a.Bound() } // for what is no part of the Chat
	a.people = directory.New(client, c.Log.Named("directory"))
	a.publisher = publish.New(client, publish.Options{Log: c.Log.Named("publish")})
	a.costs = costs.New(costs.Config{
		Team: a.self.TeamID, Store: c.Costs, Access: c.Access, People: a.people, API: a.api, Publisher: a.publisher,
		Whisper: a.whisper, Say: a.say, Permalink: a.Permalink, Redact: c.Redact, Log: c.Log.Named("costs"),
		Digests: c.Digests, AskersTimeZone: c.AskersTimeZone,
	})
	a.frontend, a.sessions = newFrontend(a), newSessions(a)
	a.Chat = chat.New(c.Config, chat.Self{Team: self.TeamID, User: self.UserID}, a, people{a.people}, a.costs)
	a.c = a.Settings()
	return a
}

// Frontend is where the agent shows its work.
func (a *App) Frontend() agent.Frontend { return a.frontend }

// JobHandlers do the jobs that the app schedules. They need what [App.Run] sends.
func (a *App) JobHandlers() []jobs.Handler { return a.costs.JobHandlers() }

// TeamID is the Slack workspace that the tokens belong to.
func (a *App) TeamID() string { return a.self.TeamID }

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
	var cards, keeping sync.WaitGroup
	keeping.Go(func() { a.Outbox.KeepUp(ctx) })
	cards.Go(func() {
		<-ctx.Done()
		a.frontend.finish()
		enough()
	})
	if err := a.publisher.Run(sending); err != nil {
		a.c.Log.Warn("the last messages to Slack", zap.Error(err))
	}
	cards.Wait()
	keeping.Wait()
	a.Outbox.Close()
}

// mention is how people write to us in text that Slack delivers.
func (a *App) mention() string { return "<@" + a.self.UserID + ">" }

// whisper answers one person so that nobody else sees it. threadTS is empty
// outside threads.
func (a *App) whisper(channel, threadTS, user string, page render.Page) {
	a.whisperTo(channel, threadTS, user, page, nil)
}

// whisperTo is whisper; end, if it is not nil, is called with what became of it.
func (a *App) whisperTo(channel, threadTS, user string, page render.Page, end func(error)) {
	a.publisher.Once(publish.Call{
		Method: publish.PostEphemeral, Key: "whisper/" + channel + "/" + threadTS + "/" + user, Priority: publish.Click, Group: threadTS, What: "answer " + user, Patient: true, OnEnd: end,
		Do: func(ctx context.Context) error {
			err := a.publisher.Reduced(publish.InEphemeral, "answer", page, func(page render.Page) error {
				options := page.MsgOptions()
				if threadTS != "" {
					options = append(options, slack.MsgOptionTS(threadTS))
				}
				_, err := a.api.PostEphemeralContext(ctx, channel, user, options...)
				return err
			})
			if refusedAs(err, "user_not_in_channel") { // who decides by direct message need not be there
				a.direct(user, page)
				return nil
			}
			return err
		},
	})
}

// say posts a page into a thread, and tries for long: what was told to nobody was
// not said.
func (a *App) say(channel, threadTS string, page render.Page) {
	a.publisher.Show(publish.Message{
		Key: "say/" + rand.Text(), Channel: channel, ThreadTS: threadTS, Group: threadTS,
		Page: page, Priority: publish.Answer, Final: true,
		OnError: func(err error) { a.c.Log.Error("say something in a thread", zap.Error(err)) },
	})
}

// react adds a reaction; end, if it is not nil, is called with what became of it.
func (a *App) react(channel, ts, emoji string, end func(error)) {
	a.publisher.Once(publish.Call{
		Method: publish.AddReaction, Priority: publish.Answer, Group: ts, What: "react " + emoji, Patient: true, OnEnd: end,
		Do: func(ctx context.Context) error {
			err := a.api.AddReactionContext(ctx, emoji, slack.NewRefToMessage(channel, ts))
			if refused := (slack.SlackErrorResponse{}); errors.As(err, &refused) && refused.Err == "already_reacted" {
				return nil
			}
			return err
		},
	})
}

// unreact takes a reaction of ours away.
func (a *App) unreact(channel, ts, emoji string, end func(error)) {
	a.publisher.Once(publish.Call{
		Method: publish.RemoveReaction, Priority: publish.Normal, Group: ts, What: "take " + emoji + " away", Patient: true, OnEnd: end,
		Do: func(ctx context.Context) error {
			err := a.api.RemoveReactionContext(ctx, emoji, slack.NewRefToMessage(channel, ts))
			if refusedAs(err, "no_reaction") {
				return nil
			}
			return err
		},
	})
}

// remove takes a message of ours away.
func (a *App) remove(channel, ts string) {
	a.publisher.Once(publish.Call{
		Method: publish.DeleteMessage, Priority: publish.Answer, Group: ts, What: "take a message away",
		Do: func(ctx context.Context) error {
			_, _, err := a.api.DeleteMessageContext(ctx, channel, ts)
			if refusedAs(err, "message_not_found") {
				return nil
			}
			return err
		},
	})
}

// rendering is how everything is rendered that has no workspace of its own.
func (a *App) rendering() render.Options { return render.Options{Redact: a.c.Redact} }
