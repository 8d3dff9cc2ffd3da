package chat

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/chat/view"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// Posting is one state of a message of ours: it is posted, or edited where it stands.
type Posting struct {
	// Key names the message for as long as this process lives.
	Key string
	// At is where it is posted. Group is the ts of the thread that it is about.
	At    Where
	Group string
	// TS is the message's, if an earlier process posted it; else empty.
	TS   string
	Page view.Page
	// Final is of the last state: further ones are ignored.
	Final   bool
	Urgency Urgency
	Mark    Mark
	// Wanted, if not nil, is asked before it is posted: false drops it, an error delays it.
	Wanted func(ctx context.Context) (bool, error)
	// OnPosted is called once with the ts of a new message. OnEnd, if it is not nil, is called once: when
	// people see this state or a later one, or it is not wanted any more (nil), or when it is given up.
	OnPosted func(ts string)
	OnEnd    func(error)
}

// Mark is what a message carries, invisible to people, by which it is found after a crash: of what
// kind it is, and a name and an id of what it shows. The zero value is none.
type Mark struct {
	Kind, Of, ID string
	// Since is when the message may have been posted first.
	Since time.Time
	// Doubtful has it looked for before it is posted: another process may have posted it.
	Doubtful bool
}

// Urgency orders what waits to be sent.
type Urgency int

// The urgencies, lowest first.
const (
	Soon    Urgency = iota // what should be seen soon; a last state that is an edit is no news
	Reply                  // what people asked for
	Decide                 // what people are to decide, as the work waits for it
	Clicked                // what somebody has clicked on
)

// whereOf is the place of a thread.
func whereOf(k threads.ThreadKey) Where { return Where{k.ChannelID, k.ThreadTS} }

// inThread is a message in a thread.
func inThread(k threads.ThreadKey, key string, page view.Page) Posting {
	return Posting{Key: key, At: whereOf(k), Group: k.ThreadTS, Page: page}
}

// Note notes where a message was posted.
func (a *gate) Note(p outbox.PostedMessage) {
	a.noted(p, func(ctx context.Context) error { return a.c.Store.SavePosts(ctx, p) })
}

// forget notes that a message is none of ours any more.
func (a *gate) forget(p outbox.PostedMessage) {
	a.noted(p, func(ctx context.Context) error { return a.c.Store.ForgetPost(ctx, p, a.c.Replica) })
}

func (a *gate) noted(p outbox.PostedMessage, write func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
	defer cancel()
	if err := write(ctx); err != nil {
		a.c.Log.Error("note a message", zap.String("kind", string(p.Kind)), zap.String("of", p.Subject), zap.Error(err))
	}
}

// Together returns n functions that are each called once, the last of which has end
// called: with an error that may pass, if there is one, else with any, else with nil.
func (a *gate) Together(n int, end func(error)) func(error) {
	if end == nil {
		return nil
	}
	var mu sync.Mutex
	var worst error
	return func(err error) {
		mu.Lock()
		if err != nil && (worst == nil || a.screen.IsTemporary(err)) {
			worst = err
		}
		n--
		last, with := n == 0, worst
		mu.Unlock()
		if last {
			end(with)
		}
	}
}
