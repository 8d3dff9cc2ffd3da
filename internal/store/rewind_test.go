package store_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/transcripts"
	"deckhand/internal/store/work"
)

// TestRewinds: what counts of a thread follows its session and those that it was rewound from. A rewind comes before all
// other prompts from when it has begun, takes no turn, is ended once and by the holder of the lease alone; permissions for
// the thread end with it, and a fork after a turn begins with what that left.
func TestRewinds(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	l, err := newLife(ctx, s, 1)
	if err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background()) //nolint:errcheck // the test ends
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key := threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: "1.1"}
	accept := func(ts string, r *inbox.Rewind) (id int64) {
		t.Helper()
		id, _, err := s.Receive(ctx, inbox.Envelope{EventID: uuid.NewString(), Kind: inbox.Message, TeamID: "T1", ChannelID: "C1", ThreadTS: "1.1", TS: ts, UserID: "U1", Payload: json.RawMessage(`{}`)})
		must(err)
		text := "prompt " + ts
		if r != nil {
			text = "/rewind"
		}
		_, _, err = s.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: text, Rewind: r})
		must(err)
		return id
	}
	end := func() {
		t.Helper()
		_, _, err := s.FinishTurn(ctx, l.lease, store.FinishedTurn{ID: l.turn.ID, State: "done", AgentTurns: 1, Approvals: approvals.Cancelled})
		must(err)
	}
	past := func() (h store.History, turns []int64) {
		t.Helper()
		h, err := s.History(ctx, l.thread)
		must(err)
		for _, p := range h.Turns {
			turns = append(turns, p.Turn)
		}
		return h, turns
	}
	// The first turn's permissions are of the thread, the session and the project.
	a, err := s.Ask(ctx, l.lease, approvals.Approval{
		ID: uuid.NewString(), Input: json.RawMessage(`{"command":"ls"}`), Terms: approvals.Terms{Rule: "default: ask", RequesterMay: true, Grantable: true},
		Origin:  approvals.Origin{SessionID: l.session, TurnID: l.turn.ID, RequestedBy: "U1"},
		Request: approvals.Request{Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: "toolu_1", ToolName: "Bash", ExpiresAt: time.Now().Add(time.Hour)},
	})
	must(err)
	_, err = s.Decide(ctx, approvals.Decision{ApprovalID: a.ID, Status: approvals.Allowed, By: "U2", Grants: []approvals.NewGrant{
		{Scope: approvals.GrantThread, Pattern: "Bash(a *)", For: time.Hour}, {Scope: approvals.GrantSession, Pattern: "Bash(b *)", For: time.Hour}, {Scope: approvals.GrantProject, Pattern: "Bash(c *)", For: time.Hour},
	}})
	must(err)
	end()
	one := l.turn.ID
	accept("1.2", nil)
	l.turn, _, _, err = s.BeginTurn(ctx, l.lease, l.session, l.epoch)
	must(err)
	end()
	two := l.turn.ID
	sum := sha256.Sum256([]byte("{}\n"))
	exec(`INSERT INTO transcripts (thread_id, session_id, bytes, sha256, lease_epoch) VALUES ($1, $2, 0, $3, 1)`, l.thread, l.session, sum[:])
	exec(`INSERT INTO transcripts (thread_id, session_id, agent, bytes, sha256, lease_epoch) VALUES ($1, $2, 'agent-x', 0, $3, 1)`, l.thread, l.session, sum[:])
	hash := func(c string) string { return strings.Repeat(c, 40) }
	states := []work.State{{Turn: one, Branch: hash("1"), At: time.Now().UTC().Truncate(time.Second)}, {Turn: two, Branch: hash("2"), Saved: hash("3"), At: time.Now().UTC().Truncate(time.Second)}}
	kept := work.Work{ThreadID: l.thread, Branch: hash("2"), Saved: hash("3"), SavedAt: time.Now(), States: states}
	must(s.KeepWork(ctx, l.lease, kept, nil))

	h, turns := past()
	if len(turns) != 2 || h.Last() != two || h.Turns[1].Before != one || h.Turns[0].Before != 0 || h.SessionID != l.session || h.Back != "" || h.Held || h.Turns[1].Prompt != "prompt 1.2" {
		t.Fatalf("%+v", h)
	}
	if ids, spoke, err := s.PromptsAfter(ctx, l.session, one); err != nil || len(ids) != 1 || !spoke {
		t.Errorf("%v, %v, %v", ids, spoke, err)
	}

	// Its files are on one machine alone: nobody forks what was. Once they are elsewhere somebody does.
	point := store.Point{Turn: one, SessionID: l.session, States: map[string]work.State{"": states[0]}, Conversation: &transcripts.Part{SessionID: uuid.NewString(), Pieces: [][]byte{[]byte("{}\n")}, Bytes: 3, SHA256: sum}}
	fork := store.Fork{From: l.thread, Key: threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: "2.1"}, By: "U2", SessionID: point.Conversation.SessionID, After: &point}
	if _, err := s.Fork(ctx, fork); !errors.Is(err, store.ErrNothingKept) {
		t.Errorf("fork what is on one machine: %v", err)
	}
	kept.Held = hash("4")
	must(s.KeepWork(ctx, l.lease, kept, nil))
	// One repository of the project has changed since, and one has come.
	lib := work.Work{Repository: "lib", Branch: hash("6"), SavedAt: time.Now(), States: []work.State{{Turn: one, Branch: hash("5"), Saved: hash("7"), At: states[0].At}, {Turn: two, Branch: hash("6"), At: states[1].At}}}
	must(s.KeepWork(ctx, l.lease, lib, nil))
	if h, _ := past(); h.Held {
		t.Error("what is on one machine alone is taken to be elsewhere")
	}
	lib.Held = hash("8")
	must(s.KeepWork(ctx, l.lease, lib, nil))
	must(s.KeepWork(ctx, l.lease, work.Work{Repository: "new", Branch: hash("9"), SavedAt: time.Now(), States: states[1:], Held: hash("a")}, nil))
	h, _ = past()
	then, ok := h.State(one)
	if len(then) != 2 || !ok || !h.Held || then["lib"].Branch != hash("5") {
		t.Errorf("after the first turn they were %+v, %v", then, ok)
	}
	if _, ok := h.State(two + 1); ok {
		t.Error("there are states of no turn")
	}
	point.States = then
	forked, err := s.Fork(ctx, fork)
	must(err)
	if w, err := s.Work(ctx, forked.ID, "lib"); err != nil || w.Branch != hash("5") || w.Saved != hash("7") || w.Held != hash("8") {
		t.Errorf("the fork has of lib %+v, %v", w, err)
	}
	if _, err := s.Work(ctx, forked.ID, "new"); !errors.Is(err, pg.ErrNotFound) {
		t.Errorf("the fork has a repository that was not there then: %v", err)
	}
	if w, err := s.Work(ctx, forked.ID, ""); err != nil || w.Branch != hash("1") || w.Saved != "" || w.Held != hash("4") || len(w.States) != 0 {
		t.Errorf("the fork has %+v, %v", w, err)
	}
	if list, err := s.Transcripts(ctx, forked.SessionID); err != nil || len(list) != 2 || list[0].Bytes != 3 || list[1].Agent != "agent-x" {
		t.Errorf("the fork has %+v, %v", list, err)
	}

	// A rewind is no turn, and once it has begun it is first, and no stop drops it.
	id := accept("1.3", &inbox.Rewind{To: two, Go: true, Point: two, In: l.session, Name: "Uma"})
	accept("1.25", nil)
	must(s.MoveRewind(ctx, l.lease, id, true))
	if p, err := s.NextPrompt(ctx, l.thread); err != nil || p.InboxID != id || !p.Begun || p.Rewind == nil || p.Rewind.To != two || p.Rewind.Name != "Uma" {
		t.Errorf("the next is %+v, %v", p, err)
	}
	if dropped, _, err := s.DropPrompts(ctx, l.lease, inbox.Drop{Outcome: "stopped"}); err != nil || len(dropped) != 1 {
		t.Errorf("%d are dropped, %v", len(dropped), err)
	}
	if _, _, ok, err := s.BeginTurn(ctx, l.lease, l.session, l.epoch); ok || err != nil {
		t.Errorf("a rewind has become a turn: %v", err)
	}
	point.Conversation.SessionID = uuid.NewString()
	done := store.Rewound{InboxID: id, By: "U1", To: point, From: two, Sentence: "back"}
	late := l.lease
	late.Epoch--
	if _, _, err := s.FinishRewind(ctx, late, done); !errors.Is(err, threads.ErrFenced) {
		t.Errorf("without the lease: %v", err)
	}
	session, rows, err := s.FinishRewind(ctx, l.lease, done)
	if err != nil || len(rows) != 1 || session != point.Conversation.SessionID {
		t.Fatal(session, rows, err)
	}
	if _, err := s.NextPrompt(ctx, l.thread); !errors.Is(err, pg.ErrNotFound) {
		t.Errorf("it is to be done again: %v", err)
	}
	h, turns = past()
	if len(turns) != 1 || turns[0] != one || h.SessionID != session || h.Back != l.session || h.BackTurn != two {
		t.Errorf("%+v", h)
	}
	if w, err := s.Work(ctx, l.thread, ""); err != nil || w.Branch != hash("1") || w.Saved != "" || len(w.States) != 2 {
		t.Errorf("what is kept is %+v, %v", w, err)
	}
	for name, want := range map[string]string{"lib": hash("5"), "new": hash("9")} {
		if w, err := s.Work(ctx, l.thread, name); err != nil || w.Branch != want {
			t.Errorf("of %s is kept %+v, %v", name, w, err)
		}
	}
	if grants, err := s.Grants(ctx, approvals.GrantFilter{TeamID: "T1"}, 10); err != nil || len(grants) != 1 || grants[0].Scope != approvals.GrantProject {
		t.Errorf("what is permitted: %+v, %v", grants, err)
	}

	// Back again, in the old session.
	id = accept("1.4", &inbox.Rewind{})
	must(s.MoveRewind(ctx, l.lease, id, true))
	back, _, err := s.FinishRewind(ctx, l.lease, store.Rewound{InboxID: id, By: "U1", To: store.Point{Turn: two, SessionID: l.session, States: map[string]work.State{"": states[1]}}, From: one, Back: true})
	if h, turns = past(); err != nil || back != l.session || len(turns) != 2 || h.Back != "" {
		t.Errorf("%+v, %v", h, err)
	}
	var n int
	must(db.QueryRow(ctx, `SELECT count(*) FROM audit WHERE kind IN ('rewound', 'grant_revoked')`).Scan(&n))
	if n != 4 {
		t.Errorf("%d rows of the audit tell of it", n)
	}
}
