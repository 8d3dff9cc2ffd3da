package store_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
)

// TestADigestRunsOnce: two replicas schedule it, and either may run it; a replica that
// does not know it leaves it to the other.
func TestADigestRunsOnce(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	due := time.Now().Add(-time.Minute).Truncate(time.Second)
	want := store.DigestDue{Digest: "every day", Due: due.UTC(), Attempt: 1}
	var mu sync.Mutex
	var ran []store.DigestDue
	done := make(chan struct{}, 10)
	var replicas []*store.Store
	for range 2 {
		s, err := store.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		for range 2 {
			if err := s.ScheduleDigest(t.Context(), store.DigestDue{Digest: want.Digest, Due: due}); err != nil {
				t.Fatal(err)
			}
		}
		s.HandleDigests(func(_ context.Context, d store.DigestDue) error {
			mu.Lock()
			defer mu.Unlock()
			ran = append(ran, d)
			done <- struct{}{}
			return nil
		})
		replicas = append(replicas, s)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, s := range replicas {
		running.Go(func() {
			if err := s.RunJobs(ctx, slog.New(slog.DiscardHandler), store.Jobs{}); err != nil {
				t.Error(err)
			}
		})
	}
	<-done
	// What has run is known, so that it is not scheduled anew.
	if err := replicas[1].ScheduleDigest(t.Context(), store.DigestDue{Digest: want.Digest, Due: due}); err != nil {
		t.Error(err)
	}
	// A later one is another; once it has run, a second run of the first would have too.
	if err := replicas[0].ScheduleDigest(t.Context(), store.DigestDue{Digest: want.Digest, Due: due.Add(time.Second)}); err != nil {
		t.Error(err)
	}
	<-done
	stop()
	running.Wait()
	next := want
	next.Due = next.Due.Add(time.Second)
	if diff := cmp.Diff([]store.DigestDue{want, next}, ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
}
