package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// botRole is the role that stores are opened as. It belongs to the server, and stays there
// with the templates.
const botRole = "deckhand_test_bot"

const botPassword = "secret"

// grants are what docs/security.md has the owner of the database write for the bot's role,
// for [botRole].
var grants string

// Bot is the address by which the bot's role reaches the database at an address of the
// owner's. Others, and those that are no URLs, are left as they are.
func Bot(dsn string) string {
	u, err := url.Parse(dsn)
	owner, ownerErr := url.Parse(server.url)
	if err != nil || ownerErr != nil || u.User.Username() != owner.User.Username() {
		return dsn
	}
	if _, asks := owner.User.Password(); asks {
		u.User = url.UserPassword(botRole, botPassword)
	} else {
		u.User = url.User(botRole)
	}
	return u.String()
}

// LetBotIn gives the bot's role its rights in the database at the owner's address, as is to
// be done whenever it was migrated.
func LetBotIn(tb testing.TB, dsn string) {
	tb.Helper()
	if err := letBotIn(tb.Context(), dsn); err != nil {
		tb.Fatal(err)
	}
}

// letBotIn gives the bot's role its rights in the database at dsn.
func letBotIn(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the statements' errors are what counts
	_, err = conn.Exec(ctx, "CREATE ROLE "+botRole+" LOGIN PASSWORD '"+botPassword+"'")
	// Another binary may be first, or be about to.
	if pg, ok := errors.AsType[*pgconn.PgError](err); err != nil && (!ok || pg.Code != "42710" && pg.Code != "23505") {
		return fmt.Errorf("make the bot's role: %w", err)
	}
	if _, err := conn.Exec(ctx, grants); err != nil {
		return fmt.Errorf("give the bot's role what docs/security.md says: %w", err)
	}
	return nil
}

const grantsBegin = "-- as deckhand_owner in that database"

var deckhand = regexp.MustCompile(`\bdeckhand\b`)

// readGrants reads grants.
func readGrants() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for !exists(filepath.Join(dir, "go.mod")) {
		if dir == filepath.Dir(dir) {
			return errors.New("tests run in the module's folders, where docs/security.md is found")
		}
		dir = filepath.Dir(dir)
	}
	b, err := os.ReadFile(filepath.Join(dir, "docs", "security.md"))
	if err != nil {
		return err
	}
	_, after, ok := strings.Cut(string(b), grantsBegin)
	sql, _, end := strings.Cut(after, "\n```")
	if !ok || !end {
		return errors.New("docs/security.md has no block of SQL with a line that begins with " + grantsBegin)
	}
	grants = deckhand.ReplaceAllString(grantsBegin+sql, botRole)
	return nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
