package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/access"
	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
)

const (
	// waitLimit is how long a message waits for what it needs, before its thread is told
	// that it was not worked on. After an error that is not known to pass it is tried so
	// often.
	waitLimit  = time.Hour
	doubtTries = 5
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
	return 0, pg.Passes(err)
}

// inboxKeeper is what [keeper.keepInbox] works on.
type inboxKeeper struct {
	lanes  lanes
	acting sync.WaitGroup // on what was delivered
	holder string         // the replica's name, and this registration's of it
	look   chan struct{}  // has a token when there may be something to act on

	busy atomic.Int32 // rows that are acted on

	mu       sync.Mutex
	unstored []*Incoming // messages that the database did not take, the oldest first
}

// lookAgain has the inbox looked into after a while.
func (k *inboxKeeper) lookAgain(after time.Duration) {
	time.AfterFunc(after, func() { signal(k.look) })
}

// keepsUnstored reports whether messages wait in memory for the database.
func (k *inboxKeeper) keepsUnstored() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.unstored) > 0
}

// work acts on an envelope that is in the inbox.
func (a keeper) work(ctx context.Context, in *Incoming) {
	outcome := a.Act(ctx, in)
	a.finish(ctx, in.Row.ID, in, outcome)
	if outcome != waits && in.Row.Marked {
		a.Outbox.SweepNow() // it is marked no longer
	}
	if outcome != waits && in.Message != nil {
		a.inbox.lookAgain(0) // the next of its thread may wait for it
	}
}

// putOff has a message wait after an error. Its author sees it; its thread is told when it
// is given up, see [Outbox.showWaits].
func (a keeper) putOff(ctx context.Context, in *Incoming, cause error) (outcome string) {
	e := &in.Row
	after, again := passes(cause)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackLimit) // what it took may be all that it had
	defer cancel()
	waited := time.Duration(0)
	if !e.WaitsSince.IsZero() {
		waited = time.Since(e.WaitsSince)
	}
	behind := errors.Is(cause, pg.ErrNotYet)
	if !behind && (waited > waitLimit || !again && e.Attempts >= doubtTries) {
		a.c.Log.Error("a message was given up", zap.Int64("inbox", e.ID), zap.Int("attempts", e.Attempts+1), zap.Error(cause))
		return inbox.GivenUp + whyGivenUp(cause, again)
	}
	pause := max(after, min(waitFirst<<min(e.Attempts, 10), waitMost))
	if behind {
		pause = min(max(waitBehind, waited/10), waitMost/6)
	}
	mark := !behind || waited > waitUnseen
	a.c.Log.Warn("a message waits", zap.Int64("inbox", e.ID), zap.Int("attempts", e.Attempts+1), zap.Duration("for", pause), zap.Error(cause))
	if err := a.c.Store.PutOff(ctx, e.ID, pause, a.c.Redact(cause.Error()), !behind, mark); err != nil {
		a.c.Log.Error("put off a message; it is tried again when nobody is seen to hold it", zap.Error(err))
	}
	if mark && !e.Marked {
		a.Outbox.SweepNow()
	}
	a.inbox.lookAgain(pause)
	return waits
}

// whyGivenUp is for people, within a sentence.
func whyGivenUp(cause error, again bool) string {
	if refused, ok := errors.AsType[*access.Refusal](cause); ok {
		return "Slack could not say who wrote it, or where (" + refused.Reason + ")"
	}
	if again {
		return "Deckhand's database had trouble for so long"
	}
	return "Deckhand has trouble with it; its log tells an admin more"
}

// notWorkedOn is what a thread is told of a message that was given up.
func notWorkedOn(why string) string {
	return "The message marked ⚠️ was not worked on: " + why + ". Send it again."
}

// keepInbox acts on what waits in the inbox until ctx ends: what was put off, what an
// earlier process acknowledged and did not get to, and what a replica that died has left.
func (a keeper) keepInbox(ctx context.Context) {
	poll := time.NewTicker(inboxPoll)
	defer poll.Stop()
	retry := time.NewTicker(unstoredPause)
	defer retry.Stop()
	ours := false
	for ctx.Err() == nil {
		if !ours {
			err := a.c.Store.LetGo(ctx, a.c.Replica+"/", a.inbox.holder)
			if ours = err == nil; err != nil && ctx.Err() == nil {
				a.c.Log.Error("read what was left in the inbox", zap.Error(err))
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
func (a keeper) takeDue(ctx context.Context) {
	free := inboxAtOnce - int(a.inbox.busy.Load())
	if free <= 0 {
		return // whoever ends looks again
	}
	due, err := a.c.Store.Due(ctx, a.inbox.holder, free)
	if err != nil {
		if ctx.Err() == nil {
			a.c.Log.Error("read what is due in the inbox", zap.Error(err))
		}
		return
	}
	for _, e := range due {
		in, err := a.screen.Decode(e)
		if err != nil || in == nil {
			a.c.Log.Error("an envelope in the inbox cannot be read", zap.Int64("inbox", e.ID), zap.Error(err))
			a.finish(ctx, e.ID, &Incoming{}, "unreadable")
			continue
		}
		in.Row, in.Lasts = e, true
		a.begin(ctx, in)
	}
}

// begin acts on an envelope of the inbox beside the caller, after those that came before
// it in its thread.
func (a keeper) begin(ctx context.Context, in *Incoming) {
	enter, leave := func() {}, func() {}
	if in.Row.Kind == inbox.Message {
		enter, leave = a.inbox.lanes.reserve(in.Row.ChannelID + "/" + in.Row.ThreadTS)
	}
	a.inbox.busy.Add(1)
	a.inbox.acting.Go(func() {
		defer func() {
			leave()
			a.inbox.busy.Add(-1)
			a.inbox.lookAgain(0)
		}()
		enter()
		a.work(context.WithoutCancel(ctx), in)
	})
}

// keepUnstored keeps a message that the database did not take, to store it as soon as it
// does: Slack delivers it again, but minutes later.
func (a keeper) keepUnstored(in *Incoming) {
	a.inbox.mu.Lock()
	defer a.inbox.mu.Unlock()
	if len(a.inbox.unstored) >= unstoredMost {
		return
	}
	a.inbox.unstored = append(a.inbox.unstored, in)
	a.cursor.mute()
	if in.Message.ToUs {
		in.Row.Marked = true
		a.screen.MarkWaits(in.Row.ChannelID, in.Row.TS, true, nil)
	}
}

// storeUnstored stores what the database did not take, in order, and begins to act on it.
func (a keeper) storeUnstored(ctx context.Context) {
	for ctx.Err() == nil {
		a.inbox.mu.Lock()
		var in *Incoming
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
func (a keeper) storeNow(ctx context.Context, in *Incoming) bool {
	ctx, cancel := context.WithTimeoutCause(ctx, ackLimit, fmt.Errorf("commit an envelope: no end in %s", ackLimit))
	defer cancel()
	id, fresh := int64(0), false
	ours, err := a.relevantNow(ctx, in)
	if err == nil && ours {
		in.Row.Holder = a.inbox.holder
		id, fresh, err = a.c.Store.Receive(ctx, in.Row)
	}
	if err != nil {
		if _, again := passes(err); again || in.storing < doubtTries {
			in.storing++
			return false
		}
		a.c.Log.Error("a message could not be stored", zap.String("event", in.Row.EventID), zap.Error(cmp.Or(context.Cause(ctx), err)))
		if in.Row.Marked {
			a.screen.React(in.Row.ChannelID, in.Row.TS, agent.PromptFailed, nil)
			a.screen.Say(Where{in.Row.ChannelID, in.Row.ThreadTS}, view.Sentence(notWorkedOn(whyGivenUp(err, false))))
		}
	}
	if fresh {
		in.Row.ID, in.Lasts = id, true
		a.begin(context.WithoutCancel(ctx), in)
	} else if in.Row.Marked {
		a.screen.MarkWaits(in.Row.ChannelID, in.Row.TS, false, nil) // it was delivered again meanwhile
	}
	return true
}
