package memstore

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // an order, as PostgreSQL makes it
	"encoding/hex"
	"fmt"
	"slices"

	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// replicas are those that have ever lived.
type replicas struct {
	list  []*replica
	lives int64
}

type replica struct {
	threads.Peer
	kernel string
	alive  bool
}

func (r *replicas) find(id string) *replica {
	for _, o := range r.list {
		if o.Replica == id {
			return o
		}
	}
	return nil
}

func (r *replicas) living(but string) []threads.Peer {
	var out []threads.Peer
	for _, o := range r.list {
		if o.alive && o.Replica != but {
			out = append(out, o.Peer)
		}
	}
	slices.SortFunc(out, func(a, b threads.Peer) int { return cmp.Compare(a.Replica, b.Replica) })
	return out
}

// Register is [store.Store.Register].
func (b *Store) Register(ctx context.Context, r threads.Replica) (threads.Registration, error) {
	if err := b.lock(ctx); err != nil {
		return threads.Registration{}, err
	}
	defer b.mu.Unlock()
	b.replicas.lives++
	o := b.replicas.find(r.ID)
	if o == nil {
		o = &replica{kernel: r.Kernel}
		b.replicas.list = append(b.replicas.list, o)
	} else if o.alive && o.kernel != r.Kernel {
		return threads.Registration{}, threads.ErrLives
	}
	o.alive, o.kernel = true, r.Kernel
	o.Peer = threads.Peer{Registration: threads.Registration{Replica: r.ID, Number: b.replicas.lives}, Heartbeats: o.Heartbeats, Lease: r.Lease, Load: threads.Load{Slots: r.Slots}}
	b.handBack(r.ID)
	b.notify(pg.Notice{Kind: pg.NoticeFreed})
	return o.Registration, nil
}

func (b *Store) handBack(id string) {
	freed := false
	for _, t := range b.threads {
		if t.LeaseOwner == id {
			t.LeaseOwner, freed = "", true
		}
	}
	if freed {
		b.notify(pg.Notice{Kind: pg.NoticeFreed})
	}
}

// lives returns the replica while the life lasts, else nil.
func (b *Store) lives(l threads.Registration) *replica {
	if o := b.replicas.find(l.Replica); o != nil && o.alive && o.Registration == l {
		return o
	}
	return nil
}

// Heartbeat is [store.Store.Heartbeat].
func (b *Store) Heartbeat(ctx context.Context, l threads.Registration, load threads.Load) (held []threads.Lease, peers []threads.Peer, err error) {
	if err := b.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer b.mu.Unlock()
	o := b.lives(l)
	if o == nil {
		return nil, nil, threads.ErrFenced
	}
	o.Heartbeats++
	o.Load = load
	for _, t := range b.threads {
		if t.LeaseOwner == l.Replica {
			held = append(held, threads.Lease{ThreadID: t.ID, Owner: l.Replica, Epoch: t.LeaseEpoch})
		}
	}
	return held, b.replicas.living(l.Replica), nil
}

// Living is [store.Store.Living].
func (b *Store) Living(ctx context.Context) ([]threads.Peer, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	return b.replicas.living(""), nil
}

// MarkDead is [store.Store.MarkDead].
func (b *Store) MarkDead(ctx context.Context, p threads.Peer) (dead bool, err error) {
	if err := b.lock(ctx); err != nil {
		return false, err
	}
	defer b.mu.Unlock()
	o := b.lives(p.Registration)
	if o == nil || o.Heartbeats != p.Heartbeats {
		return false, nil
	}
	o.alive = false
	b.handBack(o.Replica)
	return true, nil
}

// Unregister is [store.Store.Unregister].
func (b *Store) Unregister(ctx context.Context, l threads.Registration) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if o := b.lives(l); o != nil {
		o.alive, o.Slots, o.Turns = false, 0, 0
		b.handBack(o.Replica)
	}
	return nil
}

// AcquireLease is [store.Store.AcquireLease].
func (b *Store) AcquireLease(ctx context.Context, threadID int64, l threads.Registration, eager bool) (threads.Thread, bool, error) {
	if err := b.lock(ctx); err != nil {
		return threads.Thread{}, false, err
	}
	defer b.mu.Unlock()
	t, err := b.thread(threadID)
	me := b.lives(l)
	if err != nil || me == nil || (t.LeaseOwner != "" && t.LeaseOwner != l.Replica) {
		return threads.Thread{}, false, nil
	}
	for _, o := range b.replicas.living(l.Replica) {
		if t.LeaseOwner == "" && !eager && b.suits(t.ID, o) > b.suits(t.ID, me.Peer) {
			return threads.Thread{}, false, nil
		}
	}
	b.lease(t, l.Replica)
	return *t, true, nil
}

// suits orders replicas by how well they suit a thread.
func (b *Store) suits(threadID int64, p threads.Peer) string {
	room := p.Slots
	for _, t := range b.threads {
		if t.LeaseOwner == p.Replica {
			room--
		}
	}
	had := 0
	if room > 0 && b.threads[threadID-1].WorkspaceReplica == p.Replica {
		had = 1
	}
	sum := md5.Sum([]byte(b.threads[threadID-1].ThreadTS + p.Replica)) //nolint:gosec // an order
	return fmt.Sprintf("%d %09d %s", had, room+1_000_000, hex.EncodeToString(sum[:]))
}

func (b *Store) lease(t *threads.Thread, replica string) {
	t.LeaseOwner = replica
	t.LeaseEpoch++
}

// Steal gives the thread's lease to another replica, as when this one was taken for dead.
// [Books.Return] hands it back.
func (b *Store) Steal(threadID int64, owner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lease(b.threads[threadID-1], owner)
}

// Return hands back what [Books.Steal] took.
func (b *Store) Return(owner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handBack(owner)
}
