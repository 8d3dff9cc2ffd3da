package claude

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// roundedOff is by how much rounding moves a model's share of an epoch at most, in
// micro-dollars: its own total, and what is left between the models' and the sum.
const roundedOff = 2

// Meter turns the CLI's running totals into ledger entries within one epoch:
// one run of a process, or the part of it after a reset. The entries of an
// epoch add up to its running total, to the micro-dollar, and none is negative.
// It is not safe for concurrent use.
type Meter struct {
	// total is the running total that has been accounted for, and models what
	// of it went to which model.
	total  int64
	models map[string]ModelUsage
	epoch  int
	// seen gathers, over all epochs, what each model's tokens have cost.
	seen map[string]ModelUsage
}

// ModelDelta is one ledger entry: what one model cost since the last one.
type ModelDelta struct {
	// Model is the model's full name; empty for costs that the CLI did not
	// attribute to any.
	Model string
	ModelUsage
	// Before and After are the model's running total of the epoch, in
	// micro-dollars, around this entry: MicroUSD is their difference.
	Before, After int64
	// Estimated marks an entry that the CLI never confirmed.
	Estimated bool
}

// NewMeter returns a meter for a process that starts from baseline, see
// [Process.Baseline].
func NewMeter(baseline Usage) *Meter {
	m := &Meter{total: baseline.TotalMicroUSD, models: make(map[string]ModelUsage), seen: make(map[string]ModelUsage)}
	if baseline.TotalMicroUSD == 0 && len(baseline.Models) == 0 {
		return m
	}
	// The models' own totals need not add up to the total: attribute the rest
	// as Observe does.
	m.total = 0
	m.advance(baseline)
	return m
}

// Reset begins a new epoch at zero, as after a [ConversationReset].
func (m *Meter) Reset() {
	m.epoch++
	m.total = 0
	m.models = make(map[string]ModelUsage)
}

// Observe returns the entries for what was spent since the running total that was
// observed last, by model in the order of their names; none if nothing was. A total
// below that one is a reset, not a credit: the new epoch counts from zero.
func (m *Meter) Observe(running Usage) (deltas []ModelDelta, reset bool) {
	if running.TotalMicroUSD < m.total {
		m.Reset()
		reset = true
	}
	deltas = m.advance(running)
	for _, d := range deltas {
		s := m.seen[d.Model]
		s.add(d.ModelUsage)
		m.seen[d.Model] = s
	}
	return deltas, reset
}

// advance moves to a running total and returns what lies between.
func (m *Meter) advance(running Usage) []ModelDelta {
	var deltas []ModelDelta
	sum := int64(0)
	for _, name := range slices.Sorted(maps.Keys(running.Models)) {
		now, last := running.Models[name], m.models[name]
		d := ModelDelta{Model: name, ModelUsage: now.minus(last), Before: last.MicroUSD}
		// A model whose share was rounded up before waits until it catches up.
		d.MicroUSD = max(0, d.MicroUSD)
		sum += d.MicroUSD
		deltas = append(deltas, d)
	}
	deltas = settle(deltas, running.TotalMicroUSD-m.total-sum, m.models)
	out := deltas[:0]
	for _, d := range deltas {
		d.After = d.Before + d.MicroUSD
		share := m.models[d.Model]
		if now, ok := running.Models[d.Model]; ok {
			share = now
		}
		share.MicroUSD = d.After
		m.models[d.Model] = share
		if !d.zero() {
			out = append(out, d)
		}
	}
	m.total = running.TotalMicroUSD
	return out
}

// settle puts what rounding left between the models' sum and the total on the
// largest entry, or on several where that would make it negative.
func settle(deltas []ModelDelta, rest int64, models map[string]ModelUsage) []ModelDelta {
	if rest == 0 {
		return deltas
	}
	if len(deltas) == 0 {
		return append(deltas, ModelDelta{ModelUsage: ModelUsage{MicroUSD: rest}, Before: models[""].MicroUSD})
	}
	bySize := make([]*ModelDelta, len(deltas))
	for i := range deltas {
		bySize[i] = &deltas[i]
	}
	slices.SortStableFunc(bySize, func(a, b *ModelDelta) int { return cmp.Compare(b.MicroUSD, a.MicroUSD) })
	for _, d := range bySize {
		share := max(rest, -d.MicroUSD)
		d.MicroUSD += share
		if rest -= share; rest == 0 {
			break
		}
	}
	return deltas
}

func (u *ModelUsage) add(v ModelUsage) {
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.CacheWrite5m += v.CacheWrite5m
	u.CacheWrite1h += v.CacheWrite1h
	u.WebSearches += v.WebSearches
	u.MicroUSD += v.MicroUSD
}

// Estimate returns entries for the calls of the model that a turn has made and
// that no result has reported: those of a process that was killed, which were
// billed all the same. Tokens are those that the stream reported; they are
// priced at the rate that this meter has seen for the model, and at the list
// price where it has seen none. The meter itself does not move.
func (m *Meter) Estimate(calls []Call) []ModelDelta {
	used := make(map[string]ModelUsage)
	for _, c := range calls {
		if c.Settled {
			continue
		}
		u := used[c.Model]
		u.add(ModelUsage{
			Input: c.Usage.Input, Output: c.Usage.Output, CacheRead: c.Usage.CacheRead,
			CacheWrite: c.Usage.CacheWrite, CacheWrite5m: c.Usage.CacheWrite5m, CacheWrite1h: c.Usage.CacheWrite1h,
			WebSearches: c.Usage.WebSearches,
		})
		used[c.Model] = u
	}
	var out []ModelDelta
	for _, model := range slices.Sorted(maps.Keys(used)) {
		u := used[model]
		if u.zero() {
			continue
		}
		price := priceOf(model)
		listed := price.cost(u)
		if seen := m.seen[model]; seen.MicroUSD > 0 {
			// Of little money, what rounding did to it looks like another price.
			atList := price.cost(seen)
			if atList > 0 && math.Abs(float64(seen.MicroUSD)-atList) > roundedOff*float64(m.epoch+1) {
				listed *= float64(seen.MicroUSD) / atList
			}
		}
		u.MicroUSD = int64(listed + 0.5)
		before := m.models[model].MicroUSD
		out = append(out, ModelDelta{
			Model: model, ModelUsage: u, Before: before, After: before + u.MicroUSD, Estimated: true,
		})
	}
	return out
}
