package price

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Terms are what a team pays for a model by its own contract. They are those of an
// ordinary call: what the list charges more for, it charges more for by contract, too, in
// the same ratio.
type Terms struct {
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
	n, _ := strconv.ParseInt(m[1]+fraction+strings.Repeat("0", 9-len(fraction)), 10, 64) // at most 18 digits
	if Rate(n) > MaxRate {
		return 0, fmt.Errorf("%q is more than a million dollars", text)
	}
	return Rate(n), nil
}

// Cost is what a call of the model costs in micro-USD, see [Cost] for runs. It is computed
// exactly and rounded once, half a micro-dollar up; the amounts are never negative.
func (t Terms) Cost(model string, runs ...Usage) int64 {
	listed, known := Of(model)
	sum := new(big.Int)
	for _, u := range runs {
		percent := int64(100)
		if known {
			percent = listed.Percent(u)
		}
		u = u.bounded()
		add := func(rate Rate, n, scale int64) {
			part := new(big.Int).Mul(big.NewInt(int64(rate)), big.NewInt(n))
			sum.Add(sum, part.Mul(part, big.NewInt(scale)))
		}
		// A billionth of a dollar per million tokens is a billionth of a micro-dollar for
		// one: sum is in hundredths of billionths of micro-dollars.
		add(t.Input, u.Input, percent)
		add(t.Output, u.Output, percent)
		add(t.CacheRead, u.CacheRead, percent)
		add(t.CacheWrite5m, u.CacheWrite5m, percent)
		add(t.CacheWrite1h, u.CacheWrite1h, percent)
		add(t.WebSearch, u.WebSearches, 100*1_000_000)
	}
	unit := big.NewInt(100 * rateUnit)
	return sum.Add(sum, big.NewInt(100*rateUnit/2)).Div(sum, unit).Int64()
}

// Contract is terms by model: by its id, or by a pattern in which * is any text. Of
// several that fit a model, its own id counts before patterns, then the pattern that
// says the most. [NewContract] makes one; nil has none.
type Contract []modelTerms // the most telling first

type modelTerms struct {
	pattern *regexp.Regexp
	terms   Terms
}

// NewContract takes terms by model or pattern.
func NewContract(byPattern map[string]Terms) Contract {
	said := func(p string) int { return len(p) - strings.Count(p, "*") }
	stars := func(p string) int { return min(1, strings.Count(p, "*")) }
	var out Contract
	for _, p := range slices.SortedFunc(maps.Keys(byPattern), func(a, b string) int {
		return cmp.Or(cmp.Compare(stars(a), stars(b)), cmp.Compare(said(b), said(a)), cmp.Compare(a, b))
	}) {
		glob := strings.ReplaceAll(regexp.QuoteMeta(p), `\*`, ".*")
		out = append(out, modelTerms{pattern: regexp.MustCompile("^(?s:" + glob + ")$"), terms: byPattern[p]})
	}
	return out
}

// Of are the terms for a model. ok is false if there is none. The mark that a CLI puts
// behind a model's id for its context window, as in claude-sonnet-4-5[1m], need not be
// named.
func (c Contract) Of(model string) (t Terms, ok bool) {
	plain, marked := strings.CutSuffix(model, "]")
	if i := strings.LastIndexByte(plain, '['); marked && i > 0 {
		plain = plain[:i]
	} else {
		plain = model
	}
	for _, m := range c {
		if m.pattern.MatchString(model) || m.pattern.MatchString(plain) {
			return m.terms, true
		}
	}
	return Terms{}, false
}
