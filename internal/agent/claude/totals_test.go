package claude_test

import (
	"testing"

	"deckhand/internal/agent/claude"
)

func TestTotalsTellWhatLiesBetween(t *testing.T) {
	t.Parallel()
	total := func(micro int64, models map[string]int64) claude.Usage {
		return claude.Usage{TotalMicroUSD: micro, Models: models}
	}
	m := claude.NewTotals(total(100, map[string]int64{"a": 100}))
	for i, c := range []struct {
		running claude.Usage
		want    claude.Spent
		reset   bool
	}{
		{total(150, map[string]int64{"a": 110, "b": 40}), claude.Spent{Before: 100, After: 150, Model: "b"}, false},
		{total(150, map[string]int64{"a": 110, "b": 40}), claude.Spent{Before: 150, After: 150}, false},
		{total(20, map[string]int64{"a": 20}), claude.Spent{Before: 0, After: 20, Model: "a"}, true},
		{total(25, nil), claude.Spent{Before: 20, After: 25}, false},
	} {
		if got, reset := m.Observe(c.running); got != c.want || reset != c.reset {
			t.Errorf("total %d: %+v, reset %v; want %+v, %v", i, got, reset, c.want, c.reset)
		}
	}
	m.Reset()
	if got, reset := m.Observe(total(7, nil)); got != (claude.Spent{After: 7}) || reset {
		t.Errorf("after a reset: %+v, reset %v", got, reset)
	}
}
