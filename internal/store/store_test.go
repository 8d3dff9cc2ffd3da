package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

var thread = threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: "100.000001"}

// bench is a thread with a lease, a session and an epoch, ready for turns.
type bench struct {
	*store.Store
	thread  threads.Thread
	lease   threads.Lease
	session string
	epoch   int
	posts   int
	told    int64 // by the CLI, see witness
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return benchIn(t, storetest.New(t))
}

func benchIn(t *testing.T, s *store.Store) *bench {
	t.Helper()
	b := &bench{Store: s}
	b.prompt(t, "U1", "hello")
	th, err := b.ThreadByKey(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	b.take(t, th.ID, "replica-1")
	b.session = uuid.NewString()
	if err := b.NewSession(t.Context(), b.lease, b.session, ""); err != nil {
		t.Fatal(err)
	}
	b.newEpoch(t, 0)
	return b
}

func (b *bench) take(t *testing.T, id int64, owner string) {
	t.Helper()
	th, ok, err := storetest.Acquire(t.Context(), b, id, owner)
	if err != nil || !ok {
		t.Fatalf("AcquireLease: ok=%v err=%v", ok, err)
	}
	b.thread, b.lease = th, threads.Lease{ThreadID: th.ID, Owner: owner, Epoch: th.LeaseEpoch}
}

func (b *bench) newEpoch(t *testing.T, baseline int64) {
	t.Helper()
	var err error
	if b.epoch, err = b.BeginEpoch(t.Context(), b.lease, b.session, "2.1.329", baseline); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) prompt(t *testing.T, user, text string) {
	t.Helper()
	b.posts++
	id, fresh, err := b.Receive(t.Context(), inbox.Envelope{
		EventID: fmt.Sprintf("Ev%d", b.posts), Kind: inbox.Message,
		TeamID: thread.TeamID, ChannelID: thread.ChannelID, ThreadTS: thread.ThreadTS,
		TS: fmt.Sprintf("100.%06d", b.posts), UserID: user, Payload: json.RawMessage(`{}`),
	})
	if err != nil || !fresh {
		t.Fatalf("Receive: fresh=%v err=%v", fresh, err)
	}
	if _, ok, err := b.AcceptPrompt(t.Context(), inbox.NewPrompt{
		InboxID: id, Thread: thread, Project: "web", UserID: user, UUID: uuid.NewString(), Text: text,
	}); err != nil || !ok {
		t.Fatalf("AcceptPrompt: ok=%v err=%v", ok, err)
	}
}

func (b *bench) begin(t *testing.T) (turns.Turn, inbox.Prompt) {
	t.Helper()
	turn, p, ok, err := b.BeginTurn(t.Context(), b.lease, b.session, b.epoch)
	if err != nil || !ok {
		t.Fatalf("BeginTurn: ok=%v err=%v", ok, err)
	}
	return turn, p
}

func (b *bench) ask(t *testing.T, turn turns.Turn, input string) approvals.Approval {
	t.Helper()
	a, err := b.Ask(t.Context(), b.lease, approvals.Approval{
		ID: uuid.NewString(), Input: json.RawMessage(input), Terms: approvals.Terms{Rule: "default: ask"},
		Origin:  approvals.Origin{SessionID: b.session, TurnID: turn.ID, RequestedBy: turn.RequestedBy},
		Request: approvals.Request{Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: "toolu_1", ToolName: "Bash", ExpiresAt: time.Now().Add(time.Hour)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAPostIsReceivedOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	e := inbox.Envelope{
		EventID: "Ev1", Kind: inbox.Message, TeamID: "T1", ChannelID: "C1", TS: "1.1", ThreadTS: "1.1",
		UserID: "U1", Payload: json.RawMessage(`{"text":"hi"}`), Holder: "A",
	}
	id, fresh, err := s.Receive(t.Context(), e)
	if err != nil || !fresh {
		t.Fatalf("first delivery: fresh=%v err=%v", fresh, err)
	}
	if _, fresh, err := s.Receive(t.Context(), e); err != nil || fresh {
		t.Errorf("the same event again: fresh=%v err=%v", fresh, err)
	}
	e.EventID = "Ev2" // the same post, as app_mention and as message
	if _, fresh, err := s.Receive(t.Context(), e); err != nil || fresh {
		t.Errorf("the same post as another event: fresh=%v err=%v", fresh, err)
	}
	if got, err := s.Due(t.Context(), "B", 10); err != nil || len(got) != 0 {
		t.Fatalf("what A holds is due for B: %v, %v", got, err)
	}
	if err := s.LetGo(t.Context(), "A", "A2"); err != nil {
		t.Fatal(err)
	}
	got, err := s.Due(t.Context(), "B", 10)
	if err != nil || len(got) != 1 || got[0].ID != id || got[0].Holder != "B" {
		t.Fatalf("Due = %v, %v; want the one envelope, for B", got, err)
	}
	if _, err := s.FinishTelling(t.Context(), id, "refused"); err != nil {
		t.Fatal(err)
	}
	if err := s.LetGo(t.Context(), "B", ""); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Due(t.Context(), "B", 10); err != nil || len(got) != 0 {
		t.Errorf("after Finish: Due = %v, %v", got, err)
	}
}

func TestPromptsBecomeTurnsInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.prompt(t, "U2", "second")
	first, p1 := b.begin(t)
	if p1.Text != "hello" || first.RequestedBy != "U1" {
		t.Errorf("first turn is for %q by %s", p1.Text, first.RequestedBy)
	}
	if _, _, _, err := b.BeginTurn(t.Context(), b.lease, b.session, b.epoch); err == nil {
		t.Error("a second turn began while the first was running")
	}
	if _, _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{ID: first.ID, State: "done"}); err != nil {
		t.Fatal(err)
	}
	second, p2 := b.begin(t)
	if p2.Text != "second" || second.RequestedBy != "U2" {
		t.Errorf("second turn is for %q by %s", p2.Text, second.RequestedBy)
	}
}

func TestALateWriterIsFenced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, _ := b.begin(t)
	old := b.lease
	b.take(t, b.thread.ID, "replica-1") // the same replica, restarted

	if _, _, err := b.FinishTurn(t.Context(), old, store.FinishedTurn{ID: turn.ID, State: "done"}); !errors.Is(err, threads.ErrFenced) {
		t.Errorf("FinishTurn under an old lease: %v", err)
	}
	if _, err := b.Ask(t.Context(), old, approvals.Approval{ID: "x", Input: json.RawMessage(`{}`), Request: approvals.Request{ToolName: "Bash"}}); !errors.Is(err, threads.ErrFenced) {
		t.Errorf("Ask under an old lease: %v", err)
	}
	if _, ok, err := storetest.Acquire(t.Context(), b, b.thread.ID, "replica-2"); ok || err != nil {
		t.Errorf("another replica took a live lease: ok=%v err=%v", ok, err)
	}
}

func TestTheFirstDecisionWins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, _ := b.begin(t)
	a := b.ask(t, turn, `{"command":"ls"}`)

	var wg sync.WaitGroup
	won := make(chan approvals.Approval, 20)
	for i := range 20 {
		wg.Go(func() {
			status := approvals.Allowed
			if i%2 == 0 {
				status = approvals.Denied
			}
			got, err := b.Decide(context.WithoutCancel(t.Context()), approvals.Decision{ApprovalID: a.ID, Status: status, By: fmt.Sprintf("U%d", i), Via: "button"})
			switch {
			case err == nil:
				won <- got
			case !errors.Is(err, pg.ErrEnded):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(won)
	if len(won) != 1 {
		t.Fatalf("%d decisions won", len(won))
	}
	winner := <-won
	now, err := b.ApprovalByID(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(winner, now); diff != "" {
		t.Errorf("the stored decision is not the winner's:\n%s", diff)
	}
	if _, err := b.Deliver(t.Context(), b.lease, a.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Deliver(t.Context(), b.lease, a.ID); !errors.Is(err, pg.ErrNotFound) {
		t.Errorf("delivered twice: %v", err)
	}
}

func TestAnExpiredApprovalCannotBeDecided(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, _ := b.begin(t)
	a, err := b.Ask(t.Context(), b.lease, approvals.Approval{
		ID: "exp", Input: json.RawMessage(`{}`), Terms: approvals.Terms{Rule: "r"},
		Origin:  approvals.Origin{SessionID: b.session, TurnID: turn.ID, RequestedBy: "U1"},
		Request: approvals.Request{Kind: approvals.Tool, RequestID: "r", ToolName: "Bash", ExpiresAt: time.Now().Add(-time.Second)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Decide(t.Context(), approvals.Decision{ApprovalID: a.ID, Status: approvals.Allowed, By: "U1", Via: "button"}); !errors.Is(err, pg.ErrEnded) {
		t.Errorf("Decide after the deadline: %v", err)
	}
	if _, ok, err := b.ExpireApproval(t.Context(), a.ID); !ok || err != nil {
		t.Errorf("EndApproval: ok=%v err=%v", ok, err)
	}
	if _, ok, err := b.CancelApproval(t.Context(), b.lease, a.ID); ok || err != nil {
		t.Errorf("ended twice: ok=%v err=%v", ok, err)
	}
}

// TestAnApprovalEndsWhileItsTurnIsContinued: what ends an approval waits for the one that
// moves it to a turn that it could not see when it began.
func TestAnApprovalEndsWhileItsTurnIsContinued(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	b := benchIn(t, storetest.Open(t, url, store.Options{}))
	turn, _ := b.begin(t)
	a, err := b.Ask(t.Context(), b.lease, approvals.Approval{
		ID: uuid.NewString(), Input: json.RawMessage(`{}`), Terms: approvals.Terms{Rule: "r"},
		Origin:  approvals.Origin{SessionID: b.session, TurnID: turn.ID, RequestedBy: "U1"},
		Request: approvals.Request{Kind: approvals.Tool, RequestID: "r", ToolUseID: "t", ToolName: "Bash", ExpiresAt: time.Now().Add(-time.Second)},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.take(t, b.thread.ID, "replica-1")
	b.newEpoch(t, 0)

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test's connection
	var both sync.WaitGroup
	if err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(7222305415120001)`); err != nil { // the audit's
			return err
		}
		both.Go(func() {
			if _, err := b.ContinueTurn(t.Context(), b.lease, turn, b.session, b.epoch); err != nil {
				t.Error(err)
			}
		})
		waitsForLock(t, url, "advisory")
		both.Go(func() {
			if got, ok, err := b.ExpireApproval(t.Context(), a.ID); err != nil || !ok || got.TurnID == turn.ID || got.TurnEnded {
				t.Errorf("expired %v, %v: of turn %d, which ended: %v", ok, err, got.TurnID, got.TurnEnded)
			}
		})
		waitsForLock(t, url, "transactionid")
		return nil
	}); err != nil {
		t.Error(err)
	}
	both.Wait()
}

func TestAContinuedTurnFindsItsApprovals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	turn, prompt := b.begin(t)
	pending := b.ask(t, turn, `{"command":"make"}`)
	decided := b.ask(t, turn, `{"command":"make test"}`)
	forgotten := b.ask(t, turn, `{"command":"make clean"}`)

	// The replica dies; somebody clicks; it comes back.
	b.take(t, b.thread.ID, "replica-1")
	if _, err := b.Decide(t.Context(), approvals.Decision{ApprovalID: decided.ID, Status: approvals.Allowed, By: "U9", Via: "button"}); err != nil {
		t.Fatal(err)
	}
	old, p, err := b.RunningTurn(t.Context(), b.thread.ID)
	if err != nil || old.ID != turn.ID || p.UUID != prompt.UUID {
		t.Fatalf("RunningTurn = %v, %v, %v", old, p, err)
	}
	b.newEpoch(t, 0)
	next, err := b.ContinueTurn(t.Context(), b.lease, old, b.session, b.epoch)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.ask(t, next, `{"command":"make"}`); got.ID != pending.ID || got.Status != approvals.Pending {
		t.Errorf("the pending one was not bound: %+v", got)
	}
	got := b.ask(t, next, `{"command":"make test"}`)
	if got.ID != decided.ID || got.Status != approvals.Allowed || got.DecidedBy != "U9" {
		t.Errorf("the decided one was not bound: %+v", got)
	}
	if _, err := b.Deliver(t.Context(), b.lease, got.ID); err != nil {
		t.Error(err)
	}
	if again := b.ask(t, next, `{"command":"make test"}`); again.ID == decided.ID {
		t.Error("a decision was used twice")
	}
	if other := b.ask(t, next, `{"command": "make clean"}`); other.ID == forgotten.ID {
		t.Error("a request with other bytes was bound to what a person saw")
	}
	ended, _, err := b.FinishTurn(t.Context(), b.lease, store.FinishedTurn{ID: next.ID, State: "done"})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]approvals.Status{}
	for _, a := range ended {
		states[string(a.Input)] = a.Status
	}
	want := map[string]approvals.Status{
		`{"command":"make"}`:        approvals.Cancelled,
		`{"command":"make test"}`:   approvals.Cancelled,
		`{"command":"make clean"}`:  approvals.Interrupted,
		`{"command": "make clean"}`: approvals.Cancelled,
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("how the rest ended (-want +got):\n%s", diff)
	}
}

func TestTheLedgerIsAppendOnlyAndAddsUp(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	b := benchIn(t, storetest.Open(t, url, store.Options{}))
	turn, _ := b.begin(t)
	b.pay(t, "opus", 700)
	b.pay(t, "haiku", 3)
	b.finish(t, turn)
	report, err := b.Costs(t.Context(), ledger.CostQuery{TeamID: "T1", ThreadID: b.thread.ID, By: ledger.ByModel})
	if err != nil {
		t.Fatal(err)
	}
	want := []ledger.CostLine{
		{Key: "opus", Turns: 1, Entries: 2, Input: 10, Output: 700, MicroUSD: 700}, // a call and the turn's end
		{Key: "haiku", Entries: 1, Input: 10, Output: 3, MicroUSD: 3},              // the turn counts on its dearest model
	}
	if diff := cmp.Diff(want, report.Lines); diff != "" {
		t.Errorf("Costs by model (-want +got):\n%s", diff)
	}

	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test's connection
	for _, sql := range []string{
		`UPDATE ledger SET micro_usd = 0`, `DELETE FROM ledger`, `TRUNCATE ledger CASCADE`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestAnEndedApprovalNeverChanges(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	s := storetest.Open(t, url, store.Options{})
	b := &bench{Store: s}
	b.prompt(t, "U1", "hello")
	th, _ := b.ThreadByKey(t.Context(), thread)
	b.take(t, th.ID, "r")
	b.session = uuid.NewString()
	if err := b.NewSession(t.Context(), b.lease, b.session, ""); err != nil {
		t.Fatal(err)
	}
	b.newEpoch(t, 0)
	turn, _ := b.begin(t)
	a := b.ask(t, turn, `{"command":"ls"}`)
	if _, err := b.Decide(t.Context(), approvals.Decision{ApprovalID: a.ID, Status: approvals.Denied, By: "U1", Via: "button"}); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // a test's connection
	for _, sql := range []string{
		`UPDATE approvals SET status = 'allowed'`,
		`UPDATE approvals SET decided_by = 'U666'`,
		`UPDATE approvals SET input = '{"command":"rm -rf /"}', input_sha256 = sha256('{"command":"rm -rf /"}')`,
		`DELETE FROM approvals`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err == nil {
			t.Errorf("the database let through: %s", sql)
		}
	}
}

func TestABadURLNeverShowsItsPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://bot:hunter2@[bad", "postgres://bot:hunter2@127.0.0.1:1/x?connect_timeout=1"} {
		_, err := store.Open(t.Context(), url, store.Options{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q) = %v", url, err)
		}
	}
}
