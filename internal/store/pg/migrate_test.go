package pg_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/audit"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
)

// bookkeeping are tables that hold nothing of anybody's, of goose and River, and two of ours:
// one that no version has used, and that step 19 takes away, and posts, whose rows go back to
// the tables of before.
var bookkeeping = []string{"channels_heard", "goose_db_version", "posts", "river_client", "river_client_queue", "river_leader", "river_migration", "river_notification", "river_queue"}

// TestEachStepIsKnownByWhatItDeletes: a step is refused exactly for the tables that go
// with it, all the way down, and all the way up again.
func TestEachStepIsKnownByWhatItDeletes(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	fillTables(t, url)
	if err := s.Schedule(t.Context(), pg.Job{Args: approvals.Deadline{ApprovalID: "x"}}); err != nil {
		t.Fatal(err)
	}
	status, err := pg.MigrationStatus(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if len(status) < 6 {
		t.Fatalf("%d migrations", len(status))
	}
	for _, m := range slices.Backward(status) {
		if m.Name == "" || m.AppliedAt.IsZero() {
			t.Errorf("migration without a name, or that was not applied: %+v", m)
		}
		before := tablesOf(t, url)
		_, err := pg.MigrateDown(t.Context(), url, []string{"elsewhere"})
		loss, ok := errors.AsType[*pg.LossError](err)
		if !ok || !slices.Equal(loss.Misnamed, []string{"elsewhere"}) {
			t.Fatalf("%s: %v", m.Name, err)
		}
		if got := tablesOf(t, url); !slices.Equal(got, before) {
			t.Fatalf("%s was refused and has left %v of %v", m.Name, got, before)
		}
		if _, err := pg.MigrateDown(t.Context(), url, append(slices.Clone(loss.Unnamed), "elsewhere")); err == nil || !strings.Contains(err.Error(), "no rows of elsewhere") {
			t.Errorf("%s: a table that it does not delete was named: %v", m.Name, err)
		}
		if len(loss.Unnamed) > 1 {
			if _, err := pg.MigrateDown(t.Context(), url, loss.Unnamed[1:]); err == nil {
				t.Fatalf("%s: %s was not named and went", m.Name, loss.Unnamed[0])
			}
		}
		down, err := pg.MigrateDown(t.Context(), url, loss.Unnamed)
		if err != nil || len(down) != 1 || down[0].Version != m.Version {
			t.Fatalf("%s: reverted %v, %v", m.Name, down, err)
		}
		var gone []string
		after := tablesOf(t, url)
		for _, table := range before {
			if !slices.Contains(after, table) && !slices.Contains(bookkeeping, table) {
				gone = append(gone, table)
			}
		}
		if diff := cmp.Diff(gone, loss.Unnamed); diff != "" {
			t.Errorf("%s (-what it deletes +what it says):\n%s", m.Name, diff)
		}
	}
	if down, err := pg.MigrateDown(t.Context(), url, nil); err != nil || len(down) != 0 {
		t.Errorf("below the first: %v, %v", down, err)
	}
	if err := s.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "bot migrate up") {
		t.Errorf("CheckSchema on an empty database: %v", err)
	}
	up, err := pg.MigrateUp(t.Context(), url)
	if err != nil || len(up) != len(status) {
		t.Fatalf("applied %v, %v", up, err)
	}
	storetest.LetBotIn(t, url)
	if err := s.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
	r, err := s.VerifyAudit(t.Context(), nil)
	if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "was made again") {
		t.Errorf("the audit of a database that was taken down and put up: %q, %v", r.Problems, err)
	}
	if down, err := pg.MigrateDown(t.Context(), url, nil); err != nil || len(down) != 1 {
		t.Errorf("a step of empty tables: %v, %v", down, err)
	}
}

// TestAStepThatLandedLate: a database that was at step 14 before there was a step 12 gets it.
func TestAStepThatLandedLate(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	storetest.Exec(t, url, `DROP TABLE transcript_pieces, transcripts CASCADE; ALTER TABLE turns DROP COLUMN answer; ALTER TABLE sessions DROP COLUMN recalls;
		DELETE FROM goose_db_version WHERE version_id = 12`)
	up, err := pg.MigrateUp(t.Context(), url)
	if err != nil || len(up) != 1 || up[0].Version != 12 {
		t.Fatalf("applied %v, %v", up, err)
	}
	storetest.LetBotIn(t, url)
	if err := storetest.Open(t, url, store.Options{}).CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
}

// fillTables puts a row into each of our own tables, whatever the constraints say.
func fillTables(t *testing.T, url string) {
	t.Helper()
	storetest.Exec(t, url, `SET session_replication_role = replica`+`;
		DO $$
		DECLARE r record; columns text; row_values text;
		BEGIN
			FOR r IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'goose_db_version' AND tablename NOT LIKE 'river%' LOOP
				EXECUTE (SELECT COALESCE(string_agg(format('ALTER TABLE %I DROP CONSTRAINT %I', r.tablename, conname), '; '), 'SELECT 1')
					FROM pg_constraint WHERE conrelid = r.tablename::regclass AND contype = 'c');
				SELECT string_agg(quote_ident(attname), ', '), string_agg(CASE
					WHEN format_type(atttypid, NULL) LIKE '%[]' THEN '''{}'''
					WHEN typcategory = 'N' THEN '1' WHEN typcategory = 'B' THEN 'true' WHEN typcategory = 'D' THEN 'now()'
					WHEN typcategory = 'E' THEN (SELECT quote_literal(min(enumlabel)) FROM pg_enum WHERE enumtypid = atttypid)
					WHEN typname = 'uuid' THEN 'gen_random_uuid()' WHEN typname IN ('json', 'jsonb') THEN '''{}''' WHEN typname = 'bytea' THEN '''''::bytea'
					ELSE '''x''' END, ', ')
				INTO columns, row_values
				FROM pg_attribute JOIN pg_type y ON y.oid = atttypid
				WHERE attrelid = r.tablename::regclass AND attnum > 0 AND NOT attisdropped AND attnotnull AND attidentity = '' AND attgenerated = '';
				EXECUTE format('INSERT INTO %I (%s) VALUES (%s)', r.tablename, columns, row_values);
			END LOOP;
		END $$`)
	storetest.Exec(t, url, `
		UPDATE work SET repository = '';
		INSERT INTO posts (kind, subject, part, audience, channel_id, ts) VALUES
			('turn', '1', 0, '', 'x', '1'), ('turn', '1', 1, '', 'x', '2'), ('card', 'x', 0, '', 'x', '3'), ('card', 'x', 0, 'U1', 'D1', '4'), ('card', 'x', 0, 'U2', 'D2', ''),
			('place', '1', 0, '', 'x', '5'), ('queue', '1', 0, '', 'x', '6'), ('wait', '1', 0, '', 'x', '7'), ('budget', 'x', 0, '', 'x', '8'), ('budget', 'x', 0, 'C2', 'C2', '9')`)
}

// TestMessagesOfBeforeAreKept: what six tables and columns had of messages is in posts, and
// goes back there.
func TestMessagesOfBeforeAreKept(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	fillTables(t, url)
	lines := func(sql string) []string {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // it only reads
		rows, err := conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		out, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const posts = `SELECT concat_ws('/', kind, subject, part, audience, channel_id, ts) FROM posts WHERE kind <> 'x' ORDER BY 1`
	before := lines(posts)
	for len(lines(`SELECT tablename::text FROM pg_tables WHERE tablename = 'posts'`)) > 0 {
		_, err := pg.MigrateDown(t.Context(), url, nil)
		if loss, ok := errors.AsType[*pg.LossError](err); ok {
			_, err = pg.MigrateDown(t.Context(), url, loss.Unnamed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	old := lines(`
		SELECT concat_ws('/', 'turn', turn_id, page, channel_id, ts) FROM messages WHERE turn_id IS NOT NULL
		UNION ALL SELECT concat_ws('/', 'card', approval_id, page, channel_id, ts) FROM messages WHERE approval_id IS NOT NULL
		UNION ALL SELECT concat_ws('/', 'copy', card_id, user_id, channel_id, ts) FROM card_copies
		UNION ALL SELECT concat_ws('/', 'place', thread_id, message_ts) FROM places
		UNION ALL SELECT concat_ws('/', 'queue', id, queue_ts) FROM threads
		UNION ALL SELECT concat_ws('/', 'wait', inbox_id, message_ts) FROM budget_waits
		UNION ALL SELECT concat_ws('/', 'budget', notice_id, channel_id, ts) FROM budget_messages
		ORDER BY 1`)
	want := []string{
		"budget/x/C2/9", "budget/x/x/8", "card/x/0/x/3", "copy/x/U1/D1/4", "copy/x/U2/D2/", "place/1/5", "queue/1/6", "turn/1/0/x/1", "turn/1/1/x/2", "wait/1/7",
	}
	if diff := cmp.Diff(want, old); diff != "" {
		t.Errorf("where they were (-want +got):\n%s", diff)
	}
	if _, err := pg.MigrateUp(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, lines(posts)); diff != "" {
		t.Errorf("after the way back and forth (-before +after):\n%s", diff)
	}
}

func tablesOf(t *testing.T, url string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // it only reads
	rows, err := conn.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAnAuditThatWasEmptiedIsNotWhole: whatever is left tells of it.
func TestAnAuditThatWasEmptiedIsNotWhole(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	problems := func(kept ...audit.Anchor) string {
		t.Helper()
		r, err := s.VerifyAudit(t.Context(), kept)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(r.Problems, "\n")
	}
	if got := problems(); got != "" {
		t.Errorf("a new database: %s", got)
	}
	// A newer step that went down and up says nothing of the audit.
	if _, err := pg.MigrateDown(t.Context(), url, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.MigrateUp(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	storetest.LetBotIn(t, url)
	if got := problems(); got != "" {
		t.Errorf("after a newer step went down and up: %s", got)
	}

	storetest.Asked(t, s, time.Hour)
	r, err := s.VerifyAudit(t.Context(), nil)
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("before: %q, %v", r.Problems, err)
	}
	kept := r.Last
	storetest.Exec(t, url, `SET session_replication_role = replica; DELETE FROM audit`)
	if got := problems(); !strings.Contains(got, "the audit is empty, and there are 1 turns, 1 approvals and 0 ledger entries") {
		t.Errorf("emptied by hand: %s", got)
	}
	if got := problems(kept); !strings.Contains(got, "the chain was cut off") {
		t.Errorf("emptied by hand, against an anchor that was kept: %s", got)
	}
	storetest.Exec(t, url, `SET session_replication_role = replica; INSERT INTO audit_anchors VALUES ('2026-10-31', 7, '')`)
	if got := problems(); !strings.Contains(got, "row 7 of the database's anchor for 2026-10-31 is not there") {
		t.Errorf("emptied by hand, with the database's own anchor: %s", got)
	}
	// A new chain in the place of the old one is whole by itself.
	if err := s.Audit(t.Context(), audit.Entry{Kind: audit.Started}); err != nil {
		t.Fatal(err)
	}
	if got := problems(); !strings.Contains(got, "1 turns, 1 approvals and 0 ledger entries are older than the audit's first row") {
		t.Errorf("with a new chain: %s", got)
	}
}
