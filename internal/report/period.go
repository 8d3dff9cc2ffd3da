package report

import (
	"strconv"
	"time"
)

// Period is a stretch of whole days in somebody's time zone. The zero Period is no
// time at all.
type Period struct {
	// From is the first instant of the first day.
	From time.Time
	// To is the first instant after the last day, at most the end of the day of the question: the future has cost
	// nothing.
	To time.Time
	// Name says it to people: "October 2026", "16–21 November 2026, so far", "since 16
	// November 2026".
	Name string

	text  string    // as the grammar has it; parses back to the same period
	open  bool      // "since Monday"
	shift shift     // to the period before
	first time.Time // civil day, midnight UTC
	end   time.Time // civil day after the last one
	loc   *time.Location
}

// shift is the distance to the previous period: calendar units, or days.
type shift struct{ months, days int }

// costs are the period's in a heading: "Costs of October 2026", "Costs since 16 November
// 2026".
func (p Period) costs() string {
	if p.open {
		return "Costs " + p.Name
	}
	return "Costs of " + p.Name
}

// during puts the period into a sentence: "on Friday, 20 November 2026", "during October
// 2026".
func (p Period) during() string {
	switch {
	case p.open:
		return p.Name
	case p.Days() == 1:
		return "on " + p.Name
	}
	return "during " + p.Name
}

// Days is how many days the period has.
func (p Period) Days() int { return daysBetween(p.first, p.end) }

// LastDay is the period's last day, at its first instant.
func (p Period) LastDay() time.Time {
	if p.loc == nil {
		return p.To
	}
	return startOfDay(p.end.AddDate(0, 0, -1), p.loc)
}

// Previous is the period before, of the same kind and length: the month before a
// month, the same days of last month before a month that is still running, the
// seven days before the last seven days.
func (p Period) Previous() Period {
	if p.loc == nil {
		return Period{}
	}
	first, end := p.first, p.end
	switch {
	case p.shift.months == 0:
		first, end = first.AddDate(0, 0, -p.shift.days), end.AddDate(0, 0, -p.shift.days)
	case first.Day() == 1 && end.Day() == 1: // whole months, however long they are
		first, end = first.AddDate(0, -p.shift.months, 0), end.AddDate(0, -p.shift.months, 0)
	default:
		last := addMonths(end.AddDate(0, 0, -1), -p.shift.months)
		first, end = addMonths(first, -p.shift.months), last.AddDate(0, 0, 1)
		if end.After(p.first) { // rolling months that end on a short one
			end = p.first
		}
	}
	return newPeriod(first, end, p.shift, "from "+isoDay(first)+" to "+isoDay(end.AddDate(0, 0, -1)), spanName(first, end), p.loc)
}

func newPeriod(first, end time.Time, s shift, text, name string, loc *time.Location) Period {
	return Period{
		From: startOfDay(first, loc), To: startOfDay(end, loc), Name: name,
		text: text, shift: s, first: first, end: end, loc: loc,
	}
}

// civil is a day of the calendar, kept as midnight UTC so that days can be counted
// without regard to clocks that are put forward or back.
func civil(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// civilDay is the day that t falls on in loc.
func civilDay(t time.Time, loc *time.Location) time.Time {
	y, m, d := t.In(loc).Date()
	return civil(y, m, d)
}

// startOfDay is the first instant of a civil day in loc. Some zones change their
// clocks at midnight: there the day starts at one o'clock, or midnight comes twice.
func startOfDay(day time.Time, loc *time.Location) time.Time {
	y, m, d := day.Date()
	t := time.Date(y, m, d, 0, 0, 0, 0, loc)
	for civilDay(t, loc).Before(day) {
		t = t.Add(15 * time.Minute)
	}
	for earlier := t.Add(-15 * time.Minute); civilDay(earlier, loc).Equal(day); earlier = earlier.Add(-15 * time.Minute) {
		t = earlier
	}
	return t
}

func daysBetween(first, end time.Time) int { return int(end.Sub(first) / (24 * time.Hour)) }

// addMonths keeps to the month that is meant: a month before 31 March is the last
// day of February.
func addMonths(day time.Time, n int) time.Time {
	y, m, d := day.Date()
	target := civil(y, m+time.Month(n), 1)
	return target.AddDate(0, 0, min(d, monthDays(target))-1)
}

func monthDays(day time.Time) int {
	y, m, _ := day.Date()
	return civil(y, m+1, 0).Day()
}

func isoDay(day time.Time) string { return day.Format(time.DateOnly) }

// spanName names the days from first up to end: whole months, quarters and years by
// their names.
func spanName(first, end time.Time) string {
	last := end.AddDate(0, 0, -1)
	if !last.After(first) {
		return first.Format("Monday, 2 January 2006")
	}
	sameYear := first.Year() == last.Year()
	if first.Day() == 1 && end.Day() == 1 {
		switch {
		case addMonths(first, 1).Equal(end):
			return first.Format("January 2006")
		case sameYear && first.Month() == time.January && end.Month() == time.January:
			return first.Format("2006")
		case addMonths(first, 3).Equal(end) && int(first.Month())%3 == 1:
			return "Q" + strconv.Itoa((int(first.Month())+2)/3) + first.Format(" 2006")
		case sameYear:
			return first.Format("January – ") + last.Format("January 2006")
		}
		return first.Format("January 2006 – ") + last.Format("January 2006")
	}
	switch {
	case sameYear && first.Month() == last.Month():
		return first.Format("2–") + last.Format("2 January 2006")
	case sameYear:
		return first.Format("2 January – ") + last.Format("2 January 2006")
	}
	return first.Format("2 January 2006 – ") + last.Format("2 January 2006")
}
