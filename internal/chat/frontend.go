package chat

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent"
	"deckhand/internal/chat/view"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// Frontend is where the agent shows its work.
func (a *Chat) Frontend() agent.Frontend { return frontend{a} }

// frontend implements [agent.Frontend].
type frontend struct{ *Chat }

func (f frontend) ShowTurn(t agent.TurnView) {
	var end func(error)
	if t.OutboxID != 0 {
		end = f.Outbox.begun(outbox.Row{ID: t.OutboxID, Kind: outbox.Turn, ThreadKey: t.Thread, TurnID: t.ID})
		t.OutboxID = 0
	}
	f.screen.ShowTurn(t, end)
}

func (f frontend) Abandon(turnID int64, sentence string) { f.screen.Abandon(turnID, sentence) }
func (f frontend) Leave(turnID int64)                    { f.screen.Leave(turnID) }
func (f frontend) CloseOffer(turnID int64)               { f.screen.CloseOffer(turnID) }

func (f frontend) ShowApproval(a approvals.Approval)    { cards{f.posts}.showApproval(a) }
func (f frontend) Show(kind outbox.PostKind, id string) { f.posts.Show(kind, id) }

func (f frontend) ShowQueue(threadID int64, start *agent.StartWait) {
	queuePosts{f.posts}.showQueue(threadID, start)
}

func (f frontend) ShowPlace(t threads.Thread, before int) { placePosts{f.posts}.showPlace(t, before) }

func (f frontend) SetShare(s agent.Share) {
	f.screen.SetShare(s)
	f.cursor.others.Store(s.Anywhere < 1)
}

// Changed has tabs looked at again.
func (f frontend) Changed(replica string) {
	if replica != f.c.Replica {
		f.Homes.stale()
	}
}

// MarkPrompt leaves the eyes that say that a message was heard; its end is marked by an outbox row.
func (f frontend) MarkPrompt(p inbox.Prompt, m agent.PromptMark) {
	f.said.forget(p.ThreadKey)
	f.Homes.Changed()
	if m == agent.PromptWaits || p.Marked {
		f.Outbox.SweepNow()
	}
}

func (f frontend) Tell(rows ...outbox.Row) { f.Outbox.Tell(rows...) }

func (f frontend) Say(k threads.ThreadKey, text string) {
	if !f.stands(k, text) {
		f.screen.Say(whereOf(k), f.Outbox.sentence(outbox.Row{Body: text}))
	}
}

func (f frontend) Name(ctx context.Context, user string) string { return f.people.Name(ctx, user) }

func (f frontend) Hides(text string) bool { return f.c.Redact(text) != text }

func (f frontend) OfferConnection(k threads.ThreadKey, user, site, sentence string) {
	f.screen.Whisper(whereOf(k), user, view.OfferConnection{Sentence: sentence, Site: site}, nil)
}

func (f frontend) Attach(k threads.ThreadKey, name, text string) {
	f.screen.Attach(k, name, f.c.Redact(text), func(err error) {
		if err != nil {
			f.Say(k, name+" could not be attached. Ask for the part that you need.")
		}
	})
}

// sentences are what was said last in each thread, since its last prompt was marked: whoever wrote
// a prompt that is marked has to be told of it. The zero value is ready to use.
type sentences struct {
	mu   sync.Mutex
	last map[threads.ThreadKey]sentence
}

type sentence struct {
	text string
	at   time.Time
}

// sayAgainAfter is how long a sentence that was the last one said in a thread stands for
// itself when it would be said again, and no prompt was marked there since.
const sayAgainAfter = time.Hour

func (s *sentences) forget(k threads.ThreadKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.last, k)
}

// again notes that a sentence is to be said, and reports whether it is the last one said there.
func (s *sentences) again(k threads.ThreadKey, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.last, func(_ threads.ThreadKey, said sentence) bool { return now.Sub(said.at) >= sayAgainAfter })
	if s.last[k].text == text {
		return true
	}
	if s.last == nil {
		s.last = map[threads.ThreadKey]sentence{}
	}
	s.last[k] = sentence{text: text, at: now}
	return false
}

// stands reports whether a sentence that is to be said is the last one said in its thread.
func (a *Chat) stands(k threads.ThreadKey, text string) bool {
	again := a.said.again(k, text)
	if again {
		a.c.Log.Info("a sentence stands in its thread already", zap.String("thread", k.ThreadTS), zap.String("sentence", a.c.Redact(text)))
	}
	return again
}
