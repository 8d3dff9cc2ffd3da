package deckhand_test

import (
	"encoding/json"
	"os"
	"testing"

	"deckhand/internal/agent/claude"
)

// The CLI's list prices stand twice, since neither room may import the other: with
// the playground's model, whose tests compare each with the CLI itself, and with
// the estimates of claude.Meter.
func TestThePricesOfTheEstimatesAreThoseOfTheBill(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("internal/playground/model/prices.json")
	if err != nil {
		t.Fatal(err)
	}
	type model struct { // in nano-dollars per token, which is micro-dollars per thousand
		Name         string
		Input        int64
		Output       int64
		CacheRead    int64 `json:"cache_read"`
		CacheWrite5m int64 `json:"cache_write_5m"`
		CacheWrite1h int64 `json:"cache_write_1h"`
	}
	var list struct {
		WebSearch int64 `json:"web_search"`
		Fallback  string
		Models    []model
	}
	if err := json.Unmarshal(b, &list); err != nil || len(list.Models) == 0 {
		t.Fatalf("%d models, %v", len(list.Models), err)
	}
	models := list.Models
	for _, m := range list.Models {
		if m.Name == list.Fallback {
			m.Name = "claude-opus-4-99"
			models = append(models, m)
			m.Name = "a model that nobody knows"
			models = append(models, m)
		}
	}
	if len(models) != len(list.Models)+2 {
		t.Errorf("the fallback %q is none of the models", list.Fallback)
	}
	for _, m := range models {
		for _, id := range []string{m.Name, m.Name + "-20260101", "us.anthropic." + m.Name + "-20260101-v1:0"} {
			for _, c := range []struct {
				kind  string
				usage claude.TokenUsage
				want  int64
			}{
				{"input", claude.TokenUsage{Input: 1000}, m.Input},
				{"output", claude.TokenUsage{Output: 1000}, m.Output},
				{"cache read", claude.TokenUsage{CacheRead: 1000}, m.CacheRead},
				{"cache write, 5m", claude.TokenUsage{CacheWrite: 1000, CacheWrite5m: 1000}, m.CacheWrite5m},
				{"cache write, 1h", claude.TokenUsage{CacheWrite: 1000, CacheWrite1h: 1000}, m.CacheWrite1h},
				{"web search", claude.TokenUsage{WebSearches: 1}, list.WebSearch / 1000},
			} {
				deltas := claude.NewMeter(claude.Usage{}).Estimate([]claude.Call{{Model: id, MessageID: "m", Usage: c.usage}})
				if len(deltas) != 1 || deltas[0].MicroUSD != c.want {
					t.Errorf("%s, %s: estimated %+v, billed %d", id, c.kind, deltas, c.want)
				}
			}
		}
	}
}
