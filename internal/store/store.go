// Package store is everything Deckhand remembers, in Postgres: the inbox, the
// threads and their leases, sessions and epochs, turns, approvals with their votes
// and grants, posted messages, the ledger and the audit.
//
// Every exported method is one transaction, safe for concurrent use and safe to
// call from any replica. Methods that write on behalf of a thread's worker take
// its [Lease] and return [ErrFenced] once another replica holds it: a worker
// that gets ErrFenced must stop at once without touching Slack or the CLI.
//
// What must happen later is written as a [Job] in the transaction that causes it; package jobs runs it.
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
	// ErrFenced: another replica has taken the lease of the write.
	ErrFenced = errors.New("another replica holds this thread now")
	// ErrEnded: the approval has already ended; the returned row says how.
	ErrEnded = errors.New("the approval has ended already")
	// ErrTooEarly: the approval's time has not run out.
	ErrTooEarly = errors.New("the approval still has time")
	// ErrVoted: the person has already given this vote.
	ErrVoted = errors.New("this person has voted already")
	// ErrChanged: the input of an allow was changed after it was shown.
	ErrChanged = errors.New("the input was changed meanwhile")
)

// Options configure a store. The zero value suits programs that only read.
type Options struct {
	// Jobs writes jobs. Without it [Store.Ask] and [Store.Schedule] refuse: an approval without its deadline might
	// never end.
	Jobs JobInserter
	// Direct is the database's URL that bypasses a pooler in transaction mode, for session-level features; empty if
	// the main URL does.
	Direct string
	// Reminders are the delays after which people are reminded of an approval.
	Reminders []time.Duration
	// TimeZone determines the booking day of ledger entries, and the days and months of reports; nil is UTC.
	// Entries keep their booking day, so a change affects later entries only.
	TimeZone *time.Location
	// Replica is whose outbox rows this process sends; see [Store.ClaimOutbox]. Programs that show nothing need
	// none.
	Replica string
	Log     *zap.Logger // nil is no log
}

// Store is a handle on the database; see [Open].
type Store struct {
	pool       *pgxpool.Pool
	direct     *pgx.ConnConfig // for connections with a session
	heartbeats *pgxpool.Pool   // one connection, for what must not wait; see [Store.Heartbeat]
	jobs       JobInserter
	reminders  []time.Duration
	zone       *time.Location
	listening  *upkeep.Part
	packing    chan struct{} // held while a piece of a pack is written
	replica    string
	process    string // distinguishes this process from others of the replica
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
			// Behind a pooler a prepared statement may be missing.
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
	heartbeats, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), own)
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
		pool: pool, direct: direct.ConnConfig, heartbeats: heartbeats, jobs: o.Jobs, reminders: o.Reminders, zone: o.TimeZone,
		listening: upkeep.New("listening for notices of other replicas", Cure, o.Log),
		packing:   make(chan struct{}, 1), replica: o.Replica, process: rand.Text(),
	}, nil
}

// Close returns when every connection is closed.
func (s *Store) Close() {
	s.heartbeats.Close()
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

// fencedTx is inTx for writes that need the lease.
func (s *Store) fencedTx(ctx context.Context, l Lease, fn func(pgx.Tx) error) error {
	return s.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := hold(ctx, tx, l); err != nil {
			return err
		}
		return fn(tx)
	})
}

// begin begins a transaction in one round trip. A process that is frozen in a transaction would keep its rows
// locked for whoever takes over its threads: the server ends it after this idle time.
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

// notFound is to single values what collectOne is to rows.
func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNotFound
	}
	return err
}

// collectColumn is [collect] for rows of one column.
func collectColumn[T any](rows pgx.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}

// wrap adds what failed; nil stays nil.
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
