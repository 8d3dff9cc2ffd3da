package store_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/work"
)

// What is kept of a thread's work is what its holder has said last, whole; whoever has lost
// the lease changes nothing, not even after it has written all of a pack.
func TestWork(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	l, err := newLife(ctx, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Work(ctx, l.thread, ""); !errors.Is(err, pg.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	a, b := strings.Repeat("a", 40), strings.Repeat("b", 40)
	first, second, third := uuid.New(), uuid.New(), uuid.New()
	at := time.Now().UTC().Truncate(time.Second)
	big := bytes.Repeat([]byte("0123456789abcdef"), 160<<10) // two pieces and a half
	w := work.Work{ThreadID: l.thread, Branch: a, Packs: []uuid.UUID{first}, Bytes: int64(len(big)), LeftOut: "x (too large)", SavedAt: at}
	check := func(what string, want work.Work, packs map[uuid.UUID][]byte) {
		t.Helper()
		got, err := s.Work(ctx, l.thread, "")
		got.SavedAt = got.SavedAt.UTC()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got): %v\n%s", what, err, diff)
		}
		for _, id := range []uuid.UUID{first, second, third} {
			var is bytes.Buffer
			err := s.ReadPack(ctx, l.thread, id, &is)
			if want, ok := packs[id]; ok != (err == nil) || !bytes.Equal(is.Bytes(), want) {
				t.Errorf("%s: pack %s has %d bytes, %v", what, id, is.Len(), err)
			}
		}
	}
	if err := s.KeepWork(ctx, l.lease, w, bytes.NewReader(big)); err != nil {
		t.Fatal(err)
	}
	check("at first", w, map[uuid.UUID][]byte{first: big})
	w.Saved, w.Packs, w.LeftOut = b, []uuid.UUID{first, second}, ""
	if err := s.KeepWork(ctx, l.lease, w, strings.NewReader("more")); err != nil {
		t.Fatal(err)
	}
	both := map[uuid.UUID][]byte{first: big, second: []byte("more")}
	check("more", w, both)
	// What is kept of another repository is its own.
	further := work.Work{ThreadID: l.thread, Repository: "lib", Branch: b, Packs: []uuid.UUID{uuid.New()}, Bytes: 4, SavedAt: at}
	if err := s.KeepWork(ctx, l.lease, further, strings.NewReader("else")); err != nil {
		t.Fatal(err)
	}
	check("beside another repository", w, both)
	for range 2 {
		further.Packs, further.SavedAt = []uuid.UUID{}, at.Add(-time.Hour)
		if err := s.KeepWork(ctx, l.lease, further, nil); err != nil {
			t.Fatal(err)
		}
	}
	check("beside another repository with less", w, both)
	if names, err := s.WorkRepositories(ctx, l.thread); err != nil || !slices.Equal(slices.Sorted(slices.Values(names)), []string{"", "lib"}) {
		t.Errorf("there is work in %q, %v", names, err)
	}
	if ids, err := s.OldWork(ctx, time.Now().Add(time.Hour), 10); err != nil || len(ids) > 1 {
		t.Errorf("old is the work of %v, %v", ids, err)
	}
	// A reader that fails, and a holder that is one no more.
	other := w
	other.Branch, other.Packs = b, []uuid.UUID{uuid.New()}
	if err := s.KeepWork(ctx, l.lease, other, io.MultiReader(bytes.NewReader(big), failing{})); err == nil {
		t.Error("half a pack is kept")
	}
	check("after half a pack", w, both)
	late := l.lease
	if err := errors.Join(s.ReleaseLease(ctx, late, false), l.takeOver(ctx, "replica-2")); err != nil {
		t.Fatal(err)
	}
	other.Packs = []uuid.UUID{uuid.New()}
	if err := s.KeepWork(ctx, late, other, bytes.NewReader(big)); !errors.Is(err, threads.ErrFenced) {
		t.Errorf("too late: %v", err)
	}
	check("after one that was late", w, both)
	// All in one, and nothing.
	other.Packs = []uuid.UUID{third}
	if err := s.KeepWork(ctx, l.lease, other, strings.NewReader("all")); err != nil {
		t.Fatal(err)
	}
	check("all in one", other, map[uuid.UUID][]byte{third: []byte("all")})
	other.Packs = []uuid.UUID{}
	if err := s.KeepWork(ctx, l.lease, other, nil); err != nil {
		t.Fatal(err)
	}
	check("the forge has it all", other, nil)
	if n := count(t, url, `SELECT count(*) FROM work_packs`); n != 0 {
		t.Errorf("%d pieces of packs that were cut are left", n)
	}
}

// A thread rests while nothing of it is to be done.
func TestRestingThreads(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	a := storetest.Asked(t, s, time.Hour)
	check := func(what string, rests bool) {
		t.Helper()
		since, err := s.RestingThreads(ctx, []int64{a.ThreadID, a.ThreadID + 1})
		if at, ok := since[a.ThreadID]; err != nil || ok != rests || ok && time.Since(at) > time.Hour || len(since) > 1 {
			t.Errorf("%s: %v, %v", what, since, err)
		}
	}
	check("a turn runs", false)
	l := threads.Lease{ThreadID: a.ThreadID, Owner: "replica-1", Epoch: 1}
	if _, _, err := s.FinishTurn(ctx, l, store.FinishedTurn{ID: a.TurnID, State: "done", Approvals: approvals.Interrupted}); err != nil {
		t.Fatal(err)
	}
	check("it is held", false)
	if err := s.ReleaseLease(ctx, l, true); err != nil {
		t.Fatal(err)
	}
	check("nothing is to be done", true)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// count is the number that a query gives.
func count(t *testing.T, url, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // it only reads
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
