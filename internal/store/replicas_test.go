package store_test

import (
	"testing"

	"deckhand/internal/store/storetest"
)

// A process that is frozen in the middle of a transaction holds no row for ever: whoever
// takes its threads over gets them, and it commits nothing later.
func TestAFrozenTransactionHoldsNothingUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	end, err := b.Frozen(t.Context(), `SELECT FROM threads WHERE id = $1 FOR UPDATE`, b.thread.ID)
	if err != nil {
		t.Fatal(err)
	}
	peers, err := b.Living(t.Context())
	if err != nil || len(peers) != 1 {
		t.Fatalf("living: %+v, %v", peers, err)
	}
	if dead, err := b.MarkDead(t.Context(), peers[0]); err != nil || !dead {
		t.Fatalf("bury: %v, %v", dead, err)
	}
	if err := end(); err == nil {
		t.Error("it was committed all the same")
	}
	if _, free, err := storetest.Acquire(t.Context(), b, b.thread.ID, "replica-2"); err != nil || !free {
		t.Errorf("its thread: free %v, %v", free, err)
	}
}
