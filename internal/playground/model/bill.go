package model

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"

	"deckhand/internal/price"
)

// Bill is what all calls so far cost, by session and model.
type Bill struct {
	Sessions []SessionBill `json:"sessions"` // by session id
	Total    Tally         `json:"total"`
	// Requests are what a provider bills for each call, in micro-dollars, by the id of its
	// request. A call that was not answered is not in it.
	Requests map[string]int64 `json:"requests"`
}

// SessionBill is the bill of one session. Calls that name no session have the
// id "".
type SessionBill struct {
	SessionID string    `json:"session_id"`
	Models    []ByModel `json:"models"` // by model id
	Total     Tally     `json:"total"`
	// Probes are calls for one token, by which the CLI sees whether a model
	// answers. It does not count them in its total_cost_usd, so they are in no
	// total here either. A provider bills them.
	Probes Tally `json:"probes"`
}

// ByModel is what one model cost in one session.
type ByModel struct {
	Model string `json:"model"`
	Tally
}

// Tally counts calls, tokens and money. Totals over models are rounded anew,
// so they can differ from the sum of the parts by a micro-dollar or so.
type Tally struct {
	Calls             int64 `json:"calls"`
	Input             int64 `json:"input"`
	Output            int64 `json:"output"`
	CacheRead         int64 `json:"cache_read"`
	CacheWrite5m      int64 `json:"cache_write_5m"`
	CacheWrite1h      int64 `json:"cache_write_1h"`
	WebSearchRequests int64 `json:"web_search_requests"`
	// MicroUSD is USD, rounded once. It equals the CLI's running total rounded
	// in the same way.
	MicroUSD int64 `json:"micro_usd"`
	// NanoUSD is the sum of the calls without any rounding.
	NanoUSD int64 `json:"nano_usd"`
	// MeteredMicroUSD is what a provider bills: the sum of the calls, each rounded by
	// itself, and of an answer that broke off what had been made of it. All other
	// figures are the CLI's, which guesses that.
	MeteredMicroUSD int64 `json:"metered_micro_usd"`
	// USD is the sum as the CLI's floating point makes it, call by call. It
	// differs from NanoUSD by less than any amount of money, but it decides
	// which way an exact half of a micro-dollar is rounded.
	USD float64 `json:"usd"`
}

func (t *Tally) add(o Tally) {
	t.Calls += o.Calls
	t.Input += o.Input
	t.Output += o.Output
	t.CacheRead += o.CacheRead
	t.CacheWrite5m += o.CacheWrite5m
	t.CacheWrite1h += o.CacheWrite1h
	t.WebSearchRequests += o.WebSearchRequests
	t.NanoUSD += o.NanoUSD
	t.MeteredMicroUSD += o.MeteredMicroUSD
	t.USD += o.USD
	t.MicroUSD = int64(math.Round(t.USD * 1e6))
}

// Session returns the bill of one session, zero when it has made no call.
func (b Bill) Session(id string) SessionBill {
	for _, s := range b.Sessions {
		if s.SessionID == id {
			return s
		}
	}
	return SessionBill{SessionID: id, Models: []ByModel{}}
}

// ledger collects the calls. Safe for concurrent use.
type ledger struct {
	mu     sync.Mutex
	calls  map[[2]string]*Tally // session, model
	totals map[string]*Tally    // session; kept apart: sums of floats depend on their order
	probes map[string]*Tally    // session
	// requests are the metered costs of the calls.
	requests map[string]int64
}

// add adds a call that was answered to its end.
func (l *ledger) add(session, model, request string, u usage) {
	l.book(session, model, request, u.tally(model))
}

// addCut adds a call whose answer broke off: what the CLI counts of it, and what had
// been made.
func (l *ledger) addCut(session, model, request string, guessed, made usage) {
	t := guessed.tally(model)
	t.MeteredMicroUSD = made.tally(model).MeteredMicroUSD
	l.book(session, model, request, t)
}

// meter notes what a provider bills for a call. Call it under the lock.
func (l *ledger) meter(request string, t Tally) {
	if l.requests == nil {
		l.requests = map[string]int64{}
	}
	l.requests[request] = t.MeteredMicroUSD
}

func (l *ledger) book(session, model, request string, t Tally) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.meter(request, t)
	if l.calls == nil {
		l.calls, l.totals = map[[2]string]*Tally{}, map[string]*Tally{}
	}
	key := [2]string{session, model}
	if l.calls[key] == nil {
		l.calls[key] = &Tally{}
	}
	if l.totals[session] == nil {
		l.totals[session] = &Tally{}
	}
	l.calls[key].add(t)
	l.totals[session].add(t)
}

func (l *ledger) addProbe(session, model, request string, u usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := u.tally(model)
	l.meter(request, t)
	if l.probes == nil {
		l.probes = map[string]*Tally{}
	}
	if l.probes[session] == nil {
		l.probes[session] = &Tally{}
	}
	l.probes[session].add(t)
}

// tally is the tally of one call.
func (u usage) tally(model string) Tally {
	p, _ := price.Of(model)
	used := u.priced()
	nano := p.Nano(used)
	return Tally{
		Calls: 1, Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheWrite5m: used.CacheWrite5m, CacheWrite1h: used.CacheWrite1h,
		WebSearchRequests: used.WebSearches, NanoUSD: nano, USD: floatCost(p, used), MeteredMicroUSD: price.Micro(nano),
	}
}

func (l *ledger) bill() Bill {
	l.mu.Lock()
	defer l.mu.Unlock()
	bySession := map[string]*SessionBill{}
	session := func(id string) *SessionBill {
		if bySession[id] == nil {
			bySession[id] = &SessionBill{SessionID: id, Models: []ByModel{}}
		}
		return bySession[id]
	}
	b := Bill{Sessions: []SessionBill{}, Requests: maps.Clone(l.requests)}
	for key, t := range l.calls {
		s := session(key[0])
		s.Models = append(s.Models, ByModel{key[1], *t})
	}
	for id, t := range l.totals {
		session(id).Total = *t
	}
	for id, t := range l.probes {
		session(id).Probes = *t
	}
	for _, s := range bySession {
		slices.SortFunc(s.Models, func(a, b ByModel) int { return cmp.Compare(a.Model, b.Model) })
		b.Sessions = append(b.Sessions, *s)
	}
	slices.SortFunc(b.Sessions, func(a, b SessionBill) int { return cmp.Compare(a.SessionID, b.SessionID) })
	for _, s := range b.Sessions {
		b.Total.add(s.Total)
	}
	return b
}
