package claude

import (
	"slices"
	"strings"
)

// price is in micro-dollars per token, which is dollars per million tokens.
type price struct {
	input, output, cacheRead, cacheWrite5m, cacheWrite1h float64
	// search is micro-dollars per web search.
	search float64
}

// prices are what CLI 2.1.329 computes for a model of that name, derived from the
// modelUsage that it reports, and without a name for any other. They are used for
// estimates only, corrected by what a meter has seen: what is billed is what the CLI
// reports.
var prices = map[string]price{
	"":                  {4, 20, 0.2, 5, 8, 10_000},
	"claude-3-5-haiku":  {0.8, 4, 0.08, 1, 1.6, 10_000},
	"claude-3-5-sonnet": {3, 15, 0.3, 3.75, 6, 10_000},
	"claude-3-7-sonnet": {3, 15, 0.3, 3.75, 6, 10_000},
	"claude-fable-5":    {10, 50, 1, 12.5, 20, 10_000},
	"claude-fable-5-1":  {10, 50, 0.25, 12.5, 20, 10_000},
	"claude-fable-5-2":  {8, 40, 0.2, 10, 16, 10_000},
	"claude-haiku-4-5":  {1, 5, 0.1, 1.25, 2, 10_000},
	"claude-haiku-5-5":  {0.1, 0.5, 0.01, 0.125, 0.2, 10_000},
	"claude-mythos-5":   {10, 50, 1, 12.5, 20, 10_000},
	"claude-mythos-5-1": {10, 50, 0.25, 12.5, 20, 10_000},
	"claude-mythos-5-2": {8, 40, 0.2, 10, 16, 10_000},
	"claude-opus-4":     {15, 75, 1.5, 18.75, 30, 10_000},
	"claude-opus-4-0":   {15, 75, 1.5, 18.75, 30, 10_000},
	"claude-opus-4-1":   {15, 75, 1.5, 18.75, 30, 10_000},
	"claude-opus-4-5":   {5, 25, 0.5, 6.25, 10, 10_000},
	"claude-opus-4-6":   {5, 25, 0.5, 6.25, 10, 10_000},
	"claude-opus-4-7":   {5, 25, 0.5, 6.25, 10, 10_000},
	"claude-opus-4-8":   {5, 25, 0.5, 6.25, 10, 10_000},
	"claude-opus-5":     {5, 25, 0.5, 6.25, 10, 10_000},
	"claude-opus-5-5":   {4, 20, 0.2, 5, 8, 10_000},
	"claude-sonnet-4":   {3, 15, 0.3, 3.75, 6, 10_000},
	"claude-sonnet-4-0": {3, 15, 0.3, 3.75, 6, 10_000},
	"claude-sonnet-4-5": {3, 15, 0.3, 3.75, 6, 10_000},
	"claude-sonnet-4-6": {3, 15, 0.3, 3.75, 6, 10_000},
	"claude-sonnet-5":   {2, 10, 0.2, 2.5, 4, 10_000},
	"claude-sonnet-5-5": {2, 10, 0.1, 2.5, 4, 10_000},
}

// aliases are names that the CLI takes for a model, beside the models' own.
var aliases = []string{"default", "best", "sonnet", "opus", "haiku", "opusplan"}

// KnownModels are the names of models that the CLI of this version is known to take: its
// aliases, and the beginnings of the models' own. A model may be newer than this list.
func KnownModels() []string {
	known := slices.Clone(aliases)
	for key := range prices {
		if key != "" {
			known = append(known, key)
		}
	}
	slices.Sort(known[len(aliases):])
	return known
}

// KnowsModel reports whether a name is one of them, whatever stands around it: Bedrock
// and Vertex have their own prefixes, and [1m] is a context window.
func KnowsModel(model string) bool {
	_, priced := findPrice(model)
	return slices.Contains(aliases, strings.TrimSuffix(model, "[1m]")) || priced
}

// priceOf is what an estimate of a model counts with.
func priceOf(model string) price {
	if p, ok := findPrice(model); ok {
		return p
	}
	return prices[""]
}

// findPrice finds the name in a model's id, which may have a provider before it and a
// date behind it.
func findPrice(model string) (price, bool) {
	id := strings.ReplaceAll(strings.ToLower(model), ".", "-")
	for name, p := range prices {
		if _, rest, found := strings.Cut(id, name); found && name != "" && !goesOn(rest) {
			return p, true
		}
	}
	return price{}, false
}

// goesOn reports whether a name that is found in an id is only the beginning of
// another: of a longer number, or of a later minor version.
func goesOn(rest string) bool {
	behind, dash := strings.CutPrefix(rest, "-")
	digits := len(behind) - len(strings.TrimLeft(behind, "0123456789"))
	return digits > 0 && (!dash || digits < 3)
}

// cost is in micro-dollars. Cache writes of unknown duration count as the
// shorter one.
func (p price) cost(u ModelUsage) float64 {
	short := max(0, u.CacheWrite-u.CacheWrite1h)
	return p.input*float64(u.Input) + p.output*float64(u.Output) + p.cacheRead*float64(u.CacheRead) +
		p.cacheWrite5m*float64(short) + p.cacheWrite1h*float64(u.CacheWrite1h) + p.search*float64(u.WebSearches)
}
