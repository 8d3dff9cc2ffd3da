// Package money writes amounts for people and for machines, and reads what people
// write. All amounts are whole micro-USD, millionths of a US dollar; no sum is ever
// made of anything else.
//
// # The rule
//
// For people an amount has two decimals, or as many more as it takes to tell it from
// nothing: $1,234.50, $0.01, $0.004, $0.000001. It is rounded to them half up, that is
// half away from zero for amounts below it. Thousands have commas, a minus stands
// before the dollar, and nothing is never negative: $0.00. What is rounded does not add
// up to the cent; what must is written for machines.
//
// For machines it has all of its six decimals, a plain minus and no sign: -1234.500000.
package money

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// places are the decimals of a micro-dollar.
const places = 6

// USD writes an amount for people.
func USD(micro int64) string { return Fixed(micro, shownDecimals(micro)) }

// Shown is the number that [USD] writes, for a drawing that writes its numbers itself.
func Shown(micro int64) float64 {
	decimals := shownDecimals(micro)
	n := float64(rounded(micro, decimals)) / math.Pow10(decimals)
	if micro < 0 {
		return -n
	}
	return n
}

// shownDecimals are the decimals of an amount for people.
func shownDecimals(micro int64) int {
	decimals := 2
	for decimals < places && micro != 0 && rounded(micro, decimals) == 0 {
		decimals++
	}
	return decimals
}

// Spent writes for people what was spent of a limit: with as many more decimals as it takes to tell it from the limit while
// something is left.
func Spent(micro, limit int64) string {
	decimals := shownDecimals(micro)
	for decimals < places && micro < limit && rounded(micro, decimals) == rounded(limit, decimals) {
		decimals++
	}
	return Fixed(micro, decimals)
}

// Fixed writes an amount for people with so many decimals, 0 to 6, whatever it is:
// those of the steps of an axis, say. What is rounded to nothing has no minus.
func Fixed(micro int64, decimals int) string {
	n := rounded(micro, decimals)
	sign := ""
	if micro < 0 && n != 0 {
		sign = "−"
	}
	whole, fraction := split(n, decimals)
	return sign + "$" + grouped(whole) + fraction
}

// Exact writes an amount for machines.
func Exact(micro int64) string {
	whole, fraction := split(size(micro), places)
	if micro < 0 {
		return "-" + whole + fraction
	}
	return whole + fraction
}

// Dollars is an amount as a floating-point number, for drawings and gauges; nothing
// may be summed up from it.
func Dollars(micro int64) float64 { return float64(micro) / 1e6 }

var errAmount = errors.New("not an amount in US dollars, such as 50 or 12.50")

// Parse reads an amount that a person wrote: 50, 12.50, $1,000. It is not negative, is
// less than a thousand million dollars and has six decimals at most.
func Parse(text string) (micro int64, err error) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "$"))
	whole, fraction, dot := strings.Cut(text, ".")
	if strings.Contains(whole, ",") {
		plain := strings.ReplaceAll(whole, ",", "")
		if grouped(plain) != whole {
			return 0, errAmount
		}
		whole = plain
	}
	if whole == "" || len(whole) > 9 || len(fraction) > places || dot && fraction == "" {
		return 0, errAmount
	}
	for _, r := range whole + fraction + strings.Repeat("0", places-len(fraction)) {
		if r < '0' || r > '9' {
			return 0, errAmount
		}
		micro = micro*10 + int64(r-'0')
	}
	return micro, nil
}

// size is an amount without its sign; also that of the least there is.
func size(micro int64) uint64 {
	if micro < 0 {
		return -uint64(micro)
	}
	return uint64(micro)
}

// rounded is the size of an amount in units of so many decimals, half up.
func rounded(micro int64, decimals int) uint64 {
	unit := uint64(1)
	for range places - decimals {
		unit *= 10
	}
	return (size(micro) + unit/2) / unit
}

// split writes n units of so many decimals as dollars and what stands behind them.
func split(n uint64, decimals int) (whole, fraction string) {
	digits := strconv.FormatUint(n, 10)
	if pad := decimals + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	whole, fraction = digits[:len(digits)-decimals], digits[len(digits)-decimals:]
	if decimals > 0 {
		fraction = "." + fraction
	}
	return whole, fraction
}

// grouped puts commas between thousands.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
