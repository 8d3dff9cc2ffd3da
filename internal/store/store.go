// Package store is everything Deckhand remembers, in Postgres: the inbox, the
// threads and their leases, sessions and epochs, turns, approvals with their votes
// and grants, posted messages, the ledger and the audit.
//
// Every exported method is one transaction, safe for concurrent use and safe to
// call from any replica. Methods that write on behalf of a thread's worker take
// its [Lease] and return [ErrFenced] once another replica holds it: a worker
// that gets ErrFenced must stop at once without touching Slack or the CLI.
//
// What has to happen later is written as a [Job] in the transaction that it follows
// from; package jobs has them done.
//
// The package knows nothing of Slack's API or of the CLI, and starts no goroutine of
// its own.
package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/zap"

	"deckhand/internal/upkeep"
)

// Errors that callers branch on.
var (
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrFenced: the lease that the write was made under has changed hands.
	ErrFenced = errors.New("another replica holds this thread now")
	// ErrEnded: the approval has ended already; the row that comes with it says how.
	ErrEnded = errors.New("the approval has ended already")
	// ErrTooEarly: the approval's time has not run out.
	ErrTooEarly = errors.New("the approval still has time")
	// ErrVoted: the person has said the same to this approval before.
	ErrVoted = errors.New("this person has voted already")
	// ErrChanged is an allow of an input that somebody changed after it was shown.
	ErrChanged = errors.New("the input was changed meanwhile")
)

// Options are what a store needs to know beside its database. The zero value is
// right for programs that only read.
type Options struct {
	// Jobs writes jobs. Without it nothing can be scheduled, so that [Store.Ask] and
	// [Store.Schedule] refuse: an approval without its deadline might never end.
	Jobs JobInserter
	// Direct is the database's URL past a pooler in transaction mode, for what needs a
	// session of its own; empty where the store's own is such a way.
	Direct string
	// Reminders are how long after it was asked people are reminded of an approval.
	Reminders []time.Duration
	// TimeZone is where ledger entries are booked on a day, and reports count days and
	// months; nil is UTC. Entries keep the day that they were booked on, so that a
	// change holds for later entries only and the sums of the past stay what they were.
	TimeZone *time.Location
	// Replica is whose outbox rows this process sends; see [Store.ClaimOutbox]. Programs that
	// show nothing need none.
	Replica string
	Log     *zap.Logger // nil is no log
}

// Store is a handle on the database. The zero value is not usable: see [Open].
type Store struct {
	pool      *pgxpool.Pool
	direct    *pgx.ConnConfig // how to a session
	beats     *pgxpool.Pool   // of one connection, for what must not wait; see [Store.Heartbeat]
	jobs      JobInserter
	reminders []time.Duration
	zone      *time.Location
	listening *upkeep.Part
	packing   chan struct{} // held while a piece of a pack is written
	replica   string
	process   string // this one, among those of the replica
}

// Open connects to the database at url (a postgres:// URL or a DSN) and checks
// that it answers; see [Store.CheckSchema] for what is in it.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	cfg, err := ParsePool(url, o.Replica != "")
	if err != nil {
		return nil, err
	}
	cfg.MinIdleConns = 2
	direct := cfg
	if o.Direct != "" {
		if direct, err = ParsePool(o.Direct, o.Replica != ""); err != nil {
			return nil, err
		}
		if !strings.Contains(url, "default_query_exec_mode=") {
			// Behind a pooler a statement that was prepared may not be there any more.
			cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, unreachable(&cfg.ConnConfig.Config, err)
	}
	own := cfg.Copy()
	own.MinConns, own.MinIdleConns, own.MaxConns = 0, 0, 1
	beats, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), own)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	if o.TimeZone == nil {
		o.TimeZone = time.UTC
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	return &Store{
		pool: pool, direct: direct.ConnConfig, beats: beats, jobs: o.Jobs, reminders: o.Reminders, zone: o.TimeZone,
		listening: upkeep.New("listening for notices of other replicas", Cure, o.Log),
		packing:   make(chan struct{}, 1), replica: o.Replica, process: rand.Text(),
	}, nil
}

// Close returns when every connection is closed.
func (s *Store) Close() {
	s.beats.Close()
	s.pool.Close()
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

func (s *Store) inTx(ctx context.Context, fn func(pgx.Tx) error) error {
	return inTx(ctx, s.pool, fn)
}

func inTx(ctx context.Context, pool *pgxpool.Pool, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{BeginQuery: begin}, fn)
}

// fencedTx is inTx of what may be written only while the lease holds.
func (s *Store) fencedTx(ctx context.Context, l Lease, fn func(pgx.Tx) error) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := hold(ctx, tx, l); err != nil {
			return err
		}
		return fn(tx)
	})
}

// begin begins a transaction, in one trip. A process that is frozen in the middle of one
// keeps its rows locked, which whoever takes its threads over would wait for without end:
// the server ends what is idle for so long.
const begin = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '15s'"

// collectOne is pgx.CollectExactlyOneRow with our ErrNotFound.
func collectOne[T any](rows pgx.Rows, err error) (T, error) {
	var zero T
	if err != nil {
		return zero, err
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[T])
	if errors.Is(err, pgx.ErrNoRows) {
		return zero, ErrNotFound
	}
	return v, err
}

// notFound is for single values what collectOne is for rows.
func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

// collectColumn is [collect] of rows of one column.
func collectColumn[T any](rows pgx.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// wrap says what failed; nil stays nil.
func wrap(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(doing+": %w", append(args, err)...)
}

func collect[T any](rows pgx.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}
