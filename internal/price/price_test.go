package price

import "testing"

func TestAModelIsFoundByItsName(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"claude-opus-5-5": "claude-opus-5-5", "claude-opus-5-5-20260801": "claude-opus-5-5", "claude-opus-5": "claude-opus-5",
		"claude-opus-5-20260101": "claude-opus-5", "claude-sonnet-4-20250514": "claude-sonnet-4",
		"claude-sonnet-4-0": "claude-sonnet-4-0", "claude-sonnet-4-5-20250929": "claude-sonnet-4-5",
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": "claude-sonnet-4-5", "anthropic/claude-opus-4.8": "claude-opus-4-8",
		"claude-opus-4-v1": "claude-opus-4", "CLAUDE-HAIKU-5-5": "claude-haiku-5-5",
		"claude-3-5-haiku-latest": "claude-3-5-haiku", "claude-3.5-sonnet": "claude-3-5-sonnet",
		"claude-opus-5-5[1m]": "claude-opus-5-5",
	} {
		if m, known := Of(model); m.Name != want || !known {
			t.Errorf("%s is priced as %s (%v), want %s", model, m.Name, known, want)
		}
	}
	for _, model := range []string{"claude-opus-5-6", "claude-sonnet-4-7", "claude-opus-4-10", "gpt-foo", ""} {
		if m, known := Of(model); m.Name != "claude-opus-5-5" || known {
			t.Errorf("%q is priced as %s (%v), want the fallback", model, m.Name, known)
		}
	}
}

func TestACallCostsWhatTheListSays(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		model string
		usage Usage
		nano  int64
	}{
		{"nothing", "claude-opus-5-5", Usage{}, 0},
		{"each kind", "claude-opus-5-5", Usage{Input: 1, Output: 1, CacheRead: 1, CacheWrite5m: 1, CacheWrite1h: 1, WebSearches: 1}, 4000 + 20000 + 200 + 5000 + 8000 + 10_000_000},
		{"a long prompt", "claude-opus-5-5", Usage{Input: 900_000}, 900_000 * 4000},
		{"a prompt that is not long yet", "claude-haiku-5-5", Usage{Input: 100_000, Output: 10}, 100_000*100 + 10*500},
		{"one that is", "claude-haiku-5-5", Usage{Input: 100_001, Output: 10}, 5 * (100_001*100 + 10*500)},
		{"by what caches know, too", "claude-haiku-5-5", Usage{Input: 1, CacheRead: 60_000, CacheWrite5m: 20_000, CacheWrite1h: 20_000}, 5 * (100 + 60_000*10 + 20_000*125 + 20_000*200)},
		{"searches have no surcharge", "claude-haiku-5-5", Usage{Input: 100_001, WebSearches: 1, US: true}, 5*100_001*110 + 10_000_000},
		{"fast", "claude-opus-4-6", Usage{Input: 3, Output: 7, CacheRead: 5, Fast: true}, 6 * (3*5000 + 7*25000 + 5*500)},
		{"a model that has no fast mode", "claude-sonnet-4-5", Usage{Input: 3, Fast: true}, 3 * 3000},
		{"fast, in the US", "claude-opus-5-5", Usage{CacheRead: 1, Fast: true, US: true}, 440},
		{"absurd counts", "claude-opus-4-1", Usage{Output: 1 << 62, Input: -5}, MaxCount * 75_000},
	} {
		m, _ := Of(tc.model)
		if got := m.Nano(tc.usage); got != tc.nano {
			t.Errorf("%s: %d nano-USD, want %d", tc.name, got, tc.nano)
		}
	}
}

func TestACallIsRoundedOnce(t *testing.T) {
	t.Parallel()
	// 400 nano-USD each.
	small := Usage{Input: 4}
	if got, known := Cost("claude-haiku-5-5", small, small, small); got != 1 || !known {
		t.Errorf("three runs cost %d", got)
	}
	if got, _ := Cost("claude-haiku-5-5", Usage{Input: 5}); got != 1 {
		t.Errorf("half a micro-dollar is rounded to %d", got)
	}
	if got, _ := Cost("claude-haiku-5-5", small); got != 0 {
		t.Errorf("less than half is rounded to %d", got)
	}
	// Each run is a prompt of its own.
	long := Usage{Input: 60_000}
	if got, _ := Cost("claude-haiku-5-5", long, long); got != 12_000 {
		t.Errorf("two prompts are priced as one: %d", got)
	}
}

func TestEveryModelHasAPriceForEachKind(t *testing.T) {
	t.Parallel()
	if len(Models()) < 20 {
		t.Fatalf("%d models", len(Models()))
	}
	if m, known := Of(prices().Fallback); !known || m.Name != prices().Fallback {
		t.Errorf("the fallback %q is none of the models", prices().Fallback)
	}
	for _, m := range Models() {
		for _, each := range []int64{m.Input, m.Output, m.CacheRead, m.CacheWrite5m, m.CacheWrite1h} {
			if each <= 0 {
				t.Errorf("%s: %d nano-USD", m.Name, each)
			}
		}
	}
}

func TestARateIsReadAsItIsNamed(t *testing.T) {
	t.Parallel()
	for _, u := range []Usage{{}, {Fast: true}, {US: true}, {Fast: true, US: true}} {
		if got, err := (Usage{}).At(u.Rate()); err != nil || got != u {
			t.Errorf("%q is read as %+v, %v", u.Rate(), got, err)
		}
	}
	if _, err := (Usage{}).At("slow"); err == nil {
		t.Error("a rate that nobody knows is priced")
	}
}

// TestASumOfRunsIsPricedWhereItCan: by the sum if each run would have cost the same, and
// not at all if the length of each prompt, or its rate, decides.
func TestASumOfRunsIsPricedWhereItCan(t *testing.T) {
	t.Parallel()
	short, fast := Usage{Input: 60_000, Output: 10}, Usage{Input: 60_000, Output: 10, Fast: true}
	for _, tt := range []struct {
		what, model string
		runs        []Usage
		rate        string
		priced      bool
	}{
		{"one run", "claude-haiku-5-5", []Usage{short}, "", true},
		{"one long run", "claude-haiku-5-5", []Usage{short.Plus(short)}, "", true},
		{"two, and no surcharge", "claude-opus-5-5", []Usage{short, short}, "runs", true},
		{"two whose sum is no long prompt", "claude-haiku-5-5", []Usage{{Input: 10}, {Input: 20}}, "runs", true},
		{"two whose sum is one", "claude-haiku-5-5", []Usage{short, short}, "runs", false},
		{"two in fast mode", "claude-fable-5-2", []Usage{fast, fast}, "runs fast", true},
		{"one of two in fast mode", "claude-fable-5-2", []Usage{fast, short}, "mixed", false},
	} {
		var sum Usage
		for _, u := range tt.runs {
			sum = sum.Plus(u)
		}
		rate := RateOf(tt.runs...)
		_, got, known, err := sum.CostAt(tt.model, rate)
		want, _ := Cost(tt.model, tt.runs...)
		if rate != tt.rate || (err == nil) != tt.priced || !known || tt.priced && got != want {
			t.Errorf("%s: at the rate %q %d µ$, want %d; %v", tt.what, rate, got, want, err)
		}
	}
}
