// Package pg is the connection to PostgreSQL: transactions, the queries' rows, notices between replicas, jobs that
// are written with what causes them, the schema's migrations, and what is wrong when it does not answer.
//
// The packages beside it hold the statements, each those of one subject. They get a [Tx] where they take part in
// somebody else's transaction.
package pg

import (
	"cmp"
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

// Errors that callers of several subjects branch on.
var (
	// ErrNotFound: there is no such row.
	ErrNotFound = errors.New("not found")
	// ErrEnded: the approval has already ended; the returned row says how.
	ErrEnded = errors.New("the approval has ended already")
	// ErrNotYet means that a message cannot become a prompt now, and may soon.
	ErrNotYet = errors.New("not yet")
)

// Options configure a store. The zero value suits programs that only read.
type Options struct {
	// Jobs writes jobs. Without it nothing is scheduled, and approvals refuse to be asked: one without its deadline
	// might never end.
	Jobs JobInserter
	// Direct is the database's URL that bypasses a pooler in transaction mode, for session-level features; empty if
	// the main URL does.
	Direct string
	// Reminders are the delays after which people are reminded of an approval.
	Reminders []time.Duration
	// TimeZone determines the booking day of ledger entries, and the days and months of reports; nil is UTC.
	// Entries keep their booking day, so a change affects later entries only.
	TimeZone *time.Location
	// Replica is whose outbox rows this process sends. Programs that show nothing need none.
	Replica string
	Log     *zap.Logger // nil is no log
}

// JobInserter writes jobs in a transaction, all or none.
type JobInserter interface {
	InsertTx(ctx context.Context, tx pgx.Tx, jobs []Job) error
}

// DB is a handle on the database, for the packages that have the statements.
type DB struct {
	*pgxpool.Pool
	Options
	Heartbeats *pgxpool.Pool // one connection, for what must not wait
	Process    string        // distinguishes this process from others of the replica
	direct     *pgx.ConnConfig
	listening  *upkeep.Part
}

// Open connects to the database at url (a postgres:// URL or a DSN) and checks
// that it answers; see [Store.CheckSchema] for what is in it.
func Open(ctx context.Context, url string, o Options) (*DB, error) {
	cfg, err := ParsePool(url, o.Replica != "")
	if err != nil {
		return nil, err
	}
	if o.Replica != "" {
		cfg.MinIdleConns = 2 // nobody waits for a connection; a command is content with the one that it uses
	}
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
	o.TimeZone = cmp.Or(o.TimeZone, time.UTC)
	o.Log = cmp.Or(o.Log, zap.NewNop())
	return &DB{
		Pool: pool, Options: o, Heartbeats: heartbeats, Process: rand.Text(), direct: direct.ConnConfig,
		listening: upkeep.New("listening for notices of other replicas", Cure, o.Log),
	}, nil
}

// Store is what everybody may do with the connection: ask how it is, and exchange notices and jobs.
type Store struct{ db *DB }

// New returns the connection's own methods.
func New(db *DB) *Store { return &Store{db} }

// Close returns when every connection is closed.
func (s *Store) Close() {
	s.db.Heartbeats.Close()
	s.db.Close()
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }

// Tx is a transaction with the handle that it belongs to.
type Tx struct {
	pgx.Tx
	DB *DB
}

// Send runs the statements of a batch in one round trip. What each returns is read by its own callback.
func (tx Tx) Send(ctx context.Context, b *pgx.Batch) error { return tx.SendBatch(ctx, b).Close() }

// Begin begins a transaction in one round trip. A process that is frozen in a transaction would keep its rows
// locked for whoever takes over its threads: the server ends it after this idle time.
const Begin = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '15s'"

// InTx runs fn in a transaction, which is rolled back if fn fails.
func (db *DB) InTx(ctx context.Context, fn func(Tx) error) error {
	return db.in(ctx, pgx.TxOptions{BeginQuery: Begin}, fn)
}

// InSnapshot is InTx for statements that only read, and all see the same.
func (db *DB) InSnapshot(ctx context.Context, fn func(Tx) error) error {
	return db.in(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, fn)
}

func (db *DB) in(ctx context.Context, o pgx.TxOptions, fn func(Tx) error) error {
	return pgx.BeginTxFunc(ctx, db.Pool, o, func(tx pgx.Tx) error { return fn(Tx{tx, db}) })
}
