package costs

import (
	"fmt"
	"strings"
	"time"
)

// Digest is a report on costs that is posted again and again, of the period that has
// just ended.
type Digest struct {
	Every        DigestPeriod
	Hour, Minute int    // when it is due, on the clocks of the store's time zone
	To           string // a channel, or a person
	// Question says what to report, in the words of a question about costs, without a
	// period; may be empty.
	Question string
}

// DigestPeriod is how often a digest comes, and what it is of.
type DigestPeriod string

// The periods.
const (
	Daily   DigestPeriod = "day"   // every day, of the day before
	Weekly  DigestPeriod = "week"  // on Mondays, of the week before
	Monthly DigestPeriod = "month" // on the first of the month, of the month before
)

// Words is the whole question that a digest asks when it is due.
func (d Digest) Words() string {
	period := map[DigestPeriod]string{Daily: "yesterday", Weekly: "last week", Monthly: "last month"}[d.Every]
	return strings.TrimSpace(period + " " + d.Question)
}

// key names the digest among all there are, now and later: one that is changed in
// the configuration is another one.
func (d Digest) key(zone *time.Location) string {
	return fmt.Sprintf("%s %02d:%02d %s %s %s", d.Every, d.Hour, d.Minute, zone, d.To, d.Question)
}

// onDay is when the digest is due on a day of the calendar; ok is false if it is not
// due on that day. Where clocks skip the time of day, it is the first moment after
// the gap; where it comes twice, the first.
func (d Digest) onDay(year int, month time.Month, day int, zone *time.Location) (due time.Time, ok bool) {
	noon := time.Date(year, month, day, 12, 0, 0, 0, time.UTC)
	ok = d.Every == Daily || d.Every == Weekly && noon.Weekday() == time.Monday || d.Every == Monthly && noon.Day() == 1
	return onClock(time.Date(year, month, day, d.Hour, d.Minute, 0, 0, time.UTC), zone), ok
}

// onClock is the first moment at which a clock in the zone shows the given date and
// time, or the end of the gap in which it is skipped.
func onClock(shown time.Time, zone *time.Location) time.Time {
	clock := func(t time.Time) time.Time {
		_, offset := t.Zone()
		return t.UTC().Add(time.Duration(offset) * time.Second)
	}
	at := time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), 0, 0, zone)
	start, end := at.ZoneBounds()
	switch got := clock(at); {
	case got.Before(shown) && !end.IsZero(): // pushed to one side of the gap
		return end
	case got.After(shown) && !start.IsZero(): // or to the other
		return start
	}
	if !start.IsZero() { // the same may have been shown before the clocks were put back
		_, now := at.Zone()
		_, before := start.Add(-1).Zone()
		if first := at.Add(time.Duration(now-before) * time.Second); first.Before(start) && clock(first).Equal(shown) {
			return first
		}
	}
	return at
}

// scan is how many days a due time can be away: a month, and the day before.
const scan = 33

// next is the first due time after t.
func (d Digest) next(t time.Time, zone *time.Location) time.Time {
	return d.find(t, zone, 1, func(due time.Time) bool { return due.After(t) })
}

// last is the latest due time that is not after t.
func (d Digest) last(t time.Time, zone *time.Location) time.Time {
	return d.find(t, zone, -1, func(due time.Time) bool { return !due.After(t) })
}

// find looks from the day of t, day by day, for a due time that fits.
func (d Digest) find(t time.Time, zone *time.Location, step int, fits func(time.Time) bool) time.Time {
	year, month, day := t.In(zone).Date()
	for i := -1; i <= scan; i++ { // a gap at midnight can move a due time to the next day
		at := time.Date(year, month, day+i*step, 12, 0, 0, 0, time.UTC)
		if due, ok := d.onDay(at.Year(), at.Month(), at.Day(), zone); ok && fits(due) {
			return due
		}
	}
	return time.Time{} // only for an unknown period
}
