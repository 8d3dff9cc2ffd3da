package slackui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"
	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/store"
)

const (
	// waitLimit is how long a message waits for what it needs, before its author is told
	// that it was not worked on.
	waitLimit = time.Hour
	// waitFirst is how long it waits after the first try; after each further one twice as
	// long, up to waitMost.
	waitFirst = 2 * time.Second
	waitMost  = time.Minute
	// waitBehind is how soon a message is tried again that an earlier one of its thread
	// holds up; waitUnseen is how long it may do so without a mark.
	waitBehind = 300 * time.Millisecond
	waitUnseen = 3 * time.Second
	// inboxPoll is how often rows are looked for that another replica has left or put off.
	inboxPoll = 5 * time.Second
	// inboxAtOnce is how many rows are acted on at once.
	inboxAtOnce = 8
	// unstoredMost bounds the messages that wait in memory for the database, and
	// unstoredPause is how often they are tried.
	unstoredMost  = 1000
	unstoredPause = time.Second
)

// waits is the outcome of an envelope that is to be tried again.
const waits = "waits"

// waitEmoji marks a message that waits: ⏳.
const waitEmoji = "hourglass_flowing_sand"

// laterError is an error of Slack's API that may be over soon: after is how long Slack
// wants to be left alone.
type laterError struct {
	after time.Duration
	err   error
}

func (e *laterError) Error() string { return e.err.Error() }
func (e *laterError) Unwrap() error { return e.err }

// passes reports whether what came of an envelope may be another when it is tried again.
func passes(err error) (after time.Duration, ok bool) {
	if later, ok := errors.AsType[*laterError](err); ok {
		return later.after, true
	}
	return 0, store.Passes(err)
}

// inboxKeeper is what [App.keepInbox] works on.
type inboxKeeper struct {
	holder string        // the replica's name, and this life's of it
	look   chan struct{} // has a token when there may be something to act on

	mu       sync.Mutex
	busy     int
	unstored []*incoming // messages that the database did not take, the oldest first
}

// lookAgain has the inbox looked into after a while.
func (k *inboxKeeper) lookAgain(after time.Duration) {
	time.AfterFunc(after, func() {
		select {
		case k.look <- struct{}{}:
		default:
		}
	})
}

// free is how many rows may be acted on beside those that are.
func (k *inboxKeeper) free() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return inboxAtOnce - k.busy
}

// keepsUnstored reports whether messages wait in memory for the database.
func (k *inboxKeeper) keepsUnstored() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.unstored) > 0
}

func (k *inboxKeeper) begin() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.busy++
}

func (k *inboxKeeper) end() {
	k.mu.Lock()
	k.busy--
	k.mu.Unlock()
	k.lookAgain(0)
}

// work acts on an envelope that is in the inbox.
func (a *App) work(ctx context.Context, in *incoming) {
	outcome := a.act(ctx, in)
	a.finish(ctx, in.store.ID, in, outcome)
	if outcome != waits && in.store.Marked {
		a.outbox.sweepNow() // it is marked no longer
	}
	if outcome != waits && in.message != nil {
		a.inbox.lookAgain(0) // the next of its thread may wait for it
	}
}

// putOff has a message wait, after an error that may be over soon. Its author sees it; and
// is told when it has waited for too long.
func (a *App) putOff(ctx context.Context, in *incoming, cause error, after time.Duration) (outcome string) {
	e := &in.store
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackLimit) // what it took may be all that it had
	defer cancel()
	waited := time.Duration(0)
	if !e.WaitsSince.IsZero() {
		waited = time.Since(e.WaitsSince)
	}
	behind := errors.Is(cause, store.ErrNotYet)
	if waited > waitLimit && !behind {
		a.log.Error("a message was given up", zap.Int64("inbox", e.ID), zap.Int("attempts", e.Attempts+1), zap.Error(cause))
		a.react(e.ChannelID, e.TS, endMarks[agent.PromptFailed], nil)
		a.answer(in, whyGivenUp(cause))
		return "given up"
	}
	pause := max(after, min(waitFirst<<min(e.Attempts, 10), waitMost))
	if behind {
		pause = min(max(waitBehind, waited/10), waitMost/6)
	}
	mark := !behind || waited > waitUnseen
	a.log.Warn("a message waits", zap.Int64("inbox", e.ID), zap.Int("attempts", e.Attempts+1), zap.Duration("for", pause), zap.Error(cause))
	if err := a.c.Store.PutOff(ctx, e.ID, pause, a.c.Redact(cause.Error()), !behind, mark); err != nil {
		a.log.Error("put off a message; it is tried again when nobody is seen to hold it", zap.Error(err))
	}
	if mark && !e.Marked {
		a.outbox.sweepNow()
	}
	a.inbox.lookAgain(pause)
	return waits
}

// whyGivenUp is for people.
func whyGivenUp(cause error) string {
	why := "Deckhand's database had trouble for so long"
	if refused, ok := errors.AsType[*access.Refusal](cause); ok {
		why = "Slack could not tell who wrote it, or where (" + refused.Reason + ")"
	}
	return fmt.Sprintf("The message marked ⚠️ waited for %.0f minutes and was not worked on: %s. Send it again.", waitLimit.Minutes(), why)
}

// mark shows on a person's message that it waits, and unmark that it does no longer. end,
// if it is not nil, is called with what became of it.
func (a *App) mark(channel, ts string, end func(error)) {
	a.onMark(channel, ts, publish.AddReaction, end, a.api.AddReactionContext)
}

func (a *App) unmark(channel, ts string, end func(error)) {
	a.onMark(channel, ts, publish.RemoveReaction, end, a.api.RemoveReactionContext)
}

// showWaits shows on a person's message whether it waits, as its row says.
func (f *frontend) showWaits(w store.Word) {
	end := f.app.outbox.showing(store.Shown{Kind: store.WordWaits, InboxID: w.InboxID, UpTo: w.ID})
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	if f.closed {
		return // it is in the database
	}
	f.reads.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		defer cancel()
		waits, err := f.app.c.Store.PostWaits(ctx, w.InboxID)
		switch {
		case err != nil:
			end(err)
		case waits:
			f.app.mark(w.Thread.ChannelID, w.TS, end)
		default:
			f.app.unmark(w.Thread.ChannelID, w.TS, end)
		}
	})
}

func (a *App) onMark(channel, ts string, m publish.Method, end func(error), call func(context.Context, string, slack.ItemRef) error) {
	a.publisher.Once(publish.Call{
		Method: m, Priority: publish.High, Group: ts, Key: "waits/" + channel + "/" + ts, Replace: true, What: "mark a message that waits", Patient: end != nil, OnEnd: end,
		Do: func(ctx context.Context) error {
			err := call(ctx, waitEmoji, slack.NewRefToMessage(channel, ts))
			if refusedAs(err, "already_reacted") || refusedAs(err, "no_reaction") {
				return nil
			}
			return err
		},
	})
}

// keepInbox acts on what waits in the inbox until ctx ends: what was put off, what an
// earlier process acknowledged and did not get to, and what a replica that died has left.
func (a *App) keepInbox(ctx context.Context) {
	poll := time.NewTicker(inboxPoll)
	defer poll.Stop()
	retry := time.NewTicker(unstoredPause)
	defer retry.Stop()
	ours := false
	for ctx.Err() == nil {
		if !ours {
			err := a.c.Store.LetGo(ctx, a.c.Replica+"/", a.inbox.holder)
			if ours = err == nil; err != nil && ctx.Err() == nil {
				a.log.Error("read what was left in the inbox", zap.Error(err))
			}
		}
		a.takeDue(ctx)
		for wait := true; wait; {
			select {
			case <-ctx.Done():
				wait = false
			case <-a.inbox.look:
				wait = false
			case <-poll.C:
				wait = false
			case <-retry.C:
				a.storeUnstored(ctx)
			}
		}
	}
}

// takeDue begins to act on what is due, as far as there is room.
func (a *App) takeDue(ctx context.Context) {
	free := a.inbox.free()
	if free <= 0 {
		return // whoever ends looks again
	}
	due, err := a.c.Store.Due(ctx, a.inbox.holder, free)
	if err != nil {
		if ctx.Err() == nil {
			a.log.Error("read what is due in the inbox", zap.Error(err))
		}
		return
	}
	for _, e := range due {
		in, err := decode(envelope{ID: e.EventID, Type: envelopeType[e.Kind], Payload: e.Payload})
		if err != nil || in == nil {
			a.log.Error("an envelope in the inbox cannot be read", zap.Int64("inbox", e.ID), zap.Error(err))
			a.finish(ctx, e.ID, &incoming{}, "unreadable")
			continue
		}
		in.store, in.lasts = e, true
		a.begin(ctx, in)
	}
}

// begin acts on an envelope of the inbox beside the caller, after those that came before
// it in its thread.
func (a *App) begin(ctx context.Context, in *incoming) {
	enter, leave := func() {}, func() {}
	if in.store.Kind == store.KindMessage {
		enter, leave = a.lanes.reserve(in.store.ChannelID + "/" + in.store.ThreadTS)
	}
	a.inbox.begin()
	a.envelopes.Go(func() {
		defer a.inbox.end()
		defer leave()
		enter()
		a.work(context.WithoutCancel(ctx), in)
	})
}

// keepUnstored keeps a message that the database did not take, to store it as soon as it
// does: Slack delivers it again, but minutes later.
func (a *App) keepUnstored(in *incoming) {
	a.inbox.mu.Lock()
	defer a.inbox.mu.Unlock()
	if len(a.inbox.unstored) >= unstoredMost {
		return
	}
	a.inbox.unstored = append(a.inbox.unstored, in)
	a.hearing.mute()
	if in.addressed(a.mention()) {
		in.store.Marked = true
		a.mark(in.store.ChannelID, in.store.TS, nil)
	}
}

// storeUnstored stores what the database did not take, in order, and begins to act on it.
func (a *App) storeUnstored(ctx context.Context) {
	for ctx.Err() == nil {
		a.inbox.mu.Lock()
		var in *incoming
		if len(a.inbox.unstored) > 0 {
			in = a.inbox.unstored[0]
		}
		a.inbox.mu.Unlock()
		if in == nil || !a.storeNow(ctx, in) {
			return
		}
		a.inbox.mu.Lock()
		a.inbox.unstored = a.inbox.unstored[1:]
		a.inbox.mu.Unlock()
	}
}

// storeNow reports false when the database is away still.
func (a *App) storeNow(ctx context.Context, in *incoming) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, ackLimit, fmt.Errorf("commit an envelope: no end in %s", ackLimit))
	defer cancel()
	id, fresh := int64(0), false
	ours, err := a.relevantNow(ctx, in)
	if err == nil && ours {
		in.store.Holder = a.inbox.holder
		id, fresh, err = a.c.Store.Receive(ctx, in.store)
	}
	if _, again := passes(err); err != nil && again {
		return false
	}
	if err != nil {
		a.log.Error("a message could not be stored", zap.String("event", in.store.EventID), zap.Error(cmp.Or(context.Cause(ctx), err)))
	}
	if fresh {
		in.store.ID, in.lasts = id, true
		a.begin(context.WithoutCancel(ctx), in)
	} else if in.store.Marked {
		a.unmark(in.store.ChannelID, in.store.TS, nil) // it was delivered again meanwhile
	}
	return true
}
