package chat

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// placePosts show the places of threads in the queue for a session: each thread has one message for it,
// which is edited as it moves, also by the process that follows this one.
type placePosts struct{ *posts }

// movedEvery is the shortest time between two edits that show a place which is not among
// the first nearPlaces; of those every move is shown.
const (
	movedEvery = 30 * time.Second
	nearPlaces = 3
)

// shownPlace is what a thread is told of its place. posts.mu guards it.
type shownPlace struct {
	thread threads.Thread
	before int
	at     time.Time              // when it was shown last
	ours   bool                   // this process has noted its message
	key    string                 // of its states: those of an earlier wait with the same message have ended
	ts     atomic.Pointer[string] // where this process has posted or found its message
}

// showPlace shows how many threads are before one, or [agent.Served].
func (p placePosts) showPlace(t threads.Thread, before int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.places[t.ID]
	switch {
	case s == nil:
		s = &shownPlace{thread: t, key: rand.Text()}
		p.places[t.ID] = s
	case before != agent.Served && (before >= nearPlaces || before == s.before) && time.Since(s.at) < movedEvery:
		return
	}
	s.before = before
	p.show(outbox.PlacePost, FormatID(t.ID))
}

// read notes the message of a thread that waits before it is posted: a process that dies
// in between leaves one that the next finds, by when that was.
func (p placePosts) read(ctx context.Context, id string) (show func(), err error) {
	threadID, db := ParseID(id), p.c.Store
	posts, err := db.Posts(ctx, outbox.PlacePost, id)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	s := p.places[threadID]
	note := s != nil && s.before != agent.Served && len(posts) == 0
	if note {
		s.ours = true
	}
	p.mu.Unlock()
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
			p.put(s, posts[0])
		} else if s != nil && s.before == agent.Served {
			delete(p.places, threadID)
		}
	}, nil
}

// put posts the message or edits it. When the wait is over it is edited a last time, so that a
// process that dies leaves nothing false, and taken away; one that is not posted by then is not
// any more. p.mu is held.
func (p placePosts) put(s *shownPlace, posted outbox.PostedMessage) {
	s.at = time.Now()
	served := s.before == agent.Served
	m := inThread(s.thread.Key(), "place/"+posted.Subject+"/"+s.key, view.InLine(s.before))
	m.TS, m.Final = posted.TS, served
	m.Mark = Mark{Kind: "place", Of: "since", ID: FormatID(posted.CreatedAt.UnixMicro()), Since: posted.CreatedAt, Doubtful: !s.ours && posted.TS == ""}
	m.Wanted = func(context.Context) (bool, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return s.before != agent.Served, nil
	}
	m.OnPosted = func(ts string) {
		s.ts.Store(&ts)
		posted.TS = ts
		p.Note(posted)
	}
	if served {
		delete(p.places, s.thread.ID)
		m.OnEnd = func(err error) { // until then the next process would have to end it
			if err != nil && p.screen.IsTemporary(err) {
				return
			}
			if ts := s.ts.Load(); ts != nil {
				posted.TS = *ts
			}
			p.forget(posted) // before it is gone: the next wait has a message of its own
			if err != nil || posted.TS == "" {
				return
			}
			p.screen.Delete(m.At, posted.TS, Mark{}, func(err error) {
				if err != nil {
					p.c.Log.Warn("take a thread's place in the queue away", zap.Error(err))
				}
			})
		}
	}
	p.screen.Post(m)
}
