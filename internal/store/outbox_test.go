package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
)

// claimed are rows as a test compares them: of kind, about whom, with what.
func claimed(t *testing.T, s *store.Store, limit int) (list []outbox.Row, said []string) {
	t.Helper()
	list, err := s.ClaimOutbox(t.Context(), thread.TeamID, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range list {
		if w.ThreadKey != thread || w.CreatedAt.IsZero() || !w.Again {
			t.Errorf("a row that was taken over: %+v", w)
		}
		said = append(said, strings.TrimSpace(fmt.Sprint(w.Kind, " ", w.Body, w.TS)))
	}
	return list, said
}

// TestWordsAreSaidByWhoeverIsAlive: what a process has left is another's when its hold has
// run out, its own replica's at once, and nobody else's before; in order.
func TestWordsAreSaidByWhoeverIsAlive(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	open := func(replica string) *store.Store { return storetest.Open(t, url, store.Options{Replica: replica}) }
	a, other := benchIn(t, open("A")), open("B")
	turn, _ := a.begin(t)
	ap := a.ask(t, turn, `{"command":"ls"}`)
	if ap.OutboxID == 0 {
		t.Error("a card that is to be shown has no row")
	}
	_, rows, err := a.FinishTurn(t.Context(), a.lease, store.FinishedTurn{ID: turn.ID, State: "done", View: []byte(`{"a":"\u0000"}`), Mark: "done"})
	if err != nil || len(rows) != 2 || rows[0].Kind != outbox.Turn || rows[0].TurnID != turn.ID || rows[1].TS != "100.000001" || rows[0].Again {
		t.Fatalf("the words of a turn's end: %+v, %v", rows, err)
	}
	if _, got := claimed(t, other, 10); got != nil {
		t.Errorf("another replica says %q while their process holds them", got)
	}
	if got, err := other.ClaimOutbox(t.Context(), "T9", 10); len(got) > 0 || err != nil {
		t.Errorf("another team's: %v %v", got, err)
	}

	// The replica's next process has them at once, the first ones first.
	again := open("A")
	list, got := claimed(t, again, 2)
	if diff := cmp.Diff([]string{"card", `turn {"a":"\u0000"}`}, got); diff != "" {
		t.Error(diff)
	}
	if _, got := claimed(t, again, 10); !slices.Equal(got, nil) {
		t.Errorf("the mark passes the text, which is on its way, and the card is shown twice: %q", got)
	}
	// The dead one's hold is worth nothing any more.
	if err := a.HoldOutbox(t.Context(), []int64{list[1].ID}); err != nil {
		t.Fatal(err)
	}
	if err := again.ReleaseOutbox(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, got = claimed(t, other, 10)
	// The card is the dead one's for some more time, as far as this replica knows.
	if diff := cmp.Diff([]string{`turn {"a":"\u0000"}`}, got); diff != "" {
		t.Error(diff)
	}

	// What could not be sent holds up what comes after it, and is tried again.
	if err := other.PutBackOutbox(t.Context(), []int64{list[0].ID}); err != nil {
		t.Fatal(err)
	}
	if _, got := claimed(t, again, 10); !slices.Equal(got, []string{"card", "card"}) {
		t.Errorf("before its time: %q", got)
	}
	elapse(t, url)
	_, got = claimed(t, again, 10)
	if !slices.Contains(got, "mark done100.000001") || !slices.Contains(got, `turn {"a":"\u0000"}`) {
		t.Errorf("after its time: %q", got)
	}

	if err := again.EndOutbox(t.Context(), []int64{rows[0].ID, rows[1].ID}, []outbox.Shown{{Kind: outbox.Card, Subject: ap.CardID, UpTo: ap.OutboxID}}); err != nil {
		t.Fatal(err)
	}
	elapse(t, url)
	if _, got := claimed(t, again, 10); !slices.Equal(got, []string{"card"}) {
		t.Errorf("left of it: %q, want the card as it stood at the end", got)
	}
	now, err := a.ApprovalByID(t.Context(), ap.ID)
	if err != nil || now.OutboxID <= ap.OutboxID {
		t.Fatalf("the card's last row is %d, %v", now.OutboxID, err)
	}
	if err := a.EndOutbox(t.Context(), nil, []outbox.Shown{{Kind: outbox.Card, Subject: ap.CardID, UpTo: now.OutboxID}}); err != nil {
		t.Fatal(err)
	}
	if w, err := a.Waiting(t.Context(), thread.TeamID); err != nil || w.OutboxRows != 0 || w.OldestRow != 0 {
		t.Errorf("what waits: %+v, %v", w, err)
	}
}

// elapse lets the holds of all rows run out.
func elapse(t *testing.T, url string) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context()) //nolint:errcheck // the test ends
	if _, err := db.Exec(t.Context(), `UPDATE outbox SET held_until = now()`); err != nil {
		t.Fatal(err)
	}
}

// TestARefusalIsAWord: what a person is told of an envelope is written with its end, once.
func TestARefusalIsAWord(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.URL(t), store.Options{Replica: "A"})
	id, _, err := s.Receive(t.Context(), inbox.Envelope{EventID: "Ev1", Kind: inbox.Message, TeamID: thread.TeamID, ChannelID: "C1", TS: "1.1", ThreadTS: "1.1", UserID: "U1", Payload: json.RawMessage(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		rows, err := s.FinishTelling(t.Context(), id, "refused", inbox.Whisper{ChannelID: "C1", ThreadTS: "1.1", UserID: "U1", Sentence: "You may not."})
		if err != nil || len(rows) != 1-i {
			t.Fatalf("time %d: %+v, %v", i, rows, err)
		}
		if i == 0 && (rows[0].Kind != outbox.Whisper || rows[0].UserID != "U1" || rows[0].ThreadKey != (threads.ThreadKey{TeamID: thread.TeamID, ChannelID: "C1", ThreadTS: "1.1"})) {
			t.Errorf("a refusal: %+v", rows[0])
		}
	}
}

// TestWhatIsDroppedIsSaid: prompts that get no turn are marked, and a sentence is said,
// all with their end.
func TestWhatIsDroppedIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt(t, "U2", "two")
	drop := inbox.Drop{Outcome: "failed", Mark: "failed", Sentence: func(n int) string { return fmt.Sprint(n, " dropped") }}
	dropped, rows, err := b.DropPrompts(t.Context(), b.lease, drop)
	if err != nil || len(dropped) != 2 || len(rows) != 3 || rows[2].Kind != outbox.Said || rows[2].Body != "2 dropped" || rows[0].Kind != outbox.Mark {
		t.Fatalf("dropped %v with %+v, %v", dropped, rows, err)
	}
	stale := b.lease
	stale.Epoch--
	b.prompt(t, "U1", "three")
	if dropped, rows, err := b.DropPrompts(t.Context(), stale, drop); err != nil || dropped != nil || rows != nil {
		t.Errorf("without the lease: %v %v %v", dropped, rows, err)
	}
}
