package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/work"
)

// Old work is listed, looked at in turns, told of once, and deleted by its holder alone.
func TestOldWork(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	var ls []*life
	for n := range 3 {
		l, err := newLife(ctx, s, n)
		if err != nil {
			t.Fatal(err)
		}
		w := work.Work{Branch: strings.Repeat("a", 40), Packs: []uuid.UUID{uuid.New()}, Bytes: 4, SavedAt: time.Now()}
		if err := s.KeepWork(ctx, l.lease, w, strings.NewReader("pack")); err != nil {
			t.Fatal(err)
		}
		ls = append(ls, l)
	}
	later := time.Now().Add(time.Hour)
	old := func(what string, since time.Time, want ...*life) {
		t.Helper()
		ids, err := s.OldWork(ctx, since, 2)
		var are []int64
		for _, l := range want {
			are = append(are, l.thread)
		}
		if err != nil || !slices.Equal(ids, are) {
			t.Errorf("%s: threads %v have old work, %v; want %v", what, ids, err, are)
		}
	}
	old("all are held", later)
	for _, l := range ls[:2] {
		if err := s.ReleaseLease(ctx, l.lease, false); err != nil {
			t.Fatal(err)
		}
	}
	old("two are not", later, ls[0], ls[1])
	old("nothing is that old", time.Now().Add(-time.Hour))
	// A lease that was never handed back, of a replica that is dead.
	storetest.Exec(t, url, `UPDATE replicas SET alive = false`)
	old("all are nobody's", later, ls[0], ls[1])
	if n, err := s.RestingThreads(ctx, []int64{ls[2].thread}); err != nil || len(n) != 0 {
		t.Errorf("its turn runs: %v, %v", n, err)
	}
	storetest.Exec(t, url, `UPDATE replicas SET alive = true`)
	for _, l := range ls[:2] {
		if err := l.takeOver(ctx, "replica-1"); err != nil {
			t.Fatal(err)
		}
	}
	leave := func(sentence string, want int) {
		t.Helper()
		if said, err := s.LeaveWork(ctx, ls[0].lease, sentence); err != nil || len(said) != want {
			t.Errorf("%d words, %v; want %d", len(said), err, want)
		}
	}
	leave("", 0)
	leave("it stays", 1)
	leave("it stays", 0)
	if err := errors.Join(s.ReleaseLease(ctx, ls[0].lease, false), s.ReleaseLease(ctx, ls[1].lease, false)); err != nil {
		t.Fatal(err)
	}
	old("one was looked at", later, ls[1], ls[0])
	if err := s.ForgetWork(ctx, ls[1].lease); !errors.Is(err, threads.ErrFenced) {
		t.Errorf("by one that holds it no more: %v", err)
	}
	if err := s.ForgetWork(ctx, ls[2].lease); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Work(ctx, ls[2].thread, ""); !errors.Is(err, pg.ErrNotFound) {
		t.Errorf("it was deleted: %v", err)
	}
	if n := count(t, url, `SELECT count(*) FROM work_packs`); n != 2 {
		t.Errorf("%d pieces are left", n)
	}
	// Pieces of packs that were cut.
	storetest.Exec(t, url, `INSERT INTO work_packs (thread_id, pack, part, data) SELECT id, gen_random_uuid(), 0, '' FROM threads`)
	if n, err := s.SweepPacks(ctx); n != 2 || err != nil {
		t.Errorf("swept %d threads, %v", n, err)
	}
	if n, err := s.SweepPacks(ctx); n != 0 || err != nil {
		t.Errorf("swept %d threads again, %v", n, err)
	}
	if n := count(t, url, `SELECT count(*) FROM work_packs`); n != 3 { // of two that are kept, and one that is being written
		t.Errorf("%d pieces are left", n)
	}
}
