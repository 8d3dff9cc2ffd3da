package chat

import (
	"context"
	"crypto/rand"
	"regexp"
	"strings"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/agent/pulls"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// queuePosts show what waits in a thread: one message of it, that is taken away when nothing does. It
// is read from the database whenever something changes.
type queuePosts struct{ *posts }

// queueUnseen is how long a process may take to start before people are told what it
// waits for.
const queueUnseen = 3 * time.Second

// shownQueue is the queue of a thread as this process shows it. posts.mu guards it.
type shownQueue struct {
	start *agent.StartWait
	since time.Time  // when a start began to wait
	key   string     // of its message; empty while nothing is shown
	ts    string     // where it stands; empty while it is not known
	word  outbox.Row // of the outbox, that this process holds while it stands; zero if it does not
	over  bool       // it is not wanted any more
}

// showQueue shows what waits in a thread, and the start of its process, if there is one to be waited for.
func (p queuePosts) showQueue(threadID int64, start *agent.StartWait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.of(threadID)
	if start == nil {
		q.since = time.Time{}
	} else if q.since.IsZero() {
		q.since = time.Now()
	}
	q.start = start
	if start != nil && start.Attempts == 0 && time.Since(q.since) < queueUnseen {
		return // it is told again, if it still waits then
	}
	p.show(outbox.QueuePost, FormatID(threadID))
}

// of is the queue of a thread as this process shows it. p.mu is held.
func (p queuePosts) of(threadID int64) *shownQueue {
	if p.queues[threadID] == nil {
		p.queues[threadID] = &shownQueue{}
	}
	return p.queues[threadID]
}

// read reads a thread's queue.
func (p queuePosts) read(ctx context.Context, id string) (show func(), err error) {
	threadID := ParseID(id)
	ts, err := p.PostedAs(ctx, outbox.QueuePost, id)
	if err != nil {
		return nil, err
	}
	q, err := p.c.Store.Queue(ctx, threadID)
	if err != nil {
		return nil, err
	}
	var row outbox.Row
	if p.standsUnheld(threadID, q, ts) {
		if row, err = p.c.Store.StandQueue(ctx, threadID); err != nil {
			return nil, err
		}
		p.Outbox.Keep(row.ID)
	}
	names := map[string]string{}
	for i, w := range q.Prompts[:min(len(q.Prompts), view.QueueShown)] {
		if w.ByItself {
			q.Prompts[i].UserID, names[""] = "", "Deckhand"
			continue
		}
		names[w.UserID] = p.people.Name(ctx, w.UserID)
	}
	return func() { p.put(threadID, q, ts, row, names) }, nil
}

// standsUnheld reports whether a message is to be shown for which this process holds no
// row of the outbox.
func (p queuePosts) standsUnheld(threadID int64, q inbox.Queue, ts string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var start *agent.StartWait
	if s := p.queues[threadID]; s != nil {
		if start = s.start; s.word.ID != 0 {
			return false
		}
	}
	shown := p.page(start, q, nil)
	return shown.Start != nil || len(shown.Prompts) > 0 || ts != ""
}

// takeOver puts right what a process that has died has said of a thread's queue, and
// perhaps not noted.
func (p queuePosts) takeOver(w outbox.Row) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(w.ThreadID).word = w
	p.show(outbox.QueuePost, FormatID(w.ThreadID))
}

// put posts or edits the message, or takes it away. p.mu is held.
func (p queuePosts) put(threadID int64, q inbox.Queue, ts string, row outbox.Row, names map[string]string) {
	s := p.of(threadID)
	if row.ID != 0 {
		s.word = row
	}
	shown := p.page(s.start, q, names)
	if s.key == "" {
		s.ts = ts // an earlier process's
	}
	if shown.Start == nil && len(shown.Prompts) == 0 {
		p.takeAway(threadID, s, q.ThreadKey)
		return
	}
	if s.word.ID == 0 { // it has changed since it was read
		p.show(outbox.QueuePost, FormatID(threadID))
		return
	}
	if s.key == "" {
		s.key = "queue/" + FormatID(threadID) + "/" + rand.Text()
	}
	m := inThread(q.ThreadKey, s.key, shown)
	m.TS, m.Mark = s.ts, s.mark(threadID)
	m.Mark.Doubtful = s.word.Again && s.ts == ""
	m.OnPosted = func(ts string) { p.posted(threadID, s, q.ThreadKey, ts) }
	m.OnEnd = func(err error) {
		if err == nil {
			return
		}
		p.c.Log.Warn("show what waits in a thread", zap.Error(err))
		p.mu.Lock()
		defer p.mu.Unlock()
		s.key, s.ts = "", "" // the next state is posted anew
	}
	p.screen.Post(m)
}

func (s *shownQueue) mark(threadID int64) Mark {
	return Mark{Kind: "queue", Of: "thread", ID: FormatID(threadID), Since: s.word.CreatedAt}
}

// posted notes where the message stands, or takes it away if it came too late.
func (p queuePosts) posted(threadID int64, s *shownQueue, k threads.ThreadKey, ts string) {
	p.mu.Lock()
	s.ts = ts
	over := s.over
	p.mu.Unlock()
	if over {
		p.screen.Delete(whereOf(k), ts, Mark{}, nil)
		return
	}
	p.Note(outbox.PostedMessage{Kind: outbox.QueuePost, Subject: FormatID(threadID), ChannelID: k.ChannelID, TS: ts})
}

// takeAway removes the message, also one that another process has posted and not noted. p.mu is
// held.
func (p queuePosts) takeAway(threadID int64, s *shownQueue, k threads.ThreadKey) {
	delete(p.queues, threadID)
	s.over = true
	if s.key != "" {
		p.screen.Forget(s.key)
	}
	switch {
	case s.word.ID == 0:
		return // nothing was posted
	case s.key != "" && s.ts == "": // it may be posted just now: whoever takes the row over finds it
		p.Outbox.PutBack(s.word.ID)
		return
	}
	ts, mark := s.ts, Mark{}
	if s.word.Again {
		mark = s.mark(threadID)
	}
	p.screen.Delete(whereOf(k), ts, mark, func(err error) {
		if err == nil || !p.screen.IsTemporary(err) {
			p.forget(outbox.PostedMessage{Kind: outbox.QueuePost, Subject: FormatID(threadID), TS: ts})
		}
		p.Outbox.Ended(s.word, err)
	})
}

// page is what people are shown of a queue: while no turn runs the first prompt is
// about to get one, and is no news unless its start waits.
func (p queuePosts) page(start *agent.StartWait, q inbox.Queue, names map[string]string) view.Queue {
	v := view.Queue{Start: start, Prompts: q.Prompts, Names: names, Said: p.saidIn}
	if !q.Running && len(v.Prompts) > 0 {
		v.Prompts = v.Prompts[1:]
	}
	if len(q.Prompts) == 0 {
		v.Start = nil
	}
	return v
}

// pressedIn is which button a prompt comes from, as [puller.pressed] and others write it.
var pressedIn = regexp.MustCompile(`^\[.* pressed ([^:\n]+):`)

// saidIn is what a person has said in a prompt, without what we added for the model and without secrets; of a prompt
// that comes by itself, why.
func (p queuePosts) saidIn(w inbox.QueuedPrompt) string {
	if w.ByItself {
		return pulls.Why(w.Text)
	}
	if w.Kind != inbox.Message {
		if pressed := pressedIn.FindStringSubmatch(w.Text); pressed != nil {
			return pressed[1]
		}
		return "Continue"
	}
	in, err := p.screen.Decode(inbox.Envelope{Kind: w.Kind, Payload: w.Payload})
	if err != nil || in == nil || in.Message == nil {
		return ""
	}
	words := p.screen.Unmarked(in.Message.Body)
	if len(in.Message.Files) > 0 {
		words = strings.TrimSpace(words + " 📎 " + namesOf(in.Message.Files))
	}
	return p.c.Redact(words)
}
