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

// Messages that were posted while no replica was connected are found by catch-up scans of Slack's
// history. This file moves the cursor, scans.go reads, found.go takes what is found into the inbox.

const (
	// cursorEvery is how often the cursor is moved.
	cursorEvery = 10 * time.Second
	// overheardFor is how long a message in a thread that is none of ours is remembered.
	overheardFor = 10 * time.Minute
	// overheardMost bounds the threads.
	overheardMost = 1000
	// openLate is how old a mention is when replies to it may have come before it.
	openLate = 3 * time.Second
)

// cursor tracks up to when every message has reached the inbox. The zero value receives nothing and
// scans nothing.
type cursor struct {
	wake     chan struct{} // has a token when this process may be connected again
	scanSoon chan struct{} // has a token when a scan may be due

	rate   *rate.Limiter // of reading Slack's history
	hears  atomic.Bool   // the chat delivers to us
	others atomic.Bool   // and to other replicas, too
	moving sync.Mutex    // held while the cursor is moved

	mu        sync.Mutex
	on        bool
	deafSince time.Time // since when messages may not have reached us; zero while all do
	mutes     int       // how often that began
	since     time.Time // from when the workspace is to be scanned; zero: it need not be
	overhearing
}

// overhearing is what this process knows of threads that are none of ours. The cursor's mu guards it.
type overhearing struct {
	scanned   map[threads.ThreadKey]bool
	overheard map[threads.ThreadKey]time.Time // when the last message came in a thread that is none of ours
	talk      map[threads.ThreadKey]string    // by thread, the ts of the last message that was not for us
	talkSince time.Time                       // since when talk has all of them; zero: never
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// mute records that from now on messages may not reach the inbox.
func (h *cursor) mute() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mutes++
	if h.deafSince.IsZero() {
		h.deafSince = time.Now()
	}
}

// deaf reports whether messages may have been missed since the cursor was last moved.
func (h *cursor) deaf() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on && !h.deafSince.IsZero()
}

// overhear records a message in a thread that is none of ours. It may become one: Slack does not promise
// that the mention comes first.
func (h *cursor) overhear(k threads.ThreadKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.overheard) >= overheardMost || h.overheard == nil {
		h.overheard = map[threads.ThreadKey]time.Time{}
	}
	h.overheard[k] = time.Now()
}

// noteTalk records a message in a thread of ours that was not for us.
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

// talkedSince reports whether a message that was not for us came in a thread after ts. sure is false if there
// may have been more than this process knows.
func (h *cursor) talkedSince(k threads.ThreadKey, ts string) (talked, sure bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sure = !h.talkSince.IsZero() && timeOf(ts).After(h.talkSince) && h.deafSince.IsZero() && !h.others.Load()
	return h.talk[k] > ts, sure
}

// missed reports whether replies may have come before the message that opens their thread: what another replica
// has overheard is not known here.
func (h *cursor) missed(in *Incoming) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, overheard := h.overheard[in.Row.Key()]
	return overheard && time.Since(last) < overheardFor || h.others.Load() || in.Row.Attempts > 0 || time.Since(timeOf(in.Row.TS)) > openLate
}

// unsure reports whether messages of a thread may be missing, and since when.
func (h *cursor) unsure(k threads.ThreadKey) (since time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.on && !h.since.IsZero() && !h.scanned[k]
}

// sure records that a thread was scanned.
func (h *cursor) sure(k threads.ThreadKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.scanned == nil {
		h.scanned = map[threads.ThreadKey]bool{}
	}
	h.scanned[k] = true
}

// keepCursor moves the cursor for as long as this process is connected, and has missed messages scanned for,
// until ctx ends.
func (a listener) keepCursor(ctx context.Context) {
	a.cursor.mu.Lock()
	a.cursor.on, a.cursor.talkSince = true, time.Now()
	a.cursor.mu.Unlock()
	a.cursor.mute()
	var scanning sync.WaitGroup
	scanning.Go(func() { a.keepScanning(ctx) })
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
	scanning.Wait()
}

// moveCursor moves the cursor to now if this process receives everything: Slack delivers, and all that it delivered
// is in the inbox. With forMessage it does so although some is still in memory, so that the database knows at once
// that messages before that one may be missing.
func (a listener) moveCursor(ctx context.Context, forMessage bool) {
	h := &a.cursor
	h.moving.Lock()
	defer h.moving.Unlock()
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
	ctx, cancel := context.WithTimeoutCause(ctx, ackLimit, fmt.Errorf("move the cursor: no end in %s", ackLimit))
	defer cancel()
	scanFrom, err := a.c.Store.MoveCursor(ctx, a.self.Team, deaf)
	if err != nil {
		h.mute()
		if ctx.Err() == nil {
			a.c.Log.Warn("move the cursor", zap.Error(err))
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mutes == mutes && !unstored {
		h.deafSince = time.Time{}
	}
	if !scanFrom.Equal(h.since) || deaf > 0 {
		h.since, h.scanned = scanFrom, nil
	}
	if !scanFrom.IsZero() {
		signal(h.scanSoon)
	}
}

// scanBefore takes missed messages of a thread into the inbox before the message that has just come, while the rest
// of the workspace is still being scanned. What Slack does not tell at once comes later than the message.
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
	ctx, cancel := context.WithTimeout(ctx, askAtOnce)
	defer cancel()
	k := a.scanner(inbox.Scan{TeamID: key.TeamID, ChannelID: key.ChannelID, ThreadTS: key.ThreadTS, Since: since})
	k.aside = true
	if err := k.thread(ctx, key.ChannelID, key.ThreadTS); err != nil {
		a.c.Log.Warn("scan a thread before a message of it", zap.String("ts", in.Row.TS), zap.Error(err))
	}
}
