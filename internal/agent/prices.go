package agent

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"go.uber.org/zap"

	"deckhand/internal/agent/claude"
)

// Price is what a team pays for a model by its own contract.
type Price struct {
	// Per million tokens.
	Input, Output, CacheRead, CacheWrite5m, CacheWrite1h Rate
	// WebSearch is for one search.
	WebSearch Rate
}

// Rate is a price in billionths of a US dollar, from 0 to [MaxRate]. Three dollars
// are 3_000_000_000.
type Rate int64

// MaxRate is a million dollars: what is dearer is a mistake in the unit.
const MaxRate Rate = 1_000_000 * rateUnit

const rateUnit = 1_000_000_000

var decimal = regexp.MustCompile(`^([0-9]{1,9})(?:\.([0-9]+))?$`)

// ParseRate reads dollars as a plain decimal number such as 3, 3.75 or 0.0125. Its
// errors are sentences for whoever wrote the number.
func ParseRate(text string) (Rate, error) {
	m := decimal.FindStringSubmatch(text)
	if m == nil {
		if strings.HasPrefix(text, "-") && decimal.MatchString(text[1:]) {
			return 0, errors.New("a price cannot be negative")
		}
		return 0, fmt.Errorf("%q is not a price; write dollars as a plain number, such as 3.75", text)
	}
	fraction := strings.TrimRight(m[2], "0")
	if len(fraction) > 9 {
		return 0, fmt.Errorf("%q has more than nine decimals", text)
	}
	var n int64
	for _, digit := range m[1] + fraction + strings.Repeat("0", 9-len(fraction)) {
		n = n*10 + int64(digit-'0') // at most 18 digits
	}
	if Rate(n) > MaxRate {
		return 0, fmt.Errorf("%q is more than a million dollars", text)
	}
	return Rate(n), nil
}

// cost is what usage costs in micro-dollars. It is computed exactly and rounded once,
// half a micro-dollar up; the amounts are never negative.
func (p Price) cost(u claude.ModelUsage) int64 {
	short, long := u.CacheWrites()
	sum, unit := new(big.Int), big.NewInt(rateUnit)
	add := func(rate Rate, n int64, scale int64) {
		part := new(big.Int).Mul(big.NewInt(int64(rate)), big.NewInt(n))
		sum.Add(sum, part.Mul(part, big.NewInt(scale)))
	}
	// A billionth of a dollar per million tokens is a billionth of a micro-dollar for
	// one: sum is in billionths of micro-dollars.
	add(p.Input, u.Input, 1)
	add(p.Output, u.Output, 1)
	add(p.CacheRead, u.CacheRead, 1)
	add(p.CacheWrite5m, short, 1)
	add(p.CacheWrite1h, long, 1)
	add(p.WebSearch, u.WebSearches, 1_000_000)
	return sum.Add(sum, big.NewInt(rateUnit/2)).Div(sum, unit).Int64()
}

// Prices are prices by model: by its id, or by a pattern in which * is any text. Of
// several that fit a model, its own id counts before patterns, then the pattern that
// says the most. [NewPrices] makes them; nil has none.
type Prices []modelPrice // the most telling first

type modelPrice struct {
	pattern *regexp.Regexp
	price   Price
}

// NewPrices takes prices by model or pattern.
func NewPrices(byPattern map[string]Price) Prices {
	patterns := make([]string, 0, len(byPattern))
	for p := range byPattern {
		patterns = append(patterns, p)
	}
	said := func(p string) int { return len(p) - strings.Count(p, "*") }
	slices.SortFunc(patterns, func(a, b string) int {
		exactA, exactB := !strings.Contains(a, "*"), !strings.Contains(b, "*")
		if exactA != exactB {
			if exactA {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(said(b), said(a)), cmp.Compare(a, b))
	})
	var out Prices
	for _, p := range patterns {
		glob := strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*")
		out = append(out, modelPrice{pattern: regexp.MustCompile("^(?s:" + glob + ")$"), price: byPattern[p]})
	}
	return out
}

// Of is the price of a model. ok is false if there is none. The mark that a CLI puts
// behind a model's id for its context window, as in claude-sonnet-4-5[1m], need not be
// named.
func (p Prices) Of(model string) (price Price, ok bool) {
	plain, marked := strings.CutSuffix(model, "]")
	if i := strings.LastIndexByte(plain, '['); marked && i > 0 {
		plain = plain[:i]
	} else {
		plain = model
	}
	for _, m := range p {
		if m.pattern.MatchString(model) || m.pattern.MatchString(plain) {
			return m.price, true
		}
	}
	return Price{}, false
}

// contract is what a delta costs by the team's own prices, the project's before those
// of all; nil where there are none for the model, or no tokens to apply them to.
func (w *worker) contract(d claude.ModelDelta) *int64 {
	if len(w.project.Prices)+len(w.prices) == 0 {
		return nil
	}
	price, ok := w.project.Prices.Of(d.Model)
	if !ok {
		price, ok = w.prices.Of(d.Model)
	}
	if !ok {
		if _, told := w.unpriced.LoadOrStore(d.Model, true); !told {
			w.log.Warn("no contract price for "+d.Model, zap.String("model", d.Model), zap.String("hint", "write one under prices in deckhand.yaml"))
		}
		return nil
	}
	used := d.ModelUsage
	used.MicroUSD = 0
	if used == (claude.ModelUsage{}) && d.MicroUSD != 0 {
		return nil
	}
	cost := price.cost(d.ModelUsage)
	return &cost
}
