package storetest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/waittest"
)

// Role makes a role that may log in until the test ends, with further options such as
// CONNECTION LIMIT 1, and returns its name and the address by which it reaches the
// database at dsn, on which it has no rights yet.
func Role(tb testing.TB, dsn, options string) (name, asRole string) {
	tb.Helper()
	name = fmt.Sprintf("role_%d_%d", os.Getpid(), server.clones.Add(1))
	Exec(tb, dsn, "CREATE ROLE "+name+" LOGIN PASSWORD 'secret' "+options)
	tb.Cleanup(func() { Exec(tb, dsn, "DROP OWNED BY "+name+"; DROP ROLE "+name) })
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Skip("the test server's address is no URL: ", err)
	}
	u.User = url.UserPassword(name, "secret")
	return name, u.String()
}

// Exec runs statements in the database at dsn.
func Exec(tb testing.TB, dsn, sql string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), waittest.Limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx) //nolint:errcheck // the statement's error is what counts
	if _, err := conn.Exec(ctx, sql); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}
