package main

import (
	"path/filepath"
	"slices"
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
	steps, err := filepath.Glob("../../migrations/000*.sql") // in their order
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range slices.Backward(steps[slices.Index(steps, "../../migrations/00015_looks.sql"):]) {
		name := filepath.Base(m)
		step(0, "reverted "+name[:5]+"  "+name, "", "down")
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
	step(0, "applied "+filepath.Base(steps[len(steps)-1])[:5], "", "up")
	out, errOut, code := program(t, database, "audit", "verify")
	if code != 1 || !strings.Contains(out, "the audit is empty, and there are 1 turns, 1 approvals and 0 ledger entries") ||
		!strings.Contains(out, "its table was made again") || !strings.Contains(errOut, "cannot be trusted") {
		t.Errorf("audit verify: exit code %d\n%s%s", code, out, errOut)
	}
}
