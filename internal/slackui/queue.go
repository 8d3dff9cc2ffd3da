package slackui

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/chat"
	"deckhand/internal/chat/view"
	"deckhand/internal/slackui/publish"
	"deckhand/internal/slackui/render"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// What waits in a thread is one message of it, that is taken away when nothing does. It is
// read from the database whenever something changes.

// queueUnseen is how long a process may take to start before people are told what it
// waits for.
const queueUnseen = 3 * time.Second

// shownQueue is the queue of a thread as this process shows it. The frontend's cardsMu
// guards it.
type shownQueue struct {
	start *agent.StartWait
	since time.Time  // when a start began to wait
	key   string     // the publisher's; empty while nothing is shown
	ts    string     // where it stands; empty while it is not known
	word  outbox.Row // of the outbox, that this process holds while it stands; zero if it does not
	over  bool       // it is not wanted any more
}

// ShowQueue implements [agent.Frontend].
func (f *frontend) ShowQueue(threadID int64, start *agent.StartWait) {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	q := f.queueOf(threadID)
	if start == nil {
		q.since = time.Time{}
	} else if q.since.IsZero() {
		q.since = time.Now()
	}
	q.start = start
	if start != nil && start.Attempts == 0 && time.Since(q.since) < queueUnseen {
		return // it is told again, if it still waits then
	}
	f.show(outbox.QueuePost, chat.Number(threadID))
}

// queueOf is the queue of a thread as this process shows it. f.cardsMu is held.
func (f *frontend) queueOf(threadID int64) *shownQueue {
	if f.queues[threadID] == nil {
		f.queues[threadID] = &shownQueue{}
	}
	return f.queues[threadID]
}

// readQueue reads a thread's queue.
func (f *frontend) readQueue(ctx context.Context, id string) (show func(), err error) {
	threadID := chat.Numbered(id)
	ts, err := f.app.PostedAs(ctx, outbox.QueuePost, id)
	if err != nil {
		return nil, err
	}
	q, err := f.app.c.Store.Queue(ctx, threadID)
	if err != nil {
		return nil, err
	}
	var row outbox.Row
	if f.standsUnheld(threadID, q, ts) {
		if row, err = f.app.c.Store.StandQueue(ctx, threadID); err != nil {
			return nil, err
		}
		f.app.Outbox.Keep(row.ID)
	}
	names := map[string]string{}
	for _, p := range q.Prompts[:min(len(q.Prompts), view.QueueShown)] {
		names[p.UserID] = f.app.people.Name(ctx, p.UserID)
	}
	return func() { f.showQueue(threadID, q, ts, row, names) }, nil
}

// standsUnheld reports whether a message is to be shown for which this process holds no
// row of the outbox.
func (f *frontend) standsUnheld(threadID int64, q inbox.Queue, ts string) bool {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	var start *agent.StartWait
	if s := f.queues[threadID]; s != nil {
		if start = s.start; s.word.ID != 0 {
			return false
		}
	}
	shown := f.queueView(start, q, nil)
	return shown.Start != nil || len(shown.Prompts) > 0 || ts != ""
}

// takeQueueOver puts right what a process that has died has said of a thread's queue, and
// perhaps not noted.
func (f *frontend) takeQueueOver(w outbox.Row) {
	f.cardsMu.Lock()
	defer f.cardsMu.Unlock()
	f.queueOf(w.ThreadID).word = w
	f.show(outbox.QueuePost, chat.Number(w.ThreadID))
}

// showQueue posts or edits the message, or takes it away. f.cardsMu is held.
func (f *frontend) showQueue(threadID int64, q inbox.Queue, ts string, row outbox.Row, names map[string]string) {
	s := f.queueOf(threadID)
	if row.ID != 0 {
		s.word = row
	}
	shown := f.queueView(s.start, q, names)
	if s.key == "" {
		s.ts = ts // an earlier process's
	}
	if shown.Start == nil && len(shown.Prompts) == 0 {
		f.takeQueueAway(threadID, s, q.ThreadKey)
		return
	}
	if s.word.ID == 0 { // it has changed since it was read
		f.show(outbox.QueuePost, chat.Number(threadID))
		return
	}
	mark := metadata(queueType, "thread", chat.Number(threadID))
	if s.key == "" {
		f.keys++
		s.key = fmt.Sprintf("queue/%d/%d", threadID, f.keys)
	}
	f.app.publisher.Show(publish.Message{
		Key: s.key, Channel: q.ChannelID, ThreadTS: q.ThreadTS, Group: q.ThreadTS, TS: s.ts,
		Page: render.Queue(shown), Priority: publish.Normal,
		Metadata: mark, Find: f.find(q.ThreadKey, s.word.CreatedAt, mark), Doubtful: s.word.Again && s.ts == "",
		OnPosted: func(ts string) { f.queuePosted(threadID, s, q.ThreadKey, ts) },
		OnError: func(err error) {
			f.app.c.Log.Warn("show what waits in a thread", zap.Error(err))
			f.cardsMu.Lock()
			defer f.cardsMu.Unlock()
			s.key, s.ts = "", "" // the next state is posted anew
		},
	})
}

// queuePosted notes where the message stands, or takes it away if it came too late.
func (f *frontend) queuePosted(threadID int64, s *shownQueue, k threads.ThreadKey, ts string) {
	f.cardsMu.Lock()
	s.ts = ts
	over := s.over
	f.cardsMu.Unlock()
	if over {
		f.app.remove(k.ChannelID, ts)
		return
	}
	f.note(outbox.PostedMessage{Kind: outbox.QueuePost, Subject: chat.Number(threadID), ChannelID: k.ChannelID, TS: ts})
}

// takeQueueAway removes the message, also one that another process has posted and not
// noted. f.cardsMu is held.
func (f *frontend) takeQueueAway(threadID int64, s *shownQueue, k threads.ThreadKey) {
	delete(f.queues, threadID)
	s.over = true
	if s.key != "" {
		f.app.publisher.Forget(s.key)
	}
	switch {
	case s.word.ID == 0:
		return // nothing was posted
	case s.key != "" && s.ts == "": // it may be posted just now: whoever takes the row over finds it
		f.app.Outbox.PutBack(s.word.ID)
		return
	}
	ts, find := s.ts, f.find(k, s.word.CreatedAt, metadata(queueType, "thread", chat.Number(threadID)))
	f.app.publisher.Once(publish.Call{
		Method: publish.DeleteMessage, Priority: publish.Answer, Group: k.ThreadTS, What: "take away what waited in a thread", Patient: true,
		Do: func(ctx context.Context) (err error) {
			if ts == "" && s.word.Again {
				ts, err = find(ctx)
			}
			if err != nil || ts == "" {
				return err
			}
			if _, _, err = f.app.api.DeleteMessageContext(ctx, k.ChannelID, ts); refusedAs(err, "message_not_found") {
				return nil
			}
			return err
		},
		OnEnd: func(err error) {
			if err == nil || !publish.MayPass(err) {
				f.forget(outbox.PostedMessage{Kind: outbox.QueuePost, Subject: chat.Number(threadID), TS: ts})
			}
			f.app.Outbox.Ended(s.word, err)
		},
	})
}

// queueView is what people are shown of a queue: while no turn runs the first prompt is
// about to get one, and is no news unless its start waits.
func (f *frontend) queueView(start *agent.StartWait, q inbox.Queue, names map[string]string) view.Queue {
	v := view.Queue{Start: start, Prompts: q.Prompts, Names: names}
	if !q.Running && len(v.Prompts) > 0 {
		v.Prompts = v.Prompts[1:]
	}
	if len(q.Prompts) == 0 {
		v.Start = nil
	}
	v.Said = func(p inbox.QueuedPrompt) string { return f.app.c.Redact(f.app.saidIn(p)) }
	return v
}

// saidIn is what a person has said in a prompt, without what we added for the model.
func (a *App) saidIn(p inbox.QueuedPrompt) string {
	if p.Kind != inbox.Message {
		return "Continue"
	}
	var outer struct {
		Event postedMessage `json:"event"`
	}
	if json.Unmarshal(p.Payload, &outer) != nil {
		return ""
	}
	words := unmarked(strings.ReplaceAll(outer.Event.Text, a.mention(), ""), nil)
	if len(outer.Event.Files) > 0 {
		words = strings.TrimSpace(words + " 📎 " + chat.NamesOf(outer.Event.Files))
	}
	return words
}
