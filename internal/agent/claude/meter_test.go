package claude_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"deckhand/internal/agent/claude"
)

func total(usd float64, models map[string]float64) *claude.Result {
	r := &claude.Result{Running: claude.Usage{TotalMicroUSD: int64(math.Round(usd * 1e6)), Models: map[string]claude.ModelUsage{}}}
	for name, cost := range models {
		r.Running.Models[name] = claude.ModelUsage{MicroUSD: int64(math.Round(cost * 1e6)), Input: int64(cost * 1e6)}
	}
	return r
}

func TestMeterCountsDifferences(t *testing.T) {
	t.Parallel()
	m := claude.NewMeter(claude.Usage{})
	for i, c := range []struct {
		r     *claude.Result
		want  string
		reset bool
	}{
		{total(0.10, map[string]float64{"a": 0.06, "b": 0.04}), "[a +60000 (0→60000) b +40000 (0→40000)]", false},
		{total(0.10, map[string]float64{"a": 0.06, "b": 0.04}), "[]", false},
		{total(0.15, map[string]float64{"a": 0.11, "b": 0.04}), "[a +50000 (60000→110000)]", false},
		{total(0.02, map[string]float64{"a": 0.02}), "[a +20000 (0→20000)]", true},
	} {
		deltas, reset := m.Observe(c.r.Running)
		if got := tellDeltas(deltas); got != c.want || reset != c.reset {
			t.Errorf("result %d: %s reset %v, want %s %v", i, got, reset, c.want, c.reset)
		}
	}
}

func tellDeltas(deltas []claude.ModelDelta) string {
	var parts []string
	for _, d := range deltas {
		parts = append(parts, fmt.Sprintf("%s +%d (%d→%d)", d.Model, d.MicroUSD, d.Before, d.After))
	}
	return fmt.Sprint(parts)
}

func TestMeterStartsFromItsBaseline(t *testing.T) {
	t.Parallel()
	base := claude.Usage{TotalMicroUSD: 100_000, Models: map[string]claude.ModelUsage{"a": {MicroUSD: 100_000, Input: 7}}}
	m := claude.NewMeter(base)
	r := total(0.13, map[string]float64{"a": 0.13})
	deltas, reset := m.Observe(r.Running)
	if sum(deltas) != 30_000 || reset || deltas[0].Before != 100_000 {
		t.Errorf("%s reset %v", tellDeltas(deltas), reset)
	}
}

// TestMeterAddsUp holds that, whatever the CLI reports, the entries of an epoch
// add up to its running total and none is negative.
func TestMeterAddsUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 500 {
		m := claude.NewMeter(claude.Usage{})
		models := map[string]float64{}
		usd, entries := 0.0, int64(0)
		perModel := map[string]int64{}
		for range 40 {
			if r.IntN(15) == 0 {
				models, usd, entries, perModel = map[string]float64{}, 0, 0, map[string]int64{}
				m.Reset()
			}
			for range r.IntN(4) {
				cost := r.Float64() * math.Pow(10, -float64(r.IntN(8)))
				models[string(rune('a'+r.IntN(4)))] += cost
				usd += cost
			}
			if r.IntN(10) == 0 {
				usd += r.Float64() * 1e-5 // what no model is named for
			}
			result := total(usd, models)
			deltas, reset := m.Observe(result.Running)
			if reset {
				t.Fatalf("round %d: a reset", round)
			}
			for _, d := range deltas {
				if d.MicroUSD < 0 || d.After-d.Before != d.MicroUSD || d.Before != perModel[d.Model] {
					t.Fatalf("round %d: %s", round, tellDeltas(deltas))
				}
				perModel[d.Model] = d.After
			}
			entries += sum(deltas)
			if entries != result.Running.TotalMicroUSD || m.Total() != entries {
				t.Fatalf("round %d: entries %d, running total %d", round, entries, result.Running.TotalMicroUSD)
			}
		}
	}
}

func TestMeterEstimates(t *testing.T) {
	t.Parallel()
	turn := claude.Output{Calls: []claude.Call{
		{Model: "claude-opus-5-5", Usage: claude.TokenUsage{Input: 1000, Output: 100, CacheRead: 5000}},
		{Model: "claude-opus-5-5", Usage: claude.TokenUsage{Input: 500}},
	}}
	m := claude.NewMeter(claude.Usage{})
	deltas := m.Estimate(turn.Calls)
	if len(deltas) != 1 || deltas[0].MicroUSD != 1500*4+100*20+1000 || !deltas[0].Estimated || deltas[0].Input != 1500 {
		t.Errorf("%+v", deltas)
	}
	// A discount that was seen holds for estimates too.
	m.Observe(claude.Usage{TotalMicroUSD: 2000, Models: map[string]claude.ModelUsage{"claude-opus-5-5": {Input: 1000, MicroUSD: 2000}}})
	if half := m.Estimate(turn.Calls); half[0].MicroUSD != deltas[0].MicroUSD/2 {
		t.Errorf("%+v", half)
	}
	turn = turn.Fold(&claude.Result{})
	if got := m.Estimate(turn.Calls); got != nil {
		t.Errorf("a finished turn is estimated: %+v", got)
	}
}

func TestCacheWritesOfUnknownDurationCountAsFiveMinutes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		u           claude.ModelUsage
		short, long int64
	}{
		{claude.ModelUsage{CacheWrite: 100}, 100, 0},
		{claude.ModelUsage{CacheWrite: 100, CacheWrite5m: 60, CacheWrite1h: 40}, 60, 40},
		{claude.ModelUsage{CacheWrite: 100, CacheWrite5m: 30, CacheWrite1h: 40}, 60, 40},
		{claude.ModelUsage{CacheWrite5m: 30, CacheWrite1h: 40}, 30, 40},
	} {
		if short, long := c.u.CacheWrites(); short != c.short || long != c.long {
			t.Errorf("%+v: %d and %d, want %d and %d", c.u, short, long, c.short, c.long)
		}
	}
}

// Of little money, rounding looks like another price: it must not be taken for one.
func TestAnEstimateDoesNotTakeRoundingForADiscount(t *testing.T) {
	t.Parallel()
	m := claude.NewMeter(claude.Usage{})
	m.Observe(claude.Usage{TotalMicroUSD: 7, Models: map[string]claude.ModelUsage{"claude-haiku-4-5": {CacheRead: 65, MicroUSD: 7}}})
	deltas := m.Estimate([]claude.Call{{Model: "claude-haiku-4-5", Usage: claude.TokenUsage{Input: 100_000}}})
	if len(deltas) != 1 || deltas[0].MicroUSD != 100_000 {
		t.Errorf("%+v", deltas)
	}
}

func TestVersionsThatCountInterruptedAnswers(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"2.0.0": false, "2.1.276": false, "2.1.329": true, "2.2.0": true, "": true} {
		if got := claude.CountsInterrupted(version); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}

func TestVersionsAreComparedByNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"2.1.37", "2.1.329", true},
		{"2.1.329", "2.1.37", false},
		{"2.1.329", "2.1.329", false},
		{"2.1.329-beta.1", "2.1.329", true},
		{"2.10.0", "2.9.9", false},
		{"", "2.0.0", true},
		{"2.0.0", "", false},
		{"?", "2.0.0", true},
	} {
		if got := claude.Older(c.a, c.b); got != c.want {
			t.Errorf("%q older than %q: %v", c.a, c.b, got)
		}
	}
}
