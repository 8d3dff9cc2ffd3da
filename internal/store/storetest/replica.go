package storetest

import (
	"context"
	"time"

	"deckhand/internal/store/threads"
)

// Replicas are the methods of [*store.Store] by which replicas live.
type Replicas interface {
	Register(ctx context.Context, r threads.Replica) (threads.Registration, error)
	Living(ctx context.Context) ([]threads.Peer, error)
	AcquireLease(ctx context.Context, threadID int64, l threads.Registration, eager bool) (threads.Thread, bool, error)
}

// Live has a replica live if it does not, and returns its life.
func Live(ctx context.Context, s Replicas, id string) (threads.Registration, error) {
	peers, err := s.Living(ctx)
	if err != nil {
		return threads.Registration{}, err
	}
	for _, p := range peers {
		if p.Replica == id {
			return p.Registration, nil
		}
	}
	return s.Register(ctx, threads.Replica{ID: id, Kernel: "k", Slots: 1000, Lease: time.Hour})
}

// Acquire has a replica take a thread's lease, and live if it does not.
func Acquire(ctx context.Context, s Replicas, threadID int64, id string) (threads.Thread, bool, error) {
	l, err := Live(ctx, s, id)
	if err != nil {
		return threads.Thread{}, false, err
	}
	return s.AcquireLease(ctx, threadID, l, true)
}
