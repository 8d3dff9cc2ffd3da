package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// A life is one thread whose turn asks for tools while people vote, time runs out,
// the turn is stopped, and replicas die and take over: all of it at once.
type life struct {
	*store.Store
	thread  int64
	session string

	mu        sync.Mutex
	lease     threads.Lease
	turn      turns.Turn
	epoch     int
	asked     []string       // the approvals' ids
	told      map[string]int // how often somebody was given the right to answer the CLI
	decisions map[string]approvals.Status
	surprises []string
}

func (l *life) surprise(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.surprises = append(l.surprises, fmt.Sprintf(format, args...))
}

func newLife(ctx context.Context, s *store.Store, n int) (*life, error) {
	l := &life{Store: s, session: uuid.NewString(), told: map[string]int{}, decisions: map[string]approvals.Status{}}
	key := threads.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: fmt.Sprintf("%d.1", n)}
	id, _, err := s.Receive(ctx, inbox.Envelope{
		EventID: uuid.NewString(), Kind: inbox.Message, TeamID: "T1", ChannelID: "C1", ThreadTS: key.ThreadTS, TS: key.ThreadTS, UserID: "U1", Payload: json.RawMessage(`{}`),
	})
	if err != nil {
		return nil, err
	}
	th, _, err := s.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go"})
	if err != nil {
		return nil, err
	}
	l.thread = th.ID
	if err := l.takeOver(ctx, "replica-1"); err != nil {
		return nil, err
	}
	if err := s.NewSession(ctx, l.lease, l.session, ""); err != nil {
		return nil, err
	}
	if l.epoch, err = s.BeginEpoch(ctx, l.lease, l.session, "2.1.329", 0); err != nil {
		return nil, err
	}
	l.turn, _, _, err = s.BeginTurn(ctx, l.lease, l.session, l.epoch)
	return l, err
}

func (l *life) takeOver(ctx context.Context, owner string) error {
	th, ok, err := storetest.Acquire(ctx, l, l.thread, owner)
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("AcquireLease: ok=%v", ok))
	}
	l.lease = threads.Lease{ThreadID: l.thread, Owner: owner, Epoch: th.LeaseEpoch}
	return nil
}

// held is the replica that runs the thread as an actor sees it, who may be late.
func (l *life) held() (threads.Lease, turns.Turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease, l.turn
}

func (l *life) one(n int) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.asked) == 0 {
		return "", false
	}
	return l.asked[n%len(l.asked)], true
}

func (l *life) deliver(id string, status approvals.Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[id]++
	if status != approvals.Allowed && status != approvals.Denied {
		l.surprises = append(l.surprises, fmt.Sprintf("the CLI was answered for %s, which is %s", id, status))
	}
}

// step is one thing that somebody does.
type step struct {
	What  string
	Which int
	Who   int
	Input int
}

func (l *life) do(ctx context.Context, s step) {
	lease, turn := l.held()
	fine := func(err error, expected ...error) bool {
		for _, e := range expected {
			if errors.Is(err, e) {
				return false
			}
		}
		if err != nil {
			l.surprise("%s: %v", s.What, err)
		}
		return err == nil
	}
	switch s.What {
	case "ask":
		expires := time.Now().Add(time.Hour)
		if s.Who == 0 {
			expires = time.Now().Add(-time.Second) // its time has run out before anybody looks
		}
		a, err := l.Ask(ctx, lease, approvals.Approval{
			ID: uuid.NewString(), Input: json.RawMessage(fmt.Sprintf(`{"command":"%d"}`, s.Input)), Terms: approvals.Terms{Rule: "ask Bash", Quorum: 1 + s.Input%2, RequesterMay: true},
			Origin:  approvals.Origin{SessionID: l.session, TurnID: turn.ID, RequestedBy: "U1"},
			Request: approvals.Request{Kind: approvals.Tool, RequestID: uuid.NewString(), ToolUseID: uuid.NewString(), ToolName: "Bash", ExpiresAt: expires},
		})
		if fine(err, threads.ErrFenced) {
			l.mu.Lock()
			l.asked = append(l.asked, a.ID)
			l.mu.Unlock()
		}
	case "allow", "deny":
		id, ok := l.one(s.Which)
		if !ok {
			return
		}
		d := approvals.Decision{ApprovalID: id, Status: approvals.Allowed, By: fmt.Sprintf("U%d", s.Who), Via: "button"}
		if s.What == "deny" {
			d.Status = approvals.Denied
		}
		if s.Input%2 == 0 {
			d.DeliverOn = lease.Owner
		}
		a, err := l.Decide(ctx, d)
		if !fine(err, pg.ErrEnded, approvals.ErrVoted) || a.Status == approvals.Pending {
			return
		}
		l.mu.Lock()
		if was, twice := l.decisions[id]; twice {
			l.surprises = append(l.surprises, fmt.Sprintf("%s was decided twice: %s, then %s", id, was, a.Status))
		}
		l.decisions[id] = a.Status
		l.mu.Unlock()
		if a.Delivered {
			l.deliver(id, a.Status)
		}
	case "deliver":
		if id, ok := l.one(s.Which); ok {
			a, err := l.Deliver(ctx, lease, id)
			if fine(err, pg.ErrNotFound) {
				l.deliver(id, a.Status)
			}
		}
	case "cancel":
		if id, ok := l.one(s.Which); ok {
			_, _, err := l.CancelApproval(ctx, lease, id)
			fine(err)
		}
	case "expire":
		if id, ok := l.one(s.Which); ok {
			_, _, err := l.ExpireApproval(ctx, id)
			fine(err, approvals.ErrTooEarly)
		}
	case "crash":
		l.mu.Lock()
		defer l.mu.Unlock()
		// The lease of a replica that died is up; another one takes over and goes on.
		if err := l.ReleaseLease(ctx, l.lease, true); err != nil {
			l.surprises = append(l.surprises, err.Error())
		}
		if err := l.takeOver(ctx, fmt.Sprintf("replica-%d", 1+s.Who%2)); err != nil {
			l.surprises = append(l.surprises, err.Error())
			return
		}
		next, err := l.ContinueTurn(ctx, l.lease, l.turn, l.session, l.epoch)
		if err != nil {
			l.surprises = append(l.surprises, err.Error())
			return
		}
		l.turn = next
	}
}

// TestAnApprovalsLife: whatever happens at once and in whatever order, an approval
// has one final state, its CLI is answered at most once and never without a
// decision, a decision has the votes it needs, and the audit tells of all of it.
func TestAnApprovalsLife(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	lives := 0
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			What:  rapid.SampledFrom([]string{"ask", "ask", "ask", "allow", "allow", "allow", "deny", "deliver", "deliver", "cancel", "expire", "crash"}).Draw(t, "what"),
			Which: rapid.IntRange(0, 5).Draw(t, "which"),
			Who:   rapid.IntRange(0, 3).Draw(t, "who"),
			Input: rapid.IntRange(0, 3).Draw(t, "input"),
		}
	}), 1, 12)
	rapid.Check(t, func(rt *rapid.T) {
		actors := [][]step{steps.Draw(rt, "first"), steps.Draw(rt, "second"), steps.Draw(rt, "third")}
		lives++
		ctx := context.Background()
		l, err := newLife(ctx, s, lives)
		if err != nil {
			rt.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, actor := range actors {
			wg.Go(func() {
				for _, st := range actor {
					l.do(ctx, st)
				}
			})
		}
		wg.Wait()
		lease, turn := l.held()
		if _, _, err := l.FinishTurn(ctx, lease, store.FinishedTurn{ID: turn.ID, State: "done", Approvals: approvals.Cancelled}); err != nil {
			rt.Fatal(err)
		}
		for _, surprise := range l.surprises {
			rt.Error(surprise)
		}
		for _, id := range l.asked {
			l.check(rt, id)
		}
	})
	report, err := s.VerifyAudit(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Error(p)
	}
	t.Logf("%d lives, %d audit rows", lives, report.Rows)
}

func (l *life) check(t *rapid.T, id string) {
	a, err := l.ApprovalByID(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	allows := 0
	for _, v := range a.Votes {
		if v.Allow {
			allows++
		}
	}
	switch {
	case a.Status == approvals.Pending:
		t.Errorf("%s has not ended", id)
	case l.decisions[id] != "" && l.decisions[id] != a.Status:
		t.Errorf("%s was %s and is %s", id, l.decisions[id], a.Status)
	case l.decisions[id] == "" && (a.Status == approvals.Allowed || a.Status == approvals.Denied):
		t.Errorf("%s is %s without a decision", id, a.Status)
	case a.Status == approvals.Allowed && allows < a.Terms.Quorum:
		t.Errorf("%s is allowed with %d of %d votes", id, allows, a.Terms.Quorum)
	case l.told[id] > 1:
		t.Errorf("the CLI was answered %d times for %s", l.told[id], id)
	case a.Delivered != (l.told[id] == 1):
		t.Errorf("%s: delivered=%v, and %d were told so", id, a.Delivered, l.told[id])
	}
}
