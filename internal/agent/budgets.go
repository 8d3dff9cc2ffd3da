package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/agent/spend"
	"deckhand/internal/store"
)

// noticeBudgets looks at the budgets after a turn, beside the worker.
func (w *worker) noticeBudgets(ctx context.Context, t store.Thread, user string) {
	if !w.accounts.HasBudgets() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	w.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		c, err := w.accounts.Check(ctx, t, user)
		if err == nil {
			_, err = w.accounts.Tell(ctx, t, c.All)
		}
		if err != nil {
			w.log.Error("look at the budgets", zap.Error(err))
		}
	})
}

// admit decides whether a prompt may have its turn. A prompt that may not is refused
// with a sentence (dropped), or sleeps until the budget changes (waits): that costs a
// row, and neither a process nor the lease.
func (w *worker) admit(ctx context.Context, p store.Prompt) (model string, a admission, err error) {
	if !w.accounts.HasBudgets() {
		return "", admitted, nil
	}
	for {
		c, err := w.accounts.Check(ctx, w.thread, p.UserID)
		if err != nil {
			return "", "", err
		}
		if len(c.Reached) == 0 {
			return c.Model, admitted, nil
		}
		notices, err := w.accounts.Tell(ctx, w.thread, c.All)
		if err != nil {
			return "", "", err
		}
		for i, b := range c.Reached {
			if n := notices[i]; !b.Ask || n.Decision.Leave {
				return "", dropped, w.refuseForBudget(ctx, p, b, n)
			}
		}
		err = w.store.WaitForBudget(ctx, w.heldLease(), p.InboxID, notices[0], c.Reached[0].Decisions)
		if errors.Is(err, store.ErrEnded) {
			continue // somebody has decided meanwhile
		}
		if errors.Is(err, store.ErrNotFound) {
			return "", dropped, nil // its author has taken it back, or changed it
		}
		if err != nil {
			return "", "", err
		}
		if p.Waited || notices[0].ThreadID != w.threadID { // else its card stands here and says so
			w.showBudgetWait(p)
		}
		return "", waits, nil
	}
}

// admission is what becomes of a prompt that is to begin.
type admission string

const (
	admitted admission = "admitted"
	dropped  admission = "dropped"
	waits    admission = "waits"
)

// refuseForBudget ends a prompt that waits for nothing: nobody is asked, or an admin has
// left the budget as it is.
func (w *worker) refuseForBudget(ctx context.Context, p store.Prompt, b spend.Status, n store.BudgetNotice) error {
	said := b.Sentence()
	if n.Decision.Leave {
		said += " An admin kept the limit for this " + string(b.Period) + "."
	}
	said += " So this does not start. The budget starts again on " + b.Begins() + ". An admin can raise it in deckhand.yaml."
	rows, err := w.store.DropPrompt(ctx, w.heldLease(), p.InboxID, store.Drop{
		Outcome: "over budget", Mark: string(PromptOverBudget), Sentence: func(int) string { return said },
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil // its author has taken it back, or changed it
	}
	if err != nil {
		return err
	}
	w.front.Tell(rows...)
	if p.Waited {
		w.showBudgetWait(p)
	}
	return nil
}

// showBudgetWait shows what a prompt waits for, or that it does no longer.
func (w *worker) showBudgetWait(p store.Prompt) {
	w.front.Show(store.WaitPost, strconv.FormatInt(p.InboxID, 10))
}

// lookLimit bounds a look at the budgets beside the worker.
const lookLimit = 30 * time.Second

// whyOverBudget is what people are told of a turn that was stopped for a budget.
func whyOverBudget(t *turn) string { return t.overBudget.Sentence() + " So the work stopped here." }

// newMeter runs the meter of a process that is about to start, until it is closed.
func (w *worker) newMeter() *spend.Meter {
	m := w.accounts.NewMeter(spend.Session{
		Project: spend.Project{Name: w.project.Name, Prices: w.project.Prices, Models: w.project.Models, Named: w.project.Provider.Model},
		Lease:   w.heldLease(), Thread: w.thread, Log: w.log,
		OnHeld: func() { w.box.put(message{kind: messageHeld}) }, OnStray: w.tellOfStray,
	})
	w.running.Go(func() {
		m.Run()
		select {
		case w.booked <- struct{}{}:
		default: // it is about to look
		}
	})
	return m
}

// strayLimit bounds how long it is tried to tell of a call that nothing runs for.
const strayLimit = 30 * time.Second

// tellOfStray says in the thread that something which a turn has left running has called the
// model in vain. It returns at once.
func (w *worker) tellOfStray(thread store.ThreadKey) {
	w.log.Warn("a call of the model was refused, since no turn runs")
	w.running.Go(func() {
		ctx, cancel := context.WithTimeoutCause(context.Background(), strayLimit, fmt.Errorf("no answer in %s", strayLimit))
		defer cancel()
		w.sayIn(ctx, thread, "A program that was left running called the model after the turn had ended. Deckhand refused the call. Ask Claude to stop the program if you don't want it.")
	})
}
