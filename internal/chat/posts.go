package chat

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store/outbox"
)

// posts show what the database says: each thing is read whenever it changes, by whichever
// replica, and the last state that was read is the one that people see. cards.go,
// queueposts.go, places.go, budgetposts.go and pulls.go have what is shown of each kind.
type posts struct {
	*Chat

	mu      sync.Mutex
	reading map[string]*reading // by kind and id
	closed  bool                // nothing is read any more
	closing chan struct{}       // closed when what fails is not read again
	reads   sync.WaitGroup

	posting map[string]bool       // open cards that this process has shown, by id
	called  map[string]bool       // pending approvals for which this process has called people directly, by id
	places  map[int64]*shownPlace // threads that wait for a session
	waiting map[int64]bool        // prompts of which this process has said that they wait
	queues  map[int64]*shownQueue // by thread
}

func newPosts(a *Chat) *posts {
	return &posts{Chat: a, reading: map[string]*reading{}, closing: make(chan struct{}), posting: map[string]bool{}, called: map[string]bool{}, places: map[int64]*shownPlace{}, waiting: map[int64]bool{}, queues: map[int64]*shownQueue{}}
}

// reading is something that is being read.
type reading struct {
	again bool // it has changed since
	done  chan struct{}
}

const (
	readAttempts = 8
	readPause    = time.Second
)

// Show has something rendered as the database has it: posted where there is no message of it
// yet, and edited where there is one. It is right whichever process posted that, and whichever
// changed what it shows.
func (p *posts) Show(kind outbox.PostKind, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show(kind, id)
}

// show is Show while p.mu is held.
func (p *posts) show(kind outbox.PostKind, id string) {
	p.refresh(showKey(kind, id), func(ctx context.Context) (func(), error) { return p.read(ctx, kind, id) })
}

// showKey names what is shown in p.reading.
func showKey(kind outbox.PostKind, id string) string { return string(kind) + "/" + id }

// read reads something and its messages. show, which shows it, is called under p.mu.
func (p *posts) read(ctx context.Context, kind outbox.PostKind, id string) (show func(), err error) {
	switch kind {
	case outbox.CardPost:
		return cards{p}.read(ctx, id)
	case outbox.BudgetPost:
		return budgetPosts{p}.read(ctx, id)
	case outbox.WaitPost:
		return budgetPosts{p}.readWait(ctx, id)
	case outbox.QueuePost:
		return queuePosts{p}.read(ctx, id)
	case outbox.PlacePost:
		return placePosts{p}.read(ctx, id)
	case outbox.PullPost:
		return p.readPull(ctx, id)
	case outbox.TurnPost: // its state is not in the database until it has ended
	}
	return nil, fmt.Errorf("a %s is not read to be shown", kind)
}

// refresh has something read and shown, by its key. p.mu is held, and so it is when it is shown.
func (p *posts) refresh(key string, read func(context.Context) (show func(), err error)) {
	if r := p.reading[key]; r != nil {
		r.again = true
		return
	}
	if p.closed {
		return
	}
	p.reading[key] = &reading{done: make(chan struct{})}
	p.reads.Go(func() { p.keepReading(key, read) })
}

// begin reads something else beside the caller; what is in the database may be left to the next process.
func (p *posts) begin(read func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.reads.Go(read)
	}
}

// keepReading shows something as it stands until nothing has changed meanwhile.
func (p *posts) keepReading(key string, read func(context.Context) (show func(), err error)) {
	for attempt := 1; ; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		show, err := read(ctx)
		cancel()
		p.mu.Lock()
		if err == nil && show != nil {
			show()
		}
		r := p.reading[key]
		again := r.again
		failed := err != nil && attempt < readAttempts && !p.closed
		if !again && !failed {
			delete(p.reading, key)
			close(r.done)
			p.mu.Unlock()
			if err != nil {
				p.c.Log.Error("read what is to be shown", zap.String("what", key), zap.Error(err))
			}
			return
		}
		r.again = false
		p.mu.Unlock()
		if failed {
			p.pause()
		}
	}
}

// pause waits before something is tried again. It reports false when nothing is any more.
func (p *posts) pause() bool {
	select {
	case <-p.closing:
		return false
	case <-time.After(readPause):
		return true
	}
}

// finish waits for what is being read; from then on nothing is.
func (p *posts) finish() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.closing)
	}
	p.mu.Unlock()
	p.reads.Wait()
}
