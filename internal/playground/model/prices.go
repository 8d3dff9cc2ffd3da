package model

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// The list prices as the CLI named in the file computes them. They are the
// CLI's, not Anthropic's: what the bill is compared with is total_cost_usd.
//
//go:embed prices.json
var priceFile []byte

// price is a list price in nano-USD per token.
type price struct {
	Name         string     `json:"name"`
	Input        int64      `json:"input"`
	Output       int64      `json:"output"`
	CacheRead    int64      `json:"cache_read"`
	CacheWrite5m int64      `json:"cache_write_5m"`
	CacheWrite1h int64      `json:"cache_write_1h"`
	Long         *longPrice `json:"long_prompt"`

	webSearch int64
	match     *regexp.Regexp
}

// longPrice multiplies every token price of a call whose prompt (input, cache
// reads and cache writes together) is over a number of tokens.
type longPrice struct {
	Over  int64 `json:"over"`
	Times int64 `json:"times"`
}

type priceList struct {
	CLIVersion string   `json:"cli_version"`
	WebSearch  int64    `json:"web_search"`
	Fallback   string   `json:"fallback"`
	Models     []*price `json:"models"`
}

var prices = sync.OnceValue(func() *priceList {
	var l priceList
	if err := json.Unmarshal(priceFile, &l); err != nil {
		panic(fmt.Sprintf("prices.json: %v", err)) // embedded; a test reads it
	}
	for _, p := range l.Models {
		p.webSearch = l.WebSearch
		p.match = nameIn(p.Name)
	}
	return &l
})

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

// priceOf is the price the CLI takes for a model id. For an id that it does
// not know it takes its default Opus model's.
func priceOf(model string) *price {
	id := strings.ReplaceAll(strings.ToLower(model), ".", "-")
	l := prices()
	var fallback *price
	for _, p := range l.Models {
		if p.match.MatchString(id) {
			return p
		}
		if p.Name == l.Fallback {
			fallback = p
		}
	}
	return fallback
}

// cost is the price of one call: exactly, in nano-USD, and in USD by the very
// steps of the CLI's floating point. t must be the tokens of that call alone:
// some prices depend on the length of the prompt.
func (p *price) cost(t Tally) (nano int64, usd float64) {
	times := int64(1)
	if p.Long != nil && t.Input+t.CacheRead+t.CacheWrite5m+t.CacheWrite1h > p.Long.Over {
		times = p.Long.Times
	}
	nano = times*(t.Input*p.Input+t.Output*p.Output+t.CacheRead*p.CacheRead+
		t.CacheWrite5m*p.CacheWrite5m+t.CacheWrite1h*p.CacheWrite1h) + t.WebSearchRequests*p.webSearch

	// part is n tokens at a price per million. The conversions keep compilers
	// from fusing the multiplications with the additions below.
	part := func(n, perToken int64) float64 {
		return float64(float64(n) / 1e6 * (float64(times*perToken) / 1e3))
	}
	usd = part(t.Input, p.Input) + part(t.Output, p.Output) + part(t.CacheRead, p.CacheRead)
	if t.CacheWrite1h > 0 {
		usd += part(t.CacheWrite1h, p.CacheWrite1h) + part(t.CacheWrite5m, p.CacheWrite5m)
	} else {
		usd += part(t.CacheWrite5m, p.CacheWrite5m)
	}
	return nano, usd + float64(float64(t.WebSearchRequests)*(float64(p.webSearch)/1e9))
}
