package price

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Rate names what decides a call's price beside its model and its tokens, such as
// "fast" or "fast us"; it is empty for an ordinary call. The database keeps it.
func (u Usage) Rate() string {
	var names []string
	if u.Fast {
		names = append(names, "fast")
	}
	if u.US {
		names = append(names, "us")
	}
	return strings.Join(names, " ")
}

// The words of a rate for a call for which the model was run several times, of which the
// ledger keeps the sum.
const (
	severalRuns  = "runs"
	severalRates = "mixed" // and its runs were at several rates
)

// RateOf names what decides the price of a call beside its model and the sum of its runs.
func RateOf(runs ...Usage) string {
	if len(runs) == 0 {
		return ""
	}
	rate := runs[0].Rate()
	switch {
	case slices.ContainsFunc(runs, func(u Usage) bool { return u.Rate() != rate }):
		return severalRates
	case len(runs) > 1:
		return strings.TrimSpace(severalRuns + " " + rate)
	}
	return rate
}

// CostAt is what a call costs by list, in micro-USD, whose usage is the sum of its runs, at
// a rate that [RateOf] has named, and its usage at that rate. known is false if the list has
// no price for the model. Where the length of each prompt decides the price, or the rate of
// each run does, the sum of several cannot be priced: that is an error.
func (u Usage) CostAt(model, rate string) (at Usage, microUSD int64, known bool, err error) {
	m, known := Of(model)
	if at, err = u.At(rate); err != nil || !known {
		return at, 0, known, err
	}
	short := at
	short.Input, short.CacheRead, short.CacheWrite5m, short.CacheWrite1h = 0, 0, 0, 0
	if slices.Contains(strings.Fields(rate), severalRuns) && m.Percent(at) != m.Percent(short) {
		return at, 0, known, fmt.Errorf("%s was run several times for it, and the ledger holds the sum: how many of the prompts were longer than %d tokens, which cost more, nobody knows", m.Name, m.Long.Over)
	}
	microUSD, _ = Cost(model, at)
	return at, microUSD, known, nil
}

// At is the usage at a rate that [Usage.Rate] has named.
func (u Usage) At(rate string) (Usage, error) {
	u.Fast, u.US = false, false
	for name := range strings.FieldsSeq(rate) {
		switch name {
		case "fast":
			u.Fast = true
		case "us":
			u.US = true
		case severalRuns: // of which it is the sum
		case severalRates:
			return u, errors.New("the model was run at several rates for it, and the ledger holds the sum")
		default:
			return u, fmt.Errorf("this binary knows no price at the rate %q; a newer one made the entry", rate)
		}
	}
	return u, nil
}
