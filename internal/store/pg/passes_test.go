package pg_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"deckhand/internal/store"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
)

// states reads SQLSTATEs and what stands behind each from a file.
func states(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was read
	out := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		code, rest, _ := strings.Cut(lines.Text(), " ")
		if len(code) == 5 && code == strings.ToUpper(code) && code != "00000" {
			out[code] = strings.TrimSpace(rest)
		}
	}
	return out
}

// TestEverySQLSTATEPassesOrIsTold: the table says of each whether it is tried again for as
// long as it takes (again), or a few times before people are told (told).
func TestEverySQLSTATEPassesOrIsTold(t *testing.T) {
	t.Parallel()
	table := states(t, "testdata/sqlstates.txt")
	if len(table) < 250 {
		t.Fatalf("the table has %d SQLSTATEs", len(table))
	}
	for code, want := range table {
		got := "told"
		if pg.Passes(fmt.Errorf("accept a prompt: %w", &pgconn.PgError{Code: code})) {
			got = "again"
		}
		if said, _, _ := strings.Cut(want, " "); got != said {
			t.Errorf("%s is %s: %s", code, got, want)
		}
	}
	for _, code := range []string{"", "2", "ZZ000", "99999"} {
		if pg.Passes(&pgconn.PgError{Code: code}) {
			t.Errorf("the unknown %q passes", code)
		}
	}
	share, err := exec.CommandContext(t.Context(), "pg_config", "--sharedir").Output()
	installed := []string{filepath.Join(strings.TrimSpace(string(share)), "errcodes.txt")}
	if err != nil {
		installed, _ = filepath.Glob("/usr/share/postgresql/*/errcodes.txt")
	}
	for _, file := range installed { // of the server that the tests run on
		for code, name := range states(t, file) {
			if table[code] == "" {
				t.Errorf("PostgreSQL has %s, of which the table says nothing: %s", code, name)
			}
		}
	}
}

// TestErrorsOfTheDriverPass: what is no word of the server's on what was asked.
func TestErrorsOfTheDriverPass(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, refused := pgx.Connect(ctx, "postgres://u:p@127.0.0.1:1/d?sslmode=disable&connect_timeout=5")
	_, unreachable := store.Open(ctx, "postgres://u:p@127.0.0.1:1/d?sslmode=disable&connect_timeout=5", store.Options{})
	closed := storetest.New(t)
	closed.Close()
	conn, err := pgx.Connect(ctx, storetest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = tx.Exec(ctx, `SELECT 1/0`)
	rolledBack := tx.Commit(ctx)
	txClosed := tx.Commit(ctx)
	if err := conn.Close(ctx); err != nil {
		t.Fatal(err)
	}
	_, connClosed := conn.Exec(ctx, `SELECT 1`)
	for name, err := range map[string]error{
		"no connection":            refused,
		"no connection at a start": unreachable,
		"a closed pool":            closed.Ping(context.WithoutCancel(ctx)),
		"the pool's word for it":   puddle.ErrClosedPool,
		"a commit that was none":   rolledBack,
		"a transaction that ended": txClosed,
		"a connection that ended":  connClosed,
		"a time that ran out":      context.DeadlineExceeded,
		"whoever asked has gone":   context.Canceled,
		"the end of a stream":      io.EOF,
		"the end in a message":     io.ErrUnexpectedEOF,
		"a closed socket":          net.ErrClosed,
		"a reset":                  &net.OpError{Op: "read", Err: syscall.ECONNRESET},
		"a broken pipe":            syscall.EPIPE,
		"PgBouncer has no server":  &pgconn.PgError{Code: "08P01", Message: "server login has failed, try again later (server_login_retry)"},
		"PgBouncer has no time":    &pgconn.PgError{Code: "08P01", Message: "query_wait_timeout"},
		"PgBouncer has no room":    &pgconn.PgError{Code: "53300", Message: "no more connections allowed (max_client_conn)"},
		"PgBouncer stops":          &pgconn.PgError{Code: "57P01", Message: "server conn crashed?"},
		"an earlier message waits": pg.ErrNotYet,
	} {
		if err == nil || !pg.Passes(fmt.Errorf("accept a prompt: %w", err)) {
			t.Errorf("%s does not pass: %v", name, err)
		}
	}
	for _, err := range []error{errors.New("no such luck"), pg.ErrNotFound, pgx.ErrNoRows} {
		if pg.Passes(err) {
			t.Errorf("%v passes", err)
		}
	}
}
