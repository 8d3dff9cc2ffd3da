package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Replica is a bot that registers.
type Replica struct {
	ID string
	// Kernel names the machine that runs it, since its start: one on which a lock on its
	// data folder tells whether another process of this id lives.
	Kernel string
	// Slots is how many sessions it may run at once.
	Slots int
	// Lease is how long it has to be silent to be taken for dead.
	Lease time.Duration
}

// Load is what a replica has to do.
type Load struct {
	Slots int // how many sessions it may run at once; 0 while it stops
	Busy  int // threads that it holds: those with a session, and those that wait for a slot
	Turns int // sessions that work: neither idle nor waiting for people
}

// Registration is a replica from its beginning until it ends, or is taken for dead. Number is
// different for each registration of any replica.
type Registration struct {
	Replica string
	Number  int64
}

// Peer is a replica that lives, as far as the database knows.
type Peer struct {
	Registration
	Load
	Heartbeats int64 // grows for as long as it lives
	Lease      time.Duration
}

// Free is how many more threads suit it.
func (p Peer) Free() int { return max(0, p.Slots-p.Busy) }

// ErrLives is why a replica cannot register: a process of this replica's id lives on another
// machine, or did before this machine was started.
var ErrLives = errors.New("another process of this replica lives, perhaps")

// Register registers the replica, whose earlier registration has ended: its leases are
// handed back. The caller holds the lock of its data folder. It fails with [ErrLives]
// where that does not tell that the earlier registration has ended; [Store.MarkDead] does then.
func (s *Store) Register(ctx context.Context, r Replica) (Registration, error) {
	life := Registration{Replica: r.ID}
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			INSERT INTO replicas AS r (id, life, kernel, lease_ms, slots)
			VALUES ($1, nextval('replica_lives'), $2, $3, $4)
			ON CONFLICT (id) DO UPDATE
			SET life = excluded.life, alive = true, kernel = excluded.kernel, lease_ms = excluded.lease_ms, slots = excluded.slots, busy = 0, turns = 0, since = now()
			WHERE NOT r.alive OR r.kernel = excluded.kernel
			RETURNING life`, r.ID, r.Kernel, r.Lease.Milliseconds(), r.Slots).Scan(&life.Number)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrLives
		}
		if err != nil {
			return err
		}
		return handBack(ctx, tx, r.ID)
	})
	if err != nil {
		return Registration{}, fmt.Errorf("begin to live as replica %s: %w", r.ID, err)
	}
	return life, nil
}

// handBack frees the leases of a replica that does not live, or not yet again, and tells
// the others.
func handBack(ctx context.Context, tx pgx.Tx, replica string) error {
	tag, err := tx.Exec(ctx, `UPDATE threads SET lease_owner = NULL WHERE lease_owner = $1`, replica)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return notify(ctx, tx, Notice{Kind: NoticeFreed})
}

// Heartbeat says that the replica lives, and what it has to do. It fails with [ErrFenced]
// once it was taken for dead. held are its leases, and peers the other replicas that live.
// It has a connection of its own.
func (s *Store) Heartbeat(ctx context.Context, l Registration, load Load) (held []Lease, peers []Peer, err error) {
	err = inTx(ctx, s.beats, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE replicas SET beat = beat + 1, slots = $3, busy = $4, turns = $5 WHERE id = $1 AND life = $2 AND alive`, l.Replica, l.Number, load.Slots, load.Busy, load.Turns)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrFenced
		}
		if held, err = collect[Lease](tx.Query(ctx, `
			SELECT id AS thread_id, lease_owner AS owner, lease_epoch AS epoch FROM threads WHERE lease_owner = $1`, l.Replica)); err != nil {
			return err
		}
		peers, err = living(ctx, tx, l.Replica)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("tell that this replica lives: %w", err)
	}
	return held, peers, nil
}

// Living lists the replicas that live, as far as the database knows.
func (s *Store) Living(ctx context.Context) ([]Peer, error) {
	peers, err := living(ctx, s.beats, "")
	return peers, wrap(err, "look for other replicas")
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func living(ctx context.Context, db querier, but string) ([]Peer, error) {
	return collect[Peer](db.Query(ctx, `
		SELECT id AS replica, life AS number, beat AS heartbeats, lease_ms * interval '1 ms' AS lease, slots, busy, turns
		FROM replicas WHERE alive AND id <> $1 ORDER BY id`, but))
}

// MarkDead ends the registration of a replica whose heartbeat has not moved for its lease, and hands its
// leases back, and what it had to say. dead is false when it has moved meanwhile.
func (s *Store) MarkDead(ctx context.Context, p Peer) (dead bool, err error) {
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE replicas SET alive = false, since = now() WHERE id = $1 AND life = $2 AND beat = $3 AND alive`, p.Replica, p.Number, p.Heartbeats)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		dead = true
		if _, err := tx.Exec(ctx, `UPDATE outbox SET held_until = now() WHERE replica = $1 AND held_until > now()`, p.Replica); err != nil {
			return err
		}
		return handBack(ctx, tx, p.Replica)
	})
	if err != nil {
		return false, fmt.Errorf("bury replica %s: %w", p.Replica, err)
	}
	return dead, nil
}

// Unregister ends a life in good order, and hands back what leases are left.
func (s *Store) Unregister(ctx context.Context, l Registration) error {
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE replicas SET alive = false, slots = 0, turns = 0, since = now() WHERE id = $1 AND life = $2 AND alive`, l.Replica, l.Number)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return handBack(ctx, tx, l.Replica)
	})
	return wrap(err, "end the life of replica %s", l.Replica)
}
