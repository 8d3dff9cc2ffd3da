package slackui

import (
	"context"
	"crypto/rand"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// movedEvery is the shortest time between two edits that show a place which is not among
// the first nearPlaces; of those every move is shown.
const (
	movedEvery = 30 * time.Second
	nearPlaces = 3
)

// shownPlace is what a thread is told of its place in the queue for a session. The
// frontend's cardsMu guards it.
type shownPlace struct {
	thread threads.Thread
	before int
	at     time.Time // when it was shown last
	ours   bool      // this process has noted its message
	key    string    // of its states: those of an earlier wait with the same message have ended
}

// ShowPlace implements [agent.Frontend]. A thread has one message for it, which is edited
// as it moves, also by the process that follows this one.
func (f *frontend) ShowPlace(t threads.Thread, before int) {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	s := f.places[t.ID]
	switch {
	case s == nil:
		s = &shownPlace{thread: t, key: rand.Text()}
		f.places[t.ID] = s
	case before != agent.Served && (before >= nearPlaces || before == s.before) && time.Since(s.at) < movedEvery:
		return
	}
	s.before = before
	f.show(outbox.PlacePost, chat.Number(t.ID))
}

// readPlace notes the message of a thread that waits before it is posted: a process that dies
// in between leaves one that the next finds, by when that was.
func (f *frontend) readPlace(ctx context.Context, id string) (show func(), err error) {
	threadID, db := chat.Numbered(id), f.app.c.Store
	posts, err := db.Posts(ctx, outbox.PlacePost, id)
	if err != nil {
		return nil, err
	}
	f.cardsMu.Lock()
	s := f.places[threadID]
	note := s != nil && s.before != agent.Served && len(posts) == 0
	if note {
		s.ours = true
	}
	f.cardsMu.Unlock()
	if note {
		if err := db.SavePosts(ctx, outbox.PostedMessage{Kind: outbox.PlacePost, Subject: id, ChannelID: s.thread.ChannelID}); err != nil {
			return nil, err
		}
		if posts, err = db.Posts(ctx, outbox.PlacePost, id); err != nil {
			return nil, err
		}
	}
	return func() {
		if s != nil && len(posts) > 0 {
			f.showPlace(s, posts[0])
		} else if s != nil && s.before == agent.Served {
			delete(f.places, threadID)
		}
	}, nil
}

// showPlace posts the message, edits it, or edits it a last time. One that is not posted
// by then is not any more. f.cardsMu is held.
func (f *frontend) showPlace(s *shownPlace, p outbox.PostedMessage) {
	k, since := s.thread.Key(), chat.Number(p.CreatedAt.UnixMicro())
	mark := metadata(placeType, "since", since)
	s.at = time.Now()
	message := publish.Message{
		Key: "place/" + p.Subject + "/" + s.key, Channel: k.ChannelID, ThreadTS: k.ThreadTS, Group: k.ThreadTS, TS: p.TS,
		Page: render.Place(s.before), Priority: publish.Normal, Final: s.before == agent.Served,
		Metadata: mark, Find: f.find(k, p.CreatedAt, mark), Doubtful: !s.ours && p.TS == "",
		Wanted: func(context.Context) (bool, error) {
			f.cardsMu.Lock()
			defer f.cardsMu.Unlock()
			return s.before != agent.Served, nil
		},
		OnPosted: func(ts string) {
			p.TS = ts
			f.note(p)
		},
		OnError: func(err error) { f.app.c.Log.Error("show a place in the queue", zap.Error(err)) },
	}
	if s.before == agent.Served {
		delete(f.places, s.thread.ID)
		message.OnEnd = func(err error) { // until then the next process would have to end it
			if err == nil || !publish.MayPass(err) {
				f.forget(p)
			}
		}
	}
	f.app.publisher.Show(message)
}
