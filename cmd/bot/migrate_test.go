package main

import (
	"strings"
	"testing"
	"time"

	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
)

// TestMigrateDownLosesNothingUnnamed: what goes is counted and has to be named, and the
// audit knows afterwards.
func TestMigrateDownLosesNothingUnnamed(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	database := []string{"DATABASE_URL=" + url}
	storetest.Asked(t, storetest.Open(t, url, store.Options{}), time.Hour)
	step := func(code int, out, errOut string, args ...string) {
		t.Helper()
		gotOut, gotErr, got := program(t, database, append([]string{"migrate"}, args...)...)
		if got != code || !strings.Contains(gotOut, out) || !strings.Contains(gotErr, errOut) {
			t.Errorf("migrate %v: exit code %d, want %d\n%s%s", args, got, code, gotOut, gotErr)
		}
	}
	step(0, "00004  00004_river.go  ", "", "status")
	step(2, "", "unknown flag: --lose", "up", "--lose", "audit")
	for _, m := range []string{"00037_trust", "00036_mcp_tools", "00035_bindings", "00034_forks", "00033_mcp", "00032_merging", "00031_diffs", "00030_branches", "00029_connections", "00028_steering", "00027_pulls", "00026_posts", "00025_pushes", "00024_said", "00023_feedback", "00022_changed_inputs", "00021_files", "00020_titles", "00019_urgent_by", "00018_card_copies", "00017_replicas", "00016_retention", "00015_looks"} {
		step(0, "reverted "+m[:5]+"  "+m+".sql", "", "down")
	}
	step(0, "reverted 00014  00014_replicas.sql", "", "down", "--lose", "replicas")
	for _, m := range []string{"00013_work", "00012_transcripts", "00011_rests", "00010_inbox"} {
		step(0, "reverted "+m[:5]+"  "+m+".sql", "", "down")
	}
	step(1, "  outbox\n", "--lose outbox", "down")
	step(0, "reverted 00009  00009_outbox.sql", "", "down", "--lose", "outbox")
	step(0, "reverted 00008  00008_waits.sql", "", "down")
	step(0, "reverted 00007  00007_meter.sql", "", "down")
	step(0, "reverted 00006  00006_budgets.sql", "", "down")
	step(1, "", "--lose: 00005_rollups.sql deletes no rows of ledger", "down", "--lose", "ledger")
	step(0, "reverted 00005  00005_rollups.sql", "", "down")
	step(1, "  river_job\n", "--lose river_job", "down")
	step(0, "reverted 00004  00004_river.go", "", "down", "--lose", "river_job")
	step(1, "00003_audit.sql would delete:\n           3  audit\n", "bot migrate down --lose audit", "down")
	step(0, "reverted 00003  00003_audit.sql", "", "down", "--lose", "audit")
	step(0, "applied 00037", "", "up")
	out, errOut, code := program(t, database, "audit", "verify")
	if code != 1 || !strings.Contains(out, "the audit is empty, and there are 1 turns, 1 approvals and 0 ledger entries") ||
		!strings.Contains(out, "its table was made again") || !strings.Contains(errOut, "cannot be trusted") {
		t.Errorf("audit verify: exit code %d\n%s%s", code, out, errOut)
	}
}
