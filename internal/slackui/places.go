package slackui

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store"
)

// movedEvery is the shortest time between two edits that show a place which is not among
// the first nearPlaces; of those every move is shown.
const (
	movedEvery = 30 * time.Second
	nearPlaces = 3
)

// shownPlace is what a thread was told of its place in the queue for a session.
type shownPlace struct {
	before int
	at     time.Time
}

// ShowPlace implements [agent.Frontend]. A thread has one message for it, which is edited
// as it moves, also by the process that follows this one.
func (f *frontend) ShowPlace(k store.ThreadKey, before int) {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	was, shown := f.places[k]
	switch {
	case before == agent.Served && shown:
		f.showPlace(k, "", before)
	case before == agent.Served:
		f.withPlace(k, func(ts string) {
			if _, waits := f.places[k]; ts != "" && !waits {
				f.showPlace(k, ts, agent.Served)
			}
		})
	case !shown:
		f.places[k] = shownPlace{before: before}
		f.withPlace(k, func(ts string) {
			if now, waits := f.places[k]; waits {
				f.showPlace(k, ts, now.before)
			}
		})
	case was.at.IsZero(): // it is about to be shown
		f.places[k] = shownPlace{before: before}
	case before < nearPlaces && before != was.before, time.Since(was.at) >= movedEvery:
		f.showPlace(k, "", before)
	}
}

// withPlace looks for the message that an earlier process may have posted about the
// thread's place, and calls fn with its ts, or with an empty one, under f.cardsMu, which
// is held.
func (f *frontend) withPlace(k store.ThreadKey, fn func(ts string)) {
	if f.closed {
		return
	}
	f.reads.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		defer cancel()
		ts, err := f.app.c.Store.Place(ctx, k)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			f.app.log.Error("read a place in the queue", zap.Error(err))
		}
		f.cardsMu.Lock()
		defer f.cardsMu.Unlock()
		fn(ts)
	})
}

// showPlace posts the message, edits it, or edits it a last time. One that is not posted
// by then is not any more. f.cardsMu is held.
func (f *frontend) showPlace(k store.ThreadKey, ts string, before int) {
	save := func(ts string) {
		f.save("place", func(ctx context.Context) error { return f.app.c.Store.SavePlace(ctx, k, ts) })
	}
	if f.places[k] = (shownPlace{before: before, at: time.Now()}); before == agent.Served {
		delete(f.places, k)
		if !f.closed {
			f.reads.Go(func() { save("") })
		}
	}
	f.app.publisher.Show(publish.Message{
		Key: "place/" + k.ChannelID + "/" + k.ThreadTS, Channel: k.ChannelID, ThreadTS: k.ThreadTS, Group: k.ThreadTS, TS: ts,
		Page: render.Place(before), Priority: publish.Normal, Final: before == agent.Served, OnPosted: save,
		Posting: func(_ context.Context, post func() error) error {
			f.cardsMu.Lock()
			_, waits := f.places[k]
			f.cardsMu.Unlock()
			if !waits {
				return publish.ErrNotWanted
			}
			return post()
		},
		OnError: func(err error) {
			if !errors.Is(err, publish.ErrNotWanted) {
				f.app.log.Error("show a place in the queue", zap.Error(err))
			}
		},
	})
}
