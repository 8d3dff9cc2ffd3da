package claude

import (
	"maps"
	"slices"
)

// Totals follows the CLI's own running total within one epoch: one run of a process, or
// the part of it after a reset. It is not safe for concurrent use.
type Totals struct {
	total  int64
	models map[string]int64
}

// NewTotals begins at the total that a process starts from, see [Process.Baseline].
func NewTotals(baseline Usage) *Totals {
	return &Totals{total: baseline.TotalMicroUSD, models: baseline.Models}
}

// Spent is what the CLI says that was spent between two of its totals, in micro-USD.
type Spent struct {
	Before, After int64
	// Model is the one that most of it was for; empty if the CLI names none.
	Model string
}

// Reset begins a new epoch at zero, as after a [ConversationReset].
func (t *Totals) Reset() { t.total, t.models = 0, nil }

// Observe moves on to a running total. One below the last is a reset, not a credit: the
// new epoch counts from zero.
func (t *Totals) Observe(running Usage) (s Spent, reset bool) {
	if reset = running.TotalMicroUSD < t.total; reset {
		t.Reset()
	}
	s = Spent{Before: t.total, After: running.TotalMicroUSD}
	most := int64(0)
	for _, name := range slices.Sorted(maps.Keys(running.Models)) {
		if more := running.Models[name] - t.models[name]; more > most {
			s.Model, most = name, more
		}
	}
	t.total, t.models = running.TotalMicroUSD, running.Models
	return s, reset
}
