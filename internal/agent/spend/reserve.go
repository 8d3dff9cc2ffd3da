package spend

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/gateway"
	"deckhand/internal/price"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
)

// A call is admitted by every budget that it counts towards, in the transaction that
// records it (store.BeginCall). One that finds nothing left is refused with the budget's
// sentence, and the CLI ends its turn in order. One that finds what is left reserved by
// others waits until they are booked: those of this replica wake it, for those of others
// it looks again now and then. So does one whose database cannot be reached: no call leaves
// that is not in the database.

const (
	// holdLimit is how long a call is held. Then the CLI is told that all is busy, and
	// tries again by itself.
	holdLimit = 2 * time.Minute
	// A call that waits looks again after lookAgain, then after twice as long each time, up to lookSlowest.
	lookAgain   = 250 * time.Millisecond
	lookSlowest = 2 * time.Second
)

// record has a call recorded and admitted. A [*gateway.Refusal] says that it is not in the
// database, and what its caller is to be told.
func (m *Meter) record(ctx context.Context, b *booking) error {
	held, cancel := context.WithTimeoutCause(ctx, holdLimit, errHeld)
	defer cancel()
	b.ReservedMicroUSD = m.reservation(held, b.call)
	defer m.hold(b.ID, "")
	waited := ""
	for pause := lookAgain; ; pause = min(2*pause, lookSlowest) {
		freed := m.accounts.freed()
		list, budgets := m.callBudgets(b.Model)
		err := m.accounts.store.BeginCall(held, b.OpenCall, budgets...)
		over, isOver := errors.AsType[*ledger.OverBudgetError](err)
		switch {
		case err == nil, errors.Is(err, threads.ErrFenced), errors.Is(err, pg.ErrNotFound):
			return err
		case isOver && !over.Waits:
			status := list[over.Budget].at(budgets[over.Budget].BudgetWindow, over.State)
			m.refuse(&status)
			return &gateway.Refusal{Status: http.StatusPaymentRequired, Sentence: status.Sentence()}
		case isOver:
			// One that waits for no longer than a moment is not worth a word.
			name := list[over.Budget].at(budgets[over.Budget].BudgetWindow, over.State).Name()
			if waited != "" {
				m.hold(b.ID, name)
			}
			waited = name
		case held.Err() == nil:
			m.log.Error("record a call of the model; it is tried again", zap.Error(err))
		}
		select {
		case <-freed:
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-held.Done():
			if isOver && ctx.Err() == nil {
				return &gateway.Refusal{Status: http.StatusServiceUnavailable, Sentence: waited + ": what is left is reserved by other calls of it that are running."}
			}
			return context.Cause(held) // whether it is recorded is not known
		}
	}
}

// hold notes for which budget a call waits; with no name, that it does no longer.
func (m *Meter) hold(id uuid.UUID, name string) {
	m.mu.Lock()
	was := m.held[id]
	if m.held[id] = name; name == "" {
		delete(m.held, id)
	}
	m.mu.Unlock()
	if name != was {
		m.onHeld()
	}
}

// HeldFor is the name of a budget that calls wait for, or empty.
func (m *Meter) HeldFor() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range slices.SortedFunc(maps.Keys(m.held), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }) {
		return m.held[id] // of the call that waits the longest: ids sort by time
	}
	return ""
}

var errHeld = errors.New("the call was held for long")

// callBudgets are the budgets that a call of the present turn counts towards now: a
// period may have ended while it waited.
func (m *Meter) callBudgets(model string) ([]Budget, []ledger.CallBudget) {
	if len(m.accounts.budgets) == 0 {
		return nil, nil
	}
	m.mu.Lock()
	thread, user := m.thread, m.user
	m.mu.Unlock()
	list, windows := m.accounts.of(thread, user, time.Now())
	out := make([]ledger.CallBudget, len(list))
	for i, b := range list {
		out[i] = ledger.CallBudget{BudgetWindow: windows[i], LimitMicroUSD: b.LimitMicroUSD, GoesOn: func(chosen string) bool { return goesOn(model, chosen) }}
	}
	return list, out
}

// goesOn reports whether a model is the cheaper one that an admin chose, by its name or
// an alias such as haiku, or costs no more by list.
func goesOn(model, chosen string) bool {
	words := func(s string) []string {
		s, _, _ = strings.Cut(strings.ToLower(s), "[")
		return strings.FieldsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	}
	is, want := words(model), words(chosen)
	if len(want) == 0 {
		return false
	}
	for i := range is {
		if i+len(want) <= len(is) && slices.Equal(is[i:i+len(want)], want) {
			return true
		}
	}
	this, known := price.Of(model)
	cheap, chosenKnown := price.Of(chosen)
	return known && chosenKnown && this.Input <= cheap.Input && this.Output <= cheap.Output
}

// refuse notes that the turn was refused a call.
func (m *Meter) refuse(b *Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = b
}

// RefusedFor is the budget for which the present turn was refused a call, or nil.
func (m *Meter) RefusedFor() *Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

// asked is what a prompt of the session was like.
type asked struct {
	bytes          int
	prompt, answer int64 // tokens
	hour           bool  // the cache keeps it for an hour
	at             time.Time
}

// cached is how long a provider's cache is counted on.
const cached = 4 * time.Minute

// learn notes what a call was like, for what the next one is going to cost.
func (m *Meter) learn(c gateway.Call, a gateway.Answer) {
	m.accounts.outputs.add(m.project.Name, c.Model, a.Usage)
	if a.Usage.Prompt() > 0 {
		m.last[c.Model] = asked{bytes: c.Bytes, prompt: a.Usage.Prompt(), answer: a.Usage.Output, hour: a.Usage.CacheWrite1h > 0, at: a.Ended}
	}
}

// bytesPerToken is what a token of a prompt takes at least, mostly.
const bytesPerToken = 3

// reservation is the most that a call is expected to cost, in micro-USD: its prompt, as
// far as the session's last one is in it by what reading the cache costs and the rest by
// what writing it costs; and an answer half as long again as the longest of late, or
// shorter if no longer one is asked for.
func (m *Meter) reservation(ctx context.Context, c gateway.Call) int64 {
	if len(m.accounts.budgets) == 0 {
		return 0
	}
	m.mu.Lock()
	last, known := m.last[c.Model]
	team := m.thread.TeamID
	m.mu.Unlock()
	var u price.Usage
	fresh := int64(c.Bytes) / bytesPerToken
	if known && c.Bytes >= last.bytes && c.At.Sub(last.at) < cached {
		u.CacheRead = last.prompt
		fresh = int64(c.Bytes-last.bytes)/bytesPerToken + last.answer
	}
	u.Output = m.accounts.outputs.expect(ctx, m.accounts.store, team, m.project.Name, c.Model)
	if known && !last.hour || !known && m.accounts.outputs.minutes(m.project.Name, c.Model) {
		u.CacheWrite5m = fresh
	} else {
		u.CacheWrite1h = fresh
	}
	if c.MaxTokens > 0 {
		u.Output = min(u.Output, c.MaxTokens)
	}
	micro, _ := price.Cost(c.Model, u)
	return micro
}

// outputs are how long answers were of late, by project and model, on this replica and
// before it began. The zero value knows none.
type outputs struct {
	mu   sync.Mutex
	late map[[2]string]*lateOutputs
}

type lateOutputs struct {
	before int64   // the longest before this replica began
	here   []int64 // since, the last [outputsKept]
	// minutes: the last prompt of any session that was written to the cache was written for
	// minutes, not for an hour.
	minutes bool
}

const (
	outputsKept = 100
	// outputFloor is what an answer is expected to be at least, in tokens.
	outputFloor = 4096
)

func (o *outputs) add(project, model string, u price.Usage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if l := o.late[[2]string{project, model}]; l != nil {
		if u.CacheWrite5m+u.CacheWrite1h > 0 {
			l.minutes = u.CacheWrite1h == 0
		}
		l.here = append(l.here, u.Output)
		if len(l.here) > outputsKept {
			l.here, l.before = slices.Delete(l.here, 0, 1), 0
		}
	}
}

// minutes reports whether prompts are written to the cache for minutes alone.
func (o *outputs) minutes(project, model string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.late[[2]string{project, model}]
	return l != nil && l.minutes
}

// expect is how long the next answer may be.
func (o *outputs) expect(ctx context.Context, db Store, team, project, model string) int64 {
	key := [2]string{project, model}
	o.mu.Lock()
	_, known := o.late[key]
	o.mu.Unlock()
	if !known {
		longest, err := db.RecentOutput(ctx, team, project, model)
		o.mu.Lock()
		if o.late == nil {
			o.late = map[[2]string]*lateOutputs{}
		}
		if err == nil && o.late[key] == nil {
			o.late[key] = &lateOutputs{before: longest}
		}
		o.mu.Unlock()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	longest := int64(0)
	if l := o.late[key]; l != nil {
		longest = slices.Max(append([]int64{l.before}, l.here...))
	}
	return max(outputFloor, longest+longest/2)
}
