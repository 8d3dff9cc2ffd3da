package report

import (
	"math"
	"strconv"
	"strings"
)

// Count writes a number for people, with commas between thousands.
func Count(n int64) string {
	digits, negative := strings.CutPrefix(strconv.FormatInt(n, 10), "-")
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if negative {
		return "−" + digits
	}
	return digits
}

// Plural writes a number with its noun.
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// Tokens writes a number of tokens for people: 950, 12.3k, 4.56M.
func Tokens(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return Short(n, 1_000, 1) + "k"
	case n < 999_995_000:
		return Short(n, 1_000_000, 2) + "M"
	}
	return Short(n, 1_000_000_000, 2) + "B"
}

// Short is n, which is not negative, in a larger unit, with so many decimals at most,
// rounded half up.
func Short(n, unit int64, decimals int) string {
	places := int64(1)
	for range decimals {
		places *= 10
	}
	n = (n + unit/places/2) / (unit / places)
	text := strconv.FormatInt(n/places, 10)
	if fraction := strings.TrimRight(strconv.FormatInt(places+n%places, 10)[1:], "0"); fraction != "" {
		text += "." + fraction
	}
	return text
}

// percentText has a decimal below ten percent, and none where it would be noise.
func percentText(percent float64) string {
	size := math.Abs(percent)
	decimals := 0
	if size < 9.95 {
		decimals = 1
	}
	if size >= 999.5 {
		return "×" + strconv.FormatFloat(percent/100+1, 'f', 0, 64)
	}
	digits := strings.TrimSuffix(strconv.FormatFloat(size, 'f', decimals, 64), ".0")
	switch {
	case digits == "0":
		return "±0%"
	case percent < 0:
		return "−" + digits + "%"
	}
	return "+" + digits + "%"
}

func shareText(share float64) string {
	if share > 0 && share < 0.0005 {
		return "<0.1%"
	}
	return strconv.FormatFloat(share*100, 'f', 1, 64) + "%"
}
