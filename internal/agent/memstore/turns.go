package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"deckhand/internal/store"
	"deckhand/internal/store/approvals"
	"deckhand/internal/store/forges"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// waiting are the thread's prompts without a turn, the next one first.
func (b *Store) waiting(threadID int64) []*envelope {
	var out []*envelope
	for _, e := range b.inbox {
		if e.ThreadID == threadID && e.State == "accepted" {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(x, y *envelope) int {
		switch xNow, yNow := !x.UrgentAt.IsZero(), !y.UrgentAt.IsZero(); {
		case xNow && yNow:
			return cmp.Or(x.UrgentAt.Compare(y.UrgentAt), cmp.Compare(x.TS, y.TS))
		case xNow:
			return -1
		case yNow:
			return 1
		}
		return cmp.Compare(x.TS, y.TS)
	})
	return out
}

// NextPrompt is [store.Store.NextPrompt].
func (b *Store) NextPrompt(ctx context.Context, threadID int64) (inbox.Prompt, error) {
	if err := b.lock(ctx); err != nil {
		return inbox.Prompt{}, err
	}
	defer b.mu.Unlock()
	if w := b.waiting(threadID); len(w) > 0 {
		return w[0].now(), nil
	}
	return inbox.Prompt{}, pg.ErrNotFound
}

// now is the prompt as the store would read it.
func (e *envelope) now() inbox.Prompt {
	p := e.Prompt.Prompt
	p.NotYet = e.until.After(time.Now())
	return p
}

// PutOffPrompt is [store.Store.PutOffPrompt].
func (b *Store) PutOffPrompt(ctx context.Context, l threads.Lease, inboxID int64, after time.Duration, why string) error {
	return b.under(ctx, l, func(t *threads.Thread) error {
		for _, e := range b.inbox {
			if e.InboxID == inboxID && e.ThreadID == t.ID && (e.State == "accepted" || e.State == "running") {
				e.until, e.Why, e.Marked = time.Now().Add(after), why, true
				e.NextTry = e.until
				if e.Attempts++; e.WaitsSince.IsZero() {
					e.WaitsSince = time.Now()
				}
				return nil
			}
		}
		return pg.ErrNotFound
	})
}

// putOff reports whether the thread's next start waits to be tried again.
func (b *Store) putOff(threadID int64) bool {
	return slices.ContainsFunc(b.inbox, func(e *envelope) bool {
		return e.ThreadID == threadID && (e.State == "accepted" || e.State == "running") && e.until.After(time.Now())
	})
}

// DropPrompt is [store.Store.DropPrompt].
func (b *Store) DropPrompt(ctx context.Context, l threads.Lease, inboxID int64, d inbox.Drop) (rows []outbox.Row, err error) {
	err = b.under(ctx, l, func(t *threads.Thread) error {
		for _, e := range b.waiting(t.ID) {
			if e.InboxID == inboxID {
				_, rows, _ = b.drop(t.ID, []*envelope{e}, d)
				return nil
			}
		}
		return pg.ErrNotFound
	})
	return rows, err
}

// DropPrompts is [store.Store.DropPrompts].
func (b *Store) DropPrompts(ctx context.Context, l threads.Lease, d inbox.Drop) ([]inbox.Prompt, []outbox.Row, error) {
	if err := b.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer b.mu.Unlock()
	if _, err := b.holds(l); err != nil {
		return nil, nil, nil //nolint:nilerr // it drops none, as a statement that finds no row
	}
	dropped, rows, _ := b.drop(l.ThreadID, b.waiting(l.ThreadID), d)
	return dropped, rows, nil
}

func (b *Store) drop(threadID int64, list []*envelope, d inbox.Drop) (dropped []inbox.Prompt, rows, waits []outbox.Row) {
	for _, e := range list {
		e.State, e.Outcome = "done", d.Outcome
		dropped = append(dropped, e.now())
		if d.Mark != "" {
			rows = append(rows, b.addOutboxRow(threadID, outbox.Row{Kind: outbox.Mark, InboxID: e.InboxID, Body: d.Mark}))
		}
	}
	if d.Sentence != nil && len(dropped) > 0 {
		if said := d.Sentence(len(dropped)); said != "" {
			rows = append(rows, b.addOutboxRow(threadID, outbox.Row{Kind: outbox.Said, Body: said}))
		}
	}
	for _, p := range dropped {
		if p.Waited {
			waits = append(waits, b.addOutboxRow(threadID, outbox.Row{Kind: outbox.Wait, InboxID: p.InboxID}))
		}
	}
	return dropped, rows, waits
}

func (b *Store) runningTurn(threadID int64) *Turn {
	for _, t := range b.turns {
		if t.ThreadID == threadID && !t.Ended {
			return t
		}
	}
	return nil
}

func (b *Store) insertTurn(l threads.Lease, sessionID string, epoch int, user string, attempt, rests int) *Turn {
	b.sessions[sessionID].started = true
	t := &Turn{LeaseEpoch: l.Epoch, Turn: turns.Turn{
		ID: int64(len(b.turns) + 1), ThreadID: l.ThreadID, SessionID: sessionID, Epoch: epoch, RequestedBy: user,
		State: "running", Attempt: attempt, Rests: rests, StartedAt: time.Now(),
	}}
	b.turns = append(b.turns, t)
	return t
}

// BeginTurn is [store.Store.BeginTurn].
func (b *Store) BeginTurn(ctx context.Context, l threads.Lease, sessionID string, epoch int) (t turns.Turn, p inbox.Prompt, ok bool, err error) {
	err = b.under(ctx, l, func(th *threads.Thread) error {
		w := b.waiting(th.ID)
		if len(w) == 0 {
			return nil
		}
		if b.runningTurn(th.ID) != nil {
			return fmt.Errorf("thread %d has a running turn", th.ID)
		}
		row := b.insertTurn(l, sessionID, epoch, w[0].UserID, 1, 0)
		w[0].State, w[0].TurnID = "running", row.ID
		t, p, ok = row.Turn, w[0].now(), true
		w[0].Marked = false
		if p.Waited {
			b.addOutboxRow(th.ID, outbox.Row{Kind: outbox.Wait, InboxID: p.InboxID})
		}
		return nil
	})
	return t, p, ok, err
}

// RunningTurn is [store.Store.RunningTurn].
func (b *Store) RunningTurn(ctx context.Context, threadID int64) (turns.Turn, inbox.Prompt, error) {
	if err := b.lock(ctx); err != nil {
		return turns.Turn{}, inbox.Prompt{}, err
	}
	defer b.mu.Unlock()
	t := b.runningTurn(threadID)
	if t == nil {
		return turns.Turn{}, inbox.Prompt{}, pg.ErrNotFound
	}
	for _, e := range b.inbox {
		if e.TurnID == t.ID {
			return t.Turn, e.now(), nil
		}
	}
	return turns.Turn{}, inbox.Prompt{}, pg.ErrNotFound
}

// ContinueTurn is [store.Store.ContinueTurn].
func (b *Store) ContinueTurn(ctx context.Context, l threads.Lease, old turns.Turn, sessionID string, epoch int) (out turns.Turn, err error) {
	err = b.under(ctx, l, func(*threads.Thread) error {
		was := b.turns[old.ID-1]
		if !was.Ended {
			was.State, was.Problem, was.Ended = "interrupted", "its process ended", true
		}
		rests := old.Rests
		if old.Parking != "" {
			was.Problem = "it was parked while people decided"
			rests++
		}
		row := b.insertTurn(l, sessionID, epoch, old.RequestedBy, old.Attempt+1, rests)
		row.continues = old.ID
		for _, e := range b.inbox {
			if e.TurnID == old.ID && e.State == "running" {
				e.TurnID, e.Marked = row.ID, false
			}
		}
		for _, a := range b.approvals {
			if a.TurnID == old.ID && !a.Delivered && bindable(a) {
				a.TurnID, a.RequestID = row.ID, ""
			}
		}
		b.closeCards(old.ID)
		out = row.Turn
		return nil
	})
	return out, err
}

// SaveDiff is [store.Store.SaveDiff], and keeps nothing.
func (b *Store) SaveDiff(context.Context, int64, *forges.Push) error { return nil }

// FinishTurn is [store.Store.FinishTurn].
func (b *Store) FinishTurn(ctx context.Context, l threads.Lease, f store.FinishedTurn) (ended []approvals.Approval, rows []outbox.Row, err error) {
	err = b.under(ctx, l, func(*threads.Thread) error {
		t := b.turns[f.ID-1]
		if t.Ended {
			return fmt.Errorf("turn %d has ended already: %w", f.ID, threads.ErrFenced)
		}
		b.cliTotals(t, f.CLITotals, true)
		t.State, t.Problem, t.Ended, t.AgentTurns, t.OverBudget, t.Answer = f.State, f.Problem, true, f.AgentTurns, f.OverBudget, f.Answer
		last := outbox.Row{Kind: outbox.Turn, TurnID: f.ID, Body: string(f.View)}
		if len(f.View) == 0 {
			last.Kind, last.Body = outbox.GivenUp, f.Problem
		}
		rows = append(rows, b.addOutboxRow(t.ThreadID, last))
		for _, e := range b.inbox {
			if e.TurnID == f.ID && e.State == "running" {
				e.State, e.Outcome = "done", f.State
				if f.Mark != "" {
					rows = append(rows, b.addOutboxRow(t.ThreadID, outbox.Row{Kind: outbox.Mark, InboxID: e.InboxID, Body: f.Mark}))
				}
			}
		}
		if i := slices.IndexFunc(b.inbox, func(e *envelope) bool { return e.TurnID == f.ID }); f.Again != nil && i >= 0 {
			again := Prompt{State: "accepted", Prompt: inbox.Prompt{
				InboxID: int64(len(b.inbox) + 1), ThreadID: t.ThreadID, ThreadKey: b.inbox[i].ThreadKey, UUID: f.Again.UUID,
				UserID: b.inbox[i].UserID, TS: b.inbox[i].TS, Text: f.Again.Text,
			}}
			b.inbox = append(b.inbox, &envelope{event: fmt.Sprintf("again/%d", f.ID), kind: inbox.Event, until: time.Now(), Prompt: again})
		}
		b.closeCards(f.ID)
		for _, a := range b.approvals {
			if a.TurnID != f.ID || a.Status != approvals.Pending {
				continue
			}
			a.Status, a.DecidedAt = cmp.Or(f.Approvals, approvals.Cancelled), time.Now()
			if a.RequestID == "" {
				a.Status = approvals.Interrupted
			}
			ended = append(ended, b.approval(a))
		}
		return nil
	})
	return ended, rows, err
}
