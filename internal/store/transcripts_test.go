package store_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
)

// part writes text behind what a copy has (its whole text), from an offset.
func part(session, agent, was string, from int, text ...string) transcripts.Part {
	p := transcripts.Part{SessionID: session, Agent: agent, From: int64(from)}
	if was != "" {
		sum := sha256.Sum256([]byte(was))
		p.WasBytes, p.WasSHA256 = int64(len(was)), sum[:]
	}
	all := was[:from] + strings.Join(text, "")
	for _, t := range text {
		p.Pieces = append(p.Pieces, []byte(t))
	}
	p.Bytes, p.SHA256 = int64(len(all)), sha256.Sum256([]byte(all))
	return p
}

// copies are the texts of a session's copies, by subagents.
func (b *bench) copies(t *testing.T, session string) map[string]string {
	t.Helper()
	list, err := b.Transcripts(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, c := range list {
		var text bytes.Buffer
		if err := b.ReadTranscript(t.Context(), c, &text); err != nil {
			t.Fatal(err)
		}
		out[c.Agent] = text.String()
	}
	return out
}

func (b *bench) save(t *testing.T, parts ...transcripts.Part) bool {
	t.Helper()
	saved, err := b.SaveTranscripts(t.Context(), b.lease, parts)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func TestTranscriptsAreCopiedPieceByPiece(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	holds := func(want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, b.copies(t, b.session)); diff != "" {
			t.Fatalf("the copies (-want +got):\n%s", diff)
		}
	}
	s := b.session
	if !b.save(t, part(s, "", "", 0, "one\n", "two\n"), part(s, "agent-a", "", 0, "sub\n")) {
		t.Error("new copies were not saved")
	}
	holds(map[string]string{"": "one\ntwo\n", "agent-a": "sub\n"})
	if !b.save(t, part(s, "", "one\ntwo\n", 4, "two\nthree\n")) { // the last piece grows
		t.Error("it was not saved")
	}
	holds(map[string]string{"": "one\ntwo\nthree\n", "agent-a": "sub\n"})
	// Whoever takes the copy for something else writes nothing, and nothing beside it.
	for name, p := range map[string]transcripts.Part{
		"an older one": part(s, "", "one\ntwo\n", 8, "late\n"), "none": part(s, "", "", 0, "new\n"),
		"another text": part(s, "", "one\ntwo\nTHREE\n", 14, "x\n"), "one that is none": part(s, "agent-b", "x\n", 2, "y\n"),
		"that of a session of nobody": part(uuid.NewString(), "", "", 0, "y\n"),
	} {
		if b.save(t, part(s, "agent-a", "sub\n", 4, "more\n"), p) {
			t.Errorf("who took it for %s wrote", name)
		}
	}
	holds(map[string]string{"": "one\ntwo\nthree\n", "agent-a": "sub\n"})
	if !b.save(t, part(s, "", "one\ntwo\nthree\n", 0, "o\n")) { // rewritten, and shorter
		t.Error("it was not saved")
	}
	holds(map[string]string{"": "o\n", "agent-a": "sub\n"})
	full := part(s, "", "o\n", 2)
	full.Full = true
	if !b.save(t, full) {
		t.Error("it was not saved")
	}
	holds(map[string]string{"": "o\n", "agent-a": "sub\n"})
	if list, err := b.Transcripts(t.Context(), s); err != nil || !list[0].Full || list[1].Full {
		t.Errorf("%+v, %v", list, err)
	}

	// A turn's end writes them with it; one that does not fit is no reason not to end.
	turn, _ := b.begin(t)
	_, _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{ID: turn.ID, State: "done", Answer: "42", Transcripts: []transcripts.Part{
		part(s, "agent-a", "sub\n", 4, "end\n"), part(s, "", "nothing like it\n", 16, "x\n"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	holds(map[string]string{"": "o\n", "agent-a": "sub\nend\n"})

	// Whoever has lost the lease writes nothing, at a turn's end either.
	late := b.lease
	b.take(t, b.thread.ID, "replica-1")
	if saved, err := b.SaveTranscripts(t.Context(), late, []transcripts.Part{part(s, "", "o\n", 2, "late\n")}); saved || !errors.Is(err, threads.ErrFenced) {
		t.Errorf("the late one: %v, %v", saved, err)
	}
	holds(map[string]string{"": "o\n", "agent-a": "sub\nend\n"})

	// A session that follows by /clear leaves the other's copies: its steps can still be looked at.
	if err := b.NewSession(t.Context(), b.lease, uuid.NewString(), s); err != nil {
		t.Fatal(err)
	}
	holds(map[string]string{"": "o\n", "agent-a": "sub\nend\n"})
}

// TestADamagedCopyIsNone: whatever is lost of it, or is not what was written.
func TestADamagedCopyIsNone(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	b := benchIn(t, storetest.Open(t, url, store.Options{}))
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test's connection
	for i, damage := range []string{
		`DELETE FROM transcript_pieces WHERE at_byte = 0`, `DELETE FROM transcript_pieces WHERE at_byte > 0`, `UPDATE transcript_pieces SET zstd = ''`,
		`UPDATE transcript_pieces SET zstd = '\x00'`, `UPDATE transcript_pieces SET bytes = 1`, `UPDATE transcripts SET sha256 = sha256('x')`,
	} {
		agent := fmt.Sprint("agent-", i)
		if !b.save(t, part(b.session, agent, "", 0, strings.Repeat("one\n", 100), "two\n")) {
			t.Fatal("it was not saved")
		}
		list, err := b.Transcripts(t.Context(), b.session)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), damage); err != nil {
			t.Fatal(err)
		}
		if i == 5 {
			list, _ = b.Transcripts(t.Context(), b.session)
		}
		var text bytes.Buffer
		if err := b.ReadTranscript(t.Context(), list[i], &text); !errors.Is(err, transcripts.ErrDamaged) {
			t.Errorf("%s: %v", damage, err)
		}
	}
}

// TestWhatIsKnownOfALostSession: what people wrote and what was answered, through as many
// losses as there were, but not from beyond a /clear.
func TestWhatIsKnownOfALostSession(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	say := func(prompt, answer string) {
		t.Helper()
		b.prompt(t, "U1", prompt)
		turn, _ := b.begin(t)
		if _, _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{ID: turn.ID, State: "done", AgentTurns: 1, Answer: answer}); err != nil {
			t.Fatal(err)
		}
	}
	next := func(begin func(context.Context, threads.Lease, string, string) error) {
		t.Helper()
		id := uuid.NewString()
		if err := begin(t.Context(), b.lease, id, b.session); err != nil {
			t.Fatal(err)
		}
		b.session = id
		b.newEpoch(t, 0)
	}
	known := func(limit int) (out []string) {
		t.Helper()
		said, err := b.SessionHistory(t.Context(), b.session, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range said {
			out = append(out, e.UserID+": "+e.Prompt+" → "+e.Answer+" ("+e.State+")")
		}
		return out
	}
	say("x", "first") // answers the prompt that the bench has
	next(b.NewSession)
	if got := known(9); got != nil {
		t.Errorf("after /clear: %v", got)
	}
	say("two", "2") // answers "x"
	say("three", "3")
	next(b.StartAnew)
	next(b.StartAnew) // it never came to say anything
	want := []string{"U1: x → 2 (done)", "U1: two → 3 (done)"}
	if got := known(9); !cmp.Equal(got, want) {
		t.Errorf("known %v, want %v", got, want)
	}
	if got := known(1); !cmp.Equal(got, want[1:]) {
		t.Errorf("the last one is %v", got)
	}
}

// TestOldTranscriptsAreForgotten: those of threads in which nobody writes and nobody works
// who lives.
func TestOldTranscriptsAreForgotten(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	b := benchIn(t, storetest.Open(t, url, store.Options{}))
	turn, _ := b.begin(t)
	if _, _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{ID: turn.ID, State: "done", Answer: "42", Transcripts: []transcripts.Part{part(b.session, "", "", 0, "one\n")}}); err != nil {
		t.Fatal(err)
	}
	forget := func(since time.Time, want int) {
		t.Helper()
		if n, err := b.ForgetTranscripts(t.Context(), since); err != nil || n != want {
			t.Fatalf("%d threads were forgotten, %v; want %d", n, err, want)
		}
	}
	later := time.Now().Add(time.Hour)
	forget(later, 0) // somebody works on it
	storetest.Exec(t, url, `UPDATE replicas SET alive = false`)
	forget(time.Now().Add(-time.Hour), 0)
	forget(later, 1)
	forget(later, 0)
	if got := b.copies(t, b.session); len(got) > 0 {
		t.Errorf("%v is left", got)
	}
}
