package slackui

import (
	"context"
	"crypto/rand"
	"errors"
	"net/mail"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"deckhand/internal/access"
	"deckhand/internal/accounts"
	"deckhand/internal/agent"
	"deckhand/internal/agent/spend"
	"deckhand/internal/attachment"
	"deckhand/internal/jobs"
	"deckhand/internal/slackui/costs"
	"deckhand/internal/slackui/directory"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
)

// Config is what the app needs. Store is required.
type Config struct {
	Store   Store
	Access  access.Rules // and where people work
	Budgets []spend.Budget
	// Sandboxes say by project what shuts its sessions in: "bwrap, no network".
	Sandboxes map[string]string
	// Replica names this bot among those that share the database.
	Replica string
	// Reminders say whom to tell of an approval that waits, stage by stage: "thread",
	// "approvers" (each by direct message), or a channel's id.
	Reminders [][]string
	// Calls say by project how those who may decide learn of a request; one that is not
	// named mentions them in the thread.
	Calls map[string]access.Call
	// Digests are reports on costs that are posted again and again.
	Digests []costs.Digest
	// AskersTimeZone counts days in answers about costs in the zone of the person who
	// asks, as Slack has it, instead of the store's.
	AskersTimeZone bool
	// Authors are the names and addresses that commits have of people whose profiles have no address.
	Authors map[string]mail.Address
	// Accounts are people's own at forges.
	Accounts *accounts.Service
	// Attachments bound what people may attach to their messages.
	Attachments attachment.Limits
	// Reactions are the emojis that do something, by their names: [ReactionBegins] or [ReactionStops].
	Reactions map[string]string
	// HidePictures leaves it at a word that a tool has returned a picture.
	HidePictures bool
	// CatchUp is how old a post may be that nobody heard, to be worked on all the same.
	CatchUp time.Duration
	// Health says in sentences how this bot is, the first one in a word or two; nil: nothing
	// is said.
	Health func(ctx context.Context) []string
	// Redact is applied to all text of the model and of tools before it leaves.
	Redact func(string) string
	Log    *zap.Logger
}

// App is the bot in one Slack workspace. Create it with [New], hand
// [App.Frontend] to a supervisor, and call [App.Run].
type App struct {
	c         Config
	log       *zap.Logger
	client    *slack.Client // for its sockets
	api       webAPI
	self      identity
	commands  commands
	publisher *publish.Scheduler
	people    *directory.Directory
	refused   refusals
	frontend  *frontend
	sessions  *sessions
	outbox    *outbox
	costs     *costs.Accountant
	agent     *agent.Supervisor
	readers   chan struct{} // holds one for each conversation that is being read, see findResults
	lanes     lanes
	inbox     inboxKeeper
	cursor    cursor
	homes     homes
	lookRate  *rate.Limiter
	bound     *atomic.Pointer[map[string]string] // see setup.go
	features  func(context.Context) []Feature    // of the workspace; nil: nobody asks
	envelopes sync.WaitGroup
	connected atomic.Bool
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
	bound := new(atomic.Pointer[map[string]string])
	c.Access.Places.Bound = func() map[string]string {
		if all := bound.Load(); all != nil {
			return *all
		}
		return nil
	}
	a := &App{bound: bound, inbox: inboxKeeper{holder: c.Replica + "/" + rand.Text(), look: make(chan struct{}, 1)}, c: c, log: c.Log, commands: allCommands(), client: client, api: client, self: self}
	a.cursor.wake, a.cursor.look, a.lookRate = make(chan struct{}, 1), make(chan struct{}, 1), newScanRate()
	a.homes.wake, a.homes.news, a.readers = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, readAtOnce)
	a.people = directory.New(client, c.Log.Named("directory"))
	a.publisher = publish.New(client, publish.Options{Log: c.Log.Named("publish")})
	a.frontend, a.outbox, a.sessions = newFrontend(a), newOutbox(a), newSessions(a)
	a.costs = costs.New(costs.Config{
		Team: a.self.TeamID, Store: c.Store, Access: c.Access, People: a.people, API: a.api, Publisher: a.publisher,
		Whisper: a.whisper, Say: a.say, Permalink: a.permalink, Redact: c.Redact, Log: c.Log.Named("costs"),
		Digests: c.Digests, AskersTimeZone: c.AskersTimeZone,
	})
	return a
}

// Frontend is where the agent shows its work.
func (a *App) Frontend() agent.Frontend { return a.frontend }

// JobHandlers do the jobs that the app schedules. They need what [App.Run] sends.
func (a *App) JobHandlers() []jobs.Handler { return a.costs.JobHandlers() }

// TeamID is the Slack workspace that the tokens belong to.
func (a *App) TeamID() string { return a.self.TeamID }

// Connected reports whether Slack is delivering to us.
func (a *App) Connected() bool { return a.connected.Load() }

// Run takes what Slack delivers until ctx ends, and sends what there is to show
// until publishing ends: a supervisor that stops in between still has its last
// words shown. Whatever Slack refuses is logged and tried again; [App.Connected]
// tells.
func (a *App) Run(ctx, publishing context.Context, supervisor *agent.Supervisor) {
	a.agent = supervisor
	var publisher sync.WaitGroup
	publisher.Go(func() { a.publish(publishing) })
	var digests sync.WaitGroup
	digests.Go(func() { a.costs.KeepDigestsScheduled(ctx) })
	var inbox sync.WaitGroup
	inbox.Go(func() { a.keepInbox(ctx) })
	inbox.Go(func() { a.keepCursor(ctx) })
	inbox.Go(func() { a.keepHomes(ctx) })
	inbox.Go(func() { a.learnFeatures(ctx) })
	a.listen(ctx)
	inbox.Wait()
	a.envelopes.Wait()
	digests.Wait()
	publisher.Wait()
}

// publish sends what there is to show until ctx ends, and then its last state.
func (a *App) publish(ctx context.Context) {
	sending, enough := context.WithCancel(context.WithoutCancel(ctx))
	var cards, keeping sync.WaitGroup
	keeping.Go(func() { a.outbox.keepUp(ctx) })
	cards.Go(func() {
		<-ctx.Done()
		a.frontend.finish()
		enough()
	})
	if err := a.publisher.Run(sending); err != nil {
		a.log.Warn("the last messages to Slack", zap.Error(err))
	}
	cards.Wait()
	keeping.Wait()
	a.outbox.close()
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

// reply answers the person who said or clicked something where they did, so that
// nobody else sees it.
func (a *App) reply(in *incoming, page render.Page) {
	a.whisper(in.store.ChannelID, in.store.ThreadTS, in.store.UserID, page)
}

// say posts a page into a thread, and tries for long: what was told to nobody was
// not said.
func (a *App) say(channel, threadTS string, page render.Page) {
	a.publisher.Show(publish.Message{
		Key: "say/" + rand.Text(), Channel: channel, ThreadTS: threadTS, Group: threadTS,
		Page: page, Priority: publish.Answer, Final: true,
		OnError: func(err error) { a.log.Error("say something in a thread", zap.Error(err)) },
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
