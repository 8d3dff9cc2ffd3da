package agent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"deckhand/internal/agent/place"
	"deckhand/internal/store/threads"
)

// leased is a thread and its lease, for whatever runs of it here. The thread's row and its
// project belong to the worker's loop; the rest is safe for concurrent use.
type leased struct {
	*dependencies
	*bounds
	threadID int64
	box      *mailbox
	log      *zap.Logger
	thread   threads.Thread
	project  place.Project
	diskTold bool // people know that its disk is full

	// actsFor is who is worked for, was last or will be next, and acting the same from the start of their
	// turn's process to the turn's end.
	actsFor string
	acting  atomic.Pointer[string]

	mu    sync.Mutex
	lease threads.Lease // Epoch 0: none is held
	lost  int64         // the epoch of the last one that was lost
	live  place.Process // the session's, for whoever may not wait; nil while there is none
}

// leaseOf is the lease under which the thread was taken.
func leaseOf(t threads.Thread) threads.Lease {
	return threads.Lease{ThreadID: t.ID, Owner: t.LeaseOwner, Epoch: t.LeaseEpoch}
}

func (h *leased) heldLease() threads.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease
}

func (h *leased) setLease(l threads.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease = l
}

// holds reports whether the lease is this worker's, for whatever runs beside its loop:
// that the lease is lost is known here before the loop reads of it.
func (h *leased) holds(l threads.Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease == l && h.lost != l.Epoch
}

// lose notes that the lease is lost, and tells the loop. Any goroutine may call it.
func (h *leased) lose(l threads.Lease) {
	h.mu.Lock()
	h.lost = max(h.lost, l.Epoch)
	h.mu.Unlock()
	h.box.put(message{kind: messageLeaseLost, epoch: l.Epoch})
}

// kill ends the process at once, since this replica may not run it any more. Any goroutine
// may call it.
func (h *leased) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = h.lease.Epoch
	if h.live != nil {
		h.live.Kill()
	}
}

func (h *leased) setLive(p place.Process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = p
}

// say says a sentence in the thread, for good if the database takes it.
func (h *leased) say(ctx context.Context, sentence string) {
	h.sayIn(ctx, h.thread.Key(), sentence)
}

// sayIn is say for other goroutines than the worker's.
func (h *leased) sayIn(ctx context.Context, thread threads.ThreadKey, sentence string) {
	h.sayTo(ctx, thread, sentence, "")
}

// sayTo is sayIn, and calls the admins of a project, if one is named.
func (h *leased) sayTo(ctx context.Context, thread threads.ThreadKey, sentence, adminsOf string) {
	row, err := h.store.Say(ctx, h.heldLease(), sentence, adminsOf)
	if errors.Is(err, threads.ErrFenced) {
		return // another replica speaks now
	}
	if err != nil {
		h.log.Warn("write down what is to be said", zap.Error(err))
		h.front.Say(thread, sentence)
		return
	}
	h.front.Tell(row)
}

// sayOnce says a sentence that was not the last of its kind, unless it is empty.
func (h *leased) sayOnce(t threads.Thread, last *string, sentence string) {
	if sentence != "" && sentence != *last && h.holds(leaseOf(t)) {
		h.front.Say(t.Key(), sentence)
	}
	*last = sentence
}

// reply drops the error of a write to a process that has ended: onExit follows
// and tells of it.
func (h *leased) reply(err error) error {
	if err != nil {
		h.log.Warn("answer the CLI", zap.Error(err))
	}
	return nil
}
