package spend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"deckhand/internal/gateway"
	"deckhand/internal/price"
	"deckhand/internal/store/ledger"
	"deckhand/internal/store/pg"
	"deckhand/internal/store/threads"
	"deckhand/internal/store/turns"
)

// Meter books the calls of the model that one process makes: it is what the gateway
// asks before a call leaves, and tells what came of it. A call is in the database before it
// leaves; what is seen of it and its end are booked beside it, by Run, so that nobody
// waits for the database.
//
// A call belongs to the turn that runs. Between turns none leaves: whatever makes one was
// left running, as the CLI needs none. One that the process makes before its first turn
// waits for that turn to begin. [gateway.Booking]
// and the worker use a meter at once; Run has a goroutine of the caller's.
//
// A meter outlives its process: calls that it has left behind are read to their end (see
// [gateway.Call]), and are booked then. Until it is done its worker keeps the lease, so
// that nobody takes them for lost.
type Meter struct {
	accounts *Accounts
	project  Project
	log      *zap.Logger

	mu      sync.Mutex
	at      ledger.OpenCall      // what calls have in common: lease, session and epoch
	turn    int64                // the present turn, or the last one; 0 before the first
	thread  threads.Thread       // whose calls these are
	user    string               // who asked for the turn
	runs    bool                 // the turn has not ended
	refused *Status              // the turn was refused a call for it
	denied  string               // why the turn was refused a call for its model
	last    map[string]lastCall  // by model
	held    map[uuid.UUID]string // calls that wait for a budget, with its name
	onHeld  func()               // held has changed
	onStray func()               // a call was refused since no turn runs; the first after each turn
	strayed bool                 // there was one since the turn ended
	// searches are the tool uses that run and may have the provider search the web.
	searches map[string]bool
	begun    chan struct{}          // closed when the first turn has begun
	tally    *tally                 // of the turn
	under    map[uuid.UUID]*booking // calls that have begun and not ended
	seen     map[uuid.UUID]ledger.CallUsage
	ended    []ledger.EndedCall
	late     []func() // tell the costs of turns that had ended before their calls
	unheard  bool     // a call was left by its caller since the CLI was asked for its total
	closed   bool     // no call follows
	// change is closed, and made anew, whenever under, seen, ended or late change.
	change chan struct{}
	done   chan struct{} // closed when it is closed and all is booked, or cannot be
}

// tally is what a turn has cost so far.
type tally struct {
	spent int64 // in micro-USD
	cut   bool  // a call may be billed for more
	under int   // calls that have begun and not ended
	// answers are what each has cost, by the ids of the messages that came back; of those
	// that were told whole.
	answers map[string]int64
	// late is told what the turn has cost when the last of them has ended, where it has
	// ended itself before.
	late func(microUSD int64, more bool)
}

const (
	// maxUnbooked bounds the calls of a process that have ended and are not booked.
	// Beyond it no call leaves.
	maxUnbooked = 1000
	// bookLimit bounds one attempt at booking.
	bookLimit = 30 * time.Second
	// settleLimit bounds how long a turn's end waits for its calls to be booked.
	settleLimit = 10 * time.Second
	// closeLimit bounds how long the database is tried when the process has gone.
	closeLimit = 20 * time.Second
)

// Session is the process whose calls a meter books.
type Session struct {
	Project Project
	Lease   threads.Lease
	Thread  threads.Thread
	Log     *zap.Logger
	// OnHeld is called when [Meter.HeldFor] changes. It must return at once.
	OnHeld func()
	// OnStray is called when a call is refused since no turn runs: once after each turn. It
	// must return at once.
	OnStray func(threads.ThreadKey)
}

// Project is what the accounts know of a project.
type Project struct {
	Name   string
	Prices price.Contract // before those for all
	Models []string       // that it names; none leaves the choice to the CLI
	// Named is what the project's provider calls a model.
	Named func(model string) string
}

// NewMeter returns the meter of a process that is about to start. The caller runs it.
func (a *Accounts) NewMeter(s Session) *Meter {
	return &Meter{
		accounts: a, project: s.Project, log: s.Log, at: ledger.OpenCall{Lease: s.Lease}, thread: s.Thread,
		onHeld: s.OnHeld, onStray: func() { s.OnStray(s.Thread.Key()) },
		last: map[string]lastCall{}, held: map[uuid.UUID]string{}, begun: make(chan struct{}), tally: new(tally),
		under: map[uuid.UUID]*booking{}, seen: map[uuid.UUID]ledger.CallUsage{}, change: make(chan struct{}), done: make(chan struct{}),
	}
}

// Done is closed when the meter is closed and all is booked, or cannot be.
func (m *Meter) Done() <-chan struct{} { return m.done }

// MoveTo says in which session and epoch the process is.
func (m *Meter) MoveTo(sessionID string, epoch int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at.SessionID, m.at.Epoch = sessionID, epoch
}

// BeginTurn says that a turn has begun.
func (m *Meter) BeginTurn(turn turns.Turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turn == 0 {
		close(m.begun)
	}
	m.turn, m.user, m.tally, m.runs, m.strayed, m.refused, m.denied = turn.ID, turn.RequestedBy, new(tally), true, false, nil, ""
	m.searches = map[string]bool{}
}

// BeginSearch says that a tool use may have the provider search the web, until [Meter.EndSearch].
func (m *Meter) BeginSearch(toolUseID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.searches != nil {
		m.searches[toolUseID] = true
	}
}

// EndSearch says that a tool use has its result.
func (m *Meter) EndSearch(toolUseID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.searches, toolUseID)
}

// EndTurn says that the turn has ended: no call begins until the next one.
func (m *Meter) EndTurn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs = false
}

// Begin implements [gateway.Meter].
func (m *Meter) Begin(ctx context.Context, c gateway.Call) (gateway.Booking, error) {
	select {
	case <-m.begun:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := m.permit(c); err != nil {
		return nil, err
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
	case errors.Is(err, threads.ErrFenced), errors.Is(err, pg.ErrNotFound), refused:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.over(b)
		return nil, err
	default:
		// Whether it is in the database is not known. It ends as a call that did not leave.
		b.End(gateway.Answer{Complete: true, Ended: time.Now()})
		return nil, err
	}
}

// open makes the booking of a call that is about to begin.
func (m *Meter) open(c gateway.Call) (*booking, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ended) >= maxUnbooked {
		return nil, fmt.Errorf("%d calls have ended and cannot be booked", len(m.ended))
	}
	if m.closed {
		return nil, errors.New("the process has gone")
	}
	if !m.runs {
		if !m.strayed {
			m.strayed = true
			m.onStray()
		}
		return nil, &gateway.Refusal{Status: http.StatusPaymentRequired, Sentence: "No turn of this thread runs, and between turns the model is not called."}
	}
	b := &booking{OpenCall: m.at, meter: m, call: c, tally: m.tally}
	b.ID, b.Model, b.StartedAt = c.ID, c.Model, c.At
	b.BoundMicroUSD = m.bound(c, gateway.Answer{Left: true})
	m.under[b.ID] = b
	b.tally.under++
	m.changed()
	return b, nil
}

// booking is one call.
type booking struct {
	ledger.OpenCall
	meter *Meter
	call  gateway.Call
	tally *tally
	alone bool // it is read to its end for nobody
}

// over takes a call from those under way. m.mu is held.
func (m *Meter) over(b *booking) {
	delete(m.under, b.ID)
	if b.tally.under--; b.tally.under == 0 && b.tally.late != nil {
		m.late = append(m.late, b.tally.tell())
	}
	m.changed()
}

// Cost is what answers of the present turn have cost together, in micro-USD, by their
// messages' ids. ok is false if that is not known of all of them, or there are none.
func (m *Meter) Cost(ids []string) (microUSD int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, id := range ids {
		one, known := m.tally.answers[id]
		if !known {
			return 0, false
		}
		microUSD += one
	}
	return microUSD, len(ids) > 0
}

// tell is what tells late. The meter's mu is held.
func (t *tally) tell() func() {
	tell, spent, cut := t.late, t.spent, t.cut
	return func() { tell(spent, cut) }
}

// Cut has the calls that are under way end with their callers, which the session itself
// can not do.
func (m *Meter) Cut() {
	m.mu.Lock()
	var cut []func()
	for _, b := range m.under {
		b.alone = false // its end is near
		cut = append(cut, b.call.Cut)
	}
	m.mu.Unlock()
	for _, f := range cut {
		f()
	}
}

// Alone implements [gateway.Booking].
func (b *booking) Alone() {
	m := b.meter
	m.mu.Lock()
	defer m.mu.Unlock()
	b.alone, m.unheard = true, true
	m.changed()
}

// Whole reports whether the CLI has got all that its calls were answered since this was
// asked last. Else what it says of their cost is a guess.
func (m *Meter) Whole() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	unheard := m.unheard
	m.unheard = false
	return !unheard
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

// End implements [gateway.Booking]: charge prices the call, Run books it.
func (b *booking) End(a gateway.Answer) {
	m := b.meter
	var calls []ledger.EndedCall
	var micro int64
	for i, usage := range m.charge(b.call, a) {
		c := ledger.EndedCall{OpenCall: b.OpenCall, Usage: usage, Status: a.Status, Complete: a.Complete, EndedAt: a.Ended}
		if i > 0 { // of another model: advice
			c.ID, c.Model = uuid.NewSHA1(b.ID, fmt.Append(nil, i)), usage.Model
		}
		calls, micro = append(calls, c), micro+usage.MicroUSD
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, b.ID)
	m.noteUsage(b.call, a)
	m.ended = append(m.ended, calls...)
	m.accounts.unbooked.Add(int64(len(calls)))
	b.tally.spent += micro
	b.tally.cut = b.tally.cut || !a.Complete
	if a.MessageID != "" && a.Complete {
		if b.tally.answers == nil {
			b.tally.answers = map[string]int64{}
		}
		b.tally.answers[a.MessageID] = micro
	}
	m.over(b)
}

// changed wakes whoever waits for a change. m.mu is held.
func (m *Meter) changed() {
	close(m.change)
	m.change = make(chan struct{})
}

// Run books what comes until the meter is closed and all is booked, or cannot be.
func (m *Meter) Run() {
	defer close(m.done)
	var deadline <-chan time.Time
	pause := time.Duration(0)
	for {
		m.mu.Lock()
		seen, ended, late, change := m.seen, m.ended, m.late, m.change
		closed := m.closed && len(m.under) == 0
		m.seen = map[uuid.UUID]ledger.CallUsage{}
		if len(ended) == 0 {
			m.late = nil
		}
		m.mu.Unlock()
		if closed && deadline == nil {
			deadline = time.After(closeLimit)
		}
		var err error
		switch {
		case len(ended) > 0:
			err = m.book(ended)
		case len(late) > 0:
			for _, tell := range late {
				tell()
			}
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
func (m *Meter) book(calls []ledger.EndedCall) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), bookLimit, fmt.Errorf("no answer in %s", bookLimit))
	defer cancel()
	err := m.accounts.store.EndCalls(ctx, calls)
	if err != nil {
		m.log.Error("book what calls of the model have cost; it is tried again", zap.Int("calls", len(calls)), zap.Error(err))
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = m.ended[len(calls):]
	m.accounts.unbooked.Add(-int64(len(calls)))
	m.changed()
	m.accounts.release()
	return nil
}

// note writes down what is known of calls that go on. It is for whoever finds them when
// this process has died: what cannot be written is not tried again.
func (m *Meter) note(seen map[uuid.UUID]ledger.CallUsage) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), bookLimit, fmt.Errorf("no answer in %s", bookLimit))
	defer cancel()
	for id, u := range seen {
		if err := m.accounts.store.SeenCall(ctx, id, u); err != nil {
			m.log.Warn("write down what a call of the model costs", zap.Error(err))
			return
		}
	}
}

// giveUp tells what could not be booked. The calls stand in the database as under way:
// whoever takes the thread over books them by the last usage that was written down.
func (m *Meter) giveUp(calls []ledger.EndedCall) {
	for _, c := range calls {
		m.log.Error("a call of the model is not booked as it ended", zap.Stringer("call", c.ID), zap.String("session", c.SessionID), zap.String("model", c.Model),
			zap.Int64("micro_usd", c.Usage.MicroUSD), zap.Int64("input", c.Usage.Input), zap.Int64("output", c.Usage.Output),
			zap.Int64("cache_read", c.Usage.CacheRead), zap.Int64("cache_write", c.Usage.CacheWrite5m+c.Usage.CacheWrite1h))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.accounts.unbooked.Add(-int64(len(m.ended)))
	m.ended = nil
	m.changed()
}

// Close says that the process has gone: it makes no more calls.
func (m *Meter) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.changed()
}

// Busy reports whether there are calls that have not ended, or are not booked.
func (m *Meter) Busy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.under)+len(m.ended) > 0
}

// Settle waits until every call that has ended is booked, and for calls that are under
// way for as long as cutting lasts, but for those that are read on for nobody: the gateway
// sees a moment after the CLI that it has left them. It says what the turn has cost, and
// whether it costs more, or may be billed for more.
func (m *Meter) Settle(ctx context.Context, cutting time.Duration) (microUSD int64, more bool) {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	cut := time.After(cutting)
	for {
		m.mu.Lock()
		waiting, under, change := len(m.ended), 0, m.change
		for _, b := range m.under {
			if !b.alone {
				under++
			}
		}
		microUSD, more = m.tally.spent, m.tally.cut || m.tally.under > 0
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

// WhenLate has the turn's cost told once more when its last call has ended, if one is
// under way.
func (m *Meter) WhenLate(tell func(microUSD int64, more bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tally.late = tell; m.tally.under == 0 {
		m.late = append(m.late, m.tally.tell())
		m.changed()
	}
}
