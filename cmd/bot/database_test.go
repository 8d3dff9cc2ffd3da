package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// count reads one number from the bot's database.
func (w *world) count(sql string) int64 {
	w.t.Helper()
	return read[int64](w, sql)
}

// doneWithAll waits until nothing that Slack has sent is left to do. What people see of a
// message's end comes before its row in the inbox ends.
func (w *world) doneWithAll() {
	w.t.Helper()
	w.eventually("everything in the inbox to be done", func() bool {
		return w.count(`SELECT count(*) FROM inbox WHERE state <> 'done'`) == 0
	})
}

// text reads one text from the bot's database.
func (w *world) text(sql string) string {
	w.t.Helper()
	return read[string](w, sql)
}

func read[T any](w *world, sql string) (v T) {
	w.t.Helper()
	l := w.look
	if l == nil {
		l = &look{}
		defer l.close()
	}
	if err := l.read(w.DatabaseURL, sql, &v); err != nil {
		w.t.Fatal(err)
	}
	return v
}

// look is a connection for all looks into one database: many are taken before there is
// anything to see, and a connection costs more than they do. Stories share it.
type look struct {
	mu   sync.Mutex
	url  string
	conn *pgx.Conn
}

func (l *look) read(url, sql string, v any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx := context.Background()
	if l.conn != nil && l.url == url && l.conn.QueryRow(ctx, sql).Scan(v) == nil {
		return nil
	}
	l.disconnect() // the server may have been started again
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	l.url, l.conn = url, conn
	return conn.QueryRow(ctx, sql).Scan(v)
}

func (l *look) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disconnect()
}

func (l *look) disconnect() {
	if l.conn != nil {
		_ = l.conn.Close(context.Background()) // it only read
		l.conn = nil
	}
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
	conn, err := pgx.Connect(ctx, cmp.Or(w.owner, w.DatabaseURL))
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // a test's connection
	use(ctx, conn)
}

// goBy has time go by: whatever the database says is that much older, but for the audit,
// which is chained. The triggers that forbid it do not fire for who does this. Jobs, cards
// and rests are then as they are after that time, by the bot's clock and the database's.
func (w *world) goBy(t time.Duration) {
	w.t.Helper()
	err := w.tamper(fmt.Sprintf(`DO $$
		DECLARE r record;
		BEGIN
			SET LOCAL session_replication_role = replica;
			FOR r IN SELECT c.table_name AS name, string_agg(format('%%1$I = %%1$I - interval ''%d seconds''', c.column_name), ', ') AS changes
				FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
				WHERE c.table_schema = 'public' AND c.data_type = 'timestamp with time zone' AND c.is_generated = 'NEVER'
				  AND t.table_type = 'BASE TABLE' AND c.table_name NOT LIKE 'audit%%'
				GROUP BY 1
			LOOP
				EXECUTE format('UPDATE %%I SET %%s', r.name, r.changes);
			END LOOP;
		END $$`, int(t.Seconds())))
	if err != nil {
		w.t.Fatal(err)
	}
}
