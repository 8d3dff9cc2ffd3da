// Package store is everything Deckhand remembers, in Postgres: the inbox, the
// threads and their leases, sessions and epochs, turns, approvals with their votes
// and grants, posted messages, the ledger, the audit and the job queue.
//
// Every exported method is one transaction, safe for concurrent use and safe to
// call from any replica. Methods that write on behalf of a thread's worker take
// its [Lease] and return [ErrFenced] once another replica holds it: a worker
// that gets ErrFenced must stop at once without touching Slack or the CLI.
//
// The package knows nothing of Slack's API or of the CLI. It owns the goroutines
// in [Store.Listen] and [Store.RunJobs], which end with their contexts.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
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
)

// Store is a handle on the database. The zero value is not usable: see [Open].
type Store struct {
	pool      *pgxpool.Pool
	jobs      *river.Client[pgx.Tx] // inserts only; RunJobs has its own
	reminders []time.Duration
	digests   func(context.Context, DigestDue) error // see HandleDigests
	zone      atomic.Pointer[time.Location]          // see SetTimeZone; nil is UTC
}

// Open connects to the database at url (a postgres:// URL or a DSN) and checks
// that it answers and is migrated to this binary's schema.
func Open(ctx context.Context, url string) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		// pgx's error quotes the string, password included.
		return nil, errors.New("DATABASE_URL is not a PostgreSQL URL; write postgres://user:password@host:5432/database")
	}
	cfg.MinIdleConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to the database: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach the database at %s:%d: %w", cfg.ConnConfig.Host, cfg.ConnConfig.Port, err)
	}
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("prepare the job queue: %w", err)
	}
	return &Store{pool: pool, jobs: jobs}, nil
}

// Close returns when every connection is closed.
func (s *Store) Close() { s.pool.Close() }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

func (s *Store) inTx(ctx context.Context, fn func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, fn)
}

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

func collect[T any](rows pgx.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[T])
}
