package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

var plansRows = flag.Int("rows", 10_000, "how many rows TestWhatRunsOftenReadsLittle has of each kind; a tenth as many threads")

const plansTeam = "T0DECKHAND"

// furnishPlans makes a database of threads that have been used for long. Of each ten a
// thread has, nine inbox rows, turns and approvals have ended; few are open.
func furnishPlans(t *testing.T, url string, rows int) {
	t.Helper()
	threads := rows / 10
	storetest.Exec(t, url, fmt.Sprintf(`
		SET session_replication_role = replica; -- what is checked by triggers holds
		INSERT INTO threads (team_id, channel_id, thread_ts, project, owner_id, lease_owner)
			SELECT '%[1]s', 'C' || n %% 50, '1700000000.' || lpad(n::text, 6, '0'), 'shop', 'U' || n %% 100, CASE WHEN n %% 100 = 0 THEN 'replica-' || n %% 3 END
			FROM generate_series(1, %[2]d) n;
		INSERT INTO sessions (id, thread_id, started) SELECT gen_random_uuid(), id, true FROM threads;
		UPDATE threads t SET session_id = s.id FROM sessions s WHERE s.thread_id = t.id;
		INSERT INTO epochs (session_id, epoch, cli_version, baseline_micro_usd) SELECT id, 1, '2.1.329', 0 FROM sessions;
		INSERT INTO turns (thread_id, session_id, epoch, lease_epoch, requested_by, state, ended_at)
			SELECT t.id, t.session_id, 1, 1, t.owner_id, CASE WHEN k = 10 AND t.id %% 500 = 0 THEN 'running' ELSE 'done' END, CASE WHEN k < 10 OR t.id %% 500 > 0 THEN now() END
			FROM threads t, generate_series(1, 10) k ORDER BY k, t.id;
		INSERT INTO inbox (event_id, kind, team_id, channel_id, ts, thread_ts, user_id, payload, state, thread_id, prompt_uuid, prompt, done_at, next_try)
			SELECT 'Ev' || t.id || '-' || k, 'message', '%[1]s', t.channel_id, '18' || lpad(k::text, 8, '0') || '.' || lpad(t.id::text, 6, '0'), t.thread_ts, t.owner_id, '{}',
				CASE WHEN k < 10 THEN 'done' WHEN t.id %% 100 = 1 THEN 'accepted' WHEN t.id %% 100 = 2 THEN 'received' ELSE 'done' END,
				t.id, gen_random_uuid(), 'do it', CASE WHEN k < 10 OR t.id %% 100 NOT IN (1, 2) THEN now() END, now() + interval '1 hour'
			FROM threads t, generate_series(1, 10) k ORDER BY k, t.id;
		INSERT INTO approvals (id, thread_id, session_id, turn_id, kind, request_id, tool_use_id, tool_name, input, input_sha256, requested_by, rule, card_id, status, decided_by, expires_at, decided_at, delivered_at)
			SELECT 'A' || u.id, u.thread_id, u.session_id, u.id, 'tool', 'r' || u.id, 't' || u.id, 'Bash', '{}', sha256('{}'), u.requested_by, 'ask', 'A' || u.id,
				CASE WHEN u.state = 'running' THEN 'pending' ELSE 'allowed' END, 'U1', now() + interval '1 day', u.ended_at, u.ended_at
			FROM turns u;
		INSERT INTO posts (kind, subject, channel_id, ts) SELECT 'turn', id::text, 'C1', id::text FROM turns UNION ALL SELECT 'card', id, 'C1', id FROM approvals;
		INSERT INTO outbox (kind, team_id, thread_id, body, held_until)
			SELECT 'said', '%[1]s', id, 'A sentence.', now() + CASE WHEN id %% 10 = 0 THEN interval '-1 second' ELSE interval '1 minute' END FROM threads WHERE id %% 50 = 0;
		INSERT INTO looks (team_id, channel_id, since, next_try) SELECT '%[1]s', 'C' || n, now(), now() + interval '1 hour' FROM generate_series(1, 50) n;
		INSERT INTO replicas (id, life, kernel, lease_ms, slots, alive) SELECT 'gone-' || n, n, 'k', 15000, 0, false FROM generate_series(1, 2000) n;
		INSERT INTO replicas (id, life, kernel, lease_ms, slots) SELECT 'replica-' || n, 10000 + n, 'k', 15000, 200 FROM generate_series(0, 2) n;
		SET session_replication_role = DEFAULT`, plansTeam, threads))
	storetest.Exec(t, url, "VACUUM ANALYZE")
}

// What runs every second, or for each click, message or call of the model, reads a few
// rows, however many there are: no table that grows is read through.
func TestWhatRunsOftenReadsLittle(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	furnishPlans(t, url, *plansRows)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // it only reads
	read := func() map[string][2]int64 {
		t.Helper()
		for others := 1; others > 0; { // PostgreSQL has counted when a connection has ended
			if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&others); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := conn.Query(t.Context(), `SELECT relname, seq_tup_read, COALESCE(idx_tup_fetch, 0) FROM pg_stat_user_tables, pg_stat_clear_snapshot()`)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string][2]int64{}
		var table string
		var n [2]int64
		if _, err := pgx.ForEachRow(rows, []any{&table, &n[0], &n[1]}, func() error { out[table] = n; return nil }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	open := int64(500) // of the open threads
	key := threads.ThreadKey{TeamID: plansTeam, ChannelID: "C0", ThreadTS: fmt.Sprintf("1700000000.%06d", open)}
	life := threads.Registration{Replica: "replica-2", Number: 10002}
	turn := int64(*plansRows) // of the last
	card := fmt.Sprint("A", turn)
	post := inbox.Post{TeamID: plansTeam, ChannelID: key.ChannelID, TS: "1800000010.000500"}
	day := ledger.BudgetWindow{TeamID: plansTeam, Scope: "team", Period: "day", From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
	for name, often := range map[string]func(ctx context.Context, s *store.Store) error{
		"the beat": func(ctx context.Context, s *store.Store) error {
			_, _, err := s.Heartbeat(ctx, life, threads.Load{Slots: 200})
			return err
		},
		"threads that nobody has": func(ctx context.Context, s *store.Store) error {
			_, err := s.Unattended(ctx, life.Replica, nil)
			return err
		},
		"a lease": func(ctx context.Context, s *store.Store) error {
			_, _, err := s.AcquireLease(ctx, 7, life, false)
			return err
		},
		"words": func(ctx context.Context, s *store.Store) error {
			_, err := s.ClaimOutbox(ctx, plansTeam, 100)
			return err
		},
		"the inbox": func(ctx context.Context, s *store.Store) error {
			_, err := s.Due(ctx, "replica-2/x", 100)
			return err
		},
		"what an earlier life held": func(ctx context.Context, s *store.Store) error { return s.LetGo(ctx, "replica-2/", "replica-2/x") },
		"an envelope": func(ctx context.Context, s *store.Store) error {
			_, _, err := s.Receive(ctx, inbox.Envelope{EventID: "EvNew", Kind: "message", TeamID: plansTeam, ChannelID: "C1", TS: "1900000000.000001", ThreadTS: "1900000000.000001", UserID: "U1", Payload: json.RawMessage("{}")})
			return err
		},
		"an edit": func(ctx context.Context, s *store.Store) error {
			_, err := s.Edit(ctx, post, func(json.RawMessage) (json.RawMessage, bool, error) { return nil, false, nil })
			return err
		},
		"a thread": func(ctx context.Context, s *store.Store) error {
			_, err := s.ThreadByKey(ctx, key)
			return err
		},
		"the next prompt": func(ctx context.Context, s *store.Store) error {
			_, err := s.NextPrompt(ctx, 101)
			return err
		},
		"a thread's queue": func(ctx context.Context, s *store.Store) error {
			_, err := s.Queue(ctx, 101)
			return err
		},
		"a running turn": func(ctx context.Context, s *store.Store) error {
			_, _, err := s.RunningTurn(ctx, open)
			return err
		},
		"a turn's thread": func(ctx context.Context, s *store.Store) error {
			_, err := s.ThreadOfTurn(ctx, turn)
			return err
		},
		"a turn's messages": func(ctx context.Context, s *store.Store) error {
			_, err := s.TurnPosts(ctx, turn)
			return err
		},
		"a turn's approvals": func(ctx context.Context, s *store.Store) error {
			_, err := s.Unanswered(ctx, turn)
			return err
		},
		"a card": func(ctx context.Context, s *store.Store) error {
			_, err := s.CardApprovals(ctx, card)
			return err
		},
		"a thread's open cards": func(ctx context.Context, s *store.Store) error {
			_, err := s.PendingApprovals(ctx, key)
			return err
		},
		"the team's open cards": func(ctx context.Context, s *store.Store) error {
			_, err := s.TeamPending(ctx, plansTeam, 20)
			return err
		},
		"a click": func(ctx context.Context, s *store.Store) error {
			_, err := s.Decide(ctx, approvals.Decision{ApprovalID: card, Status: "denied", By: "U1", Via: "button"})
			return err
		},
		"a budget": func(ctx context.Context, s *store.Store) error {
			_, err := s.BudgetStates(ctx, []ledger.BudgetWindow{day})
			return err
		},
		"what models answer": func(ctx context.Context, s *store.Store) error {
			_, err := s.RecentOutput(ctx, plansTeam, "shop", "claude-opus-5-5")
			return err
		},
		"calls that nobody ends": func(ctx context.Context, s *store.Store) error {
			_, err := s.EndLostCalls(ctx)
			return err
		},
		"what is to be looked at": func(ctx context.Context, s *store.Store) error {
			_, _, err := s.TakeScan(ctx, plansTeam, time.Minute)
			return err
		},
		"posts that wait": func(ctx context.Context, s *store.Store) error {
			_, err := s.WaitingPosts(ctx, plansTeam, 100)
			return err
		},
		"waits for budgets": func(ctx context.Context, s *store.Store) error { return s.WakeWaits(ctx) },
	} {
		before := read()
		s := storetest.Open(t, url, store.Options{Replica: "replica-2"})
		began := time.Now()
		err := often(t.Context(), s)
		took := time.Since(began)
		s.Close()
		if err != nil && !errors.Is(err, pg.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		var much []string
		for table, n := range read() {
			if table == "outbox" {
				continue // what waits there is gone through, of which there is little
			}
			if n[0]-before[table][0] > 200 || n[1]-before[table][1] > 2000 {
				much = append(much, fmt.Sprintf("of %s %d rows in order and %d by an index", table, n[0]-before[table][0], n[1]-before[table][1]))
			}
		}
		if len(much) > 0 {
			t.Errorf("%s reads %s, in %s", name, strings.Join(much, ", "), took)
		}
	}
}
