package chat

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/chat/view"
	"deckhand/internal/store"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
)

// TestTabsAreKeptForThoseWhoLooked, for ten minutes, and are looked at four times a minute
// at most.
func TestTabsAreKeptForThoseWhoLooked(t *testing.T) {
	t.Parallel()
	h := Homes{wake: make(chan struct{}, 1), news: make(chan struct{}, 1)}
	now := time.Now()
	h.Changed()
	if len(h.wake) != 0 {
		t.Error("nobody looks, and somebody is woken")
	}
	h.looks(person{UserID: "U1"}, view.HomeChoice{}, now)
	if due, next := h.due(now.Add(time.Minute)); len(due) != 0 || !next.IsZero() {
		t.Errorf("nothing has changed: %v, %v", due, next)
	}
	h.Changed()
	if due, next := h.due(now.Add(homeEvery - time.Second)); len(due) != 0 || !next.Equal(now.Add(homeEvery)) {
		t.Errorf("too soon: %v, %v", due, next)
	}
	if due, _ := h.due(now.Add(homeEvery)); len(due) != 1 {
		t.Errorf("%d are due", len(due))
	}
	if due, next := h.due(now.Add(2 * homeEvery)); len(due) != 0 || !next.IsZero() {
		t.Errorf("it was looked at: %v, %v", due, next)
	}
	h.Changed()
	if due, next := h.due(now.Add(homeKept + time.Second)); len(due) != 0 || !next.IsZero() || len(h.tabs) != 0 {
		t.Errorf("nobody looks any more: %v, %v", due, next)
	}
}

// TestSteadyChangesDoNotStarveTabs: what changes ten times a second for minutes is shown all
// the same, and other replicas are told now and then.
func TestSteadyChangesDoNotStarveTabs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := Homes{wake: make(chan struct{}, 1), news: make(chan struct{}, 1)}
		ctx, stop := context.WithCancel(context.Background())
		var keeping sync.WaitGroup
		refreshed, told := 0, 0
		keeping.Go(func() { h.keep(ctx, func(context.Context, homeTab) { refreshed++ }) })
		keeping.Go(func() { h.tell(ctx, func(context.Context) { told++ }) })
		h.looks(person{UserID: "U1"}, view.HomeChoice{}, time.Now())
		for range 1200 { // two minutes
			h.Changed()
			time.Sleep(100 * time.Millisecond)
		}
		stop()
		keeping.Wait()
		if least := int(2*time.Minute/(homeEvery+homeSettles)) - 1; refreshed < least || refreshed > 8 {
			t.Errorf("refreshed %d times, want %d to 8", refreshed, least)
		}
		if most := int(2 * time.Minute / homesTold); told < most-1 || told > most+1 {
			t.Errorf("told %d times, want about %d", told, most)
		}
	})
}

// TestATabFollowsOtherReplicas: what changes at one replica makes the tabs of another stale,
// by a notice of the database's; a replica that is alone sends none.
func TestATabFollowsOtherReplicas(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	here := New(Config{Store: storetest.Open(t, url, store.Options{}), Replica: "here", Log: zap.NewNop()}, Self{}, nil, nil, nil)
	there := New(Config{Replica: "there", Log: zap.NewNop()}, Self{}, nil, nil, nil)
	heard := make(chan pg.Notice, 8)
	listening, stop := context.WithCancel(t.Context())
	ready := make(chan struct{}, 1)
	done := make(chan struct{})
	s := storetest.Open(t, url, store.Options{})
	go func() {
		defer close(done)
		s.Listen(listening, func() { signal(ready) }, func(n pg.Notice) { heard <- n })
	}()
	<-ready
	tab{here}.tellHomes(t.Context()) // alone
	here.cursor.others.Store(true)
	tab{here}.tellHomes(t.Context())
	n := <-heard
	stop()
	<-done
	if n.Kind != pg.NoticeShown || n.By != "here" || len(heard) != 0 {
		t.Fatalf("%+v, and %d more", n, len(heard))
	}
	for app, want := range map[*Chat]bool{here: false, there: true} {
		app.Homes.looks(person{UserID: "U1"}, view.HomeChoice{}, time.Now().Add(-time.Minute))
		frontend{app}.Changed(n.By)
		if due, _ := app.Homes.due(time.Now()); (len(due) == 1) != want {
			t.Errorf("%s: %d are due", app.c.Replica, len(due))
		}
	}
}
