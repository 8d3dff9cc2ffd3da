package chat

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
)

// What people post while nobody hears it is looked for in Slack's own record. This file
// moves the cursor, scans.go reads, found.go takes what is found into the inbox.

const (
	// cursorEvery is how often the database is told that this process hears.
	cursorEvery = 10 * time.Second
	// overheardFor is how long it is known what was said in threads that are none of ours.
	overheardFor = 10 * time.Minute
	// overheardMost bounds them.
	overheardMost = 1000
	// openLate is after how long replies to a mention may have come before it.
	openLate = 3 * time.Second
)

// cursor is what the app knows of what was heard. The zero value is deaf, and looks for
// nothing.
type cursor struct {
	wake chan struct{} // has a token when this process may hear again
	look chan struct{} // has a token when there may be something to look through

	rate    *rate.Limiter // of what is asked of the record
	hears   atomic.Bool   // the chat delivers to us
	others  atomic.Bool   // other replicas hear, too
	telling sync.Mutex    // one tells the database

	mu        sync.Mutex
	on        bool
	deafSince time.Time // since when posts may not have reached us; zero while all do
	mutes     int       // how often that began
	since     time.Time // what the workspace is to be looked through from; zero: it need not be
	overhearing
}

// overhearing is what this process knows of threads that are none of ours. The cursor's mu guards it.
type overhearing struct {
	through   map[threads.ThreadKey]bool
	overheard map[threads.ThreadKey]time.Time // threads that are none of ours, with the last word in them
	talk      map[threads.ThreadKey]string    // the ts of the last post in a thread that was not for us
	talkSince time.Time                       // since when talk has all of them; zero: never
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// mute notes that from now on posts may not reach the inbox.
func (h *cursor) mute() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mutes++
	if h.deafSince.IsZero() {
		h.deafSince = time.Now()
	}
}

// deaf reports whether posts may not have reached the inbox that the database knows nothing
// of.
func (h *cursor) deaf() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on && !h.deafSince.IsZero()
}

// overhear notes that somebody said something in a thread that is none of ours. It may
// become one: Slack does not promise that the mention comes first.
func (h *cursor) overhear(k threads.ThreadKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.overheard) >= overheardMost || h.overheard == nil {
		h.overheard = map[threads.ThreadKey]time.Time{}
	}
	h.overheard[k] = time.Now()
}

// noteTalk notes that somebody posted in a thread what was not for us.
func (h *cursor) noteTalk(k threads.ThreadKey, ts string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.talk) >= overheardMost {
		h.talk, h.talkSince = nil, time.Now()
	}
	if h.talk == nil {
		h.talk = map[threads.ThreadKey]string{}
	}
	h.talk[k] = max(h.talk[k], ts)
}

// talkedSince reports whether something was posted in a thread after a post that was not for
// us. sure is false where more may have been than this process knows.
func (h *cursor) talkedSince(k threads.ThreadKey, ts string) (talked, sure bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sure = !h.talkSince.IsZero() && timeOf(ts).After(h.talkSince) && h.deafSince.IsZero() && !h.others.Load()
	return h.talk[k] > ts, sure
}

// missed reports whether replies may have come before the message that opens their thread:
// what another replica has overheard is not known here.
func (h *cursor) missed(in *Incoming) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, overheard := h.overheard[in.Row.Key()]
	return overheard && time.Since(last) < overheardFor || h.others.Load() || in.Row.Attempts > 0 || time.Since(timeOf(in.Row.TS)) > openLate
}

// unsure reports whether posts of a thread may be missing, and since when.
func (h *cursor) unsure(k threads.ThreadKey) (since time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.on && !h.since.IsZero() && !h.through[k]
}

// sure notes that a thread was looked through.
func (h *cursor) sure(k threads.ThreadKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.through == nil {
		h.through = map[threads.ThreadKey]bool{}
	}
	h.through[k] = true
}

// keepCursor tells the database that this process hears, for as long as it does, and has
// Slack looked through for what nobody heard, until ctx ends.
func (a listener) keepCursor(ctx context.Context) {
	a.cursor.mu.Lock()
	a.cursor.on, a.cursor.talkSince = true, time.Now()
	a.cursor.mu.Unlock()
	a.cursor.mute()
	var looking sync.WaitGroup
	looking.Go(func() { a.keepScanning(ctx) })
	tell := time.NewTicker(cursorEvery)
	defer tell.Stop()
	for ctx.Err() == nil {
		a.moveCursor(ctx, false)
		select {
		case <-ctx.Done():
		case <-tell.C:
		case <-a.cursor.wake:
		}
	}
	looking.Wait()
}

// moveCursor tells the database that this process hears, if it does: Slack delivers, and
// everything that it delivered is in the inbox. What is in memory still is no reason for a
// message not to have noted at once that posts may be missing before it.
func (a listener) moveCursor(ctx context.Context, forMessage bool) {
	h := &a.cursor
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
	look, err := a.c.Store.MoveCursor(ctx, a.self.Team, deaf)
	if err != nil {
		h.mute()
		if ctx.Err() == nil {
			a.c.Log.Warn("note that what people post is heard", zap.Error(err))
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

// scanBefore has what was posted in a thread before a message, and not heard, taken into
// the inbox, while the rest of the workspace is still looked through. What cannot be told
// at once comes later than the message.
func (a listener) scanBefore(ctx context.Context, in *Incoming) {
	key := in.Row.Key()
	if in.Message.Found {
		return
	}
	if a.cursor.deaf() {
		a.moveCursor(ctx, true)
	}
	since, ok := a.cursor.unsure(key)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookAside)
	defer cancel()
	k := a.scanner(inbox.Scan{TeamID: key.TeamID, ChannelID: key.ChannelID, ThreadTS: key.ThreadTS, Since: since})
	k.aside = true
	if err := k.thread(ctx, key.ChannelID, key.ThreadTS); err != nil {
		a.c.Log.Warn("look through a thread before a message of it", zap.String("ts", in.Row.TS), zap.Error(err))
	}
}
