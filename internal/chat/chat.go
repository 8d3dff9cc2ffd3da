package chat

import (
	"context"
	"crypto/rand"
	"net/mail"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/accounts"
	"deckhand/internal/agent"
	"deckhand/internal/agent/policy"
	"deckhand/internal/agent/spend"
	"deckhand/internal/attachment"
)

// Config is what a chat needs. Store is required, and Log and Redact are.
type Config struct {
	Store   Store
	Access  access.Rules // and where people work
	Budgets []spend.Budget
	// Sandboxes say by project what shuts its sessions in: "bwrap, no network".
	Sandboxes map[string]string
	Postures  policy.Postures
	// Replica names this bot among those that share the database.
	Replica string
	// Reminders say whom to tell of an approval that waits, stage by stage: "thread",
	// "approvers" (each by direct message), or a channel's id.
	Reminders [][]string
	// Calls say by project how those who may decide learn of a request; one that is not
	// named mentions them in the thread.
	Calls map[string]access.Call
	// Authors are the names and addresses that commits have of people whose profiles have no address.
	Authors map[string]mail.Address
	// Accounts are people's own at forges and MCP servers.
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

// Self is who we are in the chat.
type Self struct{ Team, User string }

// Chat is the bot in one workspace of a chat program. Create it with [New], and call [Chat.Run].
// Its subjects (what is decided, budgets, what people steer) are types beside it, that have it.
type Chat struct {
	*gate
	costs  Costs
	agent  *agent.Supervisor
	table  table
	bound  atomic.Pointer[map[string]string] // see setup.go
	inbox  inboxKeeper
	cursor cursor
	posts  *posts
	said   sentences
	// Outbox sends what was committed to be shown, Homes are the pages of their own at which
	// people look.
	Outbox *Outbox
	Homes  Homes
}

// The subjects of what people want.
type (
	prompter  struct{ *Chat } // work: asked for, begun, stopped and dropped
	reader    struct{ *Chat } // what was said elsewhere, as the model reads it
	decider   struct{ *Chat } // what waits for a decision
	granter   struct{ *Chat } // what runs without asking
	budgeter  struct{ *Chat } // limits that are reached
	steerer   struct{ *Chat } // how a thread's session goes on
	puller    struct{ *Chat } // pull requests
	connector struct{ *Chat } // people's own accounts at forges and MCP servers
	binder    struct{ *Chat } // which project a channel works on
	rater     struct{ *Chat } // what people think of answers
	tab       struct{ *Chat } // somebody's own page
)

// The ways of what comes in.
type (
	keeper   struct{ *Chat } // of the inbox
	router   struct{ *Chat } // to what something means
	listener struct{ *Chat } // for what nobody heard
)

// New is the chat of a bot that is self on a screen.
func New(c Config, self Self, screen Screen, people People, costs Costs) *Chat {
	a := &Chat{costs: costs}
	c.Access.Places.Bound = a.Bound
	a.gate = &gate{c: c, self: self, screen: screen, people: people}
	a.inbox = inboxKeeper{holder: c.Replica + "/" + rand.Text(), look: make(chan struct{}, 1)}
	a.cursor.wake, a.cursor.scanSoon, a.cursor.rate = make(chan struct{}, 1), make(chan struct{}, 1), newScanRate()
	a.Homes.wake, a.Homes.news = make(chan struct{}, 1), make(chan struct{}, 1)
	a.posts = newPosts(a)
	a.Outbox = newOutbox(a)
	a.table = newTable(a)
	return a
}

// Settings are what it was made with.
func (a *Chat) Settings() *Config { return &a.c }

// Begin has a supervisor work on what people want. It is called before anything comes in.
func (a *Chat) Begin(supervisor *agent.Supervisor) { a.agent = supervisor }

// Run keeps what waits and what was missed going, until ctx ends.
func (a *Chat) Run(ctx context.Context) {
	var keeping sync.WaitGroup
	keeping.Go(func() { keeper{a}.keepInbox(ctx) })
	keeping.Go(func() { listener{a}.keepCursor(ctx) })
	keeping.Go(func() { tab{a}.keepHomes(ctx) })
	keeping.Wait()
}

// KeepShowing sends what there is to show until ctx ends, and then what is being read; from then on nothing
// is, and over is called.
func (a *Chat) KeepShowing(ctx context.Context, over func()) {
	var sending sync.WaitGroup
	sending.Go(func() { a.Outbox.keepUp(ctx) })
	<-ctx.Done()
	a.posts.finish()
	over()
	sending.Wait()
}

// Wait waits for what is being acted on.
func (a *Chat) Wait() { a.inbox.acting.Wait() }

// Hears notes whether the chat delivers to us, and has what was missed looked for.
func (a *Chat) Hears(now bool) {
	a.cursor.hears.Store(now)
	if !now {
		a.cursor.mute()
	}
	signal(a.cursor.wake)
}

// Connected reports whether the chat is delivering to us.
func (a *Chat) Connected() bool { return a.cursor.hears.Load() }

// Others reports whether other replicas hear, too.
func (a *Chat) Others() bool { return a.cursor.others.Load() }

// Supervisor works on what people want.
func (a *Chat) Supervisor() *agent.Supervisor { return a.agent }

// Heard is the mark of a prompt that is about to be worked on.
const Heard agent.PromptMark = "heard"
