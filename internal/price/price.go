// Package price says what calls of the models cost: by list, which is the one that the
// pinned CLI counts with, and by a team's own contract. It is pure; the ledger, the
// budgets and the playground's bill count by it, so that they can be compared.
//
// A call's cost is computed exactly, in billionths of a dollar, and rounded once, to
// micro-USD, half up.
package price

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Usage is what a call used of one model. Counts are from 0 to [MaxCount].
type Usage struct {
	Input        int64 `json:"input"` // tokens that no cache knew and none keeps
	Output       int64 `json:"output"`
	CacheRead    int64 `json:"cache_read"`
	CacheWrite5m int64 `json:"cache_write_5m"`
	CacheWrite1h int64 `json:"cache_write_1h"`
	WebSearches  int64 `json:"web_searches"`
	Fast         bool  `json:"fast,omitempty"` // answered in fast mode
	US           bool  `json:"us,omitempty"`   // answered in the US, as was asked for
}

// MaxCount is the largest count that is priced; what is larger counts as it.
const MaxCount = 1_000_000_000

// Prompt is the length of the call's prompt in tokens.
func (u Usage) Prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite5m + u.CacheWrite1h }

// Plus is the sum of two usages. The modes are those of either.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead,
		CacheWrite5m: u.CacheWrite5m + v.CacheWrite5m, CacheWrite1h: u.CacheWrite1h + v.CacheWrite1h,
		WebSearches: u.WebSearches + v.WebSearches, Fast: u.Fast || v.Fast, US: u.US || v.US,
	}
}

// Model is the list price of a model, in nano-USD per token.
type Model struct {
	Name         string `json:"name"`
	Input        int64  `json:"input"`
	Output       int64  `json:"output"`
	CacheRead    int64  `json:"cache_read"`
	CacheWrite5m int64  `json:"cache_write_5m"`
	CacheWrite1h int64  `json:"cache_write_1h"`
	// Fast is by how much tokens are dearer in fast mode; 0: they are not.
	Fast int64 `json:"fast"`
	// Long is what long prompts cost more; nil: nothing.
	Long *Long `json:"long_prompt"`
	// WebSearch is the price of one, in nano-USD. No surcharge makes it dearer.
	WebSearch int64 `json:"-"`

	match *regexp.Regexp
}

// Long multiplies the price of every token of a call whose prompt has more tokens than
// Over.
type Long struct {
	Over  int64 `json:"over"`
	Times int64 `json:"times"`
}

//go:embed prices.json
var file []byte

type list struct {
	AsOf       string  `json:"as_of"`
	CLIVersion string  `json:"cli_version"`
	WebSearch  int64   `json:"web_search"`
	USPercent  int64   `json:"us_percent"`
	Fallback   string  `json:"fallback"`
	Models     []Model `json:"models"`

	fallback Model
}

var prices = sync.OnceValue(func() *list {
	var l list
	if err := json.Unmarshal(file, &l); err != nil {
		panic(fmt.Sprintf("prices.json: %v", err)) // embedded; a test reads it
	}
	for i := range l.Models {
		m := &l.Models[i]
		m.match, m.WebSearch = nameIn(m.Name), l.WebSearch
		if m.Name == l.Fallback {
			l.fallback = *m
		}
	}
	return &l
})

// Origin says of which day the list is, and of which version of the CLI.
func Origin() (asOf, cliVersion string) { return prices().AsOf, prices().CLIVersion }

// Models are the models that the list has a price for.
func Models() []Model { return slices.Clone(prices().Models) }

// nameIn finds a model's name inside an id with a date, a provider's prefix
// or a version after it. A name that ends in one number ("claude-opus-5") is
// not found in the id of a later minor version ("claude-opus-5-6").
func nameIn(name string) *regexp.Regexp {
	end := `(?:$|[^0-9])`
	if oneNumber.MatchString(name) {
		end = `(?:$|-[0-9]{3,}|-[^0-9]|[^0-9-])`
	}
	return regexp.MustCompile(regexp.QuoteMeta(name) + end)
}

var oneNumber = regexp.MustCompile(`-[a-z]+-[0-9]+$`)

// Of is the list price of a model id, whatever stands around the name: providers have
// prefixes of their own, dates and context windows follow. For an id that the list does
// not know it is the price of the CLI's default model, as the CLI has it, and known is
// false.
func Of(model string) (m Model, known bool) {
	l := prices()
	id := strings.ReplaceAll(strings.ToLower(model), ".", "-")
	for _, m := range l.Models {
		if m.match.MatchString(id) {
			return m, true
		}
	}
	return l.fallback, false
}

// Cost is what a call costs by list, in micro-USD. It is given as the usage of each time
// that the model was run for it: mostly one, and several where the provider ran a tool
// in between, as the length of each prompt decides the price. known is false if the list
// has no price for the model; the cost is by another's then, see [Of].
func Cost(model string, runs ...Usage) (microUSD int64, known bool) {
	m, known := Of(model)
	var nano int64
	for _, u := range runs {
		nano += m.Nano(u)
	}
	return Micro(nano), known
}

// Micro rounds nano-USD to micro-USD, half up.
func Micro(nano int64) int64 { return (nano + 500) / 1000 }

// Nano is what a usage costs, in nano-USD: exactly, but for half of one that 110 percent of
// an odd price can leave.
func (m Model) Nano(u Usage) int64 {
	u = u.bounded()
	tokens := u.Input*m.Input + u.Output*m.Output + u.CacheRead*m.CacheRead + u.CacheWrite5m*m.CacheWrite5m + u.CacheWrite1h*m.CacheWrite1h
	return tokens*m.Percent(u)/100 + u.WebSearches*m.WebSearch
}

// Percent is what the tokens of a usage cost by all surcharges, in percent of the usual
// price.
func (m Model) Percent(u Usage) int64 {
	percent := int64(100)
	switch {
	case u.Fast && m.Fast > 0:
		percent *= m.Fast
	case m.Long != nil && u.Prompt() > m.Long.Over:
		percent *= m.Long.Times
	}
	if u.US {
		percent = percent * prices().USPercent / 100
	}
	return percent
}

// bounded is the usage with counts that can be reckoned with.
func (u Usage) bounded() Usage {
	for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite5m, &u.CacheWrite1h, &u.WebSearches} {
		*n = min(max(*n, 0), MaxCount)
	}
	return u
}
