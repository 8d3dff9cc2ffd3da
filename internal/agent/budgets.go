package agent

import (
	"context"
	"errors"
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
	decisions     int    // what was decided about it in this period
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
// is reached, with buttons for those who may raise it if it asks.
type BudgetAlert struct {
	ID      string // of the store's notice
	Status  BudgetStatus
	Share   int // percent; 100: the limit is reached
	Thread  store.ThreadKey
	Project string // the thread's
	Word    int64  // the last word about it; see [store.BudgetNotice]
}

// budgetCheck is what the budgets say to a person's next turn in a thread.
type budgetCheck struct {
	reached []BudgetStatus // those without anything left, unless a cheaper model goes on
	model   string         // the cheaper model to go on with
	all     []BudgetStatus
}

// budgets are the limits on spend, and what counts towards them.
type budgets struct {
	list  []Budget
	books budgetBooks
	front Frontend
	log   *zap.Logger

	mu   sync.Mutex
	free chan struct{} // see freed
}

// check reads every budget that a person's work in the thread counts towards.
func (s *budgets) check(ctx context.Context, t store.Thread, user string) (budgetCheck, error) {
	var c budgetCheck
	list, windows := s.of(t, user, time.Now())
	states, err := s.books.BudgetStates(ctx, windows)
	if err != nil {
		return c, err
	}
	for i, state := range states {
		b, w := list[i], windows[i]
		status := b.at(w, state)
		c.all = append(c.all, status)
		switch {
		case status.Model != "":
			c.model = status.Model // an admin chose to go on with it, whatever it costs
		case status.Reached():
			c.reached = append(c.reached, status)
		}
	}
	return c, nil
}

// of are the budgets that a person's work in the thread counts towards, and their
// periods at a time.
func (s *budgets) of(t store.Thread, user string, at time.Time) (list []Budget, windows []store.BudgetWindow) {
	for _, b := range s.list {
		key, ok := b.key(t, user)
		if !ok {
			continue
		}
		w := store.BudgetWindow{TeamID: t.TeamID, Scope: b.Scope, Key: key, Period: b.Period}
		w.From, w.To = b.Period.Span(at, s.books.TimeZone())
		list, windows = append(list, b), append(windows, w)
	}
	return list, windows
}

// at is where the budget stands in a period.
func (b Budget) at(w store.BudgetWindow, s store.BudgetState) BudgetStatus {
	return BudgetStatus{
		Budget: b, Key: w.Key, From: w.From, To: w.To, SpentMicroUSD: s.SpentMicroUSD,
		LimitMicroUSD: b.LimitMicroUSD + s.RaisedMicroUSD, Model: s.Model, decisions: s.Decisions,
	}
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

// tell tells of every share that is reached and was not told of before. It returns the
// notices of the limits that are reached, in the order of all.
func (s *budgets) tell(ctx context.Context, t store.Thread, all []BudgetStatus) ([]store.BudgetNotice, error) {
	var reached []store.BudgetNotice
	for _, b := range all {
		share := b.share()
		if share == 0 || b.Model != "" {
			continue
		}
		n, fresh, err := s.books.NoticeBudget(ctx, store.BudgetNotice{
			ID:            newApprovalID(),
			BudgetWindow:  store.BudgetWindow{TeamID: t.TeamID, Scope: b.Scope, Key: b.Key, Period: b.Period, From: b.From, To: b.To},
			LimitMicroUSD: b.LimitMicroUSD, Share: share, SpentMicroUSD: b.SpentMicroUSD, ThreadID: t.ID,
		})
		if errors.Is(err, store.ErrEnded) {
			continue // a warning that comes too late
		}
		if err != nil {
			return nil, err
		}
		if share == 100 {
			reached = append(reached, n)
		}
		if fresh {
			s.front.ShowBudget(BudgetAlert{ID: n.ID, Word: n.Word, Status: b, Share: share, Thread: t.Key(), Project: t.Project})
		}
	}
	return reached, nil
}

// noticeBudgets looks at the budgets after a turn, beside the worker.
func (w *worker) noticeBudgets(ctx context.Context, t store.Thread, user string) {
	if len(w.budgets.list) == 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	w.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		c, err := w.budgets.check(ctx, t, user)
		if err == nil {
			_, err = w.budgets.tell(ctx, t, c.all)
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
	if len(w.budgets.list) == 0 {
		return "", admitted, nil
	}
	for {
		c, err := w.budgets.check(ctx, w.thread, p.UserID)
		if err != nil {
			return "", "", err
		}
		if len(c.reached) == 0 {
			return c.model, admitted, nil
		}
		notices, err := w.budgets.tell(ctx, w.thread, c.all)
		if err != nil {
			return "", "", err
		}
		for i, b := range c.reached {
			if n := notices[i]; !b.Ask || n.Decision.Leave {
				return "", dropped, w.refuseForBudget(ctx, p, b, n)
			}
		}
		err = w.books.WaitForBudget(ctx, w.heldLease(), p.InboxID, notices[0], c.reached[0].decisions)
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
			w.front.ShowWait(p.InboxID)
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
func (w *worker) refuseForBudget(ctx context.Context, p store.Prompt, b BudgetStatus, n store.BudgetNotice) error {
	said := b.sentence()
	if n.Decision.Leave {
		said += " It was left as it is for this " + string(b.Period) + "."
	}
	said += " So this was not begun. It begins anew on " + b.Begins() + ", or ask an admin to raise it in deckhand.yaml."
	words, err := w.books.DropPrompt(ctx, w.heldLease(), p.InboxID, store.Drop{
		Outcome: "over budget", Mark: string(PromptOverBudget), Sentence: func(int) string { return said },
	})
	if errors.Is(err, store.ErrNotFound) {
		return nil // its author has taken it back, or changed it
	}
	if err != nil {
		return err
	}
	w.front.Tell(words...)
	if p.Waited {
		w.front.ShowWait(p.InboxID)
	}
	return nil
}

// sentence says which budget is used up.
func (b BudgetStatus) sentence() string {
	return fmt.Sprintf("%s is used up: %s of %s are spent.", b.Name(), money.USD(b.SpentMicroUSD), money.USD(b.LimitMicroUSD))
}

// Begins is the day on which the budget begins anew, for people.
func (b BudgetStatus) Begins() string { return b.To.Format("Monday, 2 January") }

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

// whyOverBudget is what people are told of a turn that was stopped for a budget.
func whyOverBudget(t *turn) string { return t.overBudget.sentence() + " So the work was stopped here." }

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
