package price

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
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

func sonnet(t *testing.T) Terms {
	t.Helper()
	return Terms{
		Input: rate(t, "3.00"), Output: rate(t, "15.00"), CacheRead: rate(t, "0.30"),
		CacheWrite5m: rate(t, "3.75"), CacheWrite1h: rate(t, "6.00"), WebSearch: rate(t, "0.01"),
	}
}

func TestAContractCostIsExact(t *testing.T) {
	t.Parallel()
	odd := Terms{Input: rate(t, "0.1"), Output: rate(t, "2.000000001")}
	for _, tt := range []struct {
		name  string
		price Terms
		usage Usage
		want  int64
	}{
		{"nothing", sonnet(t), Usage{}, 0},
		{"one of each", sonnet(t), Usage{Input: 1, Output: 1, CacheRead: 1, CacheWrite5m: 1, CacheWrite1h: 1, WebSearches: 1}, 10_028}, // 28.05
		{"a million of each", sonnet(t), Usage{Input: 1e6, Output: 1e6, CacheRead: 1e6, CacheWrite5m: 1e6, CacheWrite1h: 1e6}, 28_050_000},
		{"half a micro-dollar goes up", odd, Usage{Input: 5}, 1},
		{"less than half goes down", odd, Usage{Input: 4}, 0},
		{"tenths are added before they are rounded", odd, Usage{Input: 15, Output: 1}, 4}, // 1.5 + 2.000000001
		{"a billionth decides", odd, Usage{Input: 4, Output: 100_000_000}, 200_000_001},   // 0.4 + 200000000.1
		{"the list's surcharge, too", odd, Usage{Input: 20, US: true}, 2},                 // 2.2
		{"more than 64 bits on the way", Terms{Output: rate(t, "75")}, Usage{Output: MaxCount}, 75e9},
	} {
		if got := tt.price.Cost("claude-sonnet-4-5", tt.usage); got != tt.want {
			t.Errorf("%s: %d µ$, want %d", tt.name, got, tt.want)
		}
	}
}

// Entries are rounded one by one: the sum of n differs from the exact amount by half a
// micro-dollar each at most.
func TestRoundingNeverAddsUpToMoreThanHalfAMicroDollarPerEntry(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		price := Terms{Input: Rate(rapid.Int64Range(0, int64(MaxRate)).Draw(t, "input")), WebSearch: Rate(rapid.Int64Range(0, rateUnit).Draw(t, "search"))}
		var sum int64
		var all Usage
		entries := rapid.IntRange(1, 20).Draw(t, "entries")
		for range entries {
			u := Usage{Input: rapid.Int64Range(0, 1e6).Draw(t, "tokens"), WebSearches: rapid.Int64Range(0, 9).Draw(t, "searches")}
			sum += price.Cost("", u)
			all.Input += u.Input
			all.WebSearches += u.WebSearches
		}
		if diff := 2 * (sum - price.Cost("", all)); diff > int64(entries)+1 || -diff > int64(entries)+1 {
			t.Fatalf("%d entries are %d µ$ apart", entries, diff/2)
		}
	})
}

func TestTheMostTellingPriceCounts(t *testing.T) {
	t.Parallel()
	p := NewContract(map[string]Terms{
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
	if _, ok := NewContract(map[string]Terms{"claude-3.5": {}}).Of("claude-3-5"); ok {
		t.Error("a dot stood for any letter")
	}
}
