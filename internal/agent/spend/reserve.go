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
// sentence, and the CLI ends its turn in order. If what is left is reserved by other calls,
// the call waits: it is woken when a call of this replica is booked, and tries again now and
// then for those of other replicas. It also waits while the database cannot be reached: no
// call leaves that is not in the database.

const (
	// holdLimit is how long a call waits. Then the CLI is told that the service is busy, and
	// tries again by itself.
	holdLimit = 2 * time.Minute
	// A call that waits tries again after retryFirst, then after twice as long each time, up to retrySlowest.
	retryFirst   = 250 * time.Millisecond
	retrySlowest = 2 * time.Second
)

// record has a call recorded and admitted. A [*gateway.Refusal] says that it is not in the
// database, and what its caller is to be told.
func (m *Meter) record(ctx context.Context, b *booking) error {
	held, cancel := context.WithTimeoutCause(ctx, holdLimit, errHeld)
	defer cancel()
	b.ReservedMicroUSD = m.reservation(held, b.call)
	defer m.hold(b.ID, "")
	waited := ""
	for pause := retryFirst; ; pause = min(2*pause, retrySlowest) {
		freed := m.accounts.freed()
		list, budgets := m.callBudgets(b.Model)
		err := m.accounts.store.BeginCall(held, b.OpenCall, budgets...)
		over, isOver := errors.AsType[*ledger.OverBudgetError](err)
		switch {
		case err == nil, errors.Is(err, threads.ErrFenced), errors.Is(err, pg.ErrNotFound):
			return err
		case isOver && !over.Waits:
			status := m.status(ctx, list[over.Budget], budgets[over.Budget].BudgetWindow, over.State)
			m.refuse(&status)
			return &gateway.Refusal{Status: http.StatusPaymentRequired, Sentence: status.Sentence()}
		case isOver:
			// One that waits for no longer than a moment is not worth a word.
			name := m.status(ctx, list[over.Budget], budgets[over.Budget].BudgetWindow, over.State).Name()
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

func (m *Meter) status(ctx context.Context, b Budget, w ledger.BudgetWindow, s ledger.BudgetState) Status {
	m.mu.Lock()
	thread := m.thread
	m.mu.Unlock()
	return m.accounts.named(ctx, thread, b.at(w, s))
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

// lastCall is the session's latest call of a model.
type lastCall struct {
	bytes          int
	prompt, answer int64 // tokens
	hour           bool  // its prompt was cached for an hour, not for minutes
	at             time.Time
}

// cacheTrusted is how long after a call its prompt is expected to be in the provider's cache.
const cacheTrusted = 4 * time.Minute

// noteUsage records a call's usage, from which the next one's cost is estimated. m.mu is held.
func (m *Meter) noteUsage(c gateway.Call, a gateway.Answer) {
	m.accounts.outputs.add(m.project.Name, c.Model, a.Usage)
	if a.Usage.Prompt() > 0 {
		m.last[c.Model] = lastCall{bytes: c.Bytes, prompt: a.Usage.Prompt(), answer: a.Usage.Output, hour: a.Usage.CacheWrite1h > 0, at: a.Ended}
	}
}

// bytesPerToken is the size of a prompt's token at least, nearly always.
const bytesPerToken = 3

// reservation estimates the most that a call will cost at list price, in micro-USD. What the
// session's last prompt had counts as a cache read, the rest as a cache write. The answer
// counts as 1.5 times the longest recent one, and as max_tokens at most.
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
	if known && c.Bytes >= last.bytes && c.At.Sub(last.at) < cacheTrusted {
		u.CacheRead = last.prompt
		fresh = int64(c.Bytes-last.bytes)/bytesPerToken + last.answer
	}
	u.Output = m.accounts.outputs.expect(ctx, m.accounts.store, team, m.project.Name, c.Model)
	if known && !last.hour || !known && m.accounts.outputs.shortTTL(m.project.Name, c.Model) {
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

// outputs has the lengths of recent answers by project and model, of this replica and of the
// time before it began. The zero value knows none.
type outputs struct {
	mu   sync.Mutex
	late map[[2]string]*lateOutputs
}

type lateOutputs struct {
	before int64   // the longest before this replica began
	here   []int64 // since, the last [outputsKept]
	// shortTTL: the latest prompt of any session that was cached was cached for minutes, not for an hour.
	shortTTL bool
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
			l.shortTTL = u.CacheWrite1h == 0
		}
		l.here = append(l.here, u.Output)
		if len(l.here) > outputsKept {
			l.here, l.before = slices.Delete(l.here, 0, 1), 0
		}
	}
}

// shortTTL reports whether prompts are cached for minutes, not for an hour.
func (o *outputs) shortTTL(project, model string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.late[[2]string{project, model}]
	return l != nil && l.shortTTL
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
