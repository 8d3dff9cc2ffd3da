package threads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/store/pg"
)

// Replica is a bot that registers.
type Replica struct {
	ID string
	// Kernel identifies the machine's boot: on the same one a lock on the data folder shows whether another process
	// of this id lives.
	Kernel string
	// Slots is how many sessions it may run at once.
	Slots int
	// Lease is how long it may be silent before it counts as dead.
	Lease time.Duration
}

// Load is a replica's load.
type Load struct {
	Slots int // how many sessions it may run at once; 0 while it stops
	Busy  int // threads that it holds, with a session or waiting for a slot
	Turns int // sessions that are neither idle nor waiting for people
}

// Registration is a replica from registering until it ends or is marked dead. Number differs for each registration
// of any replica.
type Registration struct {
	Replica string
	Number  int64
}

// Peer is a replica that is alive as far as the database knows.
type Peer struct {
	Registration
	Load
	Heartbeats int64 // grows while it is alive
	Lease      time.Duration
}

// Free is how many more threads it can take.
func (p Peer) Free() int { return max(0, p.Slots-p.Busy) }

// ErrLives is why a replica cannot register: a process with its id may be alive on another machine, or on this one
// before its last start.
var ErrLives = errors.New("another process of this replica may be alive")

// Register registers the replica and frees the leases of its earlier registration, which has ended. The caller
// holds the lock of its data folder. It fails with [ErrLives] if the lock does not prove that the earlier one has
// ended; [Store.MarkDead] then does.
func (s *Store) Register(ctx context.Context, r Replica) (Registration, error) {
	life := Registration{Replica: r.ID}
	err := s.db.InTx(ctx, func(tx pg.Tx) error {
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
		if err := handBack(ctx, tx, r.ID); err != nil {
			return err
		}
		return pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticeFreed}) // the others see it at once
	})
	return life, pg.Wrap(err, "register replica %s", r.ID)
}

// handBack frees the leases of a replica that is dead, or about to register, and notifies the others.
func handBack(ctx context.Context, tx pg.Tx, replica string) error {
	tag, err := tx.Exec(ctx, `UPDATE threads SET lease_owner = NULL WHERE lease_owner = $1`, replica)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	return pg.Notify(ctx, tx, pg.Notice{Kind: pg.NoticeFreed})
}

// Heartbeat records that the replica is alive, and its load. It fails with [ErrFenced] once the replica was marked
// dead. held are its leases, and peers the other live replicas. It has a connection of its own.
func (s *Store) Heartbeat(ctx context.Context, l Registration, load Load) (held []Lease, peers []Peer, err error) {
	var b pgx.Batch // one round trip, and one transaction
	b.Queue(`UPDATE replicas SET beat = beat + 1, slots = $3, busy = $4, turns = $5 WHERE id = $1 AND life = $2 AND alive`, l.Replica, l.Number, load.Slots, load.Busy, load.Turns).
		Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				return ErrFenced
			}
			return nil
		})
	b.Queue(`SELECT id AS thread_id, lease_owner AS owner, lease_epoch AS epoch FROM threads WHERE lease_owner = $1`, l.Replica).
		Query(func(rows pgx.Rows) error {
			held, err = pg.Collect[Lease](rows, nil)
			return err
		})
	b.Queue(livingBut, l.Replica).Query(func(rows pgx.Rows) error {
		peers, err = pg.Collect[Peer](rows, nil)
		return err
	})
	err = s.db.Heartbeats.SendBatch(ctx, &b).Close()
	return held, peers, pg.Wrap(err, "record the heartbeat")
}

// Living lists the replicas that are alive as far as the database knows.
func (s *Store) Living(ctx context.Context) ([]Peer, error) {
	peers, err := pg.Collect[Peer](s.db.Heartbeats.Query(ctx, livingBut, ""))
	return peers, pg.Wrap(err, "look for other replicas")
}

const livingBut = `
	SELECT id AS replica, life AS number, beat AS heartbeats, lease_ms * interval '1 ms' AS lease, slots, busy, turns
	FROM replicas WHERE alive AND id <> $1 ORDER BY id`

// MarkDead ends the registration of a replica whose heartbeat has not moved for its lease, and frees its leases and
// outbox rows. dead is false when the heartbeat has moved meanwhile.
func (s *Store) MarkDead(ctx context.Context, p Peer) (dead bool, err error) {
	err = s.db.InTx(ctx, func(tx pg.Tx) error {
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
		return false, fmt.Errorf("mark replica %s dead: %w", p.Replica, err)
	}
	return dead, nil
}

// Unregister ends a registration, and frees the remaining leases.
func (s *Store) Unregister(ctx context.Context, l Registration) error {
	err := s.db.InTx(ctx, func(tx pg.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE replicas SET alive = false, slots = 0, turns = 0, since = now() WHERE id = $1 AND life = $2 AND alive`, l.Replica, l.Number)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return handBack(ctx, tx, l.Replica)
	})
	return pg.Wrap(err, "end the life of replica %s", l.Replica)
}
