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
	// scanMost is how far back posts are looked for; what is older stays unheard.
	scanMost = 24 * time.Hour
	// scanPoll is how often it is seen whether there is something to scan, and scanHold for how long a scan is its
	// replica's.
	scanPoll, scanHold = 10 * time.Second, time.Minute
	// lookAside bounds a look that a message waits for.
	lookAside = 5 * time.Second
	// lookTries is how often a question that Slack does not answer is put, with lookPause and
	// then twice as long in between, or as long as Slack wants.
	lookTries, lookPause = 5, 2 * time.Second
	// pageSize is how many messages Slack is asked for at once; pagesMost of them are read of
	// what was posted since, and rootsPages of the week before it, for threads that go on.
	pageSize, pagesMost, rootsPages = 200, 25, 5
	rootsBefore                     = 7 * 24 * time.Hour
	// servedFor is for how long a thread is looked at that is not among those; servedMost
	// bounds them.
	servedFor, servedMost = 30 * 24 * time.Hour, 200
	// waitingMost bounds the posts that wait which are looked at one by one.
	waitingMost = 100
	// settled is after how long a post stands in Slack's record.
	settled = 10 * time.Second
)

// newScanRate paces what is asked of Slack's record: conversations.history and
// conversations.replies may each be called 50 times a minute, and what was posted is looked
// for among the replies as well.
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

// keepScanning looks through what is wanted until ctx ends.
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
		case <-a.cursor.look:
		}
	}
}

// scanNext looks through what is next, and reports whether there was something.
func (a listener) scanNext(ctx context.Context) bool {
	l, ok, err := a.c.Store.TakeScan(ctx, a.self.Team, scanHold)
	if err != nil && ctx.Err() == nil {
		a.c.Log.Warn("see what is to be looked through", zap.Error(err))
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
		log.Info("looked for posts that nobody heard")
		if err = a.c.Store.EndScan(after, l); l.ChannelID == "" {
			signal(a.cursor.wake) // it may be wanted again
		}
	case ctx.Err() != nil: // another replica goes on at once
		err = a.c.Store.HoldScan(after, l, 0)
	default:
		pause, _ := a.screen.Passes(err)
		pause = max(pause, min(lookPause<<min(l.Tries, 10), 5*time.Minute))
		log.Warn("look for posts that nobody heard; trying again", zap.Duration("in", pause), zap.Error(err))
		err = a.c.Store.HoldScan(after, l, pause)
	}
	if err != nil {
		a.c.Log.Warn("note how far Slack was looked through", zap.Error(err))
		return false
	}
	return true
}

// scanner looks through something once.
type scanner struct {
	app    *Chat
	l      inbox.Scan
	oldest string // the ts since which is looked
	held   time.Time
	aside  bool // a message waits: ask once, and do not hold the look
	// settled is how old a post has to be to be missed in Slack's record.
	settled time.Duration
	found   int
}

func (a listener) scanner(l inbox.Scan) *scanner {
	since := l.Since
	if most := time.Now().Add(-scanMost); since.Before(most) {
		since = most
	}
	return &scanner{app: a.Chat, l: l, oldest: tsOf(since), held: time.Now(), settled: settled}
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

// ask puts a question to Slack, at the pace that it allows, until it answers. What it
// refuses to tell is not there: ok is false then.
func (k *scanner) ask(ctx context.Context, about string, call func() error) (ok bool, err error) {
	for tries := 0; ; tries++ {
		if err := k.app.cursor.rate.Wait(ctx); err != nil {
			return false, err
		}
		if err := k.hold(ctx, 0); err != nil {
			return false, err
		}
		err := call()
		after, passes := k.app.screen.Passes(err)
		switch {
		case err == nil:
			return true, nil
		case !passes:
			k.app.c.Log.Warn("Slack does not show what was posted", zap.String("channel", about), zap.Error(err))
			return false, nil
		case tries == lookTries, k.aside, ctx.Err() != nil:
			return false, &laterError{after: after, err: err}
		}
		pause := max(after, lookPause<<tries)
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

// channels are where people give us work: the channels with a project, those of threads
// that are served, and direct messages.
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
	slices.SortFunc(all, func(x, y string) int { // where most goes on first
		return cmp.Or(cmp.Compare(len(threads[y]), len(threads[x])), cmp.Compare(x, y))
	})
	return slices.Compact(all), nil
}

// channel looks through a conversation: what was posted in it, and in its threads.
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
	// Whether a thread goes on is told by its first message, for those that were read.
	goesOn := map[string]bool{}
	for _, t := range served {
		goesOn[t] = true
	}
	for _, m := range slices.Concat(posts, before) {
		goesOn[m.TS] = m.LatestReply > k.oldest
	}
	if err := k.take(ctx, channel, posts); err != nil {
		return err
	}
	for _, root := range slices.Sorted(maps.Keys(goesOn)) {
		if !goesOn[root] {
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

// thread looks through a thread.
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

// changes has posts that wait say what their authors made of them meanwhile.
func (k *scanner) changes(ctx context.Context) error {
	waiting, err := k.app.c.Store.WaitingPosts(ctx, k.l.TeamID, waitingMost)
	if err != nil {
		return err
	}
	for _, e := range waiting {
		if strings.HasPrefix(e.EventID, askedPost) {
			continue // it is our post, and has no author who changes it
		}
		if access.IsDirect(e.ChannelID) && k.app.c.Access.Places.DirectMessages == "" || time.Since(timeOf(e.TS)) < k.settled {
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
