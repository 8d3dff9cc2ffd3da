package memstore_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/approvals"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/threads"
)

func (c *caller) window() ledger.BudgetWindow {
	w := ledger.BudgetWindow{TeamID: c.team, Period: ledger.BudgetMonthly}
	w.From, w.To = w.Period.Span(time.Now(), time.UTC)
	switch c.r.IntN(4) {
	case 0:
		w.Scope = ledger.BudgetWorkspace
	case 1:
		w.Scope, w.Key = ledger.BudgetChannel, "C1"
	case 2:
		w.Scope, w.Key = ledger.BudgetProject, "web"
	case 3:
		w.Scope, w.Key = ledger.BudgetPerson, "U1"
	}
	return w
}

func accept(ctx context.Context, c *caller) string {
	key := threads.ThreadKey{TeamID: c.team, ChannelID: pick(c, []string{"C1", "C2"}), ThreadTS: "1.1"}
	ts := fmt.Sprintf("%d.%d", 100+c.r.IntN(50), c.n)
	id, fresh, err := c.store.Receive(ctx, inbox.Envelope{
		EventID: c.team + "-" + fmt.Sprint(c.r.IntN(200)), Kind: inbox.Message, TeamID: key.TeamID, ChannelID: key.ChannelID, ThreadTS: key.ThreadTS, TS: ts, UserID: "U1", Payload: json.RawMessage(`{}`),
	})
	if err != nil || !fresh {
		return fmt.Sprint(fresh, fate(err))
	}
	c.inbox, c.posts = append(c.inbox, id), append(c.posts, inbox.Post{TeamID: key.TeamID, ChannelID: key.ChannelID, TS: ts, UserID: "U1"})
	if c.r.IntN(8) == 0 {
		return "received only"
	}
	th, ok, err := c.store.AcceptPrompt(ctx, inbox.NewPrompt{InboxID: id, Thread: key, Project: "web", UserID: "U1", UUID: c.id(), Text: fmt.Sprint("prompt ", c.n), Files: []inbox.PromptFile{{ID: fmt.Sprint("F", c.n), Name: "a.txt"}}})
	c.threads = append(c.threads, th)
	same, err2 := c.store.ThreadByKey(ctx, key)
	return fmt.Sprint(c.thread(th), ok, fate(err), c.thread(same), fate(err2))
}

// replica is one that is drawn.
func (c *caller) replica() string {
	return pick(c, []string{"C", "B", "A", "A"}) + c.team
}

func (c *caller) endAll() {
	c.t.Helper()
	peers, err := c.store.Living(c.t.Context())
	for _, p := range peers {
		err = errors.Join(err, c.store.Unregister(c.t.Context(), p.Registration))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func beat(ctx context.Context, c *caller) string {
	l := c.lives[c.replica()]
	held, peers, err := c.store.Heartbeat(ctx, l, threads.Load{Slots: 3, Busy: c.r.IntN(3), Turns: c.r.IntN(3)})
	said := ""
	for _, th := range c.threads {
		for _, h := range held {
			if h.ThreadID == th.ID {
				said += fmt.Sprint(" ", th.ThreadTS, h.Owner, h.Epoch)
			}
		}
	}
	for _, p := range peers {
		said += fmt.Sprint(" ", p.Replica, c.name("life", p.Number), p.Heartbeats, p.Lease, p.Load, p.Free())
	}
	return said + " " + fate(err)
}

func acquire(ctx context.Context, c *caller) string {
	id := c.replica()
	if c.lives[id].Number == 0 {
		l, err := c.store.Register(ctx, threads.Replica{ID: id, Kernel: "k", Slots: 3, Lease: time.Minute})
		if err != nil {
			return fate(err)
		}
		c.lives[id] = l
	}
	th, ok, err := c.store.AcquireLease(ctx, pick(c, c.threads).ID, c.lives[id], c.r.IntN(4) > 0)
	if ok {
		c.leases = append(c.leases, threads.Lease{ThreadID: th.ID, Owner: id, Epoch: th.LeaseEpoch})
		return fmt.Sprint(c.thread(th), ok, fate(err))
	}
	return fmt.Sprint("error held ", fate(err))
}

func session(ctx context.Context, c *caller) string {
	l, id := c.lease(), c.id()
	if err := c.store.NewSession(ctx, l, id, ""); err != nil {
		return fate(err)
	}
	c.sessions = append(c.sessions, id)
	epoch, err := c.store.BeginEpoch(ctx, l, id, "2.1.329", 0)
	c.epochs[id] = epoch
	return fmt.Sprint(c.name("s", id), epoch, fate(err))
}

func begin(ctx context.Context, c *caller) string {
	l := c.lease()
	s := pick(c, c.sessions)
	if s == "" {
		return "error nothing"
	}
	t, p, ok, err := c.store.BeginTurn(ctx, l, s, c.epochs[s])
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
		return fate(c.store.BeginCall(ctx, ledger.OpenCall{ID: id, Lease: l, SessionID: uuid.Nil.String(), Model: "model-1", StartedAt: time.Now()}))
	}
	o := ledger.OpenCall{ID: id, Lease: l, SessionID: t.SessionID, Epoch: t.Epoch, Model: "model-1", StartedAt: time.Now(), ReservedMicroUSD: 50, BoundMicroUSD: 50}
	if c.r.IntN(5) > 0 { // else one that the database does not get, as in a crash
		var budgets []ledger.CallBudget
		for range c.r.IntN(3) {
			limit := pick(c, []int64{0, 60, 1000, 1 << 40})
			budgets = append(budgets, ledger.CallBudget{BudgetWindow: c.window(), LimitMicroUSD: limit, GoesOn: func(model string) bool { return model == "haiku" && limit == 60 }})
		}
		err := c.store.BeginCall(ctx, o, budgets...)
		if over, ok := errors.AsType[*ledger.OverBudgetError](err); ok {
			return fmt.Sprint("over ", over.Budget, over.State, over.Waits)
		}
		if err != nil {
			return fate(err)
		}
	}
	c.calls = append(c.calls, ledger.EndedCall{OpenCall: o})
	return "ok"
}

func (c *caller) usage() ledger.CallUsage {
	n := int64(c.r.IntN(1000))
	return ledger.CallUsage{Model: pick(c, []string{"", "model-0"}), RequestID: "req", Input: 10, Output: n, MicroUSD: n, ContractMicroUSD: &n, BoundMicroUSD: int64(c.r.IntN(2))}
}

// endCalls ends some of the latest calls, some of them again.
func endCalls(ctx context.Context, c *caller) string {
	var ended []ledger.EndedCall
	for range c.r.IntN(3) {
		call := pick(c, c.calls)
		call.Usage, call.Status, call.EndedAt = c.usage(), 200, time.Now()
		call.Complete = call.Usage.BoundMicroUSD == 0
		if call.ID != uuid.Nil && !slices.ContainsFunc(ended, func(o ledger.EndedCall) bool { return o.ID == call.ID }) {
			ended = append(ended, call)
		}
	}
	if len(ended) == 0 {
		return "error nothing"
	}
	return fate(c.store.EndCalls(ctx, ended))
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
	out, err := c.store.Ask(ctx, l, a)
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
	d := approvals.Decision{
		ApprovalID: pick(c, c.approvals), Status: pick(c, []approvals.Status{approvals.Allowed, approvals.Allowed, approvals.Denied}), By: pick(c, []string{"U2", "U3"}), Via: "button",
		DeliverOn: pick(c, []string{"", "A"}), Seen: pick(c, []int{0, 0, 0, 1}),
	}
	switch c.r.IntN(6) {
	case 0:
		d.Edit = &approvals.Edit{Input: json.RawMessage(`{"command":"other"}`), Risks: []string{"network"}, Touches: json.RawMessage(`[]`)}
	case 1:
	default:
		if d.Status != approvals.Allowed {
			break
		}
		for range 1 + c.r.IntN(2) {
			d.Grants = append(d.Grants, approvals.NewGrant{
				Scope: pick(c, []approvals.GrantScope{approvals.GrantSession, approvals.GrantThread, approvals.GrantChannel, approvals.GrantProject}), Pattern: pick(c, []string{"", "Bash(a *)"}), For: time.Hour,
			})
		}
	}
	a, err := c.store.Decide(ctx, d)
	if err == nil && a.Status == approvals.Allowed && !a.Delivered {
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
	live, err := c.store.LiveGrants(ctx, threads.Lease{ThreadID: threadID}, session, pick(c, [][]string{{"Bash"}, {"Bash", "Edit"}, {"Edit", "Bash"}}), sha256.Sum256([]byte(input)))
	var out []string
	for _, g := range live {
		out = append(out, fmt.Sprint(c.name("g", g.ID), g.Pattern, g.Approvers, g.CreatedBy))
		if !slices.Contains(c.grants, g.ID) {
			c.grants = append(c.grants, g.ID)
		}
	}
	return fmt.Sprint(out, fate(err))
}
