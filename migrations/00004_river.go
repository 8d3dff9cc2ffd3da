package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// River brings the job queue's tables as River has them at its version 8; a later one
// needs a migration of its own. River migrates over a pool of its own, to the database
// that cfg leads to: one of its steps adds a value to an enum that a later one uses, so
// that it cannot be one transaction.
func River(cfg *pgx.ConnConfig) *goose.Migration {
	m := goose.NewGoMigration(4,
		&goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
			return migrateRiver(ctx, cfg, rivermigrate.DirectionUp, 8)
		}},
		&goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error {
			return migrateRiver(ctx, cfg, rivermigrate.DirectionDown, -1)
		}},
	)
	m.Source = "00004_river.go"
	return m
}

func migrateRiver(ctx context.Context, cfg *pgx.ConnConfig, direction rivermigrate.Direction, version int) error {
	poolConfig, err := pgxpool.ParseConfig("")
	if err != nil {
		return fmt.Errorf("prepare the job queue's tables: %w", err)
	}
	poolConfig.ConnConfig = cfg.Copy()
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return fmt.Errorf("prepare the job queue's tables: %w", err)
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("prepare the job queue's tables: %w", err)
	}
	if _, err := m.Migrate(ctx, direction, &rivermigrate.MigrateOpts{TargetVersion: version}); err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	return nil
}
