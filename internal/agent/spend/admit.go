package spend

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/store/inbox"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// OverBudget is the mark of a prompt that a budget has refused.
const OverBudget = "over budget"

// Admission is what becomes of a prompt that is to begin.
type Admission string

// The admissions. A prompt that waits is woken when the budget changes; that costs a row, and
// neither a process nor the lease.
const (
	Admitted Admission = "admitted"
	Dropped  Admission = "dropped" // with a sentence
	Waits    Admission = "waits"
)

// Admit decides whether a prompt may have its turn, under the lease of its thread, and which
// model the budgets want for it.
func (a *Accounts) Admit(ctx context.Context, l threads.Lease, t threads.Thread, p inbox.Prompt) (model string, _ Admission, err error) {
	if !a.HasBudgets() {
		return "", Admitted, nil
	}
	for {
		c, err := a.Check(ctx, t, p.UserID)
		if err != nil {
			return "", "", err
		}
		if len(c.Reached) == 0 {
			return c.Model, Admitted, nil
		}
		notices, err := a.Tell(ctx, t, c.All)
		if err != nil {
			return "", "", err
		}
		for i, b := range c.Reached {
			if n := notices[i]; !b.Ask || n.Decision.Leave {
				return "", Dropped, a.refuse(ctx, l, p, b, n)
			}
		}
		err = a.store.WaitForBudget(ctx, l, p.InboxID, notices[0], c.Reached[0].Decisions)
		if errors.Is(err, pg.ErrEnded) {
			continue // somebody has decided meanwhile
		}
		if errors.Is(err, pg.ErrNotFound) {
			return "", Dropped, nil // its author has taken it back, or changed it
		}
		if err != nil {
			return "", "", err
		}
		a.ShowWait(p)
		return "", Waits, nil
	}
}

// refuse ends a prompt that waits for nothing: nobody is asked, or an admin has left the budget
// as it is.
func (a *Accounts) refuse(ctx context.Context, l threads.Lease, p inbox.Prompt, b Status, n ledger.BudgetNotice) error {
	said := ""
	if !n.Decision.Leave || !p.Waited { // else what said that it waits, or the card, says so
		kept := ""
		if n.Decision.Leave {
			kept = " " + a.front.Name(ctx, n.DecidedBy) + " kept the limit for this " + string(b.Period) + "."
		}
		said = b.Sentence() + kept + " So this does not start. The budget starts again on " + b.Begins() + ". An admin can raise it in deckhand.yaml."
	}
	rows, err := a.store.DropPrompt(ctx, l, p.InboxID, inbox.Drop{Outcome: OverBudget, Mark: OverBudget, Sentence: func(int) string { return said }})
	if errors.Is(err, pg.ErrNotFound) {
		return nil // its author has taken it back, or changed it
	}
	if err != nil {
		return err
	}
	a.front.Tell(rows...)
	if p.Waited {
		a.ShowWait(p)
	}
	return nil
}

// ShowWait shows what a prompt waits for, or that it does no longer.
func (a *Accounts) ShowWait(p inbox.Prompt) {
	a.front.Show(outbox.WaitPost, strconv.FormatInt(p.InboxID, 10))
}

// lookLimit bounds a look at the budgets after a turn.
const lookLimit = 30 * time.Second

// Notice tells people which limits the budgets have come to.
func (a *Accounts) Notice(ctx context.Context, t threads.Thread, user string) {
	if !a.HasBudgets() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	c, err := a.Check(ctx, t, user)
	if err == nil {
		_, err = a.Tell(ctx, t, c.All)
	}
	if err != nil {
		a.log.Error("look at the budgets", zap.Error(err))
	}
}
