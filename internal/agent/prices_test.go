package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"pgregory.net/rapid"

	"deckhand/internal/agent/claude"
)

func rate(t *testing.T, text string) Rate {
	t.Helper()
	r, err := ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARateIsReadExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rate{
		"0": 0, "3": 3_000_000_000, "3.00": 3_000_000_000, "3.75": 3_750_000_000, "0.30": 300_000_000,
		"0.000000001": 1, "0.0000000010000": 1, "18.75": 18_750_000_000, "1000000": MaxRate, "007.5": 7_500_000_000,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"-3": "negative", "-0.5": "negative", "": "not a price", ".nan": "not a price", "NaN": "not a price", ".inf": "not a price",
		"1e3": "not a price", "3,75": "not a price", "$3": "not a price", "0x10": "not a price", ".5": "not a price", "3.": "not a price",
		"0.0000000001": "nine decimals", "1000000.000000001": "a million", "9999999999999999999999": "not a price",
	} {
		if got, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRate(%q) = %d, %v; want an error with %q", text, got, err, want)
		}
	}
}

func sonnet(t *testing.T) Price {
	t.Helper()
	return Price{
		Input: rate(t, "3.00"), Output: rate(t, "15.00"), CacheRead: rate(t, "0.30"),
		CacheWrite5m: rate(t, "3.75"), CacheWrite1h: rate(t, "6.00"), WebSearch: rate(t, "0.01"),
	}
}

func TestAContractCostIsExact(t *testing.T) {
	t.Parallel()
	odd := Price{Input: rate(t, "0.1"), Output: rate(t, "2.000000001")}
	for _, tt := range []struct {
		name  string
		price Price
		usage claude.ModelUsage
		want  int64
	}{
		{"nothing", sonnet(t), claude.ModelUsage{}, 0},
		{"one of each", sonnet(t), claude.ModelUsage{Input: 1, Output: 1, CacheRead: 1, CacheWrite: 2, CacheWrite5m: 1, CacheWrite1h: 1, WebSearches: 1}, 10_028}, // 28.05
		{"a million of each", sonnet(t), claude.ModelUsage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite: 2e6, CacheWrite5m: 1e6, CacheWrite1h: 1e6}, 28_050_000},
		{"writes of unknown duration are short", sonnet(t), claude.ModelUsage{CacheWrite: 1e6}, 3_750_000},
		{"half a micro-dollar goes up", odd, claude.ModelUsage{Input: 5}, 1},
		{"less than half goes down", odd, claude.ModelUsage{Input: 4}, 0},
		{"tenths are added before they are rounded", odd, claude.ModelUsage{Input: 15, Output: 1}, 4}, // 1.5 + 2.000000001
		{"a billionth decides", odd, claude.ModelUsage{Input: 4, Output: 100_000_000}, 200_000_001},   // 0.4 + 200000000.1
		{"more than 64 bits on the way", Price{Output: rate(t, "75")}, claude.ModelUsage{Output: 1e12}, 75e12},
	} {
		if got := tt.price.cost(tt.usage); got != tt.want {
			t.Errorf("%s: %d µ$, want %d", tt.name, got, tt.want)
		}
	}
}

// Entries are rounded one by one: the sum of n differs from the exact amount by half a
// micro-dollar each at most.
func TestRoundingNeverAddsUpToMoreThanHalfAMicroDollarPerEntry(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		price := Price{Input: Rate(rapid.Int64Range(0, int64(MaxRate)).Draw(t, "input")), WebSearch: Rate(rapid.Int64Range(0, rateUnit).Draw(t, "search"))}
		var sum int64
		var all claude.ModelUsage
		entries := rapid.IntRange(1, 20).Draw(t, "entries")
		for range entries {
			u := claude.ModelUsage{Input: rapid.Int64Range(0, 1e6).Draw(t, "tokens"), WebSearches: rapid.Int64Range(0, 9).Draw(t, "searches")}
			sum += price.cost(u)
			all.Input += u.Input
			all.WebSearches += u.WebSearches
		}
		if diff := 2 * (sum - price.cost(all)); diff > int64(entries)+1 || -diff > int64(entries)+1 {
			t.Fatalf("%d entries are %d µ$ apart", entries, diff/2)
		}
	})
}

func TestTheMostTellingPriceCounts(t *testing.T) {
	t.Parallel()
	p := NewPrices(map[string]Price{
		"*": {Input: 1}, "claude-*": {Input: 2}, "claude-sonnet-*": {Input: 3}, "claude-sonnet-4-5*": {Input: 4},
		"claude-sonnet-4-5-20250929": {Input: 5}, "*.anthropic.claude-sonnet-*-v1:0": {Input: 6}, "claude-opus-4-5": {Input: 7}, "claude-opus-4-5[1m]": {Input: 8},
	})
	got := map[string]Rate{}
	for _, model := range []string{
		"gpt", "claude-haiku-4-5", "claude-sonnet-5", "claude-sonnet-4-5-20991231", "claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20250929[1m]",
		"us.anthropic.claude-sonnet-4-v1:0", "claude-opus-4-5", "claude-opus-4-5[1m]", "claude-opus-4-5[2m]", "",
	} {
		price, ok := p.Of(model)
		if !ok {
			t.Errorf("%q has no price", model)
		}
		got[model] = price.Input
	}
	want := map[string]Rate{
		"gpt": 1, "claude-haiku-4-5": 2, "claude-sonnet-5": 3, "claude-sonnet-4-5-20991231": 4, "claude-sonnet-4-5-20250929": 5, "claude-sonnet-4-5-20250929[1m]": 5,
		"us.anthropic.claude-sonnet-4-v1:0": 6, "claude-opus-4-5": 7, "claude-opus-4-5[1m]": 8, "claude-opus-4-5[2m]": 7, "": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("prices (-want +got):\n%s", diff)
	}
	// A dot in a pattern is a dot.
	if _, ok := NewPrices(map[string]Price{"claude-3.5": {}}).Of("claude-3-5"); ok {
		t.Error("a dot stood for any letter")
	}
}

func TestContractPricesStandBesideTheOriginalFigures(t *testing.T) {
	t.Parallel()
	core, logged := observer.New(zap.WarnLevel)
	all := NewPrices(map[string]Price{"claude-sonnet-*": sonnet(t), "claude-haiku-*": {Input: rate(t, "1")}})
	w := &worker{
		shared: &shared{prices: all}, log: zap.New(core), session: &session{id: "s", epoch: 3},
		project: Project{Prices: NewPrices(map[string]Price{"claude-haiku-*": {Input: rate(t, "0.5")}})},
	}
	deltas := []claude.ModelDelta{
		{Model: "claude-sonnet-4-5", ModelUsage: claude.ModelUsage{Input: 1000, Output: 10, MicroUSD: 777}},
		{Model: "claude-haiku-4-5", ModelUsage: claude.ModelUsage{Input: 1000, MicroUSD: 900}},
		{Model: "claude-opus-5", ModelUsage: claude.ModelUsage{Input: 1000, MicroUSD: 5000}},
		{Model: "claude-sonnet-4-5", ModelUsage: claude.ModelUsage{MicroUSD: 2}}, // what rounding left
	}
	for range 2 {
		var list, contract []int64
		for _, e := range w.entries(deltas, "turn") {
			list = append(list, e.MicroUSD)
			if e.ContractMicroUSD == nil {
				contract = append(contract, -1)
				continue
			}
			contract = append(contract, *e.ContractMicroUSD)
		}
		if diff := cmp.Diff([]int64{777, 900, 5000, 2}, list); diff != "" {
			t.Errorf("list prices (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int64{3150, 500, -1, -1}, contract); diff != "" {
			t.Errorf("contract prices (-want +got):\n%s", diff)
		}
	}
	var said []string
	for _, e := range logged.All() {
		said = append(said, e.Message)
	}
	if diff := cmp.Diff([]string{"no contract price for claude-opus-5"}, said); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestWithoutContractPricesNothingIsSaidOfThem(t *testing.T) {
	t.Parallel()
	w := &worker{shared: &shared{}, session: &session{}} // no log: it would panic
	for _, e := range w.entries([]claude.ModelDelta{{Model: "claude-opus-5", ModelUsage: claude.ModelUsage{Input: 1, MicroUSD: 5}}}, "turn") {
		if e.ContractMicroUSD != nil {
			t.Errorf("a contract price out of nowhere: %d", *e.ContractMicroUSD)
		}
	}
}
