package pg

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"deckhand/migrations"
)

// Migration is one step of the schema and when it was applied (zero: not yet).
type Migration struct {
	Version   int64
	Name      string
	AppliedAt time.Time
}

// MigrateUp applies every pending migration and returns those it applied. Concurrent replicas wait for each other
// under a session lock.
func MigrateUp(ctx context.Context, url string) ([]Migration, error) {
	return migrate(ctx, url, func(_ *sql.DB, p *goose.Provider) ([]*goose.MigrationResult, error) { return p.Up(ctx) })
}

// MigrationStatus lists every migration that this binary knows, oldest first.
func MigrationStatus(ctx context.Context, url string) ([]Migration, error) {
	var out []Migration
	_, err := migrate(ctx, url, func(_ *sql.DB, p *goose.Provider) ([]*goose.MigrationResult, error) {
		all, err := p.Status(ctx)
		for _, m := range all {
			out = append(out, Migration{Version: m.Source.Version, Name: m.Source.Path, AppliedAt: m.AppliedAt})
		}
		return nil, err
	})
	return out, err
}

// SchemaError says that the database's schema differs from this binary's.
type SchemaError struct {
	Current, Target int64 // of the database and of this binary
}

// Behind reports whether migrating up helps.
func (e *SchemaError) Behind() bool { return e.Current < e.Target }

func (e *SchemaError) Error() string {
	if e.Behind() {
		return fmt.Sprintf("the database is at schema %d and this binary needs %d: run `bot migrate up`", e.Current, e.Target)
	}
	return fmt.Sprintf("the database is at schema %d and this binary knows only %d: run the newer binary, or `bot migrate down` with it", e.Current, e.Target)
}

// CheckSchema returns a [SchemaError] with the cure when the database's schema differs from this binary's.
func (s *Store) CheckSchema(ctx context.Context) error {
	db := stdlib.OpenDBFromPool(s.db.Pool)
	defer db.Close() //nolint:errcheck // a view on the pool, nothing to lose
	p, err := provider(db, s.db.Config().ConnConfig)
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if current != target {
		return &SchemaError{Current: current, Target: target}
	}
	return nil
}

func migrate(ctx context.Context, url string, run func(*sql.DB, *goose.Provider) ([]*goose.MigrationResult, error)) ([]Migration, error) {
	pool, err := ParsePool(url, false)
	if err != nil {
		return nil, err
	}
	cfg := pool.ConnConfig
	db := stdlib.OpenDB(*cfg)
	defer db.Close() //nolint:errcheck // nothing is written through Close
	reaching, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := db.PingContext(reaching); err != nil {
		return nil, unreachable(&cfg.Config, err)
	}
	p, err := provider(db, cfg)
	if err != nil {
		return nil, err
	}
	results, err := run(db, p)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	out := make([]Migration, 0, len(results))
	for _, r := range results {
		out = append(out, Migration{Version: r.Source.Version, Name: r.Source.Path})
	}
	return out, nil
}

func provider(db *sql.DB, cfg *pgx.ConnConfig) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, fmt.Errorf("prepare the migration lock: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, goose.WithSessionLocker(locker), goose.WithGoMigrations(migrations.River(cfg)),
		goose.WithAllowOutofOrder(true)) // step 12 landed after 13 and 14
	return p, Wrap(err, "read the embedded migrations")
}
