package chat

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"deckhand/internal/access"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/threads"
)

const (
	// scanMost is how far back a scan reads; older missed messages are not found.
	scanMost = 24 * time.Hour
	// scanPoll is how often due scans are polled for; scanHold is how long a scan stays its replica's without a renewal.
	scanPoll, scanHold = 10 * time.Second, time.Minute
	// askAtOnce bounds a scan that a message waits for.
	askAtOnce = 5 * time.Second
	// askTries is how often a call that Slack does not answer is tried, with askPause, then twice
	// as long each time, in between, or as long as Slack wants.
	askTries, askPause = 5, 2 * time.Second
	// pageSize is how many messages Slack is asked for at once. pagesMost pages are read of what was
	// posted since, and rootsPages of the week before, to find threads with new replies.
	pageSize, pagesMost, rootsPages = 200, 25, 5
	rootsBefore                     = 7 * 24 * time.Hour
	// servedFor is how recently a thread must have been active to be scanned though its root is older
	// than those pages; at most servedMost are.
	servedFor, servedMost = 30 * 24 * time.Hour, 200
	// waitingMost bounds the waiting messages that are read again one by one.
	waitingMost = 100
	// historyLag is how far Slack's history may be behind: a younger message that is not in it is not
	// treated as deleted.
	historyLag = 10 * time.Second
)

// newScanRate paces the scans: conversations.history and conversations.replies may each be called
// 50 times a minute, and posts are looked up by the latter, too.
func newScanRate() *rate.Limiter { return rate.NewLimiter(rate.Every(2*time.Second), 8) }

// timeOf is the time of a ts; the zero time if it is none.
func timeOf(ts string) time.Time {
	whole, fraction, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}
	}
	micro, _ := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
	return time.Unix(s, micro*1000)
}

// keepScanning runs the scans that are due until ctx ends.
func (a listener) keepScanning(ctx context.Context) {
	poll := time.NewTicker(scanPoll)
	defer poll.Stop()
	for ctx.Err() == nil {
		for more := a.Connected(); more; {
			more = a.scanNext(ctx) && a.Connected()
		}
		select {
		case <-ctx.Done():
		case <-poll.C:
		case <-a.cursor.scanSoon:
		}
	}
}

// scanNext runs the next scan that is due, and reports whether there was one.
func (a listener) scanNext(ctx context.Context) bool {
	l, ok, err := a.c.Store.TakeScan(ctx, a.self.Team, scanHold)
	if err != nil && ctx.Err() == nil {
		a.c.Log.Warn("take the next catch-up scan", zap.Error(err))
	}
	if err != nil || !ok {
		return false
	}
	k := a.scanner(l)
	err = k.scan(ctx)
	after, closing := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer closing()
	log := a.c.Log.With(zap.String("channel", l.ChannelID), zap.String("thread", l.ThreadTS), zap.Time("since", l.Since), zap.Int("found", k.found))
	switch {
	case err == nil:
		log.Info("catch-up scan done")
		if err = a.c.Store.EndScan(after, l); l.ChannelID == "" {
			signal(a.cursor.wake) // it may be wanted again
		}
	case ctx.Err() != nil: // another replica goes on at once
		err = a.c.Store.HoldScan(after, l, 0)
	default:
		pause, _ := a.screen.RetryAfter(err)
		pause = max(pause, min(askPause<<min(l.Tries, 10), 5*time.Minute))
		log.Warn("catch-up scan failed; trying again", zap.Duration("in", pause), zap.Error(err))
		err = a.c.Store.HoldScan(after, l, pause)
	}
	if err != nil {
		a.c.Log.Warn("record how far the catch-up scan came", zap.Error(err))
		return false
	}
	return true
}

// scanner runs one scan, of the workspace or of a thread.
type scanner struct {
	app    *Chat
	l      inbox.Scan
	oldest string // the ts from which it reads
	held   time.Time
	aside  bool          // a message waits: try once, and do not hold the scan
	lag    time.Duration // see historyLag
	found  int
}

func (a listener) scanner(l inbox.Scan) *scanner {
	since := l.Since
	if most := time.Now().Add(-scanMost); since.Before(most) {
		since = most
	}
	return &scanner{app: a.Chat, l: l, oldest: tsOf(since), held: time.Now(), lag: historyLag}
}

func (k *scanner) scan(ctx context.Context) error {
	if k.l.ChannelID != "" {
		return k.thread(ctx, k.l.ChannelID, k.l.ThreadTS)
	}
	if err := k.changes(ctx); err != nil {
		return err
	}
	served, err := k.app.c.Store.ServedThreads(ctx, k.l.TeamID, time.Now().Add(-servedFor), servedMost)
	if err != nil {
		return err
	}
	threads := map[string][]string{}
	for _, t := range served {
		threads[t.ChannelID] = append(threads[t.ChannelID], t.ThreadTS)
	}
	channels, err := k.channels(ctx, threads)
	if err != nil {
		return err
	}
	for _, c := range channels {
		if err := k.channel(ctx, c, threads[c]); err != nil {
			return err
		}
	}
	return nil
}

// ask calls Slack, at the pace that it allows, until it answers. ok is false if Slack refuses for good,
// as if there were nothing.
func (k *scanner) ask(ctx context.Context, about string, call func() error) (ok bool, err error) {
	for tries := 0; ; tries++ {
		if err := k.app.cursor.rate.Wait(ctx); err != nil {
			return false, err
		}
		if err := k.hold(ctx, 0); err != nil {
			return false, err
		}
		err := call()
		after, passes := k.app.screen.RetryAfter(err)
		switch {
		case err == nil:
			return true, nil
		case !passes:
			k.app.c.Log.Warn("Slack does not show what was posted", zap.String("channel", about), zap.Error(err))
			return false, nil
		case tries == askTries, k.aside, ctx.Err() != nil:
			return false, &laterError{after: after, err: err}
		}
		pause := max(after, askPause<<tries)
		if err := k.hold(ctx, pause); err != nil {
			return false, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// hold keeps the scan this replica's for a pause and [scanHold] more.
func (k *scanner) hold(ctx context.Context, pause time.Duration) error {
	if k.aside || pause == 0 && time.Since(k.held) < scanHold/4 {
		return nil
	}
	k.held = time.Now().Add(pause)
	return k.app.c.Store.HoldScan(ctx, k.l, pause+scanHold)
}

// channels are where people give us work: channels with a project, channels of threads that we serve, and
// direct messages.
func (k *scanner) channels(ctx context.Context, threads map[string][]string) ([]string, error) {
	if err := k.app.learnBindings(ctx, ""); err != nil { // after a start nothing may have happened yet
		return nil, err
	}
	places := k.app.c.Access.Places
	all := slices.AppendSeq(slices.Collect(maps.Keys(places.All())), maps.Keys(threads))
	cursor := ""
	for range pagesMost {
		if places.DirectMessages == "" {
			break
		}
		var list []string
		asked := cursor
		ok, err := k.ask(ctx, "direct messages", func() (err error) {
			list, cursor, err = k.app.screen.Directs(ctx, asked)
			return err
		})
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if !ok || cursor == "" {
			break
		}
	}
	slices.SortFunc(all, func(x, y string) int { // those with most threads first
		return cmp.Or(cmp.Compare(len(threads[y]), len(threads[x])), cmp.Compare(x, y))
	})
	return slices.Compact(all), nil
}

// channel reads a conversation: what was posted in it, and in its threads.
func (k *scanner) channel(ctx context.Context, channel string, served []string) error {
	posts, ok, err := k.history(ctx, channel, History{Oldest: k.oldest}, pagesMost)
	if err != nil || !ok {
		return err
	}
	// In direct messages everything is said to us: each of their threads is served.
	pages := rootsPages
	if access.IsDirect(channel) && len(served) == 0 {
		pages = 0
	}
	before, _, err := k.history(ctx, channel, History{Oldest: tsOf(timeOf(k.oldest).Add(-rootsBefore)), Latest: k.oldest}, pages)
	if err != nil {
		return err
	}
	// A root that was read carries the time of its latest reply. Any other served thread may have new ones.
	continues := map[string]bool{}
	for _, t := range served {
		continues[t] = true
	}
	for _, m := range slices.Concat(posts, before) {
		continues[m.TS] = m.LatestReply > k.oldest
	}
	if err := k.take(ctx, channel, posts); err != nil {
		return err
	}
	for _, root := range slices.Sorted(maps.Keys(continues)) {
		if !continues[root] {
			continue
		}
		if err := k.thread(ctx, channel, root); err != nil {
			return err
		}
	}
	return nil
}

// history reads a conversation's own messages, or a thread's, in any order. ok is false where Slack shows
// no more of them.
func (k *scanner) history(ctx context.Context, channel string, p History, pages int) (out []Post, ok bool, err error) {
	p.Channel, p.Limit = channel, pageSize
	for range pages {
		var page Found
		ok, err = k.ask(ctx, channel, func() (err error) {
			page, err = k.app.screen.History(ctx, p)
			return err
		})
		if err != nil || !ok {
			return out, false, err
		}
		out = append(out, page.Posts...)
		if p.Cursor = page.Next; !page.More || p.Cursor == "" {
			break
		}
	}
	return out, true, nil
}

// thread reads a thread.
func (k *scanner) thread(ctx context.Context, channel, root string) error {
	posts, _, err := k.history(ctx, channel, History{Thread: root, Oldest: k.oldest}, pagesMost)
	if err != nil {
		return err
	}
	if err := k.take(ctx, channel, posts); err != nil {
		return err
	}
	k.app.cursor.sure(threads.ThreadKey{TeamID: k.l.TeamID, ChannelID: channel, ThreadTS: root})
	return nil
}

// changes applies the edits and deletions that authors made to messages that wait in the inbox.
func (k *scanner) changes(ctx context.Context) error {
	waiting, err := k.app.c.Store.WaitingPosts(ctx, k.l.TeamID, waitingMost)
	if err != nil {
		return err
	}
	for _, e := range waiting {
		if strings.HasPrefix(e.EventID, askedPost) {
			continue // it is our post, and has no author who changes it
		}
		if access.IsDirect(e.ChannelID) && k.app.c.Access.Places.DirectMessages == "" || time.Since(timeOf(e.TS)) < k.lag {
			continue
		}
		var found Found
		ok, err := k.ask(ctx, e.ChannelID, func() (err error) {
			if found, err = k.app.screen.History(ctx, One(e.ChannelID, e.ThreadTS, e.TS)); errors.Is(err, ErrNoThread) {
				err = nil
			}
			return err
		})
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		change := changeOf(e, found.Posts)
		if change != nil && !(keeper{k.app}).onChange(ctx, change) {
			return errors.New("the database did not take a change of a message")
		}
	}
	return nil
}
