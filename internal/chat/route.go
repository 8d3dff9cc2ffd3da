package chat

import (
	"context"
	"fmt"
	"runtime/debug"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
)

// ours reports whether the envelope is an echo of what we posted ourselves.
func (a keeper) ours(e inbox.Envelope) bool { return e.UserID == a.self.User }

// relevant reports whether a message is addressed to us: a mention, a direct
// message, or a word in a thread that we work in. The rest of a channel's talk
// is acknowledged and forgotten.
func (a keeper) relevant(ctx context.Context, in *Incoming) bool {
	relevant, err := a.relevantNow(ctx, in)
	return relevant || err != nil // an unreachable database is told by Receive
}

// relevantNow is relevant; its error is the database's.
func (a keeper) relevantNow(ctx context.Context, in *Incoming) (bool, error) {
	if in.Event == EventReact {
		return a.reactionOf(in.Emoji) != "", nil
	}
	if in.Message == nil || in.Message.ToUs {
		return true, nil
	}
	if !in.Message.Reply {
		return false, nil
	}
	if in.Message.ToOthers || a.takesMention(in) {
		a.cursor.noteTalk(in.Row.Key(), in.Row.TS)
		return false, nil
	}
	served, begins, err := a.c.Store.Concerns(ctx, in.Row.Key(), in.Row.TS)
	if err == nil && !served && !begins {
		a.cursor.overhear(in.Row.Key())
	}
	return served || begins, err
}

// takesMention reports whether a reply is not for us without a mention: its channel wants
// one, and it is no command about the thread, which people need when a button fails.
func (a keeper) takesMention(in *Incoming) bool {
	if !a.c.Access.Places.Mention[in.Row.ChannelID] {
		return false
	}
	c := a.table.commands.find(in.Message.Said)
	return c == nil || c.nearly || c.guessed || !c.inThread || c.steers
}

// Act does what the envelope asks for and says in a word or two what came of it.
func (a *Chat) Act(ctx context.Context, in *Incoming) string {
	ctx, cancel := context.WithTimeoutCause(ctx, routeLimit, fmt.Errorf("act on an envelope: no end in %s", routeLimit))
	defer cancel()
	if in.Row.ThreadTS != "" {
		a.screen.Watched(in.Row.ThreadTS)
		a.visitors.heard(in.Row.Key(), in.Row.UserID, in.Message != nil)
	}
	outcome, err := router{a}.handle(ctx, in)
	if err != nil && in.Message != nil && in.Row.ID != 0 {
		return keeper{a}.putOff(ctx, in, err)
	}
	if err != nil {
		a.c.Log.Error("act on an envelope", zap.String("event", in.Row.EventID), zap.String("kind", string(in.Row.Kind)),
			zap.String("user", in.Row.UserID), zap.Error(err), zap.NamedError("cause", context.Cause(ctx)))
		a.Answer(in, sorry)
		return "failed"
	}
	return outcome
}

// handle does what an envelope is for. A fault of ours in it is an error, so that one message ends
// no bot, and is not tried for ever.
func (a router) handle(ctx context.Context, in *Incoming) (outcome string, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("a fault of the bot: %v\n%s", fault, debug.Stack())
		}
	}()
	if err := a.learnBindings(ctx, in.Row.ChannelID); err != nil {
		return "", err
	}
	switch {
	case in.Message != nil:
		return a.onMessage(ctx, in)
	case in.Click != nil:
		return a.onClick(ctx, in)
	case in.Shortcut != nil:
		return prompter(a).onShortcut(ctx, in)
	case in.Submission != nil:
		return a.onSubmission(ctx, in)
	case in.Command != nil:
		return a.onSlash(ctx, in)
	case in.Event != "":
		return a.onEvent(ctx, in)
	}
	return "", nil
}

// Answer tells the person who said or clicked something, and nobody else: when the
// envelope is finished, where it is one that lasts, so that it is told whatever happens.
func (a *Chat) Answer(in *Incoming, sentence string) {
	switch {
	case in.Row.ChannelID == "" && in.Click == nil:
	case in.Row.ChannelID == "": // on the home tab, or in a modal
		a.screen.Direct(in.Row.UserID, view.Sentence(sentence))
	case in.Lasts:
		in.Told = append(in.Told, inbox.Whisper{ChannelID: in.Row.ChannelID, ThreadTS: in.Row.ThreadTS, UserID: in.Row.UserID, Sentence: sentence})
	default:
		a.reply(in, view.Sentence(sentence))
	}
}

// reply answers the person who said or clicked something where they did, so that nobody else sees
// it.
func (a *Chat) reply(in *Incoming, page view.Page) {
	a.screen.Whisper(Where{in.Row.ChannelID, in.Row.ThreadTS}, in.Row.UserID, page, nil)
}

// open opens a window for who clicked.
func (a *Chat) open(ctx context.Context, in *Incoming, form view.Form) error {
	_, err := a.screen.Open(ctx, in, form)
	return err
}

// finish marks the envelope as dealt with, and tells the person what is to be told of it.
func (a keeper) finish(ctx context.Context, id int64, in *Incoming, outcome string) {
	if outcome == waits {
		return
	}
	rows, err := a.c.Store.FinishTelling(ctx, id, outcome, in.Told...)
	if err != nil {
		a.c.Log.Error("finish an envelope", zap.Error(err))
	}
	a.Outbox.Tell(rows...)
	if len(rows) == 0 {
		a.tellNow(in)
	}
}

// tellNow tells the person what no row holds.
func (a keeper) tellNow(in *Incoming) {
	for _, w := range in.Told {
		a.screen.Whisper(Where{w.ChannelID, w.ThreadTS}, w.UserID, view.Sentence(w.Sentence), nil)
	}
}

// sorry tells a person that what they did has failed, or seems to have: a database that
// stops answering may have taken it all the same, and say so when it is back.
const sorry = "That did not work: Deckhand has trouble at the moment. If nothing changes here, try again; if it happens again, ask an admin to look at its log."

func (a router) onEvent(ctx context.Context, in *Incoming) (outcome string, err error) {
	switch in.Event {
	case EventHome:
		return tab(a).openHome(ctx, in)
	case EventGreet:
		return a.greet(ctx, in), nil
	case EventStop:
		return a.onNativeStop(ctx, in)
	case EventReact:
		return prompter(a).onReaction(ctx, in)
	}
	return string(in.Event), nil
}

// greet offers a person who is about to write to us what to say: work on their project, if they may
// give it any, and what it cost.
func (a router) greet(ctx context.Context, in *Incoming) (outcome string) {
	if a.mayDo(ctx, in.person(), access.See) != nil {
		return "nothing to suggest" // whoever says something is told why
	}
	project := a.c.Access.Places.DirectMessages
	if a.mayDo(ctx, in.person(), access.Prompt) != nil {
		project = ""
	}
	a.screen.Suggest(in, project)
	return "suggested"
}
