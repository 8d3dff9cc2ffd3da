package memstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"deckhand/internal/agent"
	"deckhand/internal/agent/memstore"
	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/storetest"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// books is what both have.
type books interface {
	agent.Store
	Receive(ctx context.Context, e inbox.Envelope) (int64, bool, error)
	AcceptPrompt(ctx context.Context, p inbox.NewPrompt) (threads.Thread, bool, error)
	ThreadByKey(ctx context.Context, k threads.ThreadKey) (threads.Thread, error)
	RevokeGrant(ctx context.Context, teamID string, id int64, by string) (approvals.Grant, bool, error)
	DecideBudget(ctx context.Context, id string, d ledger.BudgetDecision, by string) (ledger.BudgetNotice, error)
	SendNow(ctx context.Context, inboxID int64, by string) (bool, error)
	DropWaiting(ctx context.Context, inboxID int64, by, mark, said string) (bool, []outbox.Row, error)
	Edit(ctx context.Context, p inbox.Post, change func(json.RawMessage) (json.RawMessage, bool, error)) (bool, error)
	Delete(ctx context.Context, p inbox.Post) (bool, []outbox.Row, error)
	SavePosts(ctx context.Context, posts ...outbox.PostedMessage) error
	Posts(ctx context.Context, kind outbox.PostKind, subject string) ([]outbox.PostedMessage, error)
	TurnPosts(ctx context.Context, turnID int64) ([]outbox.PostedMessage, error)
	ForgetPost(ctx context.Context, p outbox.PostedMessage, replica string) error
}

var (
	_ books = (*store.Store)(nil)
	_ books = (*memstore.Store)(nil)
)

// TestTheStoreInMemoryIsTheStore makes the same random calls on the store in memory and
// on PostgreSQL, and compares every answer and every error that a caller branches on.
func TestTheStoreInMemoryIsTheStore(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	seen := map[string]int{}
	for seed := range uint64(10) {
		a, b := newCaller(t, seed, new(memstore.Store)), newCaller(t, seed, db)
		b.endAll() // those of the seed before
		for range 400 {
			want, got := b.call(), a.call()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: PostgreSQL and the books in memory differ (-postgres +memory):\n%s\nafter:\n%s", seed, diff, strings.Join(b.told, "\n"))
			}
			seen[strings.SplitN(want, ": ", 2)[0]]++
			if !strings.Contains(want, "error") {
				seen[strings.SplitN(want, ": ", 2)[0]+" succeeds"]++
			}
		}
	}
	for i := range calls {
		if seen[calls[i].name+" succeeds"] == 0 {
			t.Errorf("no %s succeeded", calls[i].name)
		}
	}
	t.Log(seen)
}

// caller draws calls. Two with the same seed draw the same ones.
type caller struct {
	t     *testing.T
	store books
	r     *rand.Rand
	team  string
	told  []string

	names     map[string]string // of random ids, in the order of their appearance
	threads   []threads.Thread
	inbox     []int64
	posts     []inbox.Post
	leases    []threads.Lease
	sessions  []string
	epochs    map[string]int
	turns     []turns.Turn
	approvals []string
	decided   []approvals.Approval // allowed, and not delivered then
	grants    []int64
	calls     []ledger.EndedCall
	notices   []ledger.BudgetNotice
	lives     map[string]threads.Registration
	n         int
}

func newCaller(t *testing.T, seed uint64, b books) *caller {
	return &caller{t: t, store: b, r: rand.New(rand.NewPCG(seed, 1)), team: fmt.Sprintf("T%d", seed), names: map[string]string{}, epochs: map[string]int{}, lives: map[string]threads.Registration{}}
}

// call makes one call and tells what came of it.
func (c *caller) call() string {
	do := calls[c.r.IntN(len(calls))]
	c.n++
	said := do.name + ": " + do.fn(c.t.Context(), c)
	c.told = append(c.told, said)
	return said
}

func pick[T any](c *caller, from []T) T {
	n := c.r.IntN(1 << 20)
	if len(from) == 0 {
		var zero T
		return zero
	}
	// The latest are the most likely to be alive.
	return from[max(0, len(from)-1-n%min(4, len(from)))]
}

// name stands for an id that differs between the two.
func (c *caller) name(kind string, id any) string {
	key := fmt.Sprint(kind, id)
	if c.names[key] == "" {
		c.names[key] = fmt.Sprintf("%s%d", kind, len(c.names))
	}
	return c.names[key]
}

func (c *caller) id() string {
	var b [16]byte
	for i := range b {
		b[i] = byte(c.r.Uint32())
	}
	return uuid.NewSHA1(uuid.Nil, b[:]).String()
}

// fate is an error as callers branch on it.
func fate(err error) string {
	for _, known := range []error{pg.ErrNotFound, threads.ErrFenced, pg.ErrEnded, approvals.ErrTooEarly, approvals.ErrVoted, approvals.ErrChanged, pg.ErrNotYet} {
		if errors.Is(err, known) {
			return "error " + known.Error()
		}
	}
	if err != nil {
		return "error"
	}
	return "ok"
}

func (c *caller) approval(a approvals.Approval) string {
	if a.ID == "" {
		return "-"
	}
	votes := ""
	for _, v := range a.Votes {
		votes += fmt.Sprintf(" %s=%t", v.UserID, v.Allow)
	}
	before := "-"
	if b := a.Before; b != nil {
		before = fmt.Sprint(b.Ended != nil, b.Failed, b.Changed)
	}
	return fmt.Sprint(
		c.name("a", a.ID), " ", before, c.name("h", a.ThreadID), " ", c.name("t", a.TurnID), " ", a.ThreadTS, a.Project, " ", c.name("s", a.SessionID), a.RequestID, a.ToolUseID, a.ToolName,
		string(a.Input), a.InputSHA256[:2], a.Status, a.DecidedBy, a.DecidedVia, a.GrantID != 0, a.Reason, string(a.Answer), a.Delivered, a.DecidedAt.IsZero(),
		a.TurnEnded, a.HeldBy, a.OutboxID > 0, votes, a.Terms, a.Dir, string(a.ToRun()), a.Edited.Times, a.Edited.By, a.Edited.SHA256[:2], a.Risks, string(a.Touches), c.name("a", a.CardID), a.Kind, a.RequestedBy, a.ExpiresAt.Sub(a.CreatedAt).Round(10*time.Minute))
}

func (c *caller) thread(t threads.Thread) string {
	held := t.LeaseOwner != ""
	return fmt.Sprint(c.name("h", t.ID), t.ThreadTS, t.Project, t.OwnerID, c.name("s", t.SessionID), t.Workspace, t.WorkspaceReplica, t.LeaseOwner, t.LeaseEpoch, held)
}

func (c *caller) turn(t turns.Turn) string {
	return fmt.Sprint(c.name("t", t.ID), c.name("h", t.ThreadID), c.name("s", t.SessionID), t.Epoch, t.RequestedBy, t.State, t.Problem, t.Attempt, t.Rests, t.Parking, t.StartedAt.IsZero())
}

func (c *caller) prompt(p inbox.Prompt) string {
	return fmt.Sprint(c.name("i", p.InboxID), c.name("h", p.ThreadID), p.ThreadTS, p.UUID, p.UserID, p.TS, p.Text, p.NotYet, p.Attempts, p.WaitsSince.IsZero(), p.Why, p.Marked, p.UrgentAt.IsZero(), p.UrgentBy)
}

// saying are rows that were written, in their order but for marks, which are of one
// statement.
func (c *caller) saying(rows []outbox.Row) string {
	var out, marks []string
	for _, w := range rows {
		said := fmt.Sprint(w.Kind, w.ThreadTS, w.ChannelID, c.name("t", w.TurnID), c.name("i", w.InboxID), w.TS, w.UserID, w.Body, w.Again, w.ID > 0)
		if w.Kind == outbox.Mark {
			marks = append(marks, said)
		} else {
			out = append(out, said)
		}
	}
	slices.Sort(marks)
	return fmt.Sprint(out, marks)
}

func (c *caller) ask() approvals.Approval {
	turn := pick(c, c.turns)
	a := approvals.Approval{
		ID: c.id(), Input: json.RawMessage(pick(c, []string{`{"command":"a"}`, `{"command":"b"}`})), Terms: approvals.Terms{Rule: "ask Bash", Quorum: pick(c, []int{2, 0, 1, 1}), Grantable: c.r.IntN(5) > 0, RequesterMay: c.r.IntN(4) > 0, Fixed: c.r.IntN(4) == 0},
		Origin: approvals.Origin{SessionID: turn.SessionID, TurnID: turn.ID, RequestedBy: "U1"},
		Request: approvals.Request{
			Kind: approvals.Tool, RequestID: fmt.Sprint("r", c.n), ToolUseID: fmt.Sprint("u", c.n),
			ToolName: "Bash", ExpiresAt: time.Now().Add(time.Hour),
		},
	}
	switch c.r.IntN(6) {
	case 0:
		a.ExpiresAt = time.Now().Add(-time.Minute)
	case 1:
		a.Status, a.DecidedBy, a.DecidedVia = approvals.Denied, "rule", "rule"
	case 2:
		if g := pick(c, c.grants); g != 0 {
			a.Status, a.DecidedBy, a.DecidedVia, a.GrantID = approvals.Allowed, "U2", "grant", g
		}
	}
	return a
}

func (c *caller) post() inbox.Post { return pick(c, c.posts) }

// lease is mostly one that holds, sometimes one that is lost.
func (c *caller) lease() threads.Lease {
	l := pick(c, c.leases)
	if c.r.IntN(6) == 0 {
		return l
	}
	for _, latest := range slices.Backward(c.leases) {
		if latest.ThreadID == l.ThreadID {
			return latest
		}
	}
	return l
}

// lastTurn belongs to the lease's thread, if there is one.
func (c *caller) lastTurn(l threads.Lease) turns.Turn {
	for _, t := range slices.Backward(c.turns) {
		if t.ThreadID == l.ThreadID {
			return t
		}
	}
	return turns.Turn{}
}
