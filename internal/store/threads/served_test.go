package threads_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// A thread is served from the moment in which what opens it is accepted, and about to be
// before that. One whose only prompt is taken back while it waits for a session waits for none, once
// nobody holds it.
func TestWhenAThreadIsServed(t *testing.T) {
	t.Parallel()
	s, ctx := storetest.New(t), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key := threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: "1.000000"}
	id, _, err := s.Receive(ctx, inbox.Envelope{EventID: uuid.NewString(), Kind: inbox.Message, TeamID: "T1", ChannelID: "C1", ThreadTS: key.ThreadTS, TS: key.ThreadTS, UserID: "U1", Payload: json.RawMessage(`{}`)})
	must(err)
	concerns := func(ts string, served, begins bool) {
		t.Helper()
		if a, b, err := s.Concerns(ctx, key, ts); err != nil || a != served || b != begins {
			t.Errorf("a reply at %s: served %t, begins %t, %v", ts, a, b, err)
		}
	}
	concerns("0.500000", false, false)
	concerns("1.500000", false, true)
	thread, _, err := s.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go"})
	must(err)
	concerns("1.500000", true, false)
	concerns("0.500000", false, false)
	must(s.SavePosts(ctx, outbox.PostedMessage{Kind: outbox.PlacePost, Subject: fmt.Sprint(thread.ID), ChannelID: "C1", TS: "2.000000"}))
	stale := func(team string) (keys []threads.ThreadKey) {
		t.Helper()
		out, err := s.StalePlaces(ctx, team)
		must(err)
		for _, th := range out {
			keys = append(keys, th.Key())
		}
		return keys
	}
	if got := stale("T1"); len(got) > 0 {
		t.Errorf("while it waits: %v", got)
	}
	thread, _, err = storetest.Acquire(ctx, s, thread.ID, "replica-1")
	must(err)
	if ok, _, err := s.DropWaiting(ctx, id, "U1", "stopped", ""); err != nil || !ok {
		t.Fatalf("the prompt is not dropped: %v", err)
	}
	if got := stale("T1"); len(got) > 0 {
		t.Errorf("while somebody holds it: %v", got)
	}
	must(s.ReleaseLease(ctx, threads.Lease{ThreadID: thread.ID, Owner: "replica-1", Epoch: thread.LeaseEpoch}, false))
	if got := stale("T1"); !slices.Equal(got, []threads.ThreadKey{key}) {
		t.Errorf("then: %v", got)
	}
	if got := stale("T2"); len(got) > 0 {
		t.Errorf("of another team: %v", got)
	}
}
