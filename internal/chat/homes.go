package chat

import (
	"context"
	"crypto/sha256"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/chat/view"
	"deckhand/internal/store/pg"
)

const (
	// homeKept is how long after a person looked at their tab it is kept up to date: Slack
	// does not say when they leave it.
	homeKept = 10 * time.Minute
	// homeEvery is the shortest time between two looks at what a tab shows, homeSettles how
	// long a change is waited for to be followed by others.
	homeEvery   = 15 * time.Second
	homeSettles = time.Second
	// homesMost bounds the tabs that are kept up to date.
	homesMost = 200
	// homesTold is the shortest time between two notices to other replicas, whose tabs may
	// show what has changed here.
	homesTold = 5 * time.Second
)

// Homes are the tabs that people looked at lately. The zero value has none, once wake and
// news are made.
type Homes struct {
	mu   sync.Mutex
	tabs map[string]*homeTab // by user
	wake chan struct{}       // a tab that is kept may show something else now
	news chan struct{}       // something has changed here
}

type homeTab struct {
	who    person
	choice view.HomeChoice
	looked time.Time
	shown  time.Time // when it was looked at last whether something has changed
	stale  bool
	sum    [sha256.Size]byte // of what was sent last
	hash   string            // Slack's, of what it has; empty until that is known
}

// looks notes that a person looks at their tab, by this choice.
func (h *Homes) looks(who person, choice view.HomeChoice, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.tabs, func(_ string, t *homeTab) bool { return now.Sub(t.looked) > homeKept })
	if h.tabs == nil {
		h.tabs = map[string]*homeTab{}
	}
	if len(h.tabs) < homesMost || h.tabs[who.UserID] != nil {
		h.tabs[who.UserID] = &homeTab{who: who, choice: choice, looked: now, shown: now}
	}
}

// Changed notes that something has changed here that tabs show, at other replicas, too.
func (h *Homes) Changed() {
	signal(h.news)
	h.stale()
}

// stale notes that what tabs show may have changed.
func (h *Homes) stale() {
	h.mu.Lock()
	for _, t := range h.tabs {
		t.stale = true
	}
	looked := len(h.tabs) > 0
	h.mu.Unlock()
	if looked {
		signal(h.wake)
	}
}

// Sent notes what was sent to Slack. It reports whether that is new.
func (h *Homes) Sent(user string, sum [sha256.Size]byte) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.tabs[user]
	if t == nil || t.sum == sum {
		return t == nil
	}
	t.sum = sum
	return true
}

// Has notes which view Slack has; an empty hash forgets the tab.
func (h *Homes) Has(user, hash string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.tabs[user]; t != nil && hash != "" {
		t.hash = hash
	} else {
		delete(h.tabs, user)
	}
}

// HashOf is the hash of the tab that a person has, as the chat gave it; empty if none is known.
func (h *Homes) HashOf(user string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.tabs[user]; t != nil {
		return t.hash
	}
	return ""
}

// due takes the tabs that are to be looked at now, and says when the next one is; zero for
// never.
func (h *Homes) due(now time.Time) (due []homeTab, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for user, t := range h.tabs {
		at := t.shown.Add(homeEvery)
		switch {
		case now.Sub(t.looked) > homeKept:
			delete(h.tabs, user)
		case !t.stale:
		case at.After(now):
			if next.IsZero() || at.Before(next) {
				next = at
			}
		default:
			t.stale, t.shown = false, now
			due = append(due, *t)
		}
	}
	return due, next
}

// keep calls refresh for each tab that is due, until ctx ends: a moment after the first change,
// however many follow it.
func (h *Homes) keep(ctx context.Context, refresh func(context.Context, homeTab)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	settles := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
			if !settles {
				settles = true
				timer.Reset(homeSettles)
			}
		case <-timer.C:
			settles = false
			due, next := h.due(time.Now())
			for _, t := range due {
				refresh(ctx, t)
			}
			timer.Reset(time.Hour)
			if !next.IsZero() {
				timer.Reset(time.Until(next))
			}
		}
	}
}

// tell calls notify after something has changed here, at once and then every so often, until
// ctx ends.
func (h *Homes) tell(ctx context.Context, notify func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.news:
			notify(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(homesTold):
		}
	}
}

// keepHomes refreshes the tabs of people who looked lately when something has changed, and
// has other replicas do the same, until ctx ends.
func (a tab) keepHomes(ctx context.Context) {
	var telling sync.WaitGroup
	telling.Go(func() { a.Homes.tell(ctx, a.tellHomes) })
	a.Homes.keep(ctx, a.refreshHome)
	telling.Wait()
}

// tellHomes has other replicas look at their tabs, if there are any. A notice that is lost
// is made up for by the next, or when somebody looks.
func (a tab) tellHomes(ctx context.Context) {
	if !a.cursor.others.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveLimit)
	defer cancel()
	if err := a.c.Store.Notify(ctx, pg.Notice{Kind: pg.NoticeShown, By: a.c.Replica}); err != nil {
		a.c.Log.Warn("tell other replicas that home tabs may show something else", zap.Error(err))
	}
}

// refreshHome sends a tab anew if it shows something else now.
func (a tab) refreshHome(ctx context.Context, t homeTab) {
	ctx, cancel := context.WithTimeout(ctx, routeLimit)
	defer cancel()
	shown, err := a.homeView(ctx, t.who, t.choice, a.mayDo)
	if err != nil {
		a.c.Log.Warn("refresh a home tab", zap.String("user", t.who.UserID), zap.Error(err))
		return
	}
	a.screen.ShowHome(t.who.UserID, shown, true)
}
