package memstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// wait is a prompt that waits for a budget, or has.
type wait struct {
	notice ledger.BudgetNotice
	asleep bool
}

// BudgetStates is [store.Store.BudgetStates].
func (b *Store) BudgetStates(ctx context.Context, windows []ledger.BudgetWindow) ([]ledger.BudgetState, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	out := make([]ledger.BudgetState, len(windows))
	for i, w := range windows {
		out[i] = b.budgetState(w)
	}
	return out, nil
}

func (b *Store) budgetState(w ledger.BudgetWindow) (out ledger.BudgetState) {
	for _, e := range b.ledger {
		t := b.threads[b.turns[e.TurnID-1].ThreadID-1]
		if counts(w, t, e.User) && !e.At.Before(w.From) && e.At.Before(w.To) {
			out.SpentMicroUSD += e.MicroUSD
		}
	}
	out.ReservedMicroUSD = b.reserved(w, uuid.Nil)
	var last time.Time
	for _, n := range b.notices {
		if !sameBudget(n.BudgetWindow, w) || !n.From.Equal(w.From) || n.DecidedBy == "" {
			continue
		}
		out.Decisions++
		out.RaisedMicroUSD += n.Decision.RaiseMicroUSD
		if n.Decision.Model != "" && !n.DecidedAt.Before(last) {
			out.Model, last = n.Decision.Model, n.DecidedAt
		}
	}
	return out
}

// counts reports whether a person's spend in a thread counts towards a budget.
func counts(w ledger.BudgetWindow, t *threads.Thread, user string) bool {
	key := map[ledger.BudgetScope]string{
		ledger.BudgetChannel: t.ChannelID, ledger.BudgetProject: t.Project, ledger.BudgetPerson: user, ledger.BudgetThread: strconv.FormatInt(t.ID, 10),
	}[w.Scope]
	return t.TeamID == w.TeamID && key == w.Key
}

// sameBudget reports whether two windows are periods of one budget.
func sameBudget(v, w ledger.BudgetWindow) bool {
	return v.TeamID == w.TeamID && v.Scope == w.Scope && v.Key == w.Key && v.Period == w.Period
}

// NoticeBudget is [store.Store.NoticeBudget].
func (b *Store) NoticeBudget(ctx context.Context, n ledger.BudgetNotice) (noted ledger.BudgetNotice, fresh bool, err error) {
	if err := b.lock(ctx); err != nil {
		return noted, false, err
	}
	defer b.mu.Unlock()
	late := false
	for _, old := range b.notices {
		if !sameBudget(old.BudgetWindow, n.BudgetWindow) || !old.From.Equal(n.From) {
			continue
		}
		same := old.LimitMicroUSD == n.LimitMicroUSD
		if same && old.Share == n.Share {
			return *old, false, nil
		}
		late = late || n.Share < 100 && (old.Share == 100 || same && old.Share > n.Share)
	}
	if late {
		return noted, false, pg.ErrEnded
	}
	if t, err := b.thread(n.ThreadID); err == nil {
		n.Thread, n.Project = t.Key(), t.Project
	}
	b.notices = append(b.notices, &n)
	n.OutboxID = b.addOutboxRow(n.ThreadID, outbox.Row{Kind: outbox.Budget, NoticeID: n.ID}).ID
	return n, true, nil
}

// DecideBudget is [store.Store.DecideBudget].
func (b *Store) DecideBudget(ctx context.Context, id string, d ledger.BudgetDecision, by string) (ledger.BudgetNotice, error) {
	if err := b.lock(ctx); err != nil {
		return ledger.BudgetNotice{}, err
	}
	defer b.mu.Unlock()
	for _, n := range b.notices {
		if n.ID != id {
			continue
		}
		if n.DecidedBy != "" {
			return *n, pg.ErrEnded
		}
		b.decideBudget(n, d, by)
		return *n, nil
	}
	return ledger.BudgetNotice{}, pg.ErrNotFound
}

func (b *Store) decideBudget(n *ledger.BudgetNotice, d ledger.BudgetDecision, by string) {
	n.Decision, n.DecidedBy, n.DecidedAt = d, by, time.Now()
	n.OutboxID = b.addOutboxRow(n.ThreadID, outbox.Row{Kind: outbox.Budget, NoticeID: n.ID}).ID
	for _, e := range b.inbox {
		if w := b.waits[e.InboxID]; w != nil && w.asleep && e.State == "accepted" && sameBudget(w.notice.BudgetWindow, n.BudgetWindow) {
			w.asleep = false
			b.notify(pg.Notice{Kind: pg.NoticePrompt, ThreadID: e.ThreadID})
		}
	}
}

// RaiseBudgets has an admin raise every budget that people were told of.
func (b *Store) RaiseBudgets(microUSD int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.notices {
		b.decideBudget(n, ledger.BudgetDecision{RaiseMicroUSD: microUSD}, "U9")
	}
}

// LeaveBudgets has an admin leave every budget that people were told of as it is.
func (b *Store) LeaveBudgets() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.notices {
		b.decideBudget(n, ledger.BudgetDecision{Leave: true}, "U9")
	}
}

// WaitForBudget is [store.Store.WaitForBudget].
func (b *Store) WaitForBudget(ctx context.Context, l threads.Lease, inboxID int64, n ledger.BudgetNotice, seen int) error {
	return b.under(ctx, l, func(t *threads.Thread) error {
		if b.budgetState(n.BudgetWindow).Decisions != seen {
			return pg.ErrEnded
		}
		if e := b.inbox[inboxID-1]; e.ThreadID != t.ID || e.State != "accepted" {
			return pg.ErrNotFound
		}
		if b.waits == nil {
			b.waits = map[int64]*wait{}
		}
		b.waits[inboxID] = &wait{notice: n, asleep: true}
		b.addOutboxRow(t.ID, outbox.Row{Kind: outbox.Wait, InboxID: inboxID})
		b.inbox[inboxID-1].Waited = true
		return nil
	})
}

// WakeWaits is [store.Store.WakeWaits].
func (b *Store) WakeWaits(ctx context.Context) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	for id, w := range b.waits {
		w.asleep = w.asleep && b.inbox[id-1].State != "accepted"
	}
	return nil
}

// asleep reports whether the thread's next prompt sleeps until a budget changes, or until
// its start is tried again.
func (b *Store) asleep(threadID int64) bool {
	if b.putOff(threadID) {
		return true
	}
	for id, w := range b.waits {
		if e := b.inbox[id-1]; e.ThreadID == threadID && e.State == "accepted" && w.asleep && w.notice.To.After(time.Now()) {
			return true
		}
	}
	return false
}

// StoppedTurn is [store.Store.StoppedTurn].
func (b *Store) StoppedTurn(ctx context.Context, threadID int64) (turnID int64, err error) {
	if err := b.lock(ctx); err != nil {
		return 0, err
	}
	defer b.mu.Unlock()
	for _, t := range b.turns {
		if t.ThreadID != threadID {
			continue
		}
		if turnID = 0; t.OverBudget {
			turnID = t.ID
		}
	}
	return turnID, nil
}

// Notice is a notice of a budget, which is there.
func (b *Store) Notice(id string) ledger.BudgetNotice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.notices[slices.IndexFunc(b.notices, func(n *ledger.BudgetNotice) bool { return n.ID == id })]
}
