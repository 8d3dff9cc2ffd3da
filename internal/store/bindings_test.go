package store_test

import (
	"sync"
	"testing"

	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// TestTwoAdminsSetAChannelUpAtOnce: one of them is the last, and the audit has both, each with
// what was before.
func TestTwoAdminsSetAChannelUpAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.URL(t), store.Options{})
	var both sync.WaitGroup
	for _, project := range []string{"web", "api"} {
		both.Go(func() {
			if _, err := s.Bind(t.Context(), "T1", threads.Binding{ChannelID: "C1", Project: project, BoundBy: "UADA"}); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	all, err := s.Bindings(t.Context(), "T1")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	was, err := s.Bind(t.Context(), "T1", threads.Binding{ChannelID: "C1", BoundBy: "UADA"})
	if err != nil || was != all[0].Project {
		t.Errorf("before it ended it was %q, want %q: %v", was, all[0].Project, err)
	}
	if all, err := s.Bindings(t.Context(), "T1"); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
}
