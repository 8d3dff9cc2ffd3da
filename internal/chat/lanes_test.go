package chat

import (
	"sync"
	"testing"
)

func TestLanesKeepOrderWithinAKey(t *testing.T) {
	t.Parallel()
	var l lanes
	var mu sync.Mutex
	var got []int
	var wg sync.WaitGroup
	for i := range 100 {
		enter, leave := l.reserve("a")
		wg.Go(func() {
			defer leave()
			enter()
			mu.Lock()
			defer mu.Unlock()
			got = append(got, i)
		})
	}
	wg.Wait()
	for i, v := range got {
		if i != v {
			t.Fatalf("out of order: %v", got)
		}
	}
	if len(l.tails) != 0 {
		t.Errorf("%d lanes are left", len(l.tails))
	}
}
