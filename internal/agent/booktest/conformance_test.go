package booktest_test

import (
	"context"
	"crypto/sha256"
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
	"deckhand/internal/agent/booktest"
	"deckhand/internal/store"
	"deckhand/internal/store/storetest"
)

// books is what both have.
type books interface {
	agent.Books
	Receive(ctx context.Context, e store.Envelope) (int64, bool, error)
	AcceptPrompt(ctx context.Context, p store.NewPrompt) (store.Thread, bool, error)
	ThreadByKey(ctx context.Context, k store.ThreadKey) (store.Thread, error)
	RevokeGrant(ctx context.Context, teamID string, id int64, by string) (store.Grant, bool, error)
	DecideBudget(ctx context.Context, id string, d store.BudgetDecision, by string) (store.BudgetNotice, error)
	SendNow(ctx context.Context, inboxID int64, by string) (bool, error)
	DropWaiting(ctx context.Context, inboxID int64, by, mark string) (bool, []store.Word, error)
	Edit(ctx context.Context, p store.Post, change func(json.RawMessage) (json.RawMessage, bool, error)) (bool, error)
	Delete(ctx context.Context, p store.Post) (bool, []store.Word, error)
}

var (
	_ books = (*store.Store)(nil)
	_ books = (*booktest.Books)(nil)
)

// TestTheBooksInMemoryAreTheStore makes the same random calls on the books in memory and
// on PostgreSQL, and compares every answer and every error that a caller branches on.
func TestTheBooksInMemoryAreTheStore(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	seen := map[string]int{}
	for seed := range uint64(20) {
		a, b := newCaller(t, seed, new(booktest.Books)), newCaller(t, seed, db)
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
	books books
	r     *rand.Rand
	team  string
	told  []string

	names     map[string]string // of random ids, in the order of their appearance
	threads   []store.Thread
	inbox     []int64
	posts     []store.Post
	leases    []store.Lease
	sessions  []string
	epochs    map[string]int
	turns     []store.Turn
	approvals []string
	decided   []store.Approval // allowed, and not delivered then
	grants    []int64
	calls     []store.EndedCall
	notices   []store.BudgetNotice
	lives     map[string]store.Life
	n         int
}

func newCaller(t *testing.T, seed uint64, b books) *caller {
	return &caller{t: t, books: b, r: rand.New(rand.NewPCG(seed, 1)), team: fmt.Sprintf("T%d", seed), names: map[string]string{}, epochs: map[string]int{}, lives: map[string]store.Life{}}
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
	for _, known := range []error{store.ErrNotFound, store.ErrFenced, store.ErrEnded, store.ErrTooEarly, store.ErrVoted, store.ErrChanged, store.ErrNotYet} {
		if errors.Is(err, known) {
			return "error " + known.Error()
		}
	}
	if err != nil {
		return "error"
	}
	return "ok"
}

func (c *caller) approval(a store.Approval) string {
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
		c.name("a", a.ID), " ", before, c.name("h", a.ThreadID), " ", c.name("t", a.TurnID), " ", a.Thread.ThreadTS, a.Project, " ", c.name("s", a.SessionID), a.RequestID, a.ToolUseID, a.ToolName,
		string(a.Input), a.InputSHA256[:2], a.Status, a.DecidedBy, a.DecidedVia, a.GrantID != 0, a.Reason, string(a.Answer), a.Delivered, a.DecidedAt.IsZero(),
		a.TurnEnded, a.Word > 0, votes, a.Terms, a.Dir, string(a.ToRun()), a.Edited.Times, a.Edited.By, a.Edited.SHA256[:2], a.Risks, string(a.Touches), c.name("a", a.CardID), a.Kind, a.RequestedBy, a.ExpiresAt.Sub(a.CreatedAt).Round(time.Second))
}

func (c *caller) thread(t store.Thread) string {
	held := t.LeaseOwner != ""
	return fmt.Sprint(c.name("h", t.ID), t.ThreadTS, t.Project, t.OwnerID, c.name("s", t.SessionID), t.Workspace, t.WorkspaceReplica, t.LeaseOwner, t.LeaseEpoch, held)
}

func (c *caller) turn(t store.Turn) string {
	return fmt.Sprint(c.name("t", t.ID), c.name("h", t.ThreadID), c.name("s", t.SessionID), t.Epoch, t.RequestedBy, t.State, t.Problem, t.Attempt, t.Rests, t.Rest, t.StartedAt.IsZero())
}

func (c *caller) prompt(p store.Prompt) string {
	return fmt.Sprint(c.name("i", p.InboxID), c.name("h", p.ThreadID), p.Thread.ThreadTS, p.UUID, p.UserID, p.TS, p.Text, p.NotYet, p.Attempts, p.WaitsSince.IsZero(), p.Why, p.Marked, p.UrgentAt.IsZero(), p.UrgentBy)
}

// saying are words that were written, in their order but for marks, which are of one
// statement.
func (c *caller) saying(words []store.Word) string {
	var out, marks []string
	for _, w := range words {
		said := fmt.Sprint(w.Kind, w.Thread.ThreadTS, w.Thread.ChannelID, c.name("t", w.TurnID), c.name("i", w.InboxID), w.TS, w.UserID, w.Body, w.Again, w.ID > 0)
		if w.Kind == store.WordMark {
			marks = append(marks, said)
		} else {
			out = append(out, said)
		}
	}
	slices.Sort(marks)
	return fmt.Sprint(out, marks)
}

func (c *caller) ask() store.Approval {
	turn := pick(c, c.turns)
	a := store.Approval{
		ID: c.id(), SessionID: turn.SessionID, TurnID: turn.ID, Kind: store.ApprovalTool, RequestID: fmt.Sprint("r", c.n), ToolUseID: fmt.Sprint("u", c.n),
		ToolName: "Bash", Input: json.RawMessage(pick(c, []string{`{"command":"a"}`, `{"command":"b"}`})), RequestedBy: "U1", ExpiresAt: time.Now().Add(time.Hour),
		Terms: store.Terms{Rule: "ask Bash", Quorum: pick(c, []int{2, 0, 1, 1}), Grantable: c.r.IntN(5) > 0, RequesterMay: c.r.IntN(4) > 0, Fixed: c.r.IntN(4) == 0},
	}
	switch c.r.IntN(6) {
	case 0:
		a.ExpiresAt = time.Now().Add(-time.Minute)
	case 1:
		a.Status, a.DecidedBy, a.DecidedVia = store.ApprovalDenied, "rule", "rule"
	case 2:
		if g := pick(c, c.grants); g != 0 {
			a.Status, a.DecidedBy, a.DecidedVia, a.GrantID = store.ApprovalAllowed, "U2", "grant", g
		}
	}
	return a
}

func (c *caller) post() store.Post { return pick(c, c.posts) }

// lease is mostly one that holds, sometimes one that is lost.
func (c *caller) lease() store.Lease {
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
func (c *caller) lastTurn(l store.Lease) store.Turn {
	for _, t := range slices.Backward(c.turns) {
		if t.ThreadID == l.ThreadID {
			return t
		}
	}
	return store.Turn{}
}

var calls = []struct {
	name string
	fn   func(ctx context.Context, c *caller) string
}{
	{"receive and accept", accept},
	{"accept another", accept},
	{"accept twice", func(ctx context.Context, c *caller) string {
		th := pick(c, c.threads)
		th, ok, err := c.books.AcceptPrompt(ctx, store.NewPrompt{InboxID: pick(c, c.inbox), Thread: th.Key(), Project: "web", UserID: "U1", UUID: c.id(), Text: "again"})
		if th.TeamID == "" {
			return "error nothing"
		}
		return fmt.Sprint(ok, fate(err))
	}},
	{"accept, going on", func(ctx context.Context, c *caller) string {
		l, th := c.lease(), store.Thread{}
		t := c.lastTurn(l)
		for _, of := range c.threads {
			if of.ID == l.ThreadID {
				th = of
			}
		}
		if th.TeamID == "" || t.ID == 0 || c.r.IntN(3) > 0 {
			return "error nothing"
		}
		// The thread has nothing else to do, more often than not.
		_, _, _ = c.books.DropPrompts(ctx, l, store.Drop{Outcome: "stopped"})
		_, _, _ = c.books.FinishTurn(ctx, l, store.FinishedTurn{ID: t.ID, State: "interrupted", OverBudget: true, Approvals: store.ApprovalCancelled})
		id, _, err := c.books.Receive(ctx, store.Envelope{EventID: c.id(), Kind: store.KindAction, TeamID: c.team, ChannelID: th.ChannelID, ThreadTS: th.ThreadTS, TS: th.ThreadTS, UserID: "U1", Payload: []byte("{}")})
		if err != nil {
			return fate(err)
		}
		c.inbox = append(c.inbox, id)
		_, ok, err := c.books.AcceptPrompt(ctx, store.NewPrompt{InboxID: id, Thread: th.Key(), Project: "web", UserID: "U1", UUID: c.id(), Text: "continue", Continues: t.ID})
		return fmt.Sprint(ok, fate(err))
	}},
	{"acquire", acquire},
	{"acquire again", acquire},
	{"beat", beat},
	{"begin to live", func(ctx context.Context, c *caller) string {
		id := c.replica()
		l, err := c.books.BeginLife(ctx, store.Replica{ID: id, Kernel: pick(c, []string{"k", "k", "other"}), Slots: 3, Lease: time.Minute})
		if err == nil {
			c.lives[id] = l
		}
		return fmt.Sprint(id, c.name("life", l.Number), fate(err))
	}},
	{"bury", func(ctx context.Context, c *caller) string {
		peers, err := c.books.Living(ctx)
		if err != nil || len(peers) == 0 || c.r.IntN(3) > 0 {
			return fmt.Sprint("error none ", fate(err))
		}
		p := pick(c, peers)
		p.Beat -= int64(c.r.IntN(2))
		dead, err := c.books.Bury(ctx, p)
		return fmt.Sprint(p.Replica, dead, fate(err))
	}},
	{"end a life", func(ctx context.Context, c *caller) string {
		if c.r.IntN(3) > 0 {
			return "error not now"
		}
		return fate(c.books.EndLife(ctx, c.lives[c.replica()]))
	}},
	{"release", func(ctx context.Context, c *caller) string { return fate(c.books.ReleaseLease(ctx, c.lease(), true)) }},
	{"unattended", func(ctx context.Context, c *caller) string {
		ids, err := c.books.Unattended(ctx, "A"+c.team, []int64{})
		var names []string
		for _, th := range c.threads {
			if slices.Contains(ids, th.ID) {
				names = append(names, th.ThreadTS)
			}
		}
		slices.Sort(names)
		return fmt.Sprint(slices.Compact(names), fate(err))
	}},
	{"rest", func(ctx context.Context, c *caller) string {
		l := c.lease()
		t := c.lastTurn(l)
		var waits []string
		if a := pick(c, c.approvals); a != "" {
			waits = append(waits, a)
		}
		ok, err := c.books.RestTurn(ctx, l, t.ID, waits)
		return fmt.Sprint(ok, fate(err))
	}},
	{"unanswered", func(ctx context.Context, c *caller) string {
		list, err := c.books.Unanswered(ctx, pick(c, c.turns).ID)
		var out []string
		for _, a := range list {
			out = append(out, c.approval(a))
		}
		return fmt.Sprint(out, fate(err))
	}},
	{"workspace", func(ctx context.Context, c *caller) string { return fate(c.books.SetWorkspace(ctx, c.lease(), "/ws")) }},
	{"session", session},
	{"another session", session},
	{"started", func(ctx context.Context, c *caller) string {
		s := pick(c, c.sessions)
		if s == "" {
			return "error nothing"
		}
		if c.r.IntN(3) == 0 {
			_ = c.books.MarkStarted(ctx, s)
		}
		ok, err := c.books.SessionStarted(ctx, s)
		return fmt.Sprint(ok, fate(err))
	}},
	{"next prompt", func(ctx context.Context, c *caller) string {
		p, err := c.books.NextPrompt(ctx, pick(c, c.threads).ID)
		return fmt.Sprint(c.prompt(p), fate(err))
	}},
	{"put off a prompt", func(ctx context.Context, c *caller) string {
		l, id, after := c.lease(), pick(c, c.inbox), -time.Second
		if c.r.IntN(3) == 0 {
			after = time.Hour
		}
		if c.r.IntN(2) == 0 {
			return "error not now"
		}
		return fate(c.books.PutOffPrompt(ctx, l, id, after, "No answer."))
	}},
	{"drop a prompt", func(ctx context.Context, c *caller) string {
		if c.r.IntN(4) > 0 {
			return "error not now"
		}
		l, id := c.lease(), pick(c, c.inbox)
		if p, err := c.books.NextPrompt(ctx, l.ThreadID); err == nil && c.r.IntN(3) > 0 {
			id = p.InboxID
		}
		words, err := c.books.DropPrompt(ctx, l, id, store.Drop{
			Outcome: "over budget", Mark: "over budget", Sentence: func(n int) string { return fmt.Sprint(n, " not begun") },
		})
		return c.saying(words) + fate(err)
	}},
	{"send a prompt now", func(ctx context.Context, c *caller) string {
		id := pick(c, c.inbox)
		if id == 0 || c.r.IntN(2) == 0 {
			return "error not now"
		}
		ok, err := c.books.SendNow(ctx, id, pick(c, []string{"U1", "U2"}))
		return fmt.Sprint(ok, fate(err))
	}},
	{"take a prompt back", func(ctx context.Context, c *caller) string {
		id := pick(c, c.inbox)
		if id == 0 || c.r.IntN(4) > 0 {
			return "error not now"
		}
		ok, words, err := c.books.DropWaiting(ctx, id, "U2", "stopped")
		return fmt.Sprint(ok, c.saying(words), fate(err))
	}},
	{"change a post", func(ctx context.Context, c *caller) string {
		p := c.post()
		if p.TS == "" || c.r.IntN(4) > 0 {
			return "error not now"
		}
		was := ""
		ok, err := c.books.Edit(ctx, p, func(old json.RawMessage) (json.RawMessage, bool, error) {
			was = string(old)
			return json.RawMessage(fmt.Sprintf(`{"n":%d}`, c.n)), true, nil
		})
		return fmt.Sprint(ok, strings.ReplaceAll(was, " ", ""), fate(err))
	}},
	{"delete a post", func(ctx context.Context, c *caller) string {
		p := c.post()
		if p.TS == "" || c.r.IntN(4) > 0 {
			return "error not now"
		}
		ok, words, err := c.books.Delete(ctx, p)
		return fmt.Sprint(ok, c.saying(words), fate(err))
	}},
	{"drop prompts", func(ctx context.Context, c *caller) string {
		if c.r.IntN(6) > 0 {
			return "error not now"
		}
		dropped, words, err := c.books.DropPrompts(ctx, c.lease(), store.Drop{
			Outcome: "stopped", Mark: pick(c, []string{"stopped", ""}), Sentence: func(n int) string { return fmt.Sprint(n, " dropped") },
		})
		slices.SortFunc(dropped, func(a, b store.Prompt) int { return strings.Compare(a.UUID, b.UUID) })
		var out []string
		for _, p := range dropped {
			out = append(out, c.prompt(p))
		}
		return fmt.Sprint(out, c.saying(words), fate(err))
	}},
	{"say", func(ctx context.Context, c *caller) string {
		w, err := c.books.Say(ctx, c.lease(), "words")
		if err != nil {
			return fate(err)
		}
		return c.saying([]store.Word{w})
	}},
	{"leave a turn", func(ctx context.Context, c *caller) string {
		l := c.lease()
		t := c.lastTurn(l)
		if t.ID == 0 {
			return "error nothing"
		}
		w, err := c.books.LeaveTurn(ctx, l, t.ID, "elsewhere")
		if err != nil {
			return fate(err)
		}
		return c.saying([]store.Word{w})
	}},
	{"begin a turn", begin},
	{"begin another turn", begin},
	{"begin one more turn", begin},
	{"running turn", func(ctx context.Context, c *caller) string {
		t, p, err := c.books.RunningTurn(ctx, pick(c, c.threads).ID)
		return fmt.Sprint(c.turn(t), c.prompt(p), fate(err))
	}},
	{"continue a turn", func(ctx context.Context, c *caller) string {
		l := c.lease()
		old, _, err := c.books.RunningTurn(ctx, l.ThreadID)
		if err != nil || c.r.IntN(2) == 0 {
			return "error nothing"
		}
		t, err := c.books.ContinueTurn(ctx, l, old, old.SessionID, old.Epoch)
		if err == nil {
			c.turns = append(c.turns, t)
		}
		return fmt.Sprint(c.turn(t), fate(err))
	}},
	{"finish a turn", func(ctx context.Context, c *caller) string {
		l := c.lease()
		t := c.lastTurn(l)
		if t.ID == 0 || c.r.IntN(2) == 0 {
			return "error nothing"
		}
		ended, words, err := c.books.FinishTurn(ctx, l, store.FinishedTurn{
			View: pick(c, [][]byte{nil, []byte("{}")}), Mark: pick(c, []string{"failed", ""}), ID: t.ID, State: "failed", Problem: "broken", OverBudget: c.r.IntN(2) == 0, AgentTurns: c.r.IntN(2), Answer: fmt.Sprint("answer ", c.n),
			Transcripts: c.parts(ctx), Approvals: pick(c, []store.ApprovalStatus{store.ApprovalCancelled, store.ApprovalInterrupted, ""}),
		})
		var out []string
		for _, a := range ended {
			out = append(out, c.approval(a))
		}
		slices.Sort(out)
		return fmt.Sprint(out, c.saying(words), fate(err))
	}},
	{"begin a call", beginCall},
	{"begin another call", beginCall},
	{"see a call", func(ctx context.Context, c *caller) string {
		call := pick(c, c.calls)
		return fate(c.books.SeenCall(ctx, call.ID, c.usage()))
	}},
	{"end calls", endCalls},
	{"end more calls", endCalls},
	{"end lost calls", func(ctx context.Context, c *caller) string {
		if c.r.IntN(4) > 0 {
			return "error not now"
		}
		_, err := c.books.EndLostCalls(ctx) // of all teams, so that the number differs
		return fate(err)
	}},
	{"witness", func(ctx context.Context, c *caller) string {
		l := c.lease()
		t := c.lastTurn(l)
		if t.ID == 0 {
			return "error nothing"
		}
		return fate(c.books.AddWitness(ctx, l, store.Witness{SessionID: t.SessionID, Epoch: t.Epoch, Before: 1, After: 1 + int64(c.r.IntN(3)), Model: "model-0"}))
	}},
	{"ask", ask},
	{"ask more", ask},
	{"ask again", ask},
	{"ask once more", ask},
	{"decide", decide},
	{"decide another", decide},
	{"decide again", decide},
	{"deliver", func(ctx context.Context, c *caller) string {
		l, id := c.lease(), pick(c, c.approvals)
		if a := pick(c, c.decided); a.ID != "" && c.r.IntN(2) == 0 {
			id = a.ID
			for _, its := range c.leases { // the last is the latest
				if its.ThreadID == a.ThreadID {
					l = its
				}
			}
		}
		a, err := c.books.Deliver(ctx, l, id)
		return fmt.Sprint(c.approval(a), fate(err))
	}},
	{"cancel", func(ctx context.Context, c *caller) string {
		if c.r.IntN(3) > 0 {
			return "error not now"
		}
		a, ok, err := c.books.CancelApproval(ctx, c.lease(), pick(c, c.approvals))
		return fmt.Sprint(c.approval(a), ok, fate(err))
	}},
	{"expire", func(ctx context.Context, c *caller) string {
		a, ok, err := c.books.ExpireApproval(ctx, pick(c, c.approvals))
		if err != nil {
			a = store.Approval{}
		}
		return fmt.Sprint(c.approval(a), ok, fate(err))
	}},
	{"approval", func(ctx context.Context, c *caller) string {
		a, err := c.books.ApprovalByID(ctx, pick(c, c.approvals))
		return fmt.Sprint(c.approval(a), fate(err))
	}},
	{"grants", func(ctx context.Context, c *caller) string {
		t := pick(c, c.turns)
		if t.ID == 0 {
			return "error nothing"
		}
		return c.live(ctx, t.ThreadID, t.SessionID, pick(c, []string{`{"command":"a"}`, `{"command":"b"}`}))
	}},
	{"revoke", func(ctx context.Context, c *caller) string {
		if c.r.IntN(4) > 0 {
			return "error not now"
		}
		g, ok, err := c.books.RevokeGrant(ctx, c.team, pick(c, c.grants), "U1")
		if err != nil {
			return fate(err)
		}
		return fmt.Sprint(c.name("g", g.ID), g.Pattern, g.CreatedBy, ok, fate(err))
	}},
	{"notice a budget", func(ctx context.Context, c *caller) string {
		th := pick(c, c.threads)
		if th.ID == 0 {
			return "error nothing"
		}
		n := store.BudgetNotice{
			ID: c.id(), BudgetWindow: c.window(), LimitMicroUSD: pick(c, []int64{100, 200}), Share: pick(c, []int{50, 80, 100}), SpentMicroUSD: 60, ThreadID: th.ID,
		}
		noted, fresh, err := c.books.NoticeBudget(ctx, n)
		if fresh {
			c.notices = append(c.notices, noted)
		}
		return fmt.Sprint(noted.Share, noted.LimitMicroUSD, noted.Decision, noted.Project, fresh, fate(err))
	}},
	{"decide a budget", func(ctx context.Context, c *caller) string {
		of := pick(c, c.notices)
		if of.ID == "" {
			return "error nothing"
		}
		n, err := c.books.DecideBudget(ctx, of.ID, pick(c, []store.BudgetDecision{{RaiseMicroUSD: 50}, {Model: "haiku"}, {Leave: true}}), "U1")
		return fmt.Sprint(n.Decision, n.DecidedBy, n.Share, fate(err))
	}},
	{"budget", func(ctx context.Context, c *caller) string {
		states, err := c.books.BudgetStates(ctx, []store.BudgetWindow{c.window(), c.window()})
		return fmt.Sprint(states, fate(err))
	}},
	{"wait for a budget", func(ctx context.Context, c *caller) string {
		n, inbox := pick(c, c.notices), pick(c, c.inbox)
		if n.ID == "" || inbox == 0 {
			return "error nothing"
		}
		return fate(c.books.WaitForBudget(ctx, c.lease(), inbox, n, c.r.IntN(3)))
	}},
	{"wake what waits", func(ctx context.Context, c *caller) string {
		if c.r.IntN(4) > 0 {
			return "error not now"
		}
		return fate(c.books.WakeWaits(ctx))
	}},
	{"stopped turn", func(ctx context.Context, c *caller) string {
		id, err := c.books.StoppedTurn(ctx, pick(c, c.threads).ID)
		return fmt.Sprint(c.name("t", id), fate(err))
	}},
	{"recent output", func(ctx context.Context, c *caller) string {
		longest, calls, err := c.books.RecentOutput(ctx, c.team, "web", "model-1")
		return fmt.Sprint(longest, calls, fate(err))
	}},
	{"follow a session", func(ctx context.Context, c *caller) string {
		l, id, from := c.lease(), c.id(), pick(c, c.sessions)
		if from == "" || c.r.IntN(2) == 0 {
			return "error nothing"
		}
		begin := c.books.StartAnew
		if c.r.IntN(4) == 0 {
			begin = c.books.NewSession // by /clear
		}
		if err := begin(ctx, l, id, from); err != nil {
			return fate(err)
		}
		c.sessions = append(c.sessions, id)
		epoch, err := c.books.BeginEpoch(ctx, l, id, "2.1.329", 0)
		c.epochs[id] = epoch
		said, err2 := c.books.SessionHistory(ctx, id, 3)
		var out []string
		for _, e := range said {
			out = append(out, strings.Join([]string{e.UserID, e.Prompt, e.Answer, e.State}, "/"))
		}
		return fmt.Sprint(c.name("s", id), epoch, out, fate(err), fate(err2))
	}},
	{"save transcripts", func(ctx context.Context, c *caller) string {
		l, parts := c.lease(), c.parts(ctx)
		if parts == nil {
			return "error nothing"
		}
		saved, err := c.books.SaveTranscripts(ctx, l, parts)
		return fmt.Sprint(saved, fate(err), c.copies(ctx, parts[0].SessionID))
	}},
	{"spoke", func(ctx context.Context, c *caller) string {
		s := pick(c, c.sessions)
		if s == "" {
			return "error nothing"
		}
		ok, err := c.books.SessionSpoke(ctx, s)
		return fmt.Sprint(ok, fate(err))
	}},
}

// parts are one or two parts of a session's transcripts, as one who knows them would write
// them, or does not.
func (c *caller) parts(ctx context.Context) (out []store.TranscriptPart) {
	s := pick(c, c.sessions)
	if s == "" {
		return nil
	}
	texts := c.copies(ctx, s)
	for _, agent := range []string{"", "agent-a"}[:1+c.r.IntN(2)] {
		p := store.TranscriptPart{SessionID: s, Agent: agent, Full: c.r.IntN(8) == 0}
		was, known := texts[agent]
		if known != (c.r.IntN(6) == 0) {
			sum := sha256.Sum256([]byte(was))
			p.WasBytes, p.WasSHA256, p.From = int64(len(was)), sum[:], int64(len(was)*c.r.IntN(2))
		} else {
			was = ""
		}
		for range c.r.IntN(3) {
			p.Pieces = append(p.Pieces, fmt.Appendf(nil, "line %d\n", c.n))
		}
		all := append([]byte(was)[:p.From], slices.Concat(p.Pieces...)...)
		p.Bytes, p.SHA256 = int64(len(all)), sha256.Sum256(all)
		out = append(out, p)
	}
	return out
}

// copies are the texts of a session's transcripts, by subagents.
func (c *caller) copies(ctx context.Context, session string) map[string]string {
	list, err := c.books.Transcripts(ctx, session)
	if err != nil {
		c.t.Fatal(err)
	}
	out := map[string]string{}
	for _, t := range list {
		var text strings.Builder
		if err := c.books.ReadTranscript(ctx, t, &text); err != nil {
			c.t.Fatal(err)
		}
		out[t.Agent] = text.String()
	}
	return out
}

func (c *caller) window() store.BudgetWindow {
	w := store.BudgetWindow{TeamID: c.team, Period: store.BudgetMonthly}
	w.From, w.To = w.Period.Span(time.Now(), time.UTC)
	switch c.r.IntN(4) {
	case 0:
		w.Scope = store.BudgetWorkspace
	case 1:
		w.Scope, w.Key = store.BudgetChannel, "C1"
	case 2:
		w.Scope, w.Key = store.BudgetProject, "web"
	case 3:
		w.Scope, w.Key = store.BudgetPerson, "U1"
	}
	return w
}

func accept(ctx context.Context, c *caller) string {
	key := store.ThreadKey{TeamID: c.team, ChannelID: pick(c, []string{"C1", "C2"}), ThreadTS: "1.1"}
	ts := fmt.Sprintf("%d.%d", 100+c.r.IntN(50), c.n)
	id, fresh, err := c.books.Receive(ctx, store.Envelope{
		EventID: c.team + "-" + fmt.Sprint(c.r.IntN(200)), Kind: store.KindMessage, TeamID: key.TeamID, ChannelID: key.ChannelID, ThreadTS: key.ThreadTS, TS: ts, UserID: "U1", Payload: json.RawMessage(`{}`),
	})
	if err != nil || !fresh {
		return fmt.Sprint(fresh, fate(err))
	}
	c.inbox, c.posts = append(c.inbox, id), append(c.posts, store.Post{TeamID: key.TeamID, ChannelID: key.ChannelID, TS: ts, UserID: "U1"})
	if c.r.IntN(8) == 0 {
		return "received only"
	}
	th, ok, err := c.books.AcceptPrompt(ctx, store.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: c.id(), Text: fmt.Sprint("prompt ", c.n), Files: []store.PromptFile{{ID: fmt.Sprint("F", c.n), Name: "a.txt"}}})
	c.threads = append(c.threads, th)
	same, err2 := c.books.ThreadByKey(ctx, key)
	return fmt.Sprint(c.thread(th), ok, fate(err), c.thread(same), fate(err2))
}

// replica is one that is drawn.
func (c *caller) replica() string {
	return pick(c, []string{"C", "B", "A", "A"}) + c.team
}

func (c *caller) endAll() {
	c.t.Helper()
	peers, err := c.books.Living(c.t.Context())
	for _, p := range peers {
		err = errors.Join(err, c.books.EndLife(c.t.Context(), p.Life))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func beat(ctx context.Context, c *caller) string {
	l := c.lives[c.replica()]
	held, peers, err := c.books.Beat(ctx, l, store.Load{Slots: 3, Busy: c.r.IntN(3), Turns: c.r.IntN(3)})
	said := ""
	for _, th := range c.threads {
		for _, h := range held {
			if h.ThreadID == th.ID {
				said += fmt.Sprint(" ", th.ThreadTS, h.Owner, h.Epoch)
			}
		}
	}
	for _, p := range peers {
		said += fmt.Sprint(" ", p.Replica, c.name("life", p.Number), p.Beat, p.Lease, p.Load, p.Free())
	}
	return said + " " + fate(err)
}

func acquire(ctx context.Context, c *caller) string {
	id := c.replica()
	if c.lives[id].Number == 0 {
		l, err := c.books.BeginLife(ctx, store.Replica{ID: id, Kernel: "k", Slots: 3, Lease: time.Minute})
		if err != nil {
			return fate(err)
		}
		c.lives[id] = l
	}
	th, ok, err := c.books.AcquireLease(ctx, pick(c, c.threads).ID, c.lives[id], c.r.IntN(4) > 0)
	if ok {
		c.leases = append(c.leases, store.Lease{ThreadID: th.ID, Owner: id, Epoch: th.LeaseEpoch})
		return fmt.Sprint(c.thread(th), ok, fate(err))
	}
	return fmt.Sprint("error held ", fate(err))
}

func session(ctx context.Context, c *caller) string {
	l, id := c.lease(), c.id()
	if err := c.books.NewSession(ctx, l, id, ""); err != nil {
		return fate(err)
	}
	c.sessions = append(c.sessions, id)
	epoch, err := c.books.BeginEpoch(ctx, l, id, "2.1.329", 0)
	c.epochs[id] = epoch
	return fmt.Sprint(c.name("s", id), epoch, fate(err))
}

func begin(ctx context.Context, c *caller) string {
	l := c.lease()
	s := pick(c, c.sessions)
	if s == "" {
		return "error nothing"
	}
	t, p, ok, err := c.books.BeginTurn(ctx, l, s, c.epochs[s])
	if ok && err == nil {
		c.turns = append(c.turns, t)
	}
	if err != nil {
		ok = false
	}
	return fmt.Sprint(c.turn(t), c.prompt(p), ok, fate(err))
}

func beginCall(ctx context.Context, c *caller) string {
	l := c.lease()
	t := c.lastTurn(l)
	id := uuid.MustParse(c.id())
	if t.ID == 0 {
		return fate(c.books.BeginCall(ctx, store.OpenCall{ID: id, Lease: l, SessionID: uuid.Nil.String(), Model: "model-1", StartedAt: time.Now()}))
	}
	o := store.OpenCall{ID: id, Lease: l, SessionID: t.SessionID, Epoch: t.Epoch, Model: "model-1", StartedAt: time.Now(), ReservedMicroUSD: 50, BoundMicroUSD: 50}
	if c.r.IntN(5) > 0 { // else one that the books forget, as in a crash
		var budgets []store.CallBudget
		for range c.r.IntN(3) {
			limit := pick(c, []int64{0, 60, 1000, 1 << 40})
			budgets = append(budgets, store.CallBudget{BudgetWindow: c.window(), LimitMicroUSD: limit, GoesOn: func(model string) bool { return model == "haiku" && limit == 60 }})
		}
		err := c.books.BeginCall(ctx, o, budgets...)
		if over, ok := errors.AsType[*store.OverBudgetError](err); ok {
			return fmt.Sprint("over ", over.Budget, over.State, over.Waits)
		}
		if err != nil {
			return fate(err)
		}
	}
	c.calls = append(c.calls, store.EndedCall{OpenCall: o})
	return "ok"
}

func (c *caller) usage() store.CallUsage {
	n := int64(c.r.IntN(1000))
	return store.CallUsage{Model: pick(c, []string{"", "model-0"}), RequestID: "req", Input: 10, Output: n, MicroUSD: n, ContractMicroUSD: &n, BoundMicroUSD: int64(c.r.IntN(2))}
}

// endCalls ends some of the latest calls, some of them again.
func endCalls(ctx context.Context, c *caller) string {
	var ended []store.EndedCall
	for range c.r.IntN(3) {
		call := pick(c, c.calls)
		call.Usage, call.Status, call.EndedAt = c.usage(), 200, time.Now()
		call.Complete = call.Usage.BoundMicroUSD == 0
		if call.ID != uuid.Nil && !slices.ContainsFunc(ended, func(o store.EndedCall) bool { return o.ID == call.ID }) {
			ended = append(ended, call)
		}
	}
	if len(ended) == 0 {
		return "error nothing"
	}
	return fate(c.books.EndCalls(ctx, ended))
}

func ask(ctx context.Context, c *caller) string {
	a := c.ask()
	if a.TurnID == 0 {
		return "error nothing"
	}
	l := c.lease()
	for _, have := range c.leases {
		if have.ThreadID == c.threadOf(a.TurnID) {
			l = have
		}
	}
	out, err := c.books.Ask(ctx, l, a)
	if err == nil && !slices.Contains(c.approvals, out.ID) {
		c.approvals = append(c.approvals, out.ID)
	}
	return fmt.Sprint(c.approval(out), fate(err))
}

func (c *caller) threadOf(turn int64) int64 {
	for _, t := range c.turns {
		if t.ID == turn {
			return t.ThreadID
		}
	}
	return 0
}

func decide(ctx context.Context, c *caller) string {
	d := store.Decision{
		ApprovalID: pick(c, c.approvals), Status: pick(c, []store.ApprovalStatus{store.ApprovalAllowed, store.ApprovalAllowed, store.ApprovalDenied}), By: pick(c, []string{"U2", "U3"}), Via: "button",
		DeliverOn: pick(c, []string{"", "A"}), Seen: pick(c, []int{0, 0, 0, 1}),
	}
	switch c.r.IntN(6) {
	case 0:
		d.Edit = &store.Edit{Input: json.RawMessage(`{"command":"other"}`), Risks: []string{"network"}, Touches: json.RawMessage(`[]`)}
	case 1:
	default:
		if d.Status != store.ApprovalAllowed {
			break
		}
		for range 1 + c.r.IntN(2) {
			d.Grants = append(d.Grants, store.NewGrant{
				Scope: pick(c, []store.GrantScope{store.GrantSession, store.GrantThread, store.GrantChannel, store.GrantProject}), Pattern: pick(c, []string{"", "Bash(a *)"}), For: time.Hour,
			})
		}
	}
	a, err := c.books.Decide(ctx, d)
	if err == nil && a.Status == store.ApprovalAllowed && !a.Delivered {
		c.decided = append(c.decided, a)
	}
	said := fmt.Sprint(c.approval(a), fate(err))
	if err == nil && len(d.Grants) > 0 {
		said += c.live(ctx, a.ThreadID, a.SessionID, string(a.Input))
	}
	return said
}

// live lists the grants that hold for a call.
func (c *caller) live(ctx context.Context, threadID int64, session, input string) string {
	live, err := c.books.LiveGrants(ctx, store.Lease{ThreadID: threadID}, session, pick(c, [][]string{{"Bash"}, {"Bash", "Edit"}, {"Edit", "Bash"}}), sha256.Sum256([]byte(input)))
	var out []string
	for _, g := range live {
		out = append(out, fmt.Sprint(c.name("g", g.ID), g.Pattern, g.Approvers, g.CreatedBy))
		if !slices.Contains(c.grants, g.ID) {
			c.grants = append(c.grants, g.ID)
		}
	}
	return fmt.Sprint(out, fate(err))
}

// TestAThreadWithANumberThatWasFetched: a thread is opened with it, and one that is there
// keeps its own; nobody else gets it.
func TestAThreadWithANumberThatWasFetched(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]books{"postgres": storetest.New(t), "memory": new(booktest.Books)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			open := func(ts string, with store.Prepared) store.Thread {
				t.Helper()
				n++
				key := store.ThreadKey{TeamID: "T1", ChannelID: "C1", ThreadTS: ts}
				id, _, err := b.Receive(t.Context(), store.Envelope{EventID: fmt.Sprint(n), Kind: store.KindMessage, TeamID: "T1", ChannelID: "C1", ThreadTS: ts, TS: fmt.Sprint(n), UserID: "U1", Payload: []byte(`{}`)})
				if err != nil {
					t.Fatal(err)
				}
				thread, ok, err := b.AcceptPrompt(t.Context(), store.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: uuid.NewString(), Text: "go", Prepared: with})
				if err != nil || !ok {
					t.Fatal(ok, err)
				}
				return thread
			}
			next := func() int64 {
				t.Helper()
				id, err := b.NextThread(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return id
			}
			first, second := next(), next()
			plain := open("1.0", store.Prepared{})
			got := open("2.0", store.Prepared{ThreadID: second, Replica: "A"})
			if got.ID != second || got.WorkspaceReplica != "A" || got.Workspace != "" {
				t.Errorf("opened with %d: %+v", second, got)
			}
			if again := open("1.0", store.Prepared{ThreadID: first, Replica: "A"}); again.ID != plain.ID || again.WorkspaceReplica != "" {
				t.Errorf("one that was there became %+v", again)
			}
			last := open("3.0", store.Prepared{})
			if ids := []int64{first, second, plain.ID, last.ID}; len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 4 {
				t.Errorf("numbers %v", ids)
			}
		})
	}
}
