package agent

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent/claude"
	"deckhand/internal/agent/memstore"
	"deckhand/internal/agent/spend"
	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/threads"
)

// taking are books in which the second prompt is changed by its author at the last moment,
// so that it is received again: when its start is put off, when it is to sleep for a
// budget, or when it is to be dropped for one.
type taking struct {
	*memstore.Store
	fail error // what comes of it instead
}

func (b taking) take(ctx context.Context) error {
	if b.fail != nil {
		return b.fail
	}
	_, err := b.Edit(ctx, inbox.Post{TeamID: "T1", ChannelID: "C1", TS: "0002", UserID: "U1"}, func(json.RawMessage) (json.RawMessage, bool, error) {
		return json.RawMessage(`{}`), true, nil
	})
	return err
}

func (b taking) PutOffPrompt(ctx context.Context, l threads.Lease, id int64, after time.Duration, why string) error {
	return errors.Join(b.take(ctx), b.Store.PutOffPrompt(ctx, l, id, after, why))
}

func (b taking) WaitForBudget(ctx context.Context, l threads.Lease, id int64, n ledger.BudgetNotice, seen int) error {
	return errors.Join(b.take(ctx), b.Store.WaitForBudget(ctx, l, id, n, seen))
}

func (b taking) DropPrompt(ctx context.Context, l threads.Lease, id int64, d inbox.Drop) ([]outbox.Row, error) {
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	return b.Store.DropPrompt(ctx, l, id, d)
}

// TestAPromptIsChangedAtTheLastMoment: the next one has its turn at once, and the lease
// goes back when there is nothing more to do.
func TestAPromptIsChangedAtTheLastMoment(t *testing.T) {
	t.Parallel()
	over := func(ask bool) []spend.Budget {
		return []spend.Budget{{Scope: ledger.BudgetPerson, Only: []string{"U1"}, Period: ledger.BudgetDaily, LimitMicroUSD: 5_000_000, Ask: ask}}
	}
	for name, test := range map[string]struct {
		budgets    []spend.Budget
		unanswered bool // the next start
	}{
		"when its start is put off":        {nil, true},
		"when it is to sleep for a budget": {over(true), false},
		"when it is refused for a budget":  {over(false), false},
	} {
		for _, behind := range []bool{false, true} {
			what := name
			if behind {
				what += ", with another behind it"
			}
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := newStage(staged, test.budgets...)
					s.way = taking{Store: s.store}
					s.restart()
					s.prompt(here)
					s.prompt(here)
					if behind {
						s.acceptOf("U2", here)
						synctest.Wait()
					}
					if test.unanswered {
						s.machine.failNext(claude.ErrNoAnswer)
					} else {
						s.store.Spend(s.threads[here].ID, 10_000_000)
					}
					s.process(here).die(claude.ExitCrashed)
					synctest.Wait()
					prompts := s.store.Prompts()
					if prompts[1].State != "received" {
						t.Errorf("the second prompt is %s %s", prompts[1].State, prompts[1].Outcome)
					}
					if behind && prompts[2].State != "running" {
						t.Errorf("the one behind it is %s", prompts[2].State)
					}
					if th := s.row(here); !behind && th.LeaseOwner != "" {
						t.Errorf("the lease is still %s's", th.LeaseOwner)
					}
					for _, broken := range s.close() {
						t.Error(broken)
					}
				})
			})
		}
	}
}

// TestALeaseThatIsOursGoesBack: whatever was taken for its loss.
func TestALeaseThatIsOursGoesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		s.way = taking{Store: s.store, fail: threads.ErrFenced}
		s.restart()
		s.machine.failNext(claude.ErrNoAnswer)
		s.prompt(here)
		if th := s.row(here); th.LeaseOwner != "" {
			t.Errorf("the lease is still %s's", th.LeaseOwner)
		}
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}

// TestNothingIsShownBesideALostLease: its worker waits for a process to end, and a call
// that is read on ends meanwhile.
func TestNothingIsShownBesideALostLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(staged)
		s.machine.setHoldStop()
		s.prompt(here)
		p := s.process(here)
		p.hangUp()
		synctest.Wait()
		p.result(claude.Result{NumTurns: 1})
		synctest.Wait()
		s.sup.send(s.threads[here].ID, message{kind: messageHibernate})
		synctest.Wait()
		s.store.Steal(s.threads[here].ID, "B")
		time.Sleep(staged.LeaseTTL/heartbeats + time.Second)
		synctest.Wait()
		s.machine.loss(s.threads[here].ID, true)
		s.readOn()
		synctest.Wait()
		for _, broken := range s.close() {
			t.Error(broken)
		}
	})
}
