package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"deckhand/internal/store"
	"deckhand/internal/store/ledger"
)

// endedTurns writes turns that ended long ago, or not yet.
func (b *bench) endedTurns(t *testing.T, pool *pgxpool.Pool, n int, state string, startedAgo time.Duration) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO turns (thread_id, session_id, epoch, lease_epoch, requested_by, state, started_at, ended_at)
		SELECT $1, $2, 1, 1, 'U1', $3, now() - $4::interval, CASE WHEN $3 <> 'running' THEN now() END FROM generate_series(1, $5)`,
		b.thread.ID, b.session, state, startedAgo, n); err != nil {
		t.Fatal(err)
	}
}

// endedApproval writes an approval that was asked some time ago, and its id.
func (b *bench) endedApproval(t *testing.T, pool *pgxpool.Pool, status, via string, askedAgo, waited time.Duration) string {
	t.Helper()
	id := uuid.NewString()
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO approvals (id, thread_id, session_id, turn_id, kind, request_id, tool_use_id, tool_name, input, input_sha256, requested_by, rule,
			card_id, status, decided_by, decided_via, created_at, expires_at, decided_at)
		SELECT $1, $2, $3, (SELECT min(id) FROM turns), 'tool', 'r', 't', 'Bash', '{}', sha256('{}'), 'U1', 'x', $1, $4, 'U9', $5,
			now() - $6::interval, now() + interval '1 day', CASE WHEN $4 <> 'pending' THEN now() - $6::interval + $7::interval END`,
		id, b.thread.ID, b.session, status, via, askedAgo, waited); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestTotalsAreTheSameHoweverOftenTheyAreCounted: a counter that has settled most of
// the past agrees with one that counts from the beginning.
func TestTotalsAreTheSameHoweverOftenTheyAreCounted(t *testing.T) {
	t.Parallel()
	b, url := newOpenBench(t)
	pool := newPool(t, url)
	const day = 24 * time.Hour
	var kept store.Counter
	check := func(turns map[store.TurnKey]int64, approvals map[store.ApprovalKey]int64) store.Totals {
		t.Helper()
		var fresh store.Counter
		got, err := b.Count(t.Context(), thread.TeamID, &fresh)
		if err != nil {
			t.Fatal(err)
		}
		again, err := b.Count(t.Context(), thread.TeamID, &kept)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("counted anew and counted on (-anew +on):\n%s", diff)
		}
		if diff := cmp.Diff(turns, got.Turns); diff != "" {
			t.Errorf("turns (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(approvals, got.Approvals); diff != "" {
			t.Errorf("approvals (-want +got):\n%s", diff)
		}
		return got
	}
	if empty, err := b.Count(t.Context(), thread.TeamID, &store.Counter{}); err != nil || len(empty.Turns) != 0 || len(empty.Approvals) != 0 {
		t.Errorf("before anything: %+v, %v", empty, err)
	}

	b.endedTurns(t, pool, 3, "done", 40*day)
	b.endedTurns(t, pool, 2, "failed", 2*day)
	b.endedTurns(t, pool, 1, "running", 2*time.Hour)
	b.endedTurns(t, pool, 4, "interrupted", time.Minute)
	b.endedApproval(t, pool, "allowed", "button", 40*day, 500*time.Millisecond)
	b.endedApproval(t, pool, "denied", "button", 39*day, 2*time.Second) // on the bound
	b.endedApproval(t, pool, "allowed", "rule", 38*day, 0)
	b.endedApproval(t, pool, "expired", "", 20*day, day)
	b.endedApproval(t, pool, "allowed", "modal", 3*day, 25*time.Hour)
	pending := b.endedApproval(t, pool, "pending", "", 90*time.Minute, 0)
	b.endedApproval(t, pool, "allowed", "grant", 80*time.Minute, 0)
	b.endedApproval(t, pool, "allowed", "button", time.Minute, 45*time.Second)
	turns := map[store.TurnKey]int64{{Project: "web", State: "done"}: 3, {Project: "web", State: "failed"}: 2, {Project: "web", State: "interrupted"}: 4}
	approvals := map[store.ApprovalKey]int64{
		{Status: "allowed", Via: "button"}: 2, {Status: "denied", Via: "button"}: 1, {Status: "allowed", Via: "rule"}: 1,
		{Status: "allowed", Via: "grant"}: 1, {Status: "allowed", Via: "modal"}: 1, {Status: "expired"}: 1,
	}
	check(turns, approvals)
	got := check(turns, approvals)
	want := make([]int64, len(store.WaitBounds)+1)
	want[0], want[1], want[5], want[len(want)-1] = 1, 1, 1, 1
	if diff := cmp.Diff(want, got.Waits); diff != "" || got.WaitSeconds < 90_047.4 || got.WaitSeconds > 90_047.6 {
		t.Errorf("waits of %f s (-want +got):\n%s", got.WaitSeconds, diff)
	}

	// What had not ended when the counter passed it is counted when it ends.
	for _, sql := range []string{
		`UPDATE turns SET state = 'done', ended_at = now() WHERE state = 'running'`,
		`UPDATE approvals SET status = 'allowed', decided_by = 'U9', decided_via = 'command', decided_at = now() WHERE id = '` + pending + `'`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	turns[store.TurnKey{Project: "web", State: "done"}]++
	approvals[store.ApprovalKey{Status: "allowed", Via: "command"}]++
	check(turns, approvals)

	// Another team's are another team's.
	none, err := b.Count(t.Context(), "T2", &store.Counter{})
	if err != nil || len(none.Turns) != 0 || len(none.Approvals) != 0 {
		t.Errorf("another team: %+v, %v", none, err)
	}
}

func TestWaitingIsWhatNobodyHasDecidedOrTakenUp(t *testing.T) {
	t.Parallel()
	b, url := newOpenBench(t)
	pool := newPool(t, url)
	b.begin(t) // of the bench's own prompt
	b.prompt(t, "U2", "and this")
	b.endedApproval(t, pool, "pending", "", time.Hour, 0)
	b.endedApproval(t, pool, "pending", "", time.Minute, 0)
	b.endedApproval(t, pool, "allowed", "button", 2*time.Hour, time.Second)
	got, err := b.Waiting(t.Context(), thread.TeamID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Approvals != 2 || got.Inbox != 1 || got.Oldest < time.Hour || got.Oldest > 2*time.Hour {
		t.Errorf("waiting: %+v", got)
	}
	if got, err := b.Waiting(t.Context(), "T2"); err != nil || got != (store.Waiting{}) {
		t.Errorf("another team: %+v, %v", got, err)
	}
}

// TestChargedIsByTheDayInUTC, whatever day the workspace has booked it on.
func TestChargedIsByTheDayInUTC(t *testing.T) {
	t.Parallel()
	b, url := newOpenBench(t)
	pool := newPool(t, url)
	turn, _ := b.begin(t)
	insert := func(at, bookedOn, kind, model string, micro int64, contract *int64) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `
			INSERT INTO ledger (at, booked_on, kind, team_id, channel_id, thread_id, project, user_id, session_id, epoch, turn_id, cli_version, model,
				input_tokens, output_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, web_searches, micro_usd, contract_micro_usd, total_before, total_after)
			VALUES ($1::timestamptz, $2::date, $3, $4, (SELECT channel_id FROM threads WHERE id = $5), $5, 'web', 'U1', $6, $7, $8, 'v', $9, 0, 0, 0, 0, 0, 0, $10::bigint, $11, 0, $10::bigint)`,
			at, bookedOn, kind, thread.TeamID, b.thread.ID, b.session, b.epoch, turn.ID, model, micro, contract); err != nil {
			t.Fatal(err)
		}
	}
	contract := int64(3)
	insert("2026-09-30T23:59:59.999999Z", "2026-10-01", "turn", "opus", 1, nil) // of Auckland's October
	insert("2026-10-01T00:00:00Z", "2026-09-30", "turn", "opus", 10, &contract) // of Honolulu's September
	insert("2026-10-01T12:00:00Z", "2026-10-01", "estimate", "opus", 100, nil)
	insert("2026-10-01T12:00:00Z", "2026-10-02", "turn", "haiku", 1000, nil)
	insert("2026-10-31T23:59:59Z", "2026-11-01", "turn", "opus", 10_000, nil)
	insert("2026-11-01T00:00:00Z", "2026-10-31", "turn", "opus", 100_000, nil)
	from := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	got, err := b.Charged(t.Context(), thread.TeamID, from, from.AddDate(0, 1, 0))
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.Charged{
		{Day: "2026-10-01", Model: "haiku", Entries: 1, MicroUSD: 1000, Unpriced: 1},
		{Day: "2026-10-01", Model: "opus", Entries: 2, MicroUSD: 110, ContractMicroUSD: 3, Unpriced: 1, EstimatedMicroUSD: 100},
		{Day: "2026-10-31", Model: "opus", Entries: 1, MicroUSD: 10_000, Unpriced: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("charged (-want +got):\n%s", diff)
	}
	teams, err := b.Teams(t.Context())
	if diff := cmp.Diff([]string{thread.TeamID}, teams); err != nil || diff != "" {
		t.Errorf("teams: %v\n%s", err, diff)
	}
	spend, err := b.Spend(t.Context(), thread.TeamID)
	if diff := cmp.Diff([]ledger.Spend{{Project: "web", Model: "haiku", MicroUSD: 1000}, {Project: "web", Model: "opus", MicroUSD: 110_111, ContractMicroUSD: 3}}, spend); err != nil || diff != "" {
		t.Errorf("spend: %v\n%s", err, diff)
	}
}
