package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"deckhand/internal/money"
	"deckhand/internal/store"
)

// Budget is a limit on spend, for everybody or everything of its scope alike.
type Budget struct {
	Scope store.BudgetScope
	// Only names the channels, projects or people that it is for; empty means each
	// of its own.
	Only          []string
	Period        store.BudgetPeriod
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

// BudgetStatus is where a budget stands in its present period.
type BudgetStatus struct {
	Budget
	Key           string // see store.BudgetScope
	From, To      time.Time
	SpentMicroUSD int64
	LimitMicroUSD int64  // with what admins have added
	Model         string // the cheaper model that an admin chose; or empty
}

// Reached reports whether nothing is left.
func (b BudgetStatus) Reached() bool { return b.SpentMicroUSD >= b.LimitMicroUSD }

// share is the highest of the shares that is reached, in percent; 0 for none.
func (b BudgetStatus) share() int {
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

// BudgetAlert is what people are to see of a budget: a warning, or that its limit
// is reached, with buttons for admins if it asks.
type BudgetAlert struct {
	ID     string // of the store's notice
	Status BudgetStatus
	Share  int // percent; 100: the limit is reached
	Thread store.ThreadKey
	// Stopped: a running turn was interrupted for it. Waiting: a prompt waits for it.
	Stopped, Waiting bool
}

// budgetCheck is what the budgets say to a person's next turn in a thread.
type budgetCheck struct {
	reached *BudgetStatus // the first without anything left, unless a cheaper model goes on
	model   string        // the cheaper model to go on with
	all     []BudgetStatus
}

// budgets are the limits on spend, and what counts towards them.
type budgets struct {
	list     []Budget
	books    budgetBooks
	front    Frontend
	log      *zap.Logger
	inFlight inFlight
}

// inFlight is what running turns of this replica have spent and not booked yet.
type inFlight struct {
	mu    sync.Mutex
	turns map[int64]flight
}

type flight struct {
	thread store.Thread
	user   string
	micro  int64
}

// set notes what a turn has spent so far; 0 forgets it.
func (f *inFlight) set(turnID int64, now flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.micro == 0 {
		delete(f.turns, turnID)
		return
	}
	if f.turns == nil {
		f.turns = map[int64]flight{}
	}
	f.turns[turnID] = now
}

// of sums what counts towards a budget.
func (f *inFlight) of(b Budget, key string) (micro int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.turns {
		if k, ok := b.key(t.thread, t.user); ok && k == key {
			micro += t.micro
		}
	}
	return micro
}

// check reads every budget that a person's work in the thread counts
// towards: what is booked, by everybody, and what is under way on this replica. So
// turns that run at once overshoot by no more than the calls that each of them has
// under way when the limit is reached.
func (s *budgets) check(ctx context.Context, t store.Thread, user string) (budgetCheck, error) {
	var c budgetCheck
	now, zone := time.Now(), s.books.TimeZone()
	for _, b := range s.list {
		key, ok := b.key(t, user)
		if !ok {
			continue
		}
		from, to := b.Period.Span(now, zone)
		state, err := s.books.BudgetState(ctx, store.BudgetWindow{TeamID: t.TeamID, Scope: b.Scope, Key: key, Period: b.Period, From: from, To: to})
		if err != nil {
			return c, err
		}
		status := BudgetStatus{
			Budget: b, Key: key, From: from, To: to, SpentMicroUSD: state.SpentMicroUSD + s.inFlight.of(b, key),
			LimitMicroUSD: b.LimitMicroUSD + state.RaisedMicroUSD, Model: state.Model,
		}
		c.all = append(c.all, status)
		switch {
		case status.Model != "":
			c.model = status.Model // an admin chose to go on with it, whatever it costs
		case status.Reached() && c.reached == nil:
			c.reached = &status
		}
	}
	return c, nil
}

// key is whose spend counts, and whether the budget is for them at all.
func (b Budget) key(t store.Thread, user string) (string, bool) {
	key := ""
	switch b.Scope {
	case store.BudgetWorkspace:
		return "", true
	case store.BudgetChannel:
		key = t.ChannelID
	case store.BudgetProject:
		key = t.Project
	case store.BudgetPerson:
		key = user
	case store.BudgetThread:
		return strconv.FormatInt(t.ID, 10), true
	}
	return key, len(b.Only) == 0 || slices.Contains(b.Only, key)
}

// tell tells of every share that is reached and was not told of before.
func (s *budgets) tell(ctx context.Context, t store.Thread, all []BudgetStatus, stopped, waiting bool) {
	for _, b := range all {
		share := b.share()
		if share == 0 || b.Model != "" {
			continue
		}
		n := BudgetAlert{ID: newApprovalID(), Status: b, Share: share, Thread: t.Key(), Stopped: stopped, Waiting: waiting}
		fresh, err := s.books.NoticeBudget(ctx, store.BudgetNotice{
			ID:            n.ID,
			BudgetWindow:  store.BudgetWindow{TeamID: t.TeamID, Scope: b.Scope, Key: b.Key, Period: b.Period, From: b.From, To: b.To},
			LimitMicroUSD: b.LimitMicroUSD, Share: share, SpentMicroUSD: b.SpentMicroUSD, ThreadID: t.ID,
		})
		if err != nil {
			s.log.Error("notice a budget", zap.Error(err))
			continue
		}
		if fresh {
			s.front.ShowBudget(n)
		}
	}
}

// noticeBudgets looks at the budgets after a turn, beside the worker.
func (w *worker) noticeBudgets(ctx context.Context, user string) {
	if len(w.budgets.list) == 0 {
		return
	}
	t := w.thread
	ctx = context.WithoutCancel(ctx)
	w.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		c, err := w.budgets.check(ctx, t, user)
		if err != nil {
			w.log.Error("look at the budgets", zap.Error(err))
			return
		}
		w.budgets.tell(ctx, t, c.all, false, false)
	})
}

// admit decides whether a prompt may have its turn. A prompt that may not is
// refused with a sentence, or waits for an admin; ok is false then.
func (w *worker) admit(ctx context.Context, p store.Prompt) (c budgetCheck, ok bool, err error) {
	if len(w.budgets.list) == 0 {
		return c, true, nil
	}
	c, err = w.budgets.check(ctx, w.thread, p.UserID)
	if err != nil {
		return c, false, err
	}
	if c.reached == nil {
		return c, true, nil
	}
	w.budgets.tell(ctx, w.thread, c.all, false, c.reached.Ask)
	if c.reached.Ask {
		return c, false, nil // looked at again when an admin has decided, and by polling
	}
	if err := w.books.DropPrompt(ctx, w.heldLease(), p.InboxID, "over budget"); err != nil {
		return c, false, err
	}
	w.front.MarkPrompt(p, PromptFailed)
	w.front.Say(w.thread.Key(), c.reached.sentence()+" So this was not begun. It begins anew on "+c.reached.begins()+", or ask an admin to raise it in deckhand.yaml.")
	return c, false, nil
}

// sentence says which budget is used up.
func (b BudgetStatus) sentence() string {
	return fmt.Sprintf("%s is used up: %s of %s are spent.", b.Name(), money.USD(b.SpentMicroUSD), money.USD(b.LimitMicroUSD))
}

func (b BudgetStatus) begins() string { return b.To.Format("Monday, 2 January") }

// Name is what people call the budget. People, channels and threads are named by
// the frontend, which knows them; here they are what the reader is or is in.
func (b BudgetStatus) Name() string {
	of := map[store.BudgetScope]string{
		store.BudgetWorkspace: "the team", store.BudgetChannel: "this channel", store.BudgetProject: "the project " + b.Key,
		store.BudgetPerson: "the person who asks", store.BudgetThread: "this thread",
	}[b.Scope]
	when := map[store.BudgetPeriod]string{store.BudgetDaily: "today's", store.BudgetWeekly: "this week's", store.BudgetMonthly: "this month's"}[b.Period]
	return strings.ToUpper(when[:1]) + when[1:] + " budget of " + of
}

// lookLimit bounds a look at the budgets beside the worker.
const lookLimit = 30 * time.Second

// watchEvery is the shortest time between two looks at the budgets during a turn.
const watchEvery = 300 * time.Millisecond

// watchBudget notes what the turn has spent, by the prices of its calls so far, and
// looks at the budgets beside the worker: the letter that may follow stops the turn.
func (w *worker) watchBudget(ctx context.Context) {
	t := w.turn
	if t == nil || len(w.budgets.list) == 0 || t.overBudget != nil {
		return
	}
	var spent int64
	for _, d := range w.session.meter.Estimate(t.content.Calls) {
		spent += d.MicroUSD
	}
	thread, user, id := w.thread, t.row.RequestedBy, t.row.ID
	w.budgets.inFlight.set(id, flight{thread, user, spent})
	if time.Since(t.watched) < watchEvery {
		return
	}
	t.watched = time.Now()
	w.session.request(ctx, w.log, "look at the budgets", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeoutCause(ctx, lookLimit, fmt.Errorf("no answer in %s", lookLimit))
		defer cancel()
		c, err := w.budgets.check(ctx, thread, user)
		if err == nil && c.reached != nil {
			w.box.put(letter{kind: letterOverBudget, turn: id, budget: c.reached})
		}
		return err
	})
}

// onOverBudget interrupts the turn that a budget has nothing left for.
func (w *worker) onOverBudget(ctx context.Context, turnID int64, b *BudgetStatus) {
	if t := w.turn; t != nil && t.row.ID == turnID && !t.stopping() {
		t.overBudget = b
		w.interrupt(ctx)
	}
}

// overBudget is what people are told of a turn that was stopped for a budget.
func overBudget(t *turn) string {
	return t.overBudget.Name() + " is used up, so the work was stopped. When an admin has raised it, write “continue” to go on."
}

// useModel has the process answer with the model that the budgets want, or with the
// project's again.
func (w *worker) useModel(ctx context.Context, model string) error {
	if model == "" {
		model = w.project.Model
	}
	if w.session.model == model {
		return nil
	}
	if model == "" {
		model = "default"
	}
	if err := w.session.proc.SetModel(ctx, w.project.Provider.Model(model)); err != nil {
		return fmt.Errorf("switch to the model %s: %w", model, err)
	}
	w.session.model = model
	return nil
}
