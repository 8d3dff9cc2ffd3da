package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/work"
)

// TestForks: one of an ended turn alone, once, without leave, budget or lease of the other thread,
// and it knows whose branch the work that it begins with was on: also where that is the work of a
// thread two forks before.
func TestForks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	l, err := newLife(ctx, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(ctx) //nolint:errcheck // the test ends
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fork := func(from int64, ts string) (threads.Thread, error) {
		return s.Fork(ctx, store.Fork{From: from, Key: threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: ts}, By: "U2", SessionID: uuid.NewString(), Title: "go"})
	}
	must(s.SetBranch(ctx, l.lease, fmt.Sprintf("deckhand/%d-go-2", l.thread)))
	must(s.SetWorkspace(ctx, l.lease, "/w"))
	if _, err := fork(l.thread, "2.1"); !errors.Is(err, pg.ErrNotYet) {
		t.Errorf("while a turn runs: %v", err)
	}
	exec(`UPDATE turns SET state = 'done', ended_at = now() WHERE thread_id = $1`, l.thread)
	if _, err := fork(l.thread, "2.1"); !errors.Is(err, store.ErrNothingKept) {
		t.Errorf("without a conversation: %v", err)
	}
	sum := sha256.Sum256(nil)
	exec(`INSERT INTO transcripts (thread_id, session_id, bytes, sha256, lease_epoch) VALUES ($1, $2, 0, $3, 1)`, l.thread, l.session, sum[:])
	must(s.KeepWork(ctx, l.lease, work.Work{ThreadID: l.thread, SavedAt: time.Now()}, nil))
	first, err := s.ThreadByID(ctx, l.thread)
	must(err)
	second, err := fork(l.thread, "2.1")
	must(err)
	if again, err := fork(l.thread, "2.1"); err != nil || again != second {
		t.Errorf("again it is %+v, %v", again, err)
	}
	if second.ForkedBranch != first.Branch || second.LeaseOwner != "" || second.Workspace != "" || second.OwnerID != "U2" || second.SessionID == first.SessionID {
		t.Errorf("%+v is forked from %+v", second, first)
	}
	// It takes another name before it has a folder, and saves nothing.
	th, ok, err := storetest.Acquire(ctx, s, second.ID, "replica-1")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	lease := threads.Lease{ThreadID: second.ID, Owner: "replica-1", Epoch: th.LeaseEpoch}
	must(s.SetBranch(ctx, lease, second.Branch+"-2"))
	if second, err = s.ThreadByID(ctx, second.ID); err != nil || second.ForkedBranch != first.Branch {
		t.Errorf("of another name it is forked from %q, not %q: %v", second.ForkedBranch, first.Branch, err)
	}
	third, err := fork(second.ID, "3.1")
	must(err)
	if third.ForkedBranch != first.Branch {
		t.Errorf("the work was on %q, not %q", first.Branch, third.ForkedBranch)
	}
	must(s.KeepWork(ctx, lease, work.Work{ThreadID: second.ID, SavedAt: time.Now()}, nil))
	fourth, err := fork(second.ID, "4.1")
	must(err)
	if fourth.ForkedBranch != second.Branch {
		t.Errorf("the work was on %q, not %q", second.Branch, fourth.ForkedBranch)
	}
}
