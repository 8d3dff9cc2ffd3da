package store_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/store/storetest"
)

// statement begins one that writes, in the store's own code.
var statement = regexp.MustCompile(`\b(INSERT) INTO ([a-z_]+)|\b(UPDATE) ([a-z_]+) (?:[a-z]+ )?SET|\b(DELETE) FROM ([a-z_]+)`)

// TestTheBotsRoleMayDoWhatStatementsDo, and deletes nothing else: what docs/security.md
// grants is what the store's statements need.
func TestTheBotsRoleMayDoWhatStatementsDo(t *testing.T) {
	t.Parallel()
	needs := map[string]map[string]bool{}
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, own...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range statement.FindAllStringSubmatch(string(b), -1) {
			i := slices.IndexFunc(m[1:], func(s string) bool { return s != "" }) + 1
			if needs[m[i+1]] == nil {
				needs[m[i+1]] = map[string]bool{}
			}
			needs[m[i+1]][m[i]] = true
		}
	}
	if len(needs) < 20 {
		t.Fatalf("the store writes %v alone", needs)
	}
	conn, err := pgx.Connect(t.Context(), storetest.Bot(storetest.URL(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it only reads
	rows, err := conn.Query(t.Context(), `
		SELECT tablename, has_table_privilege(tablename::regclass, 'DELETE') FROM pg_tables
		WHERE schemaname = 'public' AND tablename NOT LIKE 'river%'`)
	if err != nil {
		t.Fatal(err)
	}
	var table string
	var may bool
	if _, err := pgx.ForEachRow(rows, []any{&table, &may}, func() error {
		if may && !needs[table]["DELETE"] {
			t.Errorf("the bot's role may delete rows of %s, which no statement does", table)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for table, rights := range needs {
		for right := range maps.Keys(rights) {
			if err := conn.QueryRow(t.Context(), `SELECT has_table_privilege($1::regclass, $2)`, table, right).Scan(&may); err != nil || !may {
				t.Errorf("the bot's role may not %s %s (%v): see the grants in docs/security.md", right, table, err)
			}
		}
	}
}

// TestWhatTheBotsRoleMayNot is what docs/security.md says that it is refused.
func TestWhatTheBotsRoleMayNot(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), storetest.Bot(storetest.URL(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // nothing is written
	for _, sql := range []string{
		`UPDATE audit SET kind = 'x'`, `DELETE FROM audit`, `TRUNCATE audit`, `INSERT INTO audit_anchors DEFAULT VALUES`,
		`UPDATE votes SET user_id = 'x'`, `DELETE FROM votes`, `UPDATE ledger SET micro_usd = 0`, `DELETE FROM ledger`,
		`DELETE FROM approvals`, `DELETE FROM threads`, `UPDATE budget_decisions SET decision = 'raise'`, `UPDATE goose_db_version SET version_id = 0`,
		`ALTER TABLE audit DISABLE TRIGGER ALL`, `DROP TRIGGER audit_append_only ON audit`, `SET session_replication_role = replica`,
		`CREATE TABLE x ()`, `CREATE FUNCTION x() RETURNS int LANGUAGE sql AS 'SELECT 1'`, `ALTER ROLE CURRENT_USER SUPERUSER`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
