package slackui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"deckhand/internal/chat/view"
	"deckhand/internal/playground/slack"
	"deckhand/internal/store/storetest"
)

// TestALargeHome: with 300 threads, 100 requests, long and dangerous ones among them, and 40
// grants a tab is within Slack's limits, and is built without a query for each.
func TestALargeHome(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	storetest.Exec(t, m.url, fmt.Sprintf(`
		SET session_replication_role = replica; -- what is checked by triggers holds
		INSERT INTO threads (team_id, channel_id, thread_ts, project, owner_id, title) SELECT '%[1]s', '%[2]s', '1700000000.' || lpad(n::text, 6, '0'), 'web', 'U0ASKED', 'thread ' || n FROM generate_series(1, 300) n;
		INSERT INTO sessions (id, thread_id, started) SELECT gen_random_uuid(), id, true FROM threads;
		UPDATE threads t SET session_id = s.id FROM sessions s WHERE s.thread_id = t.id;
		INSERT INTO epochs (session_id, epoch, cli_version, baseline_micro_usd) SELECT id, 1, '2.1.329', 0 FROM sessions;
		INSERT INTO turns (thread_id, session_id, epoch, lease_epoch, requested_by, state) SELECT id, session_id, 1, 1, owner_id, 'running' FROM threads;
		INSERT INTO approvals (id, thread_id, session_id, turn_id, kind, request_id, tool_use_id, tool_name, input, input_sha256, requested_by, rule, card_id, status, dangerous, expires_at)
			SELECT 'A' || u.id || '0ABCDEFGHIJKLMNOPQRS', u.thread_id, u.session_id, u.id, 'tool', 'r' || u.id, 't' || u.id, 'Bash', long.input, sha256(convert_to(long.input, 'UTF8')), u.requested_by, 'ask', 'A' || u.id, 'pending', u.id %% 2 = 0, now() + interval '1 day'
			FROM turns u, (SELECT '{"command":"' || repeat('rm -rf build; ', 300) || '"}' AS input) long ORDER BY u.id LIMIT 100;
		INSERT INTO grants (team_id, project, scope, channel_id, tool_name, pattern, approval_id, created_by, expires_at)
			SELECT '%[1]s', 'web', 'channel', '%[2]s', 'Bash', 'Bash(go test ./' || n || ' *)', (SELECT min(id) FROM approvals), '%[3]s', now() + interval '1 day' FROM generate_series(1, 40) n;
		SET session_replication_role = DEFAULT`, slack.TeamID, slack.ChannelEngineering, slack.UserAda))
	_ = m.tab(slack.UserAda, view.HomeChoice{All: true}) // whom Slack tells of is known then
	began := time.Now()
	tab := m.tab(slack.UserAda, view.HomeChoice{All: true})
	took := time.Since(began)
	var view struct {
		Blocks []struct {
			Type string `json:"type"`
		} `json:"blocks"`
	}
	if err := json.Unmarshal([]byte(tab), &view); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d blocks, %d kB, built in %s", len(view.Blocks), len(tab)>>10, took)
	if n := len(view.Blocks); n > 100 || n < 40 {
		t.Errorf("%d blocks", n)
	}
	for _, want := range []string{"… and 94 more. They move up", "… and 25 more rules", "Earlier threads"} {
		if !strings.Contains(tab, want) {
			t.Errorf("no %q on the tab", want)
		}
	}
	if outcome := m.act(m.event(object{"type": "app_home_opened", "user": slack.UserAda, "channel": "D0ANY", "tab": "home"})); outcome != "home" {
		t.Errorf("opened: %s", outcome)
	}
}
