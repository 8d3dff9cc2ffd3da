// Package storetest gives every test a migrated database of its own: a clone of
// a template that is made once per schema. The server is the one that
// DECKHAND_TEST_DATABASE_URL names, or a private one that lives as long as the
// test binary. Stores are opened as the bot's role, with the rights that
// docs/security.md gives it.
package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"deckhand/internal/jobs"
	"deckhand/internal/needtest"
	"deckhand/internal/playground/postgres"
	"deckhand/internal/store"
	"deckhand/internal/store/pg"
	"deckhand/internal/waittest"
	"deckhand/migrations"
)

// URLEnv names the environment variable with the URL of a server on which the
// tests may create databases.
const URLEnv = "DECKHAND_TEST_DATABASE_URL"

var server struct {
	once    sync.Once
	url     string
	err     error
	private *postgres.Server
	dir     string
	clones  atomic.Int64
	lasting []string // databases that Main drops

	// strategy is how a template is cloned: as files, which is what servers did before
	// PostgreSQL 15 and costs a fifth of what copying through the log does, where
	// nothing is synced to a disk.
	strategy string
}

// Main runs the tests and stops the private server after them. TestMain calls it
// with what is to happen last, such as a check for leaked goroutines, in after.
func Main(m *testing.M, after ...func() error) {
	code := m.Run()
	for _, name := range server.lasting {
		if err := drop(name); err != nil {
			fmt.Fprintln(os.Stderr, "storetest: drop a database:", err)
			code = 1
		}
	}
	if server.private != nil {
		if err := server.private.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "storetest: stop the private server:", err)
			code = 1
		}
		_ = os.RemoveAll(server.dir)
	}
	for _, f := range after {
		if err := f(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// URL returns the owner's address of a fresh, migrated database that is dropped after
// the test; see [Bot]. Without PostgreSQL on the machine the test is skipped, unless
// DECKHAND_TEST_REQUIRE=1 makes that an error.
func URL(tb testing.TB) string {
	tb.Helper()
	name := clone(tb)
	tb.Cleanup(func() {
		if err := drop(name); err != nil {
			tb.Errorf("drop the test's database: %v", err)
		}
	})
	return withDatabase(server.url, name)
}

// LastingURL is [URL] for a database that is there until [Main] returns, for what
// several benchmarks share. Not safe for concurrent use.
func LastingURL(tb testing.TB) string {
	tb.Helper()
	name := clone(tb)
	server.lasting = append(server.lasting, name)
	return withDatabase(server.url, name)
}

func clone(tb testing.TB) string {
	tb.Helper()
	server.once.Do(start)
	if server.err != nil {
		needtest.Missing(tb, "no PostgreSQL for this test: "+server.err.Error())
	}
	name := fmt.Sprintf("deckhand_test_%d_%d", os.Getpid(), server.clones.Add(1))
	if err := admin(tb.Context(), "CREATE DATABASE "+name+" TEMPLATE "+template()+server.strategy); err != nil {
		tb.Fatalf("clone the template database: %v", err)
	}
	return name
}

func drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	return admin(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
}

// New opens a store on a database of the test's own.
func New(tb testing.TB) *store.Store {
	tb.Helper()
	return Open(tb, URL(tb), store.Options{})
}

// Open opens a store that schedules jobs, until the test ends: as the bot's role where the
// address is the owner's.
func Open(tb testing.TB, url string, o store.Options) *store.Store {
	tb.Helper()
	o.Jobs = jobs.Inserter{}
	if o.Direct != "" {
		o.Direct = Bot(o.Direct)
	}
	s, err := store.Open(tb.Context(), Bot(url), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

func start() {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
	defer cancel()
	server.url = os.Getenv(URLEnv)
	if server.url == "" {
		if server.dir, server.err = os.MkdirTemp(inMemory(), "deckhand-pg-"); server.err != nil {
			return
		}
		server.private, server.err = postgres.Start(ctx, postgres.Options{Dir: server.dir})
		if server.err != nil {
			return
		}
		server.url = server.private.URL()
	}
	server.err = makeTemplate(ctx)
}

// inMemory is a file system without a disk, if there is one with room; or empty, for the
// usual place. A database has a thousand files, and ext4 looks at each one that was deleted
// in the last minutes before it makes a new one: three quarters of what such tests cost.
func inMemory() string {
	const dir, room = "/dev/shm", 2 << 30 // bytes
	var at unix.Statfs_t
	if unix.Statfs(dir, &at) != nil || at.Bavail*uint64(at.Bsize) < room || unix.Access(dir, unix.W_OK|unix.X_OK) != nil {
		return ""
	}
	return dir
}

// makeTemplate migrates under another name and renames at the end, so that two
// test binaries on one server never clone half a schema.
func makeTemplate(ctx context.Context) error {
	var exists bool
	if err := readGrants(); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, server.url)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // it only reads
	if err := conn.QueryRow(ctx, `SELECT CASE WHEN current_setting('server_version_num')::int >= 150000 THEN ' STRATEGY file_copy' ELSE '' END`).Scan(&server.strategy); err != nil {
		return fmt.Errorf("ask the test server for its version: %w", err)
	}
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, template()).Scan(&exists); err != nil {
		return fmt.Errorf("look for the template database: %w", err)
	}
	if exists {
		return nil
	}
	draft := fmt.Sprintf("%s_%d", template(), os.Getpid())
	if err := admin(ctx, "CREATE DATABASE "+draft); err != nil {
		return fmt.Errorf("create the template database: %w", err)
	}
	if _, err := pg.MigrateUp(ctx, withDatabase(server.url, draft)); err != nil {
		return err
	}
	if err := letBotIn(ctx, withDatabase(server.url, draft)); err != nil {
		return err
	}
	if err := admin(ctx, "ALTER DATABASE "+draft+" RENAME TO "+template()); err != nil {
		return admin(ctx, "DROP DATABASE "+draft) // another binary was first
	}
	return nil
}

// template is named for the content of the migrations, and for the rights of the bot's
// role.
var template = sync.OnceValue(func() string {
	h := sha256.New()
	entries, err := fs.ReadDir(migrations.FS, ".")
	if err != nil {
		panic(err) // embedded: cannot fail
	}
	for _, e := range entries {
		b, err := fs.ReadFile(migrations.FS, e.Name())
		if err != nil {
			panic(err)
		}
		h.Write(b)
	}
	h.Write([]byte(grants))
	return "deckhand_template_" + hex.EncodeToString(h.Sum(nil))[:16]
})

func admin(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, server.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // the statement's error is what counts
	_, err = conn.Exec(ctx, sql)
	return err
}

func withDatabase(serverURL, name string) string {
	if u, err := url.Parse(serverURL); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		u.Path = "/" + name
		return u.String()
	}
	return serverURL + " dbname=" + name
}
