package report

import (
	"math"
	"strconv"
	"strings"
)

// Money writes an amount of micro-USD for people: cents from a dollar on, and more
// decimals below, so that what is not nothing is not shown as nothing.
func Money(micro int64) string {
	switch small := rounded(micro, 100); {
	case micro == 0 || small <= -10_000 || small >= 10_000:
		return dollars(rounded(micro, 10_000), 2)
	case micro <= -100 || micro >= 100:
		return dollars(small, 4)
	}
	return dollars(micro, 6)
}

// rounded is n/unit, half away from zero.
func rounded(n, unit int64) int64 {
	q, rest := n/unit, n%unit
	switch {
	case rest >= unit-unit/2:
		q++
	case -rest >= unit-unit/2:
		q--
	}
	return q
}

// dollars writes n units of 10^-decimals dollars.
func dollars(n int64, decimals int) string {
	digits, negative := strings.CutPrefix(strconv.FormatInt(n, 10), "-")
	if pad := decimals + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	whole, fraction := digits[:len(digits)-decimals], digits[len(digits)-decimals:]
	if decimals > 0 {
		fraction = "." + fraction
	}
	sign := ""
	if negative {
		sign = "−"
	}
	return sign + "$" + thousands(whole) + fraction
}

// exactUSD writes an amount for machines: six decimals, a plain minus sign.
func exactUSD(micro int64) string {
	digits, negative := strings.CutPrefix(strconv.FormatInt(micro, 10), "-")
	if pad := 7 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	out := digits[:len(digits)-6] + "." + digits[len(digits)-6:]
	if negative {
		return "-" + out
	}
	return out
}

func thousands(digits string) string {
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

func count(n int64) string {
	digits, negative := strings.CutPrefix(strconv.FormatInt(n, 10), "-")
	if negative {
		return "−" + thousands(digits)
	}
	return thousands(digits)
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// tokens writes a number of tokens in three or four digits: 950, 12.3k, 4.56M.
func tokens(n int64) string {
	f := float64(n)
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return strconv.FormatFloat(f/1e3, 'f', 1, 64) + "k"
	case n < 999_995_000:
		return strconv.FormatFloat(f/1e6, 'f', 2, 64) + "M"
	}
	return strconv.FormatFloat(f/1e9, 'f', 2, 64) + "B"
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
