package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/gateway"
	"deckhand/internal/price"
	"deckhand/internal/store"
)

// meter books the calls of the model that one process makes: it is what the gateway
// asks before a call leaves, and tells what came of it. A call is in the books before it
// leaves; what is seen of it and its end are booked beside it, by run, so that nobody
// waits for the database.
//
// A call belongs to the turn that runs, or between turns to the last one. One that the
// process makes before its first turn waits for that turn to begin. [gateway.Booking]
// and the worker use a meter at once; run has a goroutine of the supervisor's.
type meter struct {
	*shared
	project Project
	log     *zap.Logger

	mu      sync.Mutex
	at      store.OpenCall       // what calls have in common: lease, session and epoch
	turn    int64                // the present turn, or the last one; 0 before the first
	thread  store.Thread         // whose calls these are
	user    string               // who asked for the turn
	refused *BudgetStatus        // the turn was refused a call for it
	last    map[string]asked     // by model
	held    map[uuid.UUID]string // calls that wait for a budget, with its name
	onHeld  func()               // held has changed
	begun   chan struct{}        // closed when the first turn has begun
	spent   int64                // by the present turn, in micro-USD
	cut     bool                 // a call of the turn may be billed for more
	under   int                  // way: calls that have begun and not ended
	seen    map[uuid.UUID]store.CallUsage
	ended   []store.EndedCall
	closed  bool // nothing follows
	// change is closed, and made anew, whenever under, seen or ended change.
	change chan struct{}
}

const (
	// maxUnbooked bounds the calls of a process that have ended and are not booked.
	// Beyond it no call leaves.
	maxUnbooked = 1000
	// bookLimit bounds one attempt at booking.
	bookLimit = 30 * time.Second
	// settleLimit bounds how long a turn's end waits for its calls to be booked.
	settleLimit = 10 * time.Second
	// closeLimit bounds how long the books are tried when the process has gone.
	closeLimit = 20 * time.Second
)

// newMeter returns the meter of a process that is about to start, and books by it until
// it is closed.
func (w *worker) newMeter() *meter {
	m := &meter{
		shared: w.shared, project: w.project, log: w.log, at: store.OpenCall{Lease: w.heldLease()},
		thread: w.thread, last: map[string]asked{}, held: map[uuid.UUID]string{}, onHeld: func() { w.box.put(letter{kind: letterHeld}) }, begun: make(chan struct{}), seen: map[uuid.UUID]store.CallUsage{}, change: make(chan struct{}),
	}
	w.running.Go(m.run)
	return m
}

// moveTo says in which session and epoch the process is.
func (m *meter) moveTo(sessionID string, epoch int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at.SessionID, m.at.Epoch = sessionID, epoch
}

// begin says that a turn has begun.
func (m *meter) begin(turn store.Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turn == 0 {
		close(m.begun)
	}
	m.turn, m.user, m.spent, m.cut, m.refused = turn.ID, turn.RequestedBy, 0, false, nil
}

// Begin implements [gateway.Meter].
func (m *meter) Begin(ctx context.Context, c gateway.Call) (gateway.Booking, error) {
	select {
	case <-m.begun:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	b, err := m.open(c)
	if err != nil {
		return nil, err
	}
	err = m.record(ctx, b)
	_, refused := errors.AsType[*gateway.Refusal](err)
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrNotFound), refused:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.under--
		m.changed()
		return nil, err
	default:
		// Whether it is in the books is not known. It ends as a call that did not leave.
		b.End(gateway.Answer{Complete: true, Ended: time.Now()})
		return nil, err
	}
}

// open makes the booking of a call that is about to begin.
func (m *meter) open(c gateway.Call) (*booking, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ended) >= maxUnbooked {
		return nil, fmt.Errorf("%d calls have ended and cannot be booked", len(m.ended))
	}
	b := &booking{OpenCall: m.at, meter: m, call: c, turn: m.turn}
	b.ID, b.Model, b.StartedAt = c.ID, c.Model, c.At
	b.BoundMicroUSD = m.bound(c, gateway.Answer{Left: true})
	m.under++
	m.changed()
	return b, nil
}

// booking is one call.
type booking struct {
	store.OpenCall
	meter *meter
	call  gateway.Call
	turn  int64
}

// Seen implements [gateway.Booking].
func (b *booking) Seen(a gateway.Answer) {
	m := b.meter
	usages := m.charge(b.call, a)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[b.ID] = usages[0]
	m.changed()
}

// End implements [gateway.Booking].
func (b *booking) End(a gateway.Answer) {
	m := b.meter
	var calls []store.EndedCall
	var micro int64
	for i, usage := range m.charge(b.call, a) {
		c := store.EndedCall{OpenCall: b.OpenCall, Usage: usage, Status: a.Status, Complete: a.Complete, EndedAt: a.Ended}
		if i > 0 { // of another model: advice
			c.ID, c.Model = uuid.NewSHA1(b.ID, fmt.Append(nil, i)), usage.Model
		}
		calls, micro = append(calls, c), micro+usage.MicroUSD
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, b.ID)
	m.learn(b.call, a)
	m.ended = append(m.ended, calls...)
	m.unbookedCalls.Add(int64(len(calls)))
	m.under--
	if b.turn == m.turn {
		m.spent += micro
		m.cut = m.cut || !a.Complete
	}
	m.changed()
}

// changed wakes whoever waits for a change. m.mu is held.
func (m *meter) changed() {
	close(m.change)
	m.change = make(chan struct{})
}

// run books what comes until the meter is closed and all is booked, or cannot be.
func (m *meter) run() {
	var deadline <-chan time.Time
	pause := time.Duration(0)
	for {
		m.mu.Lock()
		seen, ended, closed, change := m.seen, m.ended, m.closed, m.change
		m.seen = map[uuid.UUID]store.CallUsage{}
		m.mu.Unlock()
		if closed && deadline == nil {
			deadline = time.After(closeLimit)
		}
		var err error
		switch {
		case len(ended) > 0:
			err = m.book(ended)
		case len(seen) > 0:
			m.note(seen)
		case closed:
			return
		default:
			<-change
			continue
		}
		if err == nil {
			pause = 0
			continue
		}
		pause = min(max(2*pause, 50*time.Millisecond), 5*time.Second)
		select {
		case <-time.After(pause):
		case <-deadline:
			m.giveUp(ended)
			return
		}
	}
}

// book books calls that have ended, which are the first of m.ended.
func (m *meter) book(calls []store.EndedCall) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), bookLimit, fmt.Errorf("no answer in %s", bookLimit))
	defer cancel()
	err := m.books.EndCalls(ctx, calls)
	if err != nil {
		m.log.Error("book what calls of the model have cost; it is tried again", zap.Int("calls", len(calls)), zap.Error(err))
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = m.ended[len(calls):]
	m.unbookedCalls.Add(-int64(len(calls)))
	m.changed()
	m.budgets.release()
	return nil
}

// note writes down what is known of calls that go on. It is for whoever finds them when
// this process has died: what cannot be written is not tried again.
func (m *meter) note(seen map[uuid.UUID]store.CallUsage) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), bookLimit, fmt.Errorf("no answer in %s", bookLimit))
	defer cancel()
	for id, u := range seen {
		if err := m.books.SeenCall(ctx, id, u); err != nil {
			m.log.Warn("write down what a call of the model costs", zap.Error(err))
			return
		}
	}
}

// giveUp tells what could not be booked. The calls stand in the books as under way:
// whoever takes the thread over books them by the last usage that was written down.
func (m *meter) giveUp(calls []store.EndedCall) {
	for _, c := range calls {
		m.log.Error("a call of the model is not booked as it ended", zap.Stringer("call", c.ID), zap.String("session", c.SessionID), zap.String("model", c.Model),
			zap.Int64("micro_usd", c.Usage.MicroUSD), zap.Int64("input", c.Usage.Input), zap.Int64("output", c.Usage.Output),
			zap.Int64("cache_read", c.Usage.CacheRead), zap.Int64("cache_write", c.Usage.CacheWrite5m+c.Usage.CacheWrite1h))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unbookedCalls.Add(-int64(len(m.ended)))
	m.ended = nil
	m.changed()
}

// close says that the process has gone, and with it all its calls.
func (m *meter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.changed()
}

// settle waits until every call that has ended is booked, and for calls that are under
// way for as long as cutting lasts: the gateway sees a moment after the CLI that it has
// cut them. It says what the turn has cost, and whether it may be billed for more.
func (m *meter) settle(ctx context.Context, cutting time.Duration) (microUSD int64, more bool) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	cut := time.After(cutting)
	for {
		m.mu.Lock()
		waiting, under, change := len(m.ended), m.under, m.change
		microUSD, more = m.spent, m.cut
		m.mu.Unlock()
		if waiting == 0 && (under == 0 || cutting == 0) {
			return microUSD, more
		}
		select {
		case <-change:
		case <-cut:
			cutting = 0
		case <-ctx.Done():
			m.log.Warn("a turn ends before its calls are booked", zap.Int("calls", waiting))
			return microUSD, more
		}
	}
}

// charge prices a call: first what was used of its own model, then of those that were run
// besides.
func (m *meter) charge(c gateway.Call, a gateway.Answer) []store.CallUsage {
	own := ownModel(c.Model, a.Model)
	var models []string
	runs := map[string][]price.Usage{}
	whole := false // the runs say all of the call's own
	for _, r := range a.Runs {
		model := own
		if r.Apart {
			model = cmp.Or(r.Model, own)
		}
		whole = whole || !r.Apart
		if runs[model] == nil {
			models = append(models, model)
		}
		runs[model] = append(runs[model], r.Usage)
	}
	if !whole {
		runs[own] = append([]price.Usage{a.Usage}, runs[own]...)
	}
	models = append([]string{own}, slices.DeleteFunc(models, func(m string) bool { return m == own })...)
	usages := make([]store.CallUsage, len(models))
	for i, model := range models {
		usages[i] = m.priced(model, runs[model])
		usages[i].RequestID, usages[i].FirstByteAt = a.RequestID, a.FirstByte
	}
	usages[0].BoundMicroUSD = m.bound(c, a)
	return usages
}

// ownModel is the name under which a call is booked: the one that was asked for, unless
// another answered, whose price is another.
func ownModel(asked, answered string) string {
	first, askedKnown := price.Of(asked)
	second, answeredKnown := price.Of(answered)
	if asked == "" || (answeredKnown && (!askedKnown || first.Name != second.Name)) {
		return answered
	}
	return asked
}

// priced is what runs of a model cost.
func (m *meter) priced(model string, runs []price.Usage) store.CallUsage {
	var sum price.Usage
	for _, u := range runs {
		sum = sum.Plus(u)
	}
	out := store.CallUsage{
		Model: model, Rate: price.RateOf(runs...), Input: sum.Input, Output: sum.Output, CacheRead: sum.CacheRead,
		CacheWrite5m: sum.CacheWrite5m, CacheWrite1h: sum.CacheWrite1h, WebSearches: sum.WebSearches,
	}
	micro, known := price.Cost(model, runs...)
	out.MicroUSD, out.Unpriced = micro, !known && micro > 0
	if out.Unpriced {
		if _, told := m.unlisted.LoadOrStore(model, true); !told {
			m.log.Error("the price list does not know the model "+model, zap.String("hint", "its calls are booked at the price of another; bot report reprice mends that when a newer Deckhand knows it"))
		}
	}
	out.ContractMicroUSD = m.contract(model, runs)
	return out
}

// contract is what runs cost by the team's own prices, the project's before those of
// all; nil where there are none for the model.
func (m *meter) contract(model string, runs []price.Usage) *int64 {
	if len(m.project.Prices)+len(m.prices) == 0 {
		return nil
	}
	terms, ok := m.project.Prices.Of(model)
	if !ok {
		terms, ok = m.prices.Of(model)
	}
	if !ok {
		if _, told := m.unpriced.LoadOrStore(model, true); !told {
			m.log.Warn("no contract price for "+model, zap.String("model", model), zap.String("hint", "write one under prices in deckhand.yaml"))
		}
		return nil
	}
	cost := terms.Cost(model, runs...)
	return &cost
}

// unsaid is what an answer is taken to be at most that does not say how long it may be.
const unsaid = 128_000

// bound is what a call may be billed beyond what its provider has told: the rest of the
// answer that was asked for, and of a prompt of which nothing was told a token for each
// byte, kept for an hour, which is the dearest.
func (m *meter) bound(c gateway.Call, a gateway.Answer) int64 {
	if a.Complete || !a.Left {
		return 0
	}
	model := ownModel(c.Model, a.Model)
	most := a.Usage
	if most.Prompt() == 0 {
		most.CacheWrite1h, most.Fast = int64(c.Bytes), c.Fast
	}
	most.Output = max(most.Output, cmp.Or(c.MaxTokens, unsaid))
	told, _ := price.Cost(model, a.Usage)
	worst, _ := price.Cost(model, most)
	return max(worst-told, 0)
}
