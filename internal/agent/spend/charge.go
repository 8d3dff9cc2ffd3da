package spend

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"deckhand/internal/gateway"
	"deckhand/internal/price"
	"deckhand/internal/store/ledger"
)

// permit refuses a call that has the provider search the web while nothing runs that was
// allowed to, and one for which a model may be run that has no price, by list or by
// contract, and that the configuration does not name. Its sentence is for people.
func (m *Meter) permit(c gateway.Call) error {
	m.mu.Lock()
	searching := len(m.searches) > 0
	m.mu.Unlock()
	if c.Search && !searching {
		return &gateway.Refusal{Status: http.StatusPaymentRequired, Sentence: "The web is searched only while a WebSearch runs that was allowed."}
	}
	for i, model := range append([]string{c.Model}, c.Fallbacks...) {
		if m.permits(model) || i == 0 && c.Named {
			continue
		}
		sentence := "There is no price for the model " + strconv.Quote(model) + ", so it is not called. An admin can write one under prices in deckhand.yaml, or name it under model or models there."
		m.mu.Lock()
		m.denied = sentence
		m.mu.Unlock()
		return &gateway.Refusal{Status: http.StatusPaymentRequired, Sentence: sentence}
	}
	return nil
}

func (m *Meter) permits(model string) bool {
	if _, known := price.Of(model); known {
		return true
	}
	for _, contract := range []price.Contract{m.project.Prices, m.accounts.prices} {
		if _, ok := contract.Of(model); ok {
			return true
		}
	}
	named := func(name string) bool { return name != "" && m.project.Named(name) == model }
	return slices.ContainsFunc(m.project.Models, named) || slices.ContainsFunc(m.accounts.budgets, func(b Budget) bool { return named(b.CheaperModel) })
}

// DeniedFor is why the present turn was refused a call for its model; empty if it was not.
func (m *Meter) DeniedFor() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.denied
}

// charge prices a call: first what was used of its own model, then of those that were run
// besides.
func (m *Meter) charge(c gateway.Call, a gateway.Answer) []ledger.CallUsage {
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
	usages := make([]ledger.CallUsage, len(models))
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
func (m *Meter) priced(model string, runs []price.Usage) ledger.CallUsage {
	var sum price.Usage
	for _, u := range runs {
		sum = sum.Plus(u)
	}
	out := ledger.CallUsage{
		Model: model, Rate: price.RateOf(runs...), Input: sum.Input, Output: sum.Output, CacheRead: sum.CacheRead,
		CacheWrite5m: sum.CacheWrite5m, CacheWrite1h: sum.CacheWrite1h, WebSearches: sum.WebSearches,
	}
	micro, known := price.Cost(model, runs...)
	out.MicroUSD, out.Unpriced = micro, !known && micro > 0
	if out.Unpriced {
		if _, told := m.accounts.unlisted.LoadOrStore(model, true); !told {
			m.log.Error("the price list does not know the model "+model, zap.String("hint", "its calls are booked at the price of another; bot report reprice mends that when a newer Deckhand knows it"))
		}
	}
	out.ContractMicroUSD = m.contract(model, runs)
	return out
}

// contract is what runs cost by the team's own prices, the project's before those of
// all; nil where there are none for the model.
func (m *Meter) contract(model string, runs []price.Usage) *int64 {
	if len(m.project.Prices)+len(m.accounts.prices) == 0 {
		return nil
	}
	terms, ok := m.project.Prices.Of(model)
	if !ok {
		terms, ok = m.accounts.prices.Of(model)
	}
	if !ok {
		if _, told := m.accounts.unpriced.LoadOrStore(model, true); !told {
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
func (m *Meter) bound(c gateway.Call, a gateway.Answer) int64 {
	if a.Complete || !a.Left {
		return 0
	}
	model := ownModel(c.Model, a.Model)
	most := a.Usage
	if most.Prompt() == 0 {
		most.CacheWrite1h = int64(c.Bytes)
	}
	most.Output = max(most.Output, cmp.Or(c.MaxTokens, unsaid))
	told, _ := price.Cost(model, a.Usage)
	worst, _ := price.Cost(model, most)
	return max(worst-told, 0)
}
