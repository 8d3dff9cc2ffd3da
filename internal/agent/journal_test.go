package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store/audit"
)

// slowAudit takes a while, and does not do what was cut.
type slowAudit struct {
	takes   time.Duration
	written [][]audit.Entry
	cut     int
}

func (a *slowAudit) Audit(ctx context.Context, entries ...audit.Entry) error {
	select {
	case <-ctx.Done():
		a.cut++
		return ctx.Err()
	case <-time.After(a.takes):
		a.written = append(a.written, entries)
		return nil
	}
}

// TestAJournalIsWrittenToItsEnd: what is being written when a session stops is written
// once, with what came meanwhile after it, and a database that is away holds nobody up.
func TestAJournalIsWrittenToItsEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		takes        time.Duration // a write
		written, cut int
	}{
		{2 * time.Second, 2, 0},
		{time.Hour, 0, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			db := &slowAudit{takes: tt.takes}
			j := newJournal(db, zap.NewNop(), func() []string { return []string{"c0ffee"} })
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				j.run(ctx)
			}()
			entry := audit.Entry{Kind: audit.ToolResult, Details: map[string]any{}}
			j.add(entry)
			synctest.Wait() // it is being written
			j.add(entry)
			began := time.Now()
			stop()
			<-done
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%v: it took %v to stop", tt.takes, took)
			}
			if len(db.written) != tt.written || db.cut != tt.cut {
				t.Errorf("%v: written %v, cut %d times", tt.takes, db.written, db.cut)
			}
			for _, entries := range db.written {
				if len(entries) != 1 || len(entries[0].Details) != 0 {
					t.Errorf("%v: %v", tt.takes, entries) // no commit was made
				}
			}
		})
	}
}
