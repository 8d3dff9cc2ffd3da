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

// almanac reads the words for times, as of a day.
type almanac struct {
	today       time.Time // civil
	loc         *time.Location
	sundayFirst bool
}

// span is a stretch of the calendar that words stand for.
type span struct {
	first, end time.Time // civil; end is the day after
	shift      shift     // to the one before
	text       string    // in the grammar's words
	n          int       // how many words it took
	// loose is how far from it the same words mean another one: a month without a year
	// is last year's, too.
	loose shift
	// dated is true of a day that was said with its month, which the other end of a
	// range can share: "1 to 5 November".
	dated bool
	// open is true of what ends with today: "since Monday".
	open bool
}

// complaint is what is wrong with words that were understood as a time: a sentence,
// or what is to be said after the words themselves.
type complaint struct {
	sentence, verdict string
	n                 int // how many words it is about
}

func complain(n int, format string, args ...any) *complaint {
	return &complaint{sentence: fmt.Sprintf(format, args...), n: n}
}

func notBegun(n int) *complaint { return &complaint{verdict: "has not begun.", n: n} }

func (a almanac) day(day time.Time, text string, n int) *span {
	return &span{first: day, end: day.AddDate(0, 0, 1), shift: shift{days: 1}, text: text, n: n}
}

func (a almanac) week(back int, text string) *span {
	since := (int(a.today.Weekday()) + 6) % 7 // days since Monday
	if a.sundayFirst {
		since = int(a.today.Weekday())
	}
	first := a.today.AddDate(0, 0, -since-7*back)
	return &span{first: first, end: first.AddDate(0, 0, 7), shift: shift{days: 7}, text: text}
}

func months(first time.Time, n int, text string) *span {
	return &span{first: first, end: first.AddDate(0, n, 0), shift: shift{months: n}, text: text}
}

// unit is the calendar's day, week, month, quarter or year that many before this one.
func (a almanac) unit(name string, back int, text string) *span {
	y, m, _ := a.today.Date()
	switch name {
	case "day":
		return a.day(a.today.AddDate(0, 0, -back), text, 0)
	case "week":
		return a.week(back, text)
	case "month":
		return months(civil(y, m-time.Month(back), 1), 1, text)
	case "quarter":
		return months(civil(y, m-(m-1)%3-time.Month(3*back), 1), 3, text)
	case "year":
		return months(civil(y-back, time.January, 1), 12, text)
	}
	return nil
}

// units are the words for units of time; hours are known to be refused.
var units = map[string]string{
	"day": "day", "days": "day", "week": "week", "weeks": "week", "month": "month", "months": "month",
	"quarter": "quarter", "quarters": "quarter", "year": "year", "years": "year",
	"hour": "hour", "hours": "hour", "minute": "hour", "minutes": "hour",
}

// toDate are what accountants write for periods that are still running.
var toDate = map[string]string{"wtd": "week", "mtd": "month", "qtd": "quarter", "ytd": "year"}

var (
	thises = wordSet("this current")
	lasts  = wordSet("last past previous prior")

	isoDate    = regexp.MustCompile(`^([0-9]{4})[-/]([0-9]{1,2})(?:[-/]([0-9]{1,2}))?$`)
	yearOnly   = regexp.MustCompile(`^[0-9]{4}$`)
	quarterISO = regexp.MustCompile(`^(?:([0-9]{4})-?)?q([0-9])$`)
	ordinal    = regexp.MustCompile(`^([0-9]{1,2})(?:st|nd|rd|th)?$`)
	whole      = regexp.MustCompile(`^[+-]?[0-9]+$`)
)

// point reads one time, of any length, at the beginning of the words. Neither a span
// nor a complaint means that the words are about something else.
func (a almanac) point(words []word) (*span, *complaint) {
	if len(words) == 0 || words[0].quoted {
		return nil, nil
	}
	if words[0].low == "the" { // "from the 1st to the 5th of November"
		return one(a.point(words[1:]))
	}
	w := words[0].low
	next := func(i int) string {
		if i < len(words) && !words[i].quoted {
			return words[i].low
		}
		return ""
	}
	switch {
	case w == "today" || w == "now":
		return a.day(a.today, "today", 1), nil
	case w == "yesterday":
		return a.day(a.today.AddDate(0, 0, -1), "yesterday", 1), nil
	case toDate[w] != "":
		s := a.unit(toDate[w], 0, "this "+toDate[w])
		s.n = 1
		return s, nil
	case w == "tomorrow":
		return nil, notBegun(1)
	case w == "next" && (units[next(1)] != "" || monthOf[next(1)] != 0):
		return nil, notBegun(2)
	case thises[w] || lasts[w]:
		return a.relative(w, next(1))
	case yearOnly.MatchString(w):
		y, err := strconv.Atoi(w)
		if err != nil {
			return nil, nil
		}
		s := months(civil(y, time.January, 1), 12, w)
		s.n = 1
		return s, nil
	}
	if m := isoDate.FindStringSubmatch(w); m != nil {
		return a.iso(m)
	}
	if m := quarterISO.FindStringSubmatch(w); m != nil {
		return a.quarter(m[1], m[2], next(1))
	}
	if month := monthOf[w]; month != 0 {
		if m := ordinal.FindStringSubmatch(next(1)); m != nil && units[next(2)] == "" {
			return a.monthDay(month, m[1], next(2), 2)
		}
		return a.month(month, next(1))
	}
	if m := ordinal.FindStringSubmatch(w); m != nil {
		n := 1
		if next(n) == "of" {
			n++
		}
		if month := monthOf[next(n)]; month != 0 {
			return a.monthDay(month, m[1], next(n+1), n+1)
		}
	}
	if day, ok := weekdayOf[w]; ok {
		back := (int(a.today.Weekday()) - int(day) + 7) % 7
		at := a.today.AddDate(0, 0, -back)
		s := a.day(at, isoDay(at), 1)
		s.loose = shift{days: 7}
		return s, nil
	}
	return nil, nil
}

// one is what was read, after one word more.
func one(s *span, c *complaint) (*span, *complaint) {
	if s != nil {
		s.n++
	}
	if c != nil {
		c.n++
	}
	return s, c
}

// bareDay reads a day without its month, "5th" or "the 5", and gives the number of words
// that it took; 0: it is none.
func bareDay(words []word) (day string, n int) {
	if len(words) > 0 && !words[0].quoted && words[0].low == "the" {
		n++
	}
	if n >= len(words) || words[n].quoted {
		return "", 0
	}
	m := ordinal.FindStringSubmatch(words[n].low)
	if m == nil {
		return "", 0
	}
	return m[1], n + 1
}

// relative reads "this week", "last month", "last October", "last Monday".
func (a almanac) relative(w, next string) (*span, *complaint) {
	back, name := 0, "this "
	if lasts[w] {
		back, name = 1, "last "
	}
	if unit := units[next]; unit != "" {
		s := a.unit(unit, back, name+unit)
		if s == nil {
			return nil, complain(2, "I count costs in whole days: “today” and “yesterday” are the shortest there is.")
		}
		if unit == "day" {
			s.text = [...]string{"today", "yesterday"}[back]
		}
		s.n = 2
		return s, nil
	}
	var s *span
	if month := monthOf[next]; month != 0 {
		s, _ = a.month(month, "")
		if back == 1 && s.end.After(a.today) { // still running, so the one before
			s, _ = a.month(month, strconv.Itoa(s.first.Year()-1))
		}
	} else if _, ok := weekdayOf[next]; ok {
		s, _ = a.point([]word{{low: next}})
		if back == 1 && s.first.Equal(a.today) {
			s = a.day(a.today.AddDate(0, 0, -7), isoDay(a.today.AddDate(0, 0, -7)), 1)
		}
	} else {
		return nil, nil
	}
	s.n, s.loose = 2, shift{}
	return s, nil
}

func (a almanac) iso(m []string) (*span, *complaint) {
	y, _ := strconv.Atoi(m[1]) // the pattern has digits only
	month, _ := strconv.Atoi(m[2])
	if month < 1 || month > 12 {
		return nil, complain(1, "There is no month %s: write %s-01 to %s-12.", m[2], m[1], m[1])
	}
	if m[3] == "" {
		s := months(civil(y, time.Month(month), 1), 1, fmt.Sprintf("%04d-%02d", y, month))
		s.n = 1
		return s, nil
	}
	s, c := a.monthDay(time.Month(month), m[3], m[1], 0)
	if c != nil {
		c.n = 1
		return nil, c
	}
	s.n = 1
	return s, nil
}

func (a almanac) quarter(year, number, next string) (*span, *complaint) {
	q, _ := strconv.Atoi(number)
	if q < 1 || q > 4 {
		return nil, complain(1, "There is no quarter %s: write Q1 to Q4.", number)
	}
	n := 1
	if year == "" && yearOnly.MatchString(next) {
		year, n = next, 2
	}
	y := a.today.Year()
	first := func() time.Time { return civil(y, time.Month(3*q-2), 1) }
	loose := shift{}
	if year != "" {
		y, _ = strconv.Atoi(year)
	} else {
		loose = shift{months: 12}
		if first().After(a.today) {
			y--
		}
	}
	s := months(first(), 3, fmt.Sprintf("%04d-Q%d", y, q))
	s.n, s.loose = n, loose
	return s, nil
}

// month reads a month's name, with the year if it follows; without one it is the
// latest that has begun.
func (a almanac) month(m time.Month, year string) (*span, *complaint) {
	y, n, loose := a.today.Year(), 1, shift{}
	if yearOnly.MatchString(year) {
		y, _ = strconv.Atoi(year)
		n = 2
	} else {
		loose = shift{months: 12}
		if civil(y, m, 1).After(a.today) {
			y--
		}
	}
	s := months(civil(y, m, 1), 1, fmt.Sprintf("%04d-%02d", y, int(m)))
	s.n, s.loose = n, loose
	return s, nil
}

// monthDay reads a day of a month, with the year if it follows; without one it is
// the latest that has begun. n words were read before the year.
func (a almanac) monthDay(m time.Month, day, year string, n int) (*span, *complaint) {
	d, _ := strconv.Atoi(day)
	y, loose := a.today.Year(), shift{}
	if yearOnly.MatchString(year) {
		y, _ = strconv.Atoi(year)
		n++
	} else {
		if d < 1 || d > monthDays(civil(2024, m, 1)) { // of a leap year
			return nil, complain(n, "%s has no day %d.", m, d)
		}
		loose = shift{months: 12}
		for civil(y, m, d).After(a.today) || d > monthDays(civil(y, m, 1)) {
			y--
		}
	}
	if last := monthDays(civil(y, m, 1)); d < 1 || d > last {
		return nil, complain(n, "%s %d has %d days, so there is no day %d.", m, y, last, d)
	}
	s := a.day(civil(y, m, d), isoDay(civil(y, m, d)), n)
	s.loose, s.dated = loose, true
	return s, nil
}

// rolling reads "7 days" after "last", or alone.
func (a almanac) rolling(words []word, before int) (*span, *complaint) {
	if len(words) < 2 || words[0].quoted || words[1].quoted {
		return nil, nil
	}
	unit := units[words[1].low]
	n, ok := number(words[0].low)
	if unit == "" || !ok {
		return nil, nil
	}
	said := before + 2
	most := map[string]int{"day": maxYears * 365, "week": maxYears * 52, "month": maxYears * 12, "quarter": maxYears * 4, "year": maxYears}[unit]
	switch {
	case unit == "hour":
		return nil, complain(said, "I count costs in whole days: “today” and “yesterday” are the shortest there is.")
	case n < 1:
		return nil, &complaint{verdict: "is no time at all: write 1 or more.", n: said}
	case n > most:
		return nil, &complaint{verdict: fmt.Sprintf("is too long: I can look back %d %ss at most.", most, unit), n: said}
	}
	s := &span{end: a.today.AddDate(0, 0, 1), text: "last " + countOf(n, unit), n: said}
	switch perMonth := map[string]int{"month": 1, "quarter": 3, "year": 12}[unit]; {
	case perMonth > 0:
		s.shift = shift{months: n * perMonth}
		s.first = addMonths(a.today, -n*perMonth).AddDate(0, 0, 1)
	case unit == "week":
		s.shift = shift{days: 7 * n}
	default:
		s.shift = shift{days: n}
	}
	if s.shift.months == 0 {
		s.first = s.end.AddDate(0, 0, -s.shift.days)
	}
	return s, nil
}

func countOf(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.Itoa(n) + " " + unit + "s"
}

// number reads a whole number; what is beyond all limits comes as a large one.
func number(s string) (int, bool) {
	for i, name := range numbers {
		if s == name {
			return i, true
		}
	}
	if !whole.MatchString(s) {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	if err != nil || n > 1_000_000 {
		n = 1_000_000
		if strings.HasPrefix(s, "-") {
			n = -1
		}
	}
	return n, true
}
