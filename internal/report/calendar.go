package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The longest period that is answered, and the first year of any.
const (
	maxYears  = 5
	firstYear = 2000
)

// calendar reads the words for times, as of a day.
type calendar struct {
	today time.Time // civil
	loc   *time.Location
}

// span is a stretch of days that words stand for.
type span struct {
	first, end time.Time // civil; end is the day after the last one
	shift      shift     // to the one before
	text       string    // the usual words for it
	n          int       // how many words it took; 0: they are about something else
	// loose is how far from it the same words mean another one: a month without a year
	// is last year's, too.
	loose shift
	// dated is true of a day that was said with its month, which the other end of a
	// range can share: "1 to 5 November".
	dated bool
	open  bool // ends with today: "since Monday"
	// rolling is true of "last 7 days", which keeps its words as its name.
	rolling bool
	wrong   string // a sentence on why nothing can be said of it
}

func wrong(n int, format string, args ...any) span {
	return span{n: n, wrong: fmt.Sprintf(format, args...)}
}

func (s span) took(n int) span {
	s.n = n
	return s
}

func days(first time.Time, n int, text string) span {
	return span{first: first, end: first.AddDate(0, 0, n), shift: shift{days: n}, text: text}
}

func months(first time.Time, n int, text string) span {
	return span{first: first, end: first.AddDate(0, n, 0), shift: shift{months: n}, text: text}
}

var (
	thises    = wordSet("this current")
	lasts     = wordSet("last past previous prior")
	ranges    = wordSet("to until till through up")
	toDate    = map[string]string{"wtd": "week", "mtd": "month", "qtd": "quarter", "ytd": "year"}
	units     = unitNames()
	monthOf   = monthNames()
	weekdayOf = weekdayNames()

	dottedDate  = regexp.MustCompile(`^([0-9]{1,2})\.([0-9]{1,2})\.([0-9]{4})$`)
	slashedDate = regexp.MustCompile(`^[0-9]{1,2}/[0-9]{1,2}(?:/[0-9]{2,4})?$`)
	isoDate     = regexp.MustCompile(`^([0-9]{4})[-/]([0-9]{1,2})(?:[-/]([0-9]{1,2}))?$`)
	yearOnly    = regexp.MustCompile(`^[0-9]{4}$`)
	quarterISO  = regexp.MustCompile(`^(?:([0-9]{4})-?)?q([0-9])$`)
	dayOnly     = regexp.MustCompile(`^[0-9]{1,2}$`)
	whole       = regexp.MustCompile(`^[+-]?[0-9]+$`)
)

// unitNames are the words for units of time; what is shorter than a day is known to be
// refused.
func unitNames() map[string]string {
	names := map[string]string{"hour": "hour", "hours": "hour", "minute": "hour", "minutes": "hour"}
	for _, unit := range []string{"day", "week", "month", "quarter", "year"} {
		names[unit], names[unit+"s"] = unit, unit
	}
	return names
}

func monthNames() map[string]time.Month {
	names := map[string]time.Month{"sept": time.September}
	for m := time.January; m <= time.December; m++ {
		low := strings.ToLower(m.String())
		names[low], names[low[:3]] = m, m
	}
	return names
}

func weekdayNames() map[string]time.Weekday {
	names := map[string]time.Weekday{"tues": time.Tuesday, "thur": time.Thursday, "thurs": time.Thursday}
	for d := time.Sunday; d <= time.Saturday; d++ {
		low := strings.ToLower(d.String())
		names[low], names[low[:3]] = d, d
	}
	return names
}

// unit is the calendar's day, week, month, quarter or year that many before this one.
func (c calendar) unit(name string, back int) span {
	text := [...]string{"this ", "last "}[back] + name
	y, m, _ := c.today.Date()
	switch name {
	case "day":
		return days(c.today.AddDate(0, 0, -back), 1, [...]string{"today", "yesterday"}[back])
	case "week":
		since := (int(c.today.Weekday()) + 6) % 7 // days since Monday
		return days(c.today.AddDate(0, 0, -since-7*back), 7, text)
	case "month":
		return months(civil(y, m-time.Month(back), 1), 1, text)
	case "quarter":
		return months(civil(y, m-(m-1)%3-time.Month(3*back), 1), 3, text)
	case "year":
		return months(civil(y-back, time.January, 1), 12, text)
	}
	return wrong(0, wholeDays)
}

const wholeDays = "Costs are counted in whole days: “today” and “yesterday” are the shortest periods there are."

// point reads one time, of any length, at the beginning of the words.
func (c calendar) point(words []word) (s span) {
	w, next := low(words, 0), low(words, 1)
	switch {
	case w == "the": // "from the 1st to the 5th of November"
		if s = c.point(words[1:]); s.n > 0 {
			s.n++
		}
		return s
	case w == "today" || w == "now":
		return c.unit("day", 0).took(1)
	case w == "yesterday":
		return c.unit("day", 1).took(1)
	case toDate[w] != "":
		return c.unit(toDate[w], 0).took(1)
	case w == "tomorrow" || w == "next" && (units[next] != "" || monthOf[next] != 0):
		return wrong(1+min(1, len(units[next])), notBegun)
	case thises[w] || lasts[w]:
		return c.relative(lasts[w], next)
	case yearOnly.MatchString(w):
		y, _ := strconv.Atoi(w)
		return months(civil(y, time.January, 1), 12, w).took(1)
	case w == "may" && (next == "i" || next == "we"):
		return span{}
	case monthOf[w] != 0 && dayOnly.MatchString(next) && units[low(words, 2)] == "":
		return c.monthDay(monthOf[w], next, low(words, 2), 2)
	case monthOf[w] != 0:
		return c.month(monthOf[w], next)
	}
	if m := dottedDate.FindStringSubmatch(w); m != nil { // where dates have dots, the day is first
		w = m[3] + "-" + m[2] + "-" + m[1]
	} else if slashedDate.MatchString(w) {
		return wrong(1, "“%s” can be two days. Write it as in 2026-10-03 or 3 October.", w)
	}
	if m := isoDate.FindStringSubmatch(w); m != nil {
		month, _ := strconv.Atoi(m[2])
		y, _ := strconv.Atoi(m[1])
		switch {
		case month < 1 || month > 12:
			return wrong(1, "There is no month %s.", m[2])
		case m[3] == "":
			return months(civil(y, time.Month(month), 1), 1, fmt.Sprintf("%04d-%02d", y, month)).took(1)
		}
		return c.monthDay(time.Month(month), m[3], m[1], 0).took(1)
	}
	if m := quarterISO.FindStringSubmatch(w); m != nil {
		return c.quarter(m[1], m[2], next)
	}
	if dayOnly.MatchString(w) {
		n := 1
		if next == "of" {
			n++
		}
		if month := monthOf[low(words, n)]; month != 0 {
			return c.monthDay(month, w, low(words, n+1), n+1)
		}
	}
	if day, ok := weekdayOf[w]; ok {
		first := c.today.AddDate(0, 0, -(int(c.today.Weekday())-int(day)+7)%7)
		s = days(first, 1, isoDay(first)).took(1)
		s.loose = shift{days: 7}
	}
	return s
}

const notBegun = "That time has not begun."

// relative reads what follows "this" or "last": a unit, a month's name, or a weekday's.
func (c calendar) relative(last bool, next string) (s span) {
	back := 0
	if last {
		back = 1
	}
	if unit := units[next]; unit != "" {
		return c.unit(unit, back).took(2)
	}
	if month := monthOf[next]; month != 0 {
		s = c.month(month, "")
		if last && s.end.After(c.today) { // still running, so the one before
			s = c.month(month, strconv.Itoa(s.first.Year()-1))
		}
	} else if _, ok := weekdayOf[next]; ok {
		s = c.point([]word{{low: next}})
		if last && s.first.Equal(c.today) {
			s = days(c.today.AddDate(0, 0, -7), 1, isoDay(c.today.AddDate(0, 0, -7)))
		}
	} else {
		return span{}
	}
	s.n, s.loose = 2, shift{}
	return s
}

func (c calendar) quarter(year, number, next string) span {
	q, _ := strconv.Atoi(number)
	if q < 1 || q > 4 {
		return wrong(1, "There is no quarter %s.", number)
	}
	n := 1
	if year == "" && yearOnly.MatchString(next) {
		year, n = next, 2
	}
	y, loose := c.year(year, func(y int) time.Time { return civil(y, time.Month(3*q-2), 1) })
	s := months(civil(y, time.Month(3*q-2), 1), 3, fmt.Sprintf("%04d-Q%d", y, q)).took(n)
	s.loose = loose
	return s
}

// year is the one that was said, or else the latest in which the time has begun.
func (c calendar) year(said string, begins func(year int) time.Time) (y int, loose shift) {
	if yearOnly.MatchString(said) {
		y, _ = strconv.Atoi(said)
		return y, shift{}
	}
	y = c.today.Year()
	for begins(y).After(c.today) {
		y--
	}
	return y, shift{months: 12}
}

// month reads a month's name, with the year if it follows.
func (c calendar) month(m time.Month, year string) span {
	y, loose := c.year(year, func(y int) time.Time { return civil(y, m, 1) })
	s := months(civil(y, m, 1), 1, fmt.Sprintf("%04d-%02d", y, int(m))).took(1)
	if s.loose = loose; loose.months == 0 {
		s.n = 2
	}
	return s
}

// monthDay reads a day of a month, with the year if it follows. n words were read before
// the year.
func (c calendar) monthDay(m time.Month, day, year string, n int) span {
	d, _ := strconv.Atoi(day)
	if d < 1 || d > monthDays(civil(2024, m, 1)) { // of a leap year
		return wrong(max(n, 1), "%s has no day %d.", m, d)
	}
	y, loose := c.year(year, func(y int) time.Time {
		if d > monthDays(civil(y, m, 1)) {
			return c.today.AddDate(1, 0, 0) // 29 February of another year
		}
		return civil(y, m, d)
	})
	if loose.months == 0 {
		n++
	}
	if last := monthDays(civil(y, m, 1)); d > last {
		return wrong(n, "%s %d has %d days.", m, y, last)
	}
	s := days(civil(y, m, d), 1, isoDay(civil(y, m, d))).took(n)
	s.loose, s.dated = loose, true
	return s
}

// rollingDays reads "7 days", which end with today.
func (c calendar) rollingDays(words []word) span {
	n, err := strconv.Atoi(low(words, 0))
	unit := units[low(words, 1)]
	if unit == "" || err != nil && !whole.MatchString(low(words, 0)) {
		return span{}
	}
	most := map[string]int{"day": maxYears * 365, "week": maxYears * 52, "month": maxYears * 12, "quarter": maxYears * 4, "year": maxYears}[unit]
	switch {
	case unit == "hour":
		return wrong(2, wholeDays)
	case err != nil || n > most:
		return wrong(2, "That is too long: the most is %d %ss.", most, unit)
	case n < 1:
		return wrong(2, "“%s” is no time at all.", words[0].raw+" "+words[1].raw)
	}
	s := span{end: c.today.AddDate(0, 0, 1), text: "last " + strconv.Itoa(n) + " " + unit, n: 2, rolling: true}
	if n > 1 {
		s.text += "s"
	}
	switch unit {
	case "day":
		s.shift.days = n
	case "week":
		s.shift.days = 7 * n
	default:
		s.shift.months = n * map[string]int{"month": 1, "quarter": 3, "year": 12}[unit]
		s.first = addMonths(c.today, -s.shift.months).AddDate(0, 0, 1)
		return s
	}
	s.first = s.end.AddDate(0, 0, -s.shift.days)
	return s
}

// period reads a whole period at the beginning of the words: a time, a range, what is
// since a time, or so many days back. wrong is why it cannot be reported on.
func (c calendar) period(words []word) (p Period, n int, wrong string) {
	s := c.read(words)
	if s.n == 0 || s.wrong != "" {
		return Period{}, s.n, s.wrong
	}
	tomorrow := c.today.AddDate(0, 0, 1)
	switch {
	case s.first.After(c.today):
		return Period{}, s.n, notBegun
	case !s.first.Before(s.end):
		return Period{}, s.n, "The period ends before it begins: write the earlier time first."
	case s.end.After(addMonths(s.first, 12*maxYears)):
		return Period{}, s.n, fmt.Sprintf("That is too long: a report is of %d years at most.", maxYears)
	case s.first.Year() < firstYear:
		return Period{}, s.n, fmt.Sprintf("That is too long ago: there were no costs before %d.", firstYear)
	}
	end := s.end
	if end.After(tomorrow) {
		end = tomorrow
	}
	name := spanName(s.first, s.end)
	switch {
	case s.open:
		name = "since " + s.first.Format("2 January 2006")
	case s.rolling:
		name = "the " + strings.Replace(s.text, "last 1 ", "last ", 1) + " (" + spanName(s.first, end) + ")"
	case s.end.After(c.today):
		name += ", so far"
	}
	if s.shift == (shift{}) {
		s.shift.days = daysBetween(s.first, end)
	}
	p = newPeriod(s.first, end, s.shift, s.text, name, c.loc)
	p.open = s.open
	return p, s.n, ""
}

func (c calendar) read(words []word) (s span) {
	at := 0 // where the first end of a range would begin
	switch w := low(words, 0); {
	case lasts[w]:
		if s = c.rollingDays(words[1:]); s.n > 0 {
			return s.took(s.n + 1)
		}
	case w == "from" || w == "between" || w == "since" || w == "starting":
		at = 1
	}
	if s = c.rollingDays(words); s.n > 0 {
		return s
	}
	if s = c.between(words, at); s.n > 0 {
		return s
	}
	s = c.point(words[min(at, len(words)):])
	if s.n == 0 || at == 0 || s.wrong != "" {
		return s
	}
	if low(words, 0) == "between" {
		return span{}
	}
	return span{open: true, first: s.first, end: c.today.AddDate(0, 0, 1), text: "since " + isoDay(s.first), n: s.n + 1}
}

// between reads a range whose first end begins at words[at]. One end can be a day of the
// other's month: "1 to 5 November 2026", "November 1–5, 2026".
func (c calendar) between(words []word, at int) span {
	if at > len(words) {
		return span{}
	}
	from := c.point(words[at:])
	day, n := bareDay(words[at:])
	if from.n > 0 {
		day, n = "", from.n
	}
	sep := at + n
	for ranges[low(words, sep)] { // "up to"
		sep++
	}
	if sep == at+n && low(words, 0) == "between" && low(words, sep) == "and" {
		sep++
	}
	if n == 0 || sep == at+n {
		return span{}
	}
	to := c.point(words[sep:])
	if lastDay, m := bareDay(words[sep:]); to.n == 0 && m > 0 && from.dated {
		year := low(words, sep+m)
		if yearOnly.MatchString(year) {
			m++
			if from.loose.months != 0 {
				from = c.monthDay(from.first.Month(), strconv.Itoa(from.first.Day()), year, 0)
			}
		} else {
			year = strconv.Itoa(from.first.Year())
		}
		to = c.monthDay(from.first.Month(), lastDay, year, 0).took(m)
		from.loose = shift{}
	} else if day != "" && to.dated && to.wrong == "" {
		year := ""
		if to.loose.months == 0 {
			year = strconv.Itoa(to.first.Year())
		}
		n := to.n
		if from = c.monthDay(to.first.Month(), day, year, 0); from.wrong == "" {
			to = c.monthDay(from.first.Month(), strconv.Itoa(to.first.Day()), strconv.Itoa(from.first.Year()), 0).took(n)
			from.loose = shift{}
		}
	}
	end := sep + max(to.n, 0)
	switch {
	case from.wrong != "":
		return wrong(end, "%s", from.wrong)
	case to.wrong != "":
		return wrong(end, "%s", to.wrong)
	case to.n == 0 || from.first.IsZero():
		return span{}
	}
	settle(&from, &to)
	s := span{first: from.first, end: to.end, n: end}
	s.text = "from " + isoDay(s.first) + " to " + isoDay(s.end.AddDate(0, 0, -1))
	if s.first.Day() == 1 && s.end.Day() == 1 {
		s.shift.months = 12*(s.end.Year()-s.first.Year()) + int(s.end.Month()) - int(s.first.Month())
	}
	return s
}

// bareDay reads a day without its month, "5th" or "the 5".
func bareDay(words []word) (day string, n int) {
	if low(words, 0) == "the" {
		n++
	}
	if day = low(words, n); !dayOnly.MatchString(day) {
		return "", 0
	}
	return day, n + 1
}

// settle chooses among the times that an end without its year can mean. If neither has
// one, the range is the latest that has begun; else the loose end is the nearest to the
// other. Of weekdays it is the latest that is over.
func settle(from, to *span) {
	for to.loose.months != 0 && (from.loose == shift{} || from.loose.months != 0) && !from.first.Before(to.end) {
		to.first, to.end = addMonths(to.first, to.loose.months), addMonths(to.end, to.loose.months)
	}
	for to.loose.days != 0 && from.loose == (shift{}) && !from.first.Before(to.end) {
		to.first, to.end = to.first.AddDate(0, 0, to.loose.days), to.end.AddDate(0, 0, to.loose.days)
	}
	for from.loose != (shift{}) && !from.first.Before(to.end) {
		from.first = addMonths(from.first, -from.loose.months).AddDate(0, 0, -from.loose.days)
	}
}
