package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// call is one under way, with what was heard of it.
type call struct {
	ledger.OpenCall
	seen   ledger.CallUsage
	turnID int64
}

// Calls are the calls under way, with what was seen of them, in the order of their
// begin.
func (b *Store) Calls() []ledger.EndedCall {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]ledger.EndedCall, len(b.calls))
	for i, c := range b.calls {
		out[i] = ledger.EndedCall{OpenCall: c.OpenCall, Usage: c.seen}
	}
	return out
}

// turnOfCall is the latest turn that a lease has begun in its thread.
func (b *Store) turnOfCall(l threads.Lease) *Turn {
	for _, t := range slices.Backward(b.turns) {
		if t.ThreadID == l.ThreadID && t.LeaseEpoch <= l.Epoch {
			return t
		}
	}
	return nil
}

// BeginCall is [store.Store.BeginCall].
func (b *Store) BeginCall(ctx context.Context, c ledger.OpenCall, budgets ...ledger.CallBudget) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	err := b.reserve(c, budgets)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.under(ctx, c.Lease, func(*threads.Thread) error {
		t := b.turnOfCall(c.Lease)
		if t == nil {
			return pg.ErrNotFound
		}
		for _, o := range b.calls {
			if o.ID == c.ID {
				o.ReservedMicroUSD = c.ReservedMicroUSD
				return nil
			}
		}
		b.calls = append(b.calls, &call{OpenCall: c, turnID: t.ID, seen: ledger.CallUsage{BoundMicroUSD: c.BoundMicroUSD}})
		return nil
	})
}

// reserve decides whether all budgets admit the call.
func (b *Store) reserve(c ledger.OpenCall, budgets []ledger.CallBudget) error {
	var wait *ledger.OverBudgetError
	for i, budget := range budgets {
		state := b.budgetState(budget.BudgetWindow)
		state.ReservedMicroUSD = b.reserved(budget.BudgetWindow, c.ID)
		if state.Model != "" && budget.GoesOn != nil && budget.GoesOn(state.Model) {
			continue
		}
		limit := budget.LimitMicroUSD + state.RaisedMicroUSD
		switch {
		case state.SpentMicroUSD >= limit:
			return &ledger.OverBudgetError{Budget: i, State: state}
		case state.ReservedMicroUSD > 0 && state.SpentMicroUSD+state.ReservedMicroUSD+c.ReservedMicroUSD > limit:
			wait = &ledger.OverBudgetError{Budget: i, State: state, Waits: true}
		}
	}
	if wait != nil {
		return wait
	}
	return nil
}

// reserved is what calls under way reserve of a budget, but for one.
func (b *Store) reserved(w ledger.BudgetWindow, but uuid.UUID) (micro int64) {
	for _, c := range b.calls {
		turn := b.turns[c.turnID-1]
		if c.ID != but && counts(w, b.threads[turn.ThreadID-1], turn.RequestedBy) {
			micro += max(c.ReservedMicroUSD, c.seen.MicroUSD)
		}
	}
	return micro
}

// RecentOutput is [store.Store.RecentOutput].
func (b *Store) RecentOutput(ctx context.Context, teamID, project, model string) (longest int64, err error) {
	if err := b.lock(ctx); err != nil {
		return 0, err
	}
	defer b.mu.Unlock()
	calls := 0
	for _, e := range slices.Backward(b.ledger) {
		t := b.threads[b.turns[e.TurnID-1].ThreadID-1]
		if e.Kind == kindCall && e.Model == model && t.TeamID == teamID && t.Project == project && calls < 100 {
			longest, calls = max(longest, e.Output), calls+1
		}
	}
	return longest, nil
}

// SeenCall is [store.Store.SeenCall].
func (b *Store) SeenCall(ctx context.Context, id uuid.UUID, u ledger.CallUsage) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, c := range b.calls {
		if c.ID == id {
			c.Model, c.seen = cmp.Or(u.Model, c.Model), u
		}
	}
	return nil
}

// EndCalls is [store.Store.EndCalls].
func (b *Store) EndCalls(ctx context.Context, ended []ledger.EndedCall) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for _, c := range ended {
		if s, ok := b.sessions[c.SessionID]; !ok || c.Epoch < 1 || c.Epoch > len(s.baselines) || b.turnOfCall(c.Lease) == nil {
			return fmt.Errorf("call %s has no turn or epoch to belong to", c.ID)
		}
	}
	for _, c := range ended {
		turn := b.turnOfCall(c.Lease).ID
		for _, o := range b.calls {
			if o.ID == c.ID {
				turn = o.turnID
			}
		}
		b.bookCall(turn, c)
	}
	return nil
}

// EndLostCalls is [store.Store.EndLostCalls].
func (b *Store) EndLostCalls(ctx context.Context) (n int, err error) {
	if err := b.lock(ctx); err != nil {
		return 0, err
	}
	defer b.mu.Unlock()
	for _, c := range slices.Clone(b.calls) {
		booked := slices.ContainsFunc(b.ledger, func(e Entry) bool { return e.Call.ID == c.ID })
		if t := b.threads[c.Lease.ThreadID-1]; booked || t.LeaseEpoch != c.Lease.Epoch || t.LeaseOwner == "" {
			b.bookCall(c.turnID, ledger.EndedCall{OpenCall: c.OpenCall, Usage: c.seen})
			n++
		}
	}
	return n, nil
}

// bookCall books a call, or corrects one that was booked without its end.
func (b *Store) bookCall(turnID int64, c ledger.EndedCall) {
	b.calls = slices.DeleteFunc(b.calls, func(o *call) bool { return o.ID == c.ID })
	u := c.Usage
	c.Model = cmp.Or(u.Model, c.Model)
	e := Entry{
		Kind: kindCall, SessionID: c.SessionID, Epoch: c.Epoch, Model: c.Model,
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite5m: u.CacheWrite5m, CacheWrite1h: u.CacheWrite1h,
		WebSearches: u.WebSearches, MicroUSD: u.MicroUSD, ContractMicroUSD: u.ContractMicroUSD,
	}
	for _, old := range b.ledger {
		if old.Call.ID != c.ID {
			continue
		}
		if c.EndedAt.IsZero() || !old.Call.EndedAt.IsZero() {
			return // told already, or nothing new
		}
		turnID, e = old.TurnID, correction(e, old)
		c.Usage.BoundMicroUSD -= old.Call.Usage.BoundMicroUSD
		break
	}
	if e.Kind == kindCorrection && slices.ContainsFunc(b.ledger, func(o Entry) bool { return o.Call.ID == c.ID && o.Kind == e.Kind }) {
		return
	}
	t := b.turns[turnID-1]
	e.Call, e.TurnID, e.User, e.At = c, t.ID, t.RequestedBy, time.Now()
	b.ledger = append(b.ledger, e)
	t.CostMicroUSD += e.MicroUSD
}

// correction is what now is more than was, of the same call.
func correction(now, was Entry) Entry {
	now.Kind, now.SessionID, now.Epoch, now.Model = kindCorrection, was.SessionID, was.Epoch, was.Model
	now.Input -= was.Input
	now.Output -= was.Output
	now.CacheRead -= was.CacheRead
	now.CacheWrite5m -= was.CacheWrite5m
	now.CacheWrite1h -= was.CacheWrite1h
	now.WebSearches -= was.WebSearches
	now.MicroUSD -= was.MicroUSD
	if now.ContractMicroUSD != nil && was.ContractMicroUSD != nil {
		more := *now.ContractMicroUSD - *was.ContractMicroUSD
		now.ContractMicroUSD = &more
	}
	return now
}

// AddCLITotals is [store.Store.AddCLITotals].
func (b *Store) AddCLITotals(ctx context.Context, l threads.Lease, w ledger.CLITotal) error {
	if w.Before == w.After {
		return nil
	}
	return b.under(ctx, l, func(*threads.Thread) error {
		for _, t := range slices.Backward(b.turns) {
			if t.ThreadID == l.ThreadID {
				b.cliTotals(t, []ledger.CLITotal{w}, false)
				return nil
			}
		}
		return pg.ErrNotFound
	})
}

// cliTotals writes what the CLI says; ends says that the turn ends with it.
func (b *Store) cliTotals(t *Turn, told []ledger.CLITotal, ends bool) {
	spent := slices.ContainsFunc(told, func(w ledger.CLITotal) bool { return w.Before != w.After }) || slices.ContainsFunc(b.ledger, func(e Entry) bool {
		return e.TurnID == t.ID && e.Kind == kindCall
	})
	if len(told) == 0 && ends {
		told = []ledger.CLITotal{{SessionID: t.SessionID, Epoch: t.Epoch}}
	}
	for i, w := range told {
		counts := ends && i == len(told)-1
		if w.Before == w.After && (!counts || !spent) {
			continue
		}
		e := Entry{
			Kind: kindEnd, SessionID: w.SessionID, Epoch: w.Epoch, Model: w.Model, TotalBefore: w.Before, TotalAfter: w.After,
			TurnID: t.ID, User: t.RequestedBy, At: time.Now(),
		}
		if counts {
			e.Turns = 1
		}
		b.ledger = append(b.ledger, e)
	}
}
