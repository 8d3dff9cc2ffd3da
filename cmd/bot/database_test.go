package main

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// count reads one number from the bot's database.
func (w *world) count(sql string) int64 {
	w.t.Helper()
	return read[int64](w, sql)
}

// text reads one text from the bot's database.
func (w *world) text(sql string) string {
	w.t.Helper()
	return read[string](w, sql)
}

func read[T any](w *world, sql string) (v T) {
	w.t.Helper()
	w.withDatabase(func(ctx context.Context, conn *pgx.Conn) {
		if err := conn.QueryRow(ctx, sql).Scan(&v); err != nil {
			w.t.Fatal(err)
		}
	})
	return v
}

// tamper changes the bot's database as somebody who owns it could.
func (w *world) tamper(sql string) (err error) {
	w.t.Helper()
	w.withDatabase(func(ctx context.Context, conn *pgx.Conn) {
		_, err = conn.PgConn().Exec(ctx, sql).ReadAll()
	})
	return err
}

func (w *world) withDatabase(use func(context.Context, *pgx.Conn)) {
	w.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.DatabaseURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // a test's connection
	use(ctx, conn)
}
