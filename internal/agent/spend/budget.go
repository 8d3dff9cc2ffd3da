package spend

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/money"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/outbox"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// Budget is a limit on spend, for everybody or everything of its scope alike.
type Budget struct {
	Scope ledger.BudgetScope
	// Only names the channels, projects or people that it is for; empty means each
	// of its own.
	Only          []string
	Period        ledger.BudgetPeriod
	LimitMicroUSD int64
	// WarnAt are the shares of the limit, in percent, at which people are told.
	WarnAt []int
	// Ask: at the limit admins are asked to raise it, and the prompt waits for them.
	// Else it is refused.
	Ask bool
	// CheaperModel is offered at the limit beside raising it; empty: it is not.
	CheaperModel string
	// Tell are channels that are told beside the thread.
	Tell []string
}

// Status is where a budget stands in its present period.
type Status struct {
	Budget
	Key           string // see ledger.BudgetScope
	Whose         string // a person's, for others: "Ada Admin's"; empty where that person alone reads it
	From, To      time.Time
	SpentMicroUSD int64
	LimitMicroUSD int64  // with what admins have added
	Model         string // the cheaper model that an admin chose; or empty
	Decisions     int    // what was decided about it in this period
}

// Reached reports whether nothing is left.
func (b Status) Reached() bool { return b.SpentMicroUSD >= b.LimitMicroUSD }

// share is the highest of the shares that is reached, in percent; 0 for none.
func (b Status) share() int {
	if b.Reached() {
		return 100
	}
	most := 0
	for _, w := range b.WarnAt {
		// In this order, so that a limit of billions does not overflow.
		if float64(b.SpentMicroUSD) >= float64(b.LimitMicroUSD)*float64(w)/100 {
			most = max(most, w)
		}
	}
	return most
}

// Check is what the budgets say to a person's next turn in a thread.
type Check struct {
	Reached []Status // those without anything left, unless a cheaper model goes on
	Model   string   // the cheaper model to go on with
	All     []Status
}

// Check reads every budget that a person's work in the thread counts towards.
func (a *Accounts) Check(ctx context.Context, t threads.Thread, user string) (Check, error) {
	var c Check
	list, windows := a.of(t, user, time.Now())
	states, err := a.store.BudgetStates(ctx, windows)
	if err != nil {
		return c, err
	}
	for i, state := range states {
		b, w := list[i], windows[i]
		status := b.at(w, state)
		c.All = append(c.All, status)
		switch {
		case status.Model != "":
			c.Model = status.Model // an admin chose to go on with it, whatever it costs
		case status.Reached():
			c.Reached = append(c.Reached, a.named(ctx, t, status))
		}
	}
	return c, nil
}

// of are the budgets that a person's work in the thread counts towards, and their
// periods at a time.
func (a *Accounts) of(t threads.Thread, user string, at time.Time) (list []Budget, windows []ledger.BudgetWindow) {
	for _, b := range a.budgets {
		key, ok := b.Key(t, user)
		if !ok {
			continue
		}
		w := ledger.BudgetWindow{TeamID: t.TeamID, Scope: b.Scope, Key: key, Period: b.Period}
		w.From, w.To = b.Period.Span(at, a.store.TimeZone())
		list, windows = append(list, b), append(windows, w)
	}
	return list, windows
}

// at is where the budget stands in a period.
func (b Budget) at(w ledger.BudgetWindow, s ledger.BudgetState) Status {
	return Status{
		Budget: b, Key: w.Key, From: w.From, To: w.To, SpentMicroUSD: s.SpentMicroUSD,
		LimitMicroUSD: b.LimitMicroUSD + s.RaisedMicroUSD, Model: s.Model, Decisions: s.Decisions,
	}
}

// named is the budget as a thread's readers call it.
func (a *Accounts) named(ctx context.Context, t threads.Thread, b Status) Status {
	if b.Scope == ledger.BudgetPerson && !strings.HasPrefix(t.ChannelID, "D") {
		b.Whose = a.front.Name(ctx, b.Key) + "'s"
	}
	return b
}

// Key is whose spend counts for a person in a thread, and whether the budget is for them at all.
func (b Budget) Key(t threads.Thread, user string) (string, bool) {
	key := ""
	switch b.Scope {
	case ledger.BudgetWorkspace:
		return "", true
	case ledger.BudgetChannel:
		key = t.ChannelID
	case ledger.BudgetProject:
		key = t.Project
	case ledger.BudgetPerson:
		key = user
	case ledger.BudgetThread:
		return strconv.FormatInt(t.ID, 10), true
	}
	return key, len(b.Only) == 0 || slices.Contains(b.Only, key)
}

// Tell tells of every share that is reached and was not told of before. It returns the
// notices of the limits that are reached, in the order of all.
func (a *Accounts) Tell(ctx context.Context, t threads.Thread, all []Status) ([]ledger.BudgetNotice, error) {
	var reached []ledger.BudgetNotice
	for _, b := range all {
		share := b.share()
		if share == 0 || b.Model != "" {
			continue
		}
		n, fresh, err := a.store.NoticeBudget(ctx, ledger.BudgetNotice{
			ID:            rand.Text(),
			BudgetWindow:  ledger.BudgetWindow{TeamID: t.TeamID, Scope: b.Scope, Key: b.Key, Period: b.Period, From: b.From, To: b.To},
			LimitMicroUSD: b.LimitMicroUSD, Share: share, SpentMicroUSD: b.SpentMicroUSD, ThreadID: t.ID,
		})
		if errors.Is(err, pg.ErrEnded) {
			continue // a warning that comes too late
		}
		if err != nil {
			return nil, err
		}
		if share == 100 {
			reached = append(reached, n)
		}
		if fresh {
			a.front.Show(outbox.BudgetPost, n.ID)
		}
	}
	return reached, nil
}

// Sentence says which budget is used up.
func (b Status) Sentence() string {
	return fmt.Sprintf("%s is used up: %s of %s spent.", b.Name(), money.USD(b.SpentMicroUSD), money.USD(b.LimitMicroUSD))
}

// Begins is the day on which the budget starts again, for people.
func (b Status) Begins() string { return b.To.Format("Monday, 2 January") }

// Name is what people call the budget. Channels and threads are named by the
// frontend, which knows them; here they are what the reader is in.
func (b Status) Name() string {
	when := map[ledger.BudgetPeriod]string{ledger.BudgetDaily: "today", ledger.BudgetWeekly: "this week", ledger.BudgetMonthly: "this month"}[b.Period]
	if b.Scope == ledger.BudgetPerson {
		return cmp.Or(b.Whose, "Your") + " budget for " + when
	}
	of := map[ledger.BudgetScope]string{
		ledger.BudgetWorkspace: "the team", ledger.BudgetChannel: "this channel", ledger.BudgetProject: "the project " + b.Key,
		ledger.BudgetThread: "this thread",
	}[b.Scope]
	return strings.ToUpper(when[:1]) + when[1:] + "'s budget of " + of
}
