package slackui

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store"
)

// What people post while nobody hears it is looked for in Slack's own record. This file
// knows what was heard, looks.go looks, found.go takes what is found into the inbox.

const (
	// hearEvery is how often the database is told that this process hears.
	hearEvery = 10 * time.Second
	// overheardFor is how long it is known what was said in threads that are none of ours.
	overheardFor = 10 * time.Minute
	// overheardMost bounds them.
	overheardMost = 1000
	// openLate is after how long replies to a mention may have come before it.
	openLate = 3 * time.Second
)

// hearing is what the app knows of what was heard. The zero value is deaf, and looks for
// nothing.
type hearing struct {
	wake chan struct{} // has a token when this process may hear again
	look chan struct{} // has a token when there may be something to look through

	others  atomic.Bool // other replicas hear, too
	telling sync.Mutex  // one tells the database

	mu        sync.Mutex
	on        bool
	deafSince time.Time // since when posts may not have reached us; zero while all do
	mutes     int       // how often that began
	since     time.Time // what the workspace is to be looked through from; zero: it need not be
	through   map[store.ThreadKey]bool
	overheard map[store.ThreadKey]time.Time // threads that are none of ours, with the last word in them
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// mute notes that from now on posts may not reach the inbox.
func (h *hearing) mute() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mutes++
	if h.deafSince.IsZero() {
		h.deafSince = time.Now()
	}
}

// deaf reports whether posts may not have reached the inbox that the database knows nothing
// of.
func (h *hearing) deaf() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on && !h.deafSince.IsZero()
}

// overhear notes that somebody said something in a thread that is none of ours. It may
// become one: Slack does not promise that the mention comes first.
func (h *hearing) overhear(k store.ThreadKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.overheard) >= overheardMost || h.overheard == nil {
		h.overheard = map[store.ThreadKey]time.Time{}
	}
	h.overheard[k] = time.Now()
}

// missed reports whether replies may have come before the message that opens their thread:
// what another replica has overheard is not known here.
func (h *hearing) missed(in *incoming) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, overheard := h.overheard[in.store.Key()]
	return overheard && time.Since(last) < overheardFor || h.others.Load() || in.store.Attempts > 0 || time.Since(timeOf(in.store.TS)) > openLate
}

// unsure reports whether posts of a thread may be missing, and since when.
func (h *hearing) unsure(k store.ThreadKey) (since time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.on && !h.since.IsZero() && !h.through[k]
}

// sure notes that a thread was looked through.
func (h *hearing) sure(k store.ThreadKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.through == nil {
		h.through = map[store.ThreadKey]bool{}
	}
	h.through[k] = true
}

// keepHearing tells the database that this process hears, for as long as it does, and has
// Slack looked through for what nobody heard, until ctx ends.
func (a *App) keepHearing(ctx context.Context) {
	a.hearing.mu.Lock()
	a.hearing.on = true
	a.hearing.mu.Unlock()
	a.hearing.mute()
	var looking sync.WaitGroup
	looking.Go(func() { a.keepLooking(ctx) })
	tell := time.NewTicker(hearEvery)
	defer tell.Stop()
	for ctx.Err() == nil {
		a.hear(ctx, false)
		select {
		case <-ctx.Done():
		case <-tell.C:
		case <-a.hearing.wake:
		}
	}
	looking.Wait()
}

// hear tells the database that this process hears, if it does: Slack delivers, and
// everything that it delivered is in the inbox. What is in memory still is no reason for a
// message not to have noted at once that posts may be missing before it.
func (a *App) hear(ctx context.Context, forMessage bool) {
	h := &a.hearing
	h.telling.Lock()
	defer h.telling.Unlock()
	unstored := a.inbox.keepsUnstored()
	if !a.Connected() || unstored && !forMessage {
		h.mute()
		return
	}
	h.mu.Lock()
	since, mutes := h.deafSince, h.mutes
	h.mu.Unlock()
	deaf := time.Duration(0)
	if !since.IsZero() {
		deaf = max(time.Since(since), 1)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ackLimit, fmt.Errorf("tell the database what was heard: no end in %s", ackLimit))
	defer cancel()
	look, err := a.c.Store.Hear(ctx, a.self.TeamID, deaf)
	if err != nil {
		h.mute()
		if ctx.Err() == nil {
			a.log.Warn("note that what people post is heard", zap.Error(err))
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mutes == mutes && !unstored {
		h.deafSince = time.Time{}
	}
	if !look.Equal(h.since) || deaf > 0 {
		h.since, h.through = look, nil
	}
	if !look.IsZero() {
		signal(h.look)
	}
}

// hearBefore has what was posted in a thread before a message, and not heard, taken into
// the inbox, while the rest of the workspace is still looked through. What cannot be told
// at once comes later than the message.
func (a *App) hearBefore(ctx context.Context, in *incoming) {
	key := in.store.Key()
	if in.found != "" {
		return
	}
	if a.hearing.deaf() {
		a.hear(ctx, true)
	}
	since, ok := a.hearing.unsure(key)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookAside)
	defer cancel()
	k := a.looker(store.Look{TeamID: key.TeamID, ChannelID: key.ChannelID, ThreadTS: key.ThreadTS, Since: since})
	k.aside = true
	if err := k.thread(ctx, key.ChannelID, key.ThreadTS); err != nil {
		a.log.Warn("look through a thread before a message of it", zap.String("ts", in.store.TS), zap.Error(err))
	}
}
