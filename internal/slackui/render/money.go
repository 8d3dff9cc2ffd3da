package render

import (
	"strconv"
	"strings"
	"time"
)

// USD writes an amount of micro-USD exactly: at least four decimals, six where
// the amount has them, so that what is shown adds up.
func USD(micro int64) string {
	if micro%100 == 0 {
		return usd(micro/100, 4)
	}
	return usd(micro, 6)
}

// roughUSD rounds to four decimals, half away from zero, for places where an
// amount is a hint and not an account. What is not nothing is not shown as nothing.
func roughUSD(micro int64) string {
	half := int64(50)
	if micro < 0 {
		half = -50
	}
	if r := (micro + half) / 100; r != 0 || micro == 0 {
		return usd(r, 4)
	}
	return usd(micro, 6)
}

// usd writes n units of 10^-decimals dollars.
func usd(n int64, decimals int) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "−", digits[1:]
	}
	if pad := decimals + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	whole, fraction := digits[:len(digits)-decimals], digits[len(digits)-decimals:]
	return sign + "$" + groupDigits(whole) + "." + fraction
}

// count writes n with a comma between thousands.
func count(n int) string {
	digits := strconv.Itoa(n)
	if strings.HasPrefix(digits, "-") {
		return "−" + groupDigits(digits[1:])
	}
	return groupDigits(digits)
}

func groupDigits(digits string) string {
	if len(digits) <= 3 {
		return digits
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// tokens writes a number of tokens for people: 950, 12.3k, 4.56M.
func tokens(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_950:
		return scaled(n, 1000, 1) + "k"
	case n < 999_995_000:
		return scaled(n, 1_000_000, 2) + "M"
	}
	return scaled(n, 1_000_000_000, 2) + "B"
}

// scaled writes n/unit with the given decimals, without zeros at the end.
func scaled(n, unit int64, decimals int) string {
	p := int64(1)
	for range decimals {
		p *= 10
	}
	q := (n + unit/p/2) / (unit / p)
	s := strconv.FormatInt(q/p, 10)
	fraction := strconv.FormatInt(p+q%p, 10)[1:]
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		s += "." + fraction
	}
	return s
}

// plural writes a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// span writes a duration for people: 0.4 s, 12 s, 3 min 5 s, 1 h 2 min.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		tenths := (d + 50*time.Millisecond) / (100 * time.Millisecond)
		if tenths%10 == 0 {
			return strconv.Itoa(int(tenths/10)) + " s"
		}
		return strconv.Itoa(int(tenths/10)) + "." + strconv.Itoa(int(tenths%10)) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return joinUnits(d, time.Minute, "min", time.Second, "s")
	}
	return joinUnits(d, time.Hour, "h", time.Minute, "min")
}

func joinUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := strconv.Itoa(int(d/big)) + " " + bigName
	if rest := int(d % big / small); rest > 0 {
		s += " " + strconv.Itoa(rest) + " " + smallName
	}
	return s
}

// clockTime is a moment in the reader's own time zone, as Slack renders it.
func clockTime(t time.Time) string {
	return "<!date^" + strconv.FormatInt(t.Unix(), 10) + "^{time}|" + t.UTC().Format("15:04") + " UTC>"
}
