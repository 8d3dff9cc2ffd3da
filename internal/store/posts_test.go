package store_test

import (
	"fmt"
	"testing"
	"time"

	"deckhand/internal/store/outbox"
)

func TestWhoHasWrittenBelowATurn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, _ := b.begin(t)
	at := func(micros int64) time.Time { return time.UnixMicro(100_000_000 + micros) }
	wrote := func(want bool, from, to int64) {
		t.Helper()
		got, err := b.WroteBelow(t.Context(), thread, turn.ID, at(from), at(to))
		if err != nil || got != want {
			t.Errorf("from %d to %d: %v, %v, want %v", from, to, got, err, want)
		}
	}
	b.prompt(t, "U2", "and then?") // 100.000002
	wrote(false, 0, 1_000_000)     // nothing stands there
	for page, ts := range []string{"100.000001", "100.000003"} {
		if err := b.SavePosts(t.Context(), outbox.PostedMessage{Kind: outbox.TurnPost, Subject: fmt.Sprint(turn.ID), Part: page, ChannelID: "C1", TS: ts}); err != nil {
			t.Fatal(err)
		}
	}
	wrote(false, 0, 1_000_000) // they wrote above the newest
	b.posts++
	b.prompt(t, "U2", "well?") // 100.000004
	wrote(true, 0, 1_000_000)
	wrote(true, 2, 4)
	wrote(false, 3, 1_000_000) // it was posted before
	wrote(false, 0, 3)         // its answer had begun
	other := thread
	other.ThreadTS = "99.000001"
	if got, err := b.WroteBelow(t.Context(), other, turn.ID, at(0), at(4)); got || err != nil {
		t.Errorf("in another thread: %v, %v", got, err)
	}
}

// TestThePlaceOfAThreadThatAnotherReplicaHolds: the message was taken over, so a replica that
// has ended it late does not forget it.
func TestThePlaceOfAThreadThatAnotherReplicaHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := outbox.PostedMessage{Kind: outbox.PlacePost, Subject: fmt.Sprint(b.thread.ID), ChannelID: "C1", TS: "2.000000"}
	if err := b.SavePosts(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		by   string
		left int
	}{{"another", 1}, {b.lease.Owner, 0}} {
		if err := b.ForgetPost(t.Context(), p, c.by); err != nil {
			t.Fatal(err)
		}
		if posts, err := b.Posts(t.Context(), p.Kind, p.Subject); err != nil || len(posts) != c.left {
			t.Errorf("forgotten by %s: %d messages are left, want %d, %v", c.by, len(posts), c.left, err)
		}
	}
}
