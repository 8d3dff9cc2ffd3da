package render

import (
	"slices"
	"strconv"
	"time"

	"deckhand/internal/report"
)

// count writes n with a comma between thousands.
func count(n int) string { return report.Count(int64(n)) }

// plural writes a number with its noun.
func plural(n int, one, many string) string { return report.Plural(int64(n), one, many) }

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

// firstOf is a list of at most so many, and how many more there are.
func firstOf(list []string, most int, and string) []string {
	if more := len(list) - most; more > 0 {
		return append(slices.Clone(list[:most]), and+count(more)+" more")
	}
	return list
}

// clockTime is a moment in the reader's own time zone, as Slack renders it.
func clockTime(t time.Time) string {
	return slackDate(t, "{time}", "15:04 UTC")
}
