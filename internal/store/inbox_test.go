package store_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
)

// arrive has a post of U1 arrive in the bench's thread, which holder acts on.
func (b *bench) arrive(t *testing.T, ts string) int64 {
	t.Helper()
	id, fresh, err := b.Receive(t.Context(), inbox.Envelope{
		EventID: "Ev" + ts, Kind: inbox.Message, TeamID: thread.TeamID, ChannelID: thread.ChannelID, ThreadTS: thread.ThreadTS,
		TS: ts, UserID: "U1", Payload: json.RawMessage(`{"text":"a\u0000b"}`), Holder: "A",
	})
	if err != nil || !fresh {
		t.Fatalf("Receive: fresh=%v err=%v", fresh, err)
	}
	return id
}

func (b *bench) accept(t *testing.T, id int64, edits int) error {
	t.Helper()
	_, ok, err := b.AcceptPrompt(t.Context(), inbox.NewPrompt{InboxID: id, Thread: thread, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "text", Edits: edits})
	if err == nil && !ok {
		t.Fatal("it was dealt with already")
	}
	return err
}

// next is the prompt that the thread's next turn is for; 0 for none.
func (b *bench) next(t *testing.T) int64 {
	t.Helper()
	p, err := b.NextPrompt(t.Context(), b.thread.ID)
	if err != nil && !errors.Is(err, pg.ErrNotFound) {
		t.Fatal(err)
	}
	return p.InboxID
}

func TestWhatIsPutOffHoldsUpItsThread(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.begin(t)
	first, second := b.arrive(t, "200.1"), b.arrive(t, "200.2")
	if err := b.PutOff(t.Context(), first, time.Hour, "no answer", true, true); err != nil {
		t.Fatal(err)
	}
	if err := b.accept(t, second, 0); !errors.Is(err, pg.ErrNotYet) {
		t.Errorf("the second, while the first waits: %v", err)
	}
	if got, err := b.Due(t.Context(), "B", 10); err != nil || len(got) != 0 {
		t.Errorf("due = %v, %v", got, err)
	}
	if err := b.PutOff(t.Context(), first, -time.Second, "no answer", true, false); err != nil {
		t.Fatal(err)
	}
	got, err := b.Due(t.Context(), "B", 10)
	if err != nil || len(got) != 1 || got[0].ID != first || got[0].Attempts != 2 || !got[0].Marked || got[0].WaitsSince.IsZero() {
		t.Errorf("due = %+v, %v", got, err)
	}
	for _, id := range []int64{first, second} {
		if err := b.accept(t, id, 0); err != nil {
			t.Error(err)
		}
	}
	if got := b.next(t); got != first {
		t.Errorf("%d is next, want %d", got, first)
	}
}

func TestAPostIsChangedUntilItIsBegun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	post := inbox.Post{TeamID: thread.TeamID, ChannelID: thread.ChannelID, TS: "200.1", UserID: "U1"}
	edit := func(p inbox.Post, text string) bool {
		t.Helper()
		ok, err := b.Edit(t.Context(), p, func(json.RawMessage) (json.RawMessage, bool, error) {
			return json.RawMessage(`"` + text + `"`), text != "", nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	b.begin(t)
	id := b.arrive(t, "200.1")
	if !edit(post, "one") || b.accept(t, id, 0) == nil {
		t.Error("what was read before the change is accepted after it")
	}
	if err := b.accept(t, id, 1); err != nil || b.next(t) != id {
		t.Fatal(err)
	}
	stranger := post
	stranger.UserID = "U2"
	if edit(post, "") || edit(stranger, "two") || b.next(t) != id {
		t.Error("it was changed by nothing, or by another")
	}
	if !edit(post, "two") || b.next(t) != 0 {
		t.Error("a prompt was not received again")
	}
	got, err := b.Due(t.Context(), "B", 10)
	if err != nil || len(got) != 1 || got[0].Edits != 2 || string(got[0].Payload) != `"two"` {
		t.Fatalf("due = %+v, %v", got, err)
	}
	if err := b.accept(t, id, 2); err != nil {
		t.Fatal(err)
	}
	if ok, _, err := b.Delete(t.Context(), stranger); ok || err != nil {
		t.Error("another deleted it", err)
	}
	if ok, _, err := b.Delete(t.Context(), post); !ok || err != nil || b.next(t) != 0 {
		t.Error("it was not deleted", err)
	}
	begun := inbox.Post{TeamID: thread.TeamID, ChannelID: thread.ChannelID, TS: "100.000001", UserID: "U1"}
	if ok, _, err := b.Delete(t.Context(), begun); ok || err != nil || edit(begun, "three") {
		t.Error("what runs was changed", err)
	}
}

func TestAPromptIsSentNow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, running := b.begin(t)
	ids := []int64{b.arrive(t, "200.1"), b.arrive(t, "200.2"), b.arrive(t, "200.3")}
	for _, id := range ids {
		if err := b.accept(t, id, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []int64{ids[2], ids[1], ids[2]} {
		if ok, err := b.SendNow(t.Context(), id, "U2"); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	p, err := b.NextPrompt(t.Context(), b.thread.ID)
	if err != nil || p.InboxID != ids[2] || p.UrgentBy != "U2" || !p.UrgentAt.After(turn.StartedAt) {
		t.Errorf("next is %+v, %v", p, err)
	}
	if ok, err := b.SendNow(t.Context(), running.InboxID, "U2"); ok || err != nil {
		t.Error("what runs was sent", err)
	}
	if ok, _, err := b.DropWaiting(t.Context(), running.InboxID, "U2", "stopped", ""); ok || err != nil {
		t.Error("what runs was dropped", err)
	}
	ok, rows, err := b.DropWaiting(t.Context(), ids[2], "U2", "stopped", "")
	if !ok || err != nil || len(rows) != 1 || rows[0].Kind != outbox.Mark || b.next(t) != ids[1] {
		t.Errorf("dropped: %v, %+v, %v; then %d is next", ok, rows, err, b.next(t))
	}
	if ok, _, _ := b.DropWaiting(t.Context(), ids[2], "U2", "stopped", ""); ok {
		t.Error("it was dropped twice")
	}
}
